// SPDX-License-Identifier: Apache-2.0
// A client that works offline. Everything it shows, writes and marks is in a file; `sync` exchanges that with the server, and
// may be cut off anywhere: run again, it goes on, and nothing is lost or posted twice.
//
//     node phone.ts show | say CHANNEL TEXT | read CHANNEL | sync
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import createClient from "openapi-fetch";
import type { components, paths } from "./tidings.ts";

type Frame = components["schemas"]["SyncEvent"];
type Message = { user?: string; text?: string };
type Posted = Message & { ts: string; subtype?: string; thread_ts?: string };
type Channel = { id: string; name: string; lastRead: string; readEpoch: number; messages: Record<string, Message> };
type Store = {
    me: string;
    names: Record<string, string>;
    channels: Record<string, Channel>; // by name
    position?: string; // up to which all events are in here
    outbox: { channel: string; text: string; client_msg_id: string }[];
    marks: Record<string, { channel: string; ts: string; read_epoch: number }>;
};

const { API, TOKEN, STORE = "phone.json" } = process.env;
const api = createClient<paths>({ baseUrl: API, headers: { Authorization: `Bearer ${TOKEN}` } });
const empty: Store = { me: "", names: {}, channels: {}, outbox: [], marks: {} };
const store: Store = existsSync(STORE) ? JSON.parse(readFileSync(STORE, "utf8")) : empty;

// The whole store or nothing: a position must never be newer than the messages beside it.
function save(): void {
    writeFileSync(`${STORE}.new`, JSON.stringify(store));
    renameSync(`${STORE}.new`, STORE);
}

async function ok<T extends { ok: boolean }>(call: Promise<{ data?: T; error?: unknown }>): Promise<Extract<T, { ok: true }>> {
    const { data, error } = await call;
    if (!data?.ok) throw new Error(JSON.stringify(data ?? error));
    return data as Extract<T, { ok: true }>;
}

// The first time: all channels. The position comes before the messages, so what happens in between comes again, which does no
// harm: a message is stored under its `ts`.
async function start(): Promise<void> {
    store.me = (await ok(api.POST("/auth.test", { body: {} }))).user_id!;
    for (const user of (await ok(api.POST("/users.list", { body: {} }))).members) store.names[user.id] = user.name;
    const sidebar = await ok(api.POST("/unread.sync", { body: {} }));
    for (const row of [...sidebar.channels, ...sidebar.mpims, ...sidebar.ims]) await open(row);
    store.position = sidebar.position;
}

// A channel that is not in the store yet, with the page of messages that is seen first.
async function open(row: { id: string; name?: string; user?: string; last_read?: string; read_epoch?: number }): Promise<void> {
    const { messages } = await ok(api.POST("/channels.history", { body: { channel: row.id, limit: 100 } }));
    const name = row.name ?? store.names[row.user ?? ""] ?? row.id;
    store.channels[name] = { id: row.id, name, lastRead: row.last_read ?? "", readEpoch: row.read_epoch ?? 0, messages: {} };
    for (const message of messages) put(store.channels[name], message);
}

// Posts what waits, in the order in which it was written. One whose reply was lost is sent again under the same id: the server
// answers with the message that it has.
async function sendOutbox(): Promise<void> {
    while (store.outbox.length > 0) {
        const { data, error } = await api.POST("/chat.postMessage", { body: store.outbox[0] });
        if (!data) throw new Error(JSON.stringify(error));
        if (!data.ok && ["service_unavailable", "ratelimited"].includes(data.error)) throw new Error(data.error); // later
        if (!data.ok) console.log(`not posted: ${store.outbox[0].text} (${data.error})`);
        store.outbox.shift();
        save();
    }
}

// All marks in one call. A mark never takes another device's back: the server keeps the later one, and none of before a
// "mark as unread" counts (read_epoch).
async function sendMarks(): Promise<void> {
    const marks = Object.values(store.marks);
    if (marks.length > 0) await ok(api.POST("/channels.markMany", { body: { marks } }));
    store.marks = {}; // the marks come back as events, like those of other devices
    save();
}

// What happened since the position, a page at a time. Each page is saved with its position, so a break costs one page at most.
async function receive(): Promise<void> {
    for (let hasMore = true; hasMore; ) {
        const page = await ok(api.POST("/events.sync", { body: { since: store.position!, limit: 1000 } }));
        if (page.gaps.length > 0) await start(); // away for longer than events are kept: begin anew
        else for (const frame of page.events) await apply(frame);
        store.position = page.position;
        save();
        hasMore = page.has_more;
    }
}

// An event that comes twice changes nothing the second time.
async function apply(frame: Frame): Promise<void> {
    const id = typeof frame.channel === "object" ? frame.channel.id : frame.channel;
    const channel = Object.values(store.channels).find((one) => one.id === id);
    const isMine = frame.user === store.me;
    if (!channel && frame.type === "member_joined_channel" && isMine) {
        await open((await ok(api.POST("/channels.info", { body: { channel: id! } }))).channel);
    }
    if (!channel) return;
    if (frame.type === "member_left_channel" && isMine) delete store.channels[channel.name];
    if (frame.type === "message" && frame.subtype === "message_deleted") delete channel.messages[frame.deleted_ts!];
    else if (frame.type === "message") put(channel, frame.subtype === "message_changed" ? frame.message! : (frame as Posted));
    const epoch = frame.read_epoch ?? -1;
    if (frame.last_read && (epoch > channel.readEpoch || (epoch === channel.readEpoch && frame.last_read > channel.lastRead))) {
        Object.assign(channel, { lastRead: frame.last_read, readEpoch: epoch });
    }
}

// Keeps what people wrote in the channel itself: no notices of joins and such, no replies in threads.
function put(channel: Channel, { ts, user, text, subtype, thread_ts: thread }: Posted): void {
    if (!subtype && (!thread || thread === ts)) channel.messages[ts] = { user, text };
}

function show(): void {
    for (const { id, name, lastRead, messages } of Object.values(store.channels)) {
        const seen = store.marks[id]?.ts ?? lastRead;
        const unread = Object.entries(messages).filter(([ts, { user }]) => ts > seen && user !== store.me).length;
        console.log(`${name}: ${unread} unread`);
        for (const ts of Object.keys(messages).sort().slice(-5)) {
            console.log(`    ${store.names[messages[ts].user ?? ""] ?? "?"}: ${messages[ts].text}`);
        }
        for (const post of store.outbox.filter((post) => post.channel === id)) console.log(`    me: ${post.text} (waits)`);
    }
}

const [command, name, ...words] = process.argv.slice(2);
const channel = store.channels[name];
if (command === "show") {
    show();
} else if (command === "sync") {
    try {
        if (!store.position) await start();
        await sendOutbox();
        await sendMarks();
        await receive();
    } catch (error) {
        console.error(`offline: ${(error as Error).message}`); // nothing is lost: what waits is sent by the next sync
    }
} else if (command === "say" && channel) {
    store.outbox.push({ channel: channel.id, text: words.join(" "), client_msg_id: randomUUID() });
} else if (command === "read" && channel) {
    const ts = Object.keys(channel.messages).sort().at(-1);
    if (ts) store.marks[channel.id] = { channel: channel.id, ts, read_epoch: channel.readEpoch };
} else {
    console.error("phone.ts show | say CHANNEL TEXT | read CHANNEL | sync");
    process.exitCode = 2;
}
save();
