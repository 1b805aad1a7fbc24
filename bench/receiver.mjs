// SPDX-License-Identifier: Apache-2.0
// A push provider that takes everything, as APNs answers: 200 after a while. A line of input is answered with what came since the last one:
// how many, over how many connections, within which time, and how long after its message each push of a message came.
//
//     node receiver.mjs CERTIFICATE KEY PORT WAIT_MS
import {readFileSync} from 'node:fs';
import {createSecureServer} from 'node:http2';
import {createInterface} from 'node:readline';

const [certificate, key, port, waitMs] = process.argv.slice(2);
const STREAMS_MAX = 1000;
let sessions, count, first, last, delays;

function reset() {
    [sessions, count, first, last, delays] = [new Set(), 0, 0, 0, []];
}

function quantile(sorted, part) {
    return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0;
}

function report() {
    const sorted = delays.sort((a, b) => a - b);
    const told = {count, messages: sorted.length, connections: sessions.size, span_ms: last - first, p50_ms: quantile(sorted, 0.5),
                  p99_ms: quantile(sorted, 0.99), max_ms: sorted.at(-1) ?? 0};
    reset();
    return told;
}

function take(session, body) {
    sessions.add(session);
    count += 1;
    last = performance.now();
    first ||= last;
    const {aps, tidings} = JSON.parse(body);
    if (aps.alert && tidings.ts)
        delays.push(Date.now() - 1000 * Number(tidings.ts));
}

reset();
// Node's own bound on resets is for strangers.
const server = createSecureServer({cert: readFileSync(certificate), key: readFileSync(key), settings: {maxConcurrentStreams: STREAMS_MAX},
                                   streamResetBurst: 1e9, streamResetRate: 1e9});
server.on('stream', (stream) => {
    const parts = [];
    stream.on('error', () => {});
    stream.on('data', (part) => parts.push(part));
    stream.on('end', () => {
        take(stream.session, Buffer.concat(parts));
        setTimeout(() => stream.destroyed || stream.respond({':status': 200}, {endStream: true}), Number(waitMs));
    });
});
server.listen(Number(port), '127.0.0.1', () => {
    console.log('ready');
    const lines = createInterface({input: process.stdin});
    lines.on('line', () => console.log(JSON.stringify(report())));
    lines.on('close', () => process.exit(0));
});
