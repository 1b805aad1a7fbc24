// SPDX-License-Identifier: Apache-2.0
// What tsc --strict makes of a reply: `ok` tells which of its two shapes it has.
import type { components, operations } from "./tidings";

type Reply = components["schemas"]["ChatPostMessageReply"];
type Answer = operations["chatPostMessage"]["responses"][200]["content"]["application/json"];

export function outcome(reply: Reply): string {
    if (reply.ok) {
        const ts: string = reply.ts;
        // @ts-expect-error a call that succeeded has no `error`
        reply.error;
        return ts;
    }
    const error: string = reply.error;
    // @ts-expect-error one that failed has no `ts`
    reply.ts;
    return error;
}

export function unchecked(reply: Reply): void {
    // @ts-expect-error nobody looked at `ok`
    reply.ts;
    // @ts-expect-error nobody looked at `ok`
    reply.error;
}

// An operation's answer is that reply.
export const both: (answer: Answer) => string = outcome;

export const post: operations["chatPostMessage"]["requestBody"]["content"]["application/json"] = {
    channel: "C0000000001",
    blocks: [{ type: "section", text: { type: "plain_text", text: "hello" } }],
};

// @ts-expect-error a channel is a text
export const wrong: components["schemas"]["ChatPostMessageRequest"] = { channel: 1 };
