// SPDX-License-Identifier: Apache-2.0
// A Bolt app that answers in its channels; by Socket Mode, or, given a port and a signing secret, over HTTP.
import { App } from "@slack/bolt";

import { given, obey, tell } from "./harness.mjs";

const receiver = given.port
    ? { signingSecret: given.signingSecret }
    : { socketMode: true, appToken: given.appToken };
const app = new App({ token: given.token, clientOptions: { slackApiUrl: given.api }, ...receiver });

app.message(/^hello/, async ({ message, say }) => {
    const said = await say(`Hello, <@${message.user}>`);
    tell("said", { ts: said.ts });
});
app.message("in a thread", async ({ message, say }) => {
    await say({ text: "here", thread_ts: message.ts });
});
app.event("member_joined_channel", async ({ event, client }) => {
    await client.chat.postMessage({ channel: event.channel, text: `Welcome, <@${event.user}>` });
});
app.event("app_mention", async ({ event, say }) => {
    await say({ text: `At your service, <@${event.user}>`, thread_ts: event.ts });
});
app.message(async ({ message, context }) => {
    tell("message", { message, botId: context.botId, retry: context.retryNum });
});
app.error(async (error) => tell("error", { message: error.message }));

obey({
    start: async () => { await app.start(given.port); },
    stop: async () => { await app.stop(); },
});
