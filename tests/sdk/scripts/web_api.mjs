// SPDX-License-Identifier: Apache-2.0
// A WebClient that does what the test asks.
import { given, obey, tell } from "./harness.mjs";

const { WebClient } = await import(given.sdk);
const client = new WebClient(given.token, { slackApiUrl: given.api });
client.on("rate_limited", (seconds) => tell("rate_limited", { seconds }));

/** The SDK's own function of a method: client.chat.postMessage. */
function call(method, args) {
    const names = method.split(".");
    const owner = names.slice(0, -1).reduce((object, name) => object[name], client);
    return owner[names.at(-1)](args);
}

obey({
    call,
    apiCall: (method, args) => client.apiCall(method, args),

    /** Uploads a file from its base64 text. */
    upload: (channel, name, data) =>
        client.filesUploadV2({ channel_id: channel, filename: name, file: Buffer.from(data, "base64"), initial_comment: "from JavaScript" }),

    /** Several calls at once. */
    calls: (method, list) => Promise.all(list.map((args) => call(method, args))),

    /** All pages of a method. */
    async pages(method, args) {
        const pages = [];
        for await (const page of client.paginate(method, args)) pages.push(page);
        return pages;
    },
});
