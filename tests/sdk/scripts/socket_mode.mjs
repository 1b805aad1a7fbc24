// SPDX-License-Identifier: Apache-2.0
// A SocketModeClient: tells its states and what comes, and acks that, but for texts that begin with "hold".
import { SocketModeClient } from "@slack/socket-mode";

import { given, obey, tell } from "./harness.mjs";

const client = new SocketModeClient({
    appToken: given.token,
    clientOptions: { slackApiUrl: given.api },
    ...given.options,
});

for (const state of ["connected", "reconnecting", "disconnected"]) {
    client.on(state, () => tell("state", { state }));
}
for (const type of ["message", "member_joined_channel"]) {
    client.on(type, async ({ ack, body, event, envelope_id, retry_num, retry_reason }) => {
        const held = event.text?.startsWith("hold") && retry_num < given.attempts;
        if (!held) await ack();
        tell("event", { event, team: body.team_id, envelope_id, retry_num, retry_reason });
    });
}

obey({
    async start() {
        const { ok, url } = await client.start();
        return { ok, url };
    },
    disconnect: () => client.disconnect(),
});
