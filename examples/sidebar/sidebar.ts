// SPDX-License-Identifier: Apache-2.0
// A sidebar in a terminal: the user's channels with their unread counts, and each new message, live and across breaks of the connection.
import createClient from "openapi-fetch";
import type { components, paths } from "./tidings.ts";

type Row = components["schemas"]["SyncChannel"];
type Frame = components["schemas"]["SyncEvent"];

const { API, TOKEN } = process.env;
const api = createClient<paths>({ baseUrl: API, headers: { Authorization: `Bearer ${TOKEN}` } });

const names = new Map<string, string>(); // of users
const rows = new Map<string, Row>();
const told = new Map<string, number>(); // of each channel: the `seq` of the last event that was shown
let syncToken: string | undefined; // what changed in the sidebar since the last call
let position: string; // which events this client has, of all channels

// The reply of a call that must succeed.
async function ok<T extends { ok: boolean }>(call: Promise<{ data?: T; error?: unknown }>): Promise<Extract<T, { ok: true }>> {
    const { data, error } = await call;
    if (!data?.ok) throw new Error(JSON.stringify(data ?? error));
    return data as Extract<T, { ok: true }>;
}

// Logging in is one call, which has all that a sidebar shows. Later the same call has only the rows that changed, with exact
// counts: whatever happened, a mark on another device or a delete, this client need not do sums.
async function sync(): Promise<void> {
    const reply = await ok(api.POST("/unread.sync", { body: { since: syncToken } }));
    if (reply.full) rows.clear();
    for (const row of [...reply.channels, ...reply.mpims, ...reply.ims]) {
        rows.set(row.id, row);
        if (!told.has(row.id)) told.set(row.id, row.seq);
        const mentions = row.mention_count > 0 ? ` (${row.mention_count} mentions)` : "";
        console.log(`${title(row.id)}: ${row.unread_count ?? (row.has_unreads ? "some" : "none")} unread${mentions}`);
    }
    for (const id of reply.removed) rows.delete(id);
    syncToken = reply.sync_token;
    position ??= reply.position;
}

let isSyncDue = false;

// Once for all frames that come within a moment.
function syncSoon(): void {
    if (isSyncDue) return;
    isSyncDue = true;
    setTimeout(() => {
        isSyncDue = false;
        sync().catch((error) => console.error(`sync: ${error.message}`)); // the next connection brings the next one
    }, 100);
}

function title(id: string): string {
    const row = rows.get(id);
    return row?.name ? `#${row.name}` : `@${names.get(row?.user ?? "") ?? id}`;
}

// An event, in whatever way it came. Its `seq` tells whether it was here before.
function heard(frame: Frame): void {
    const channel = typeof frame.channel === "object" ? frame.channel.id : frame.channel;
    if (channel && frame.seq) {
        if (frame.seq <= (told.get(channel) ?? 0)) return;
        told.set(channel, frame.seq);
    }
    if (frame.type === "message" && frame.user && !frame.subtype) {
        console.log(`${title(channel!)} ${names.get(frame.user) ?? frame.user}: ${frame.text}`);
    }
    syncSoon();
}

// What could not be told: the channel's own events have it, as long as messages are kept.
async function fill(channel: string): Promise<void> {
    for (let hasMore = true; hasMore; ) {
        const page = await ok(api.POST("/channels.events", { body: { channel, after_seq: told.get(channel) ?? 0 } }));
        page.events.forEach((event) => heard(event as Frame));
        told.set(channel, page.through_seq);
        hasMore = page.has_more;
    }
}

// A frame of the socket. Each comes after all before it is dealt with: a gap is filled before the position behind it is kept.
async function take(frame: { type: string; channel?: unknown; position?: string }): Promise<void> {
    if (frame.type === "hello") console.log("live");
    else if (frame.type === "position") position = frame.position!;
    else if (frame.type === "gap" && frame.channel) await fill(frame.channel as string);
    else if (frame.type === "gap") await sync(); // away for so long that only the counts can be had
    else if (frame.channel) heard(frame as Frame);
}

// One connection, until its end: what was missed since the position, then what happens. One that breaks in the middle of that goes
// on where it was.
async function live(): Promise<void> {
    const { url } = await ok(api.POST("/rtm.connect", { body: { native: true, since: position } }));
    const socket = new WebSocket(url);
    let done = Promise.resolve();
    await new Promise<void>((resolve, reject) => {
        const ping = setInterval(() => socket.send(JSON.stringify({ type: "ping" })), 20_000);
        socket.onclose = () => (clearInterval(ping), resolve());
        socket.onmessage = ({ data }) => {
            done = done.then(() => take(JSON.parse(data)));
            done.catch((error) => (socket.close(), reject(error)));
        };
    });
    await done;
}

const people = await ok(api.POST("/users.list", { body: { limit: 1000 } }));
for (const { id, name } of people.members) names.set(id, name);
await sync();
for (let pause = 100; ; pause = Math.min(2 * pause, 10_000)) {
    try {
        await live();
        pause = 100;
    } catch (error) {
        console.error(`no connection: ${(error as Error).message}`);
    }
    console.log("away");
    await new Promise((resolve) => setTimeout(resolve, pause * (0.5 + Math.random()))); // not all clients at the same moment
}
