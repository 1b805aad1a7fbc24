// SPDX-License-Identifier: Apache-2.0
// An RTMClient: tells its states and what it hears, does what the test asks.
import { given, obey, tell } from "./harness.mjs";

const { RTMClient } = await import(given.sdk);
const client = new RTMClient(given.token, { slackApiUrl: given.api, ...given.options });

for (const state of ["connecting", "connected", "disconnected", "reconnecting"]) {
    client.on(state, () => tell("state", { state }));
}
client.on("ready", () => tell("state", { state: "ready" }));
client.on("unable_to_rtm_start", (error) => tell("no start", { error: error.message }));
client.on("error", (error) => tell("error", { error: error.message }));
client.on("slack_event", (type, event) => tell("event", { event }));
client.on("outgoing_message", ({ type }) => tell("sent", { type }));

obey({
    start: (options) => client.start(options),
    send: (text, channel) => client.sendMessage(text, channel),
    reply: (body) => client.addOutgoingEvent(true, "message", body),
    typing: (channel) => client.sendTyping(channel),
    presence: (users) => client.subscribePresence(users),
    disconnect: () => client.disconnect(),
});
