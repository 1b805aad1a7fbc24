// SPDX-License-Identifier: Apache-2.0
// openapi-generator generate -g java --library native -i http://127.0.0.1:8080/openapi-3.0.json -o client
import java.util.Map;

import org.openapitools.client.ApiClient;
import org.openapitools.client.api.ChannelsApi;
import org.openapitools.client.api.ChatApi;
import org.openapitools.client.model.Block;
import org.openapitools.client.model.ChannelsHistoryRequest;
import org.openapitools.client.model.ChatPostMessageRequest;

public class Hello {
    public static void main(String[] arguments) throws Exception {
        var client = new ApiClient();
        client.updateBaseUri(System.getenv("API").replaceAll("/$", ""));
        client.setRequestInterceptor(
                request -> request.header("Authorization", "Bearer " + System.getenv("TOKEN")));
        var channel = System.getenv("CHANNEL");

        var section = new Block().type("section");
        section.putAdditionalProperty("text", Map.of("type", "plain_text", "text", "Hello!"));
        var posted = new ChatApi(client).chatPostMessage(
                new ChatPostMessageRequest().channel(channel).text("Hello from Java").addBlocksItem(section));
        if (!posted.getOk()) {
            throw new RuntimeException(posted.getError());
        }
        var history = new ChannelsApi(client).channelsHistory(new ChannelsHistoryRequest().channel(channel).limit(1));
        for (var message : history.getMessages()) {
            var text = (Map<?, ?>) message.getBlocks().get(0).getAdditionalProperty("text");
            System.out.println(message.getTs().equals(posted.getTs()) + " " + message.getText() + " " + text.get("text"));
        }
    }
}
