// SPDX-License-Identifier: Apache-2.0
// openapi-generator generate -g typescript-fetch -i http://127.0.0.1:8080/openapi-3.0.json -o client
import { ChannelsApi, ChatApi, Configuration } from "./client";

declare const process: { env: Record<string, string> };

const configuration = new Configuration({
    basePath: process.env.API.replace(/\/$/, ""),
    accessToken: process.env.TOKEN,
});
const channel = process.env.CHANNEL;

async function hello(): Promise<void> {
    const posted = await new ChatApi(configuration).chatPostMessage({
        chatPostMessageRequest: {
            channel,
            text: "Hello from TypeScript",
            blocks: [{ type: "section", text: { type: "plain_text", text: "Hello!" } }],
        },
    });
    if (!posted.ok) {
        throw new Error(posted.error);
    }
    const history = await new ChannelsApi(configuration).channelsHistory({
        channelsHistoryRequest: { channel, limit: 1 },
    });
    for (const message of history.messages ?? []) {
        console.log(message.ts === posted.ts, message.text, message.blocks?.[0]["text"].text);
    }
}

hello();
