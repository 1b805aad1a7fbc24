// SPDX-License-Identifier: Apache-2.0
// A push service for browsers: web-push-testing checks and decrypts each push, which is then printed as a line of JSON.
// Orders by standard input, as tests/support/script.py gives them: subscribe(public key), expire(client hash).
const {PushApiModel, SubscriptionExpiredError} = require('web-push-testing/src/PushApiModel');
const fs = require('fs');
const http2 = require('http2');
const readline = require('readline');

const [certificate, key, port] = process.argv.slice(2);
const model = new PushApiModel();
model.notifyUrl = `https://127.0.0.1:${port}/notify/`;
const tell = (line) => process.stdout.write(JSON.stringify(line) + '\n');

async function take(request, body) {
    const client = request.url.split('/').pop();
    const headers = request.headers;
    try {
        await model.handleNotification(client, {encoding: headers['content-encoding'], authorization: headers.authorization, ttl: headers.ttl}, body);
    } catch (error) {
        const status = error instanceof SubscriptionExpiredError ? 410 : error.message === 'Client not subscribed' ? 404 : 400;
        tell({what: 'rejected', client, status, reason: error.message});
        return [status, error.message];
    }
    const shown = Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith(':')));
    tell({what: 'accepted', client, headers: shown, length: body.length, payload: JSON.parse(model.messages[client].at(-1))});
    return [201, ''];
}

const server = http2.createSecureServer({cert: fs.readFileSync(certificate), key: fs.readFileSync(key), allowHTTP1: true}, (request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', async () => {
        const [status, text] = await take(request, Buffer.concat(parts));
        response.writeHead(status, {'content-type': 'text/plain'});
        response.end(text);
    });
});

const orders = {
    subscribe: (applicationServerKey) => model.subscribe({userVisibleOnly: 'true', applicationServerKey}),
    expire: async (client) => model.expireSubscription(client),
};

server.listen(Number(port), '127.0.0.1', () => {
    tell({what: 'ready'});
    const lines = readline.createInterface({input: process.stdin});
    lines.on('line', async (line) => {
        const {id, order, args} = JSON.parse(line);
        try {
            tell({what: 'done', id, result: (await orders[order](...args)) ?? null});
        } catch (error) {
            tell({what: 'failed', id, error: error.message});
        }
    });
    lines.on('close', () => process.exit(0));
});
