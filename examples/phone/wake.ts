// SPDX-License-Identifier: Apache-2.0
// Stands in for the phone's system: shows the pushes for one device on its lock screen, and wakes the app after each. The app
// need not run in between, and holds no connection.
//
//     node wake.ts DEVICE [COUNT]        ends after so many pushes
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";

type Push = { device: string; badge: number | null; title: string | null; subtitle: string | null; body: string | null };

const [device, most = "Infinity"] = process.argv.slice(2);
const { PUSHES = ".run/push.jsonl" } = process.env; // a line for each push that arrived at the receivers
const LOOK_MS = 50;

function pushes(): Push[] {
    const lines = existsSync(PUSHES) ? readFileSync(PUSHES, "utf8").split("\n").slice(0, -1) : [];
    return lines.map((line) => JSON.parse(line)).filter((push: Push) => push.device === device);
}

// A silent push has no title: it says what the badge is now.
function lockScreen({ badge, title, subtitle, body }: Push): void {
    console.log(`[${badge ?? "-"}] ${title === null ? "" : [title, subtitle, body].filter(Boolean).join(" · ")}`.trim());
}

// Several pushes that came at once wake the app once: what it syncs is all that happened, whatever they said.
function wake(): void {
    const app = (...words: string[]) => execFileSync(process.execPath, [`${import.meta.dirname}/phone.ts`, ...words], { encoding: "utf8" });
    app("sync");
    console.log(app("show"));
}

console.log(`${device} sleeps`);
for (let seen = pushes().length, until = seen + Number(most); seen < until; await wait(LOOK_MS)) {
    const fresh = pushes().slice(seen);
    fresh.forEach(lockScreen);
    if (fresh.length > 0) wake();
    seen += fresh.length;
}
