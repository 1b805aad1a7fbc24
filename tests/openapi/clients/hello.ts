// SPDX-License-Identifier: Apache-2.0
// openapi-generator generate -g typescript-fetch -i http://127.0.0.1:8080/openapi-3.0.json -o client
import { ChannelsApi, ChatApi, Configuration, ProblemReplyFromJSON, ResponseError, UnreadApi } from "./client";

declare const process: { env: Record<string, string> };

const configuration = new Configuration({
    basePath: process.env.API,
    accessToken: process.env.TOKEN,
    headers: { "X-Tidings-Errors": "http" },
});
const channel = process.env.CHANNEL;
const channels = new ChannelsApi(configuration);

async function hello(): Promise<void> {
    const posted = await new ChatApi(configuration).chatPostMessage({
        chatPostMessageRequest: {
            channel,
            text: "Hello from TypeScript",
            blocks: [{ type: "section", text: { type: "plain_text", text: "Hello from TypeScript" } }],
        },
    });
    console.log("posted", posted.message?.blocks?.[0]["text"].text);

    const info = await channels.channelsInfo({ channelsInfoRequest: { channel } });
    console.log("info", info.channel?.id, info.channel?.unreadCount);

    const sync = await new UnreadApi(configuration).unreadSync({ unreadSyncRequest: {} });
    const row = sync.channels?.find((row) => row.id === channel);
    console.log("sync", row?.id, row?.unreadCount);

    let cursor: string | undefined;
    for (let page = 0; page < 2; page++) {
        const history = await channels.channelsHistory({ channelsHistoryRequest: { channel, limit: 1, cursor } });
        console.log("history", history.messages?.[0].text);
        cursor = history.responseMetadata?.nextCursor;
    }

    try {
        await channels.channelsInfo({ channelsInfoRequest: { channel: "C0000000000" } });
    } catch (refused) {
        if (refused instanceof ResponseError) {
            console.log("error", refused.response.status, ProblemReplyFromJSON(await refused.response.json()).error);
        }
    }
}

hello();
