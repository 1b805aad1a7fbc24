// SPDX-License-Identifier: Apache-2.0
// What a client sends on an open WebSocket, frames and the messages in them, in pieces: the first
// byte says how long a piece is. Neither Redis nor Postgres is there.
#include "../../src/gateway/channel/feed.h"
#include "../../src/gateway/channel/subscribers.h"
#include "../../src/gateway/connection/connection.h"
#include "../../src/gateway/core.h"
#include "../../src/gateway/gateway_session.h"
#include "../../src/gateway/websocket/websocket.h"
#include "base/error.h"
#include "base/log.h"
#include "fuzz.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static struct loop *loop;
static struct store *store;
static struct cache *cache;
static struct gateway *gateway;

static void on_call(void *arg, struct request *request)
{
    (void)arg;
    request_reply_error(request, -ERROR_UNAVAILABLE);
}

static void gateway_make(void)
{
    static const struct store_options store_options = {.database_url =
                                                           "postgres:///none?host=/nonexistent",
                                                       .connect_timeout_ms = 1000,
                                                       .statement_timeout_ms = 1000,
                                                       .queue_max = 100,
                                                       .queue_bytes = 1 << 20};
    static const struct cache_options cache_options = {.redis_url = "unix:///nonexistent/redis",
                                                       .library = "",
                                                       .library_name = "none",
                                                       .timeout_ms = 1000,
                                                       .pending_max = 100,
                                                       .pending_bytes = 1 << 20};
    static const struct gateway_options options = {
        .settings =
            {
                .socket_queue_max_bytes = 1 << 20,
                .gap_bytes = 1 << 20,
                .socket_message_max_bytes = 4096,
                .socket_values_max = 100,
                .socket_calls_max = 16,
                .ping_interval_ms = 60000,
                .pong_timeout_ms = 60000,
                .socket_frames_per_s = 64,
                .socket_frames_burst = 1000,
                .tail_check_ms = 60000,
                .gap_delay_ms = 10,
                .gap_timeout_ms = 100,
                .gap_events_max = 100,
                .gap_reads_max = 10,
                .socket_focus_max = 2,
                .token_check_ms = 60000,
                .channel_linger_ms = 60000,
                .presence_ttl_s = 60,
                .presence_subs_max = 2,
            },
        .cors_origins = "",
        .on_call = on_call,
    };
    log_init(LOG_ERROR, "fuzz");
    int r = loop_new(&loop);
    r |= store_new(loop, &store_options, &store);
    r |= cache_new(loop, &cache_options, &cache);
    r |= gateway_new(loop, store, cache, &options, &gateway);
    assert(r == 0);
}

static struct connection *socket_open(struct feed *feed, int *ret_peer)
{
    int pair[2];
    int r = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair);
    assert(r == 0);
    *ret_peer = pair[1];
    struct connection *c = connection_adopt(gateway, pair[0]);
    assert(c);
    (void)snprintf(c->actor.workspace_id, sizeof c->actor.workspace_id, "T0000000001");
    (void)snprintf(c->actor.user_id, sizeof c->actor.user_id, "U0000000001");
    r = websocket_make(c);
    assert(r == 0);
    r = session_enter_user(c);
    assert(r == 0);
    r = subscribers_add(feed, c, 0);
    assert(r == 0);
    websocket_hello(c, "");
    return c;
}

static void pieces_receive(struct connection *c, const uint8_t *data, size_t size)
{
    size_t piece = size > 0 ? (size_t)data[0] + 1 : 1;
    for (size_t at = 1; at < size; at += piece) {
        size_t length = size - at < piece ? size - at : piece;
        char *bytes = fuzz_bytes(data + at, length);
        int r = c->ops->input(c, bytes, length);
        free(bytes);
        if (r < 0 || c->state != CONNECTION_OPEN)
            return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int peer;
    gateway_make();
    struct feed *feed = feed_open(gateway, "T0000000001", "C0000000001", 0);
    assert(feed);
    pieces_receive(socket_open(feed, &peer), data, size);
    gateway_free(gateway);
    store_free(store);
    cache_free(cache);
    loop_free(loop);
    close(peer);
    return 0;
}
