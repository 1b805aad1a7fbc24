// SPDX-License-Identifier: Apache-2.0
// What the gateway makes of the heads of requests for a WebSocket and for an event stream.
#include "../../src/gateway/sse/sse_head.h"
#include "../../src/gateway/websocket/handshake.h"
#include "fuzz.h"
#include "http/head.h"

static void visible_check(const char *text, size_t size)
{
    size_t length = strnlen(text, size);
    assert(length < size);
    for (size_t i = 0; i < length; i++)
        assert(text[i] > ' ' && text[i] <= '~');
}

static void handshake_check(const struct http_head *head)
{
    struct handshake handshake;
    const char *refusal = handshake_read(head, &handshake);
    if (refusal) {
        assert(strncmp(refusal, "HTTP/1.1 4", 10) == 0);
        return;
    }
    visible_check(handshake.ticket, sizeof handshake.ticket);
    size_t reply = strnlen(handshake.reply, sizeof handshake.reply);
    assert(handshake.ticket[0] != '\0' && reply < sizeof handshake.reply);
    assert(strcmp(handshake.reply + reply - 4, "\r\n\r\n") == 0);
    const struct position *since = &handshake.place.since;
    if (handshake.resumes)
        assert(since->xid >= since->received_xid && since->received_xid >= 1);
    // Whatever else the head says, it is a GET of that path.
    const char *path = handshake.is_app_socket ? "/link/" : "/rtm/";
    assert(strcmp(head->verb, "GET") == 0 && strncmp(head->target, path, strlen(path)) == 0);
}

static void sse_check(const struct http_head *head)
{
    struct sse_head sse;
    int status = sse_head_read(head, &sse);
    assert(status == 0 || status == 400 || status == 405);
    if (status != 0)
        return;
    visible_check(sse.credential, sizeof sse.credential);
    visible_check(sse.origin, sizeof sse.origin);
    if (sse.resumes && !sse.since_is_bad)
        assert(sse.place.since.xid >= sse.place.since.received_xid &&
               sse.place.since.received_xid >= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_head head;
    char *text = fuzz_bytes((const char *)data, size);
    if (!head_parse(text, size, &head)) {
        handshake_check(&head);
        sse_check(&head);
    }
    free(text);
    return 0;
}
