// SPDX-License-Identifier: Apache-2.0
// A script's side of tests/support/script.py: what it was given, what it tells, what it is asked to do.
import readline from "node:readline";

/** The object that the test started the script with. */
export const given = JSON.parse(process.argv[2]);

/** Tells the test: one line of JSON. */
export function tell(what, value = {}) {
    process.stdout.write(`${JSON.stringify({ what, ...value })}\n`);
}

/** What a caller can see of an error of an SDK, and of no error. */
export function seen(error) {
    const { name, code, message, data, statusCode, retryAfter } = error;
    return { name, code, message, data, statusCode, retryAfter };
}

/** Does what the test asks (`{id, order, ...}`) by the function of that name, and tells it the result or the error.
 * The script ends when the test is done with it. */
export function obey(orders) {
    const lines = readline.createInterface({ input: process.stdin });
    lines.on("line", async (line) => {
        const { id, order, args } = JSON.parse(line);
        try {
            tell("done", { id, result: await orders[order](...args) });
        } catch (error) {
            tell("failed", { id, error: seen(error) });
        }
    });
    lines.on("close", () => process.exit(0));
    tell("ready");
}
