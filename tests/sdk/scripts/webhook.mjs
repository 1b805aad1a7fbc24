// SPDX-License-Identifier: Apache-2.0
// @slack/webhook, as its users call it.
import { IncomingWebhook } from "@slack/webhook";
import { given, obey } from "./harness.mjs";

const webhook = new IncomingWebhook(given.url);

obey({ send: (message) => webhook.send(message) });
