// SPDX-License-Identifier: Apache-2.0
// openapi-generator generate -g java --library native -i http://127.0.0.1:8080/openapi-3.0.json -o client
import java.util.Map;

import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.ChannelsApi;
import org.openapitools.client.api.ChatApi;
import org.openapitools.client.api.UnreadApi;
import org.openapitools.client.model.Block;
import org.openapitools.client.model.ChannelsHistoryRequest;
import org.openapitools.client.model.ChannelsInfoRequest;
import org.openapitools.client.model.ChatPostMessageRequest;
import org.openapitools.client.model.ProblemReply;
import org.openapitools.client.model.UnreadSyncRequest;

public class Hello {
    public static void main(String[] arguments) throws Exception {
        var client = new ApiClient();
        client.updateBaseUri(System.getenv("API"));
        client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + System.getenv("TOKEN"))
                .header("X-Tidings-Errors", "http"));
        var channel = System.getenv("CHANNEL");
        var channels = new ChannelsApi(client);

        var section = new Block().type("section");
        section.putAdditionalProperty("text", Map.of("type", "plain_text", "text", "Hello from Java"));
        var posted = new ChatApi(client).chatPostMessage(
                new ChatPostMessageRequest().channel(channel).text("Hello from Java").addBlocksItem(section));
        var text = (Map<?, ?>) posted.getMessage().getBlocks().get(0).getAdditionalProperty("text");
        System.out.println("posted " + text.get("text"));

        var info = channels.channelsInfo(new ChannelsInfoRequest().channel(channel)).getChannel();
        System.out.println("info " + info.getId() + " " + info.getUnreadCount());

        for (var row : new UnreadApi(client).unreadSync(new UnreadSyncRequest()).getChannels()) {
            if (row.getId().equals(channel)) {
                System.out.println("sync " + row.getId() + " " + row.getUnreadCount());
            }
        }

        var page = new ChannelsHistoryRequest().channel(channel).limit(1);
        for (int i = 0; i < 2; i++) {
            var history = channels.channelsHistory(page);
            System.out.println("history " + history.getMessages().get(0).getText());
            page.cursor(history.getResponseMetadata().getNextCursor());
        }

        try {
            channels.channelsInfo(new ChannelsInfoRequest().channel("C0000000000"));
        } catch (ApiException refused) {
            var problem = client.getObjectMapper().readValue(refused.getResponseBody(), ProblemReply.class);
            System.out.println("error " + refused.getCode() + " " + problem.getError());
        }
    }
}
