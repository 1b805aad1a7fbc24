// SPDX-License-Identifier: Apache-2.0
// openapi-ts -i http://127.0.0.1:8080/openapi.json -o tidings
import { channelsHistory, channelsInfo, chatPostMessage, unreadSync } from "./tidings";
import { client } from "./tidings/client.gen";

declare const process: { env: Record<string, string> };

const channel = process.env.CHANNEL;
client.setConfig({ baseUrl: process.env.API, auth: process.env.TOKEN, headers: { "X-Tidings-Errors": "http" } });

async function main(): Promise<void> {
    const posted = await chatPostMessage({ body: { channel, text: "Hello from Hey API" } });
    if (posted.data?.ok) {
        console.log("posted", posted.data.message?.text);
    }
    const info = await channelsInfo({ body: { channel } });
    if (info.data?.ok) {
        console.log("info", info.data.channel.id, info.data.channel.unread_count);
    }
    const sync = await unreadSync({ body: {} });
    if (sync.data?.ok) {
        const row = sync.data.channels.find((row) => row.id === channel);
        console.log("sync", row?.id, row?.unread_count);
    }
    let cursor: string | undefined;
    for (let page = 0; page < 2; page++) {
        const history = await channelsHistory({ body: { channel, limit: 1, cursor } });
        if (history.data?.ok) {
            console.log("history", history.data.messages[0].text);
            cursor = history.data.response_metadata?.next_cursor;
        }
    }
    const refused = await channelsInfo({ body: { channel: "C0000000000" } });
    if (refused.error) {
        console.log("error", refused.response?.status, refused.error.error);
    }
}

main();
