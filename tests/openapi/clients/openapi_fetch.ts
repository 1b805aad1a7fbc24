// SPDX-License-Identifier: Apache-2.0
// openapi-typescript http://127.0.0.1:8080/openapi-3.0.json -o tidings.ts
import createClient from "openapi-fetch";
import type { paths } from "./tidings";

declare const process: { env: Record<string, string> };

const channel = process.env.CHANNEL;
const client = createClient<paths>({
    baseUrl: process.env.API,
    headers: { Authorization: `Bearer ${process.env.TOKEN}`, "X-Tidings-Errors": "http" },
});

async function main(): Promise<void> {
    const posted = await client.POST("/chat.postMessage", { body: { channel, text: "Hello from openapi-fetch" } });
    console.log("posted", posted.data?.message?.text);

    const info = await client.POST("/channels.info", { body: { channel } });
    console.log("info", info.data?.channel?.id, info.data?.channel?.unread_count);

    const sync = await client.POST("/unread.sync", { body: {} });
    const row = sync.data?.channels?.find((row) => row.id === channel);
    console.log("sync", row?.id, row?.unread_count);

    let cursor: string | undefined;
    for (let page = 0; page < 2; page++) {
        const history = await client.POST("/channels.history", { body: { channel, limit: 1, cursor } });
        console.log("history", history.data?.messages?.[0].text);
        cursor = history.data?.response_metadata?.next_cursor;
    }

    const refused = await client.POST("/channels.info", { body: { channel: "C0000000000" } });
    console.log("error", refused.response.status, refused.error?.error);
}

main();
