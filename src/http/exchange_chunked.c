// SPDX-License-Identifier: Apache-2.0
// Requests with chunked bodies. libmicrohttpd 0.9.75 accepts framing lines that end with a bare LF,
// so a proxy in front may see a different end of the body. Therefore such connections are taken
// over from libmicrohttpd with the head; their bodies are read and decoded, and the requests
// answered, here. Each is the last request of its connection.
#include "exchange_chunked.h"

#include "exchange_gzip.h"
#include "exchange_load.h"
#include "exchange_reply.h"
#include "exchange_steps.h"
#include "http_connection.h"
#include "lingering_close.h"
#include "long_reply.h"

#include "base/check.h"
#include "base/error.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>

// Limits what a fast sender can take of a turn; the rest is read in the next.
enum { READS_A_TURN = 4, READ_BYTES = 16384, REPLY_HEAD_MAX_BYTES = 32768 };

static void chunked_on_free(void *arg)
{
    exchange_leave(CAST(exchange, arg));
}

// Called after each step: frees a finished exchange, or closes the connection on failure.
static void chunked_settle(struct exchange *exchange, enum MHD_Result result)
{
    if (exchange->state == EXCHANGE_DETACHED)
        exchange_free(exchange);
    else if (result != MHD_YES)
        connection_free(exchange->connection);
}

static void chunked_watch_end(struct exchange *exchange)
{
    loop_io_free(exchange->connection->watch);
    exchange->connection->watch = NULL;
}

// Discards everything received after the body.
static enum MHD_Result reply_end(struct exchange *exchange)
{
    struct server *server = exchange->server;
    int64_t budget = exchange_linger_bytes(exchange);
    int fd;
    if (exchange_detach(exchange, &fd) >= 0)
        lingering_close_start(server, fd, budget, "", 0);
    return MHD_YES;
}

static void reply_ready(void *arg, uint32_t events);

// Sends a piece of the rest, or what the socket accepts of it. As send(2).
static ssize_t reply_send(const struct exchange *exchange, size_t total)
{
    const struct buffer *head = &exchange->text;
    char *body = exchange->request.reply.data; // NULL if there is none
    size_t head_sent = exchange->sent < head->length ? exchange->sent : head->length;
    size_t body_sent = exchange->sent - head_sent;
    size_t left = total - head->length - body_sent;
    struct iovec rest[] = {
        {head->data + head_sent, head->length - head_sent},
        {body ? body + body_sent : NULL,
         left < LONG_REPLY_PIECE_BYTES ? left : LONG_REPLY_PIECE_BYTES},
    };
    struct msghdr message = {.msg_iov = rest, .msg_iovlen = 2};
    return sendmsg(exchange->connection->fd, &message, MSG_NOSIGNAL);
}

static enum MHD_Result reply_write(struct exchange *exchange)
{
    struct http_connection *connection = exchange->connection;
    size_t total = exchange->text.length + exchange_reply_bytes(exchange);
    ssize_t count = reply_send(exchange, total);
    if (count < 0 && errno != EAGAIN && errno != EINTR)
        return MHD_NO;
    exchange->sent += count > 0 ? (size_t)count : 0;
    if (exchange->sent == total)
        return reply_end(exchange);
    if (connection->watch)
        return MHD_YES;
    int r = loop_io_new_peer(exchange->server->loop, connection->fd, EPOLLOUT, reply_ready,
                             exchange, &connection->watch);
    return r < 0 ? MHD_NO : MHD_YES;
}

static void reply_ready(void *arg, uint32_t events)
{
    struct exchange *exchange = CAST(exchange, arg);
    (void)events;
    chunked_settle(exchange, reply_write(exchange));
}

static enum MHD_Result chunked_reply(struct exchange *exchange)
{
    struct buffer *text = &exchange->text;
    exchange->state = EXCHANGE_ANSWERED;
    chunked_watch_end(exchange);
    connection_move(exchange->connection, CONNECTION_REPLY);
    buffer_init(text, REPLY_HEAD_MAX_BYTES);
    exchange_print_head(exchange, text);
    exchange->sent = 0;
    return buffer_failed(text) ? MHD_NO : reply_write(exchange);
}

// Decodes bytes of the body, and answers once it is complete.
static enum MHD_Result chunked_take(struct exchange *exchange, const char *text, size_t length)
{
    enum MHD_Result result = MHD_YES;
    for (size_t at = 0; at < length && exchange->state == EXCHANGE_BODY && result == MHD_YES;) {
        const char *data;
        size_t size;
        at += chunks_read(&exchange->chunks, text + at, length - at, &data, &size);
        if (exchange->chunks.reason)
            exchange_refuse_early(exchange, 400, exchange->chunks.reason);
        else if (size > 0)
            result = exchange_take(exchange, data, &size);
        else if (chunks_at_end(&exchange->chunks))
            result = exchange_answer(exchange);
    }
    return result;
}

static enum MHD_Result chunked_read(struct exchange *exchange)
{
    enum MHD_Result result = MHD_YES;
    char text[READ_BYTES];
    for (int i = 0; i < READS_A_TURN && exchange->state == EXCHANGE_BODY && result == MHD_YES;
         i++) {
        ssize_t length = recv(exchange->connection->fd, text, sizeof text, 0);
        if (length < 0 && (errno == EAGAIN || errno == EINTR))
            return MHD_YES;
        result = length > 0 ? chunked_take(exchange, text, (size_t)length) : MHD_NO;
    }
    return result;
}

static void chunked_ready(void *arg, uint32_t events)
{
    struct exchange *exchange = CAST(exchange, arg);
    (void)events;
    enum MHD_Result result = chunked_read(exchange);
    if (exchange->state == EXCHANGE_SUSPENDED)
        chunked_watch_end(exchange);
    chunked_settle(exchange, result);
}

// Sends 100 Continue to a client that waits for it before sending the body.
static void chunked_expect(struct exchange *exchange)
{
    static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
    const char *expect = exchange->head.expect;
    if (expect && strcasecmp(expect, "100-continue") == 0 && exchange->rest.length == 0)
        (void)!send(exchange->connection->fd, interim, sizeof interim - 1, MSG_NOSIGNAL);
}

// Starts reading the body, unless the decision is pending or the body was refused.
static enum MHD_Result chunked_let_in(struct exchange *exchange)
{
    struct http_connection *connection = exchange->connection;
    if (exchange->state != EXCHANGE_BODY)
        return MHD_YES;
    chunked_expect(exchange);
    enum MHD_Result result = chunked_take(exchange, exchange->rest.data, exchange->rest.length);
    if (result != MHD_YES || exchange->state != EXCHANGE_BODY)
        return result;
    int r = loop_io_new_peer(exchange->server->loop, connection->fd, EPOLLIN, chunked_ready,
                             exchange, &connection->watch);
    return r < 0 ? MHD_NO : MHD_YES;
}

static void chunked_resume(struct exchange *exchange)
{
    enum MHD_Result result;
    if (exchange->state == EXCHANGE_ASKED) {
        result = exchange_admit_end(exchange);
        if (result == MHD_YES)
            result = chunked_let_in(exchange);
    } else {
        result = exchange_queue(exchange);
    }
    chunked_settle(exchange, result);
}

// Nothing to do: while the caller waits, nothing is read from the connection.
static void chunked_suspend(const struct exchange *exchange)
{
    (void)exchange;
}

static const struct exchange_ops chunked_ops = {
    .suspend = chunked_suspend,
    .resume = chunked_resume,
    .reply = chunked_reply,
    .send = exchange_send,
    .load = exchange_load,
};

// Copies the head from the exchange that libmicrohttpd had.
static int chunked_copy_head(struct exchange *exchange, const struct exchange *before)
{
    struct arena *arena = &exchange->request.arena;
    exchange->head_text = arena_alloc(arena, before->head_length);
    if (!exchange->head_text)
        return -ERROR_MEMORY;
    memcpy(exchange->head_text, before->head_text, before->head_length);
    exchange->head_length = before->head_length;
    exchange->head = before->head;
    head_move(&exchange->head, before->head_text, exchange->head_text);
    return exchange_store_head(exchange);
}

static void chunked_begin(struct exchange *exchange, const struct exchange *before)
{
    enum MHD_Result result = MHD_NO;
    exchange->chunks = (struct chunks){0};
    if (chunked_copy_head(exchange, before) >= 0 && !buffer_failed(&exchange->rest))
        result = exchange_begin(exchange);
    if (result == MHD_YES)
        result = chunked_let_in(exchange);
    chunked_settle(exchange, result);
}

// Continues the request without libmicrohttpd, as the first of a new connection.
static void chunked_taken(void *arg, int fd, const char *rest, size_t length)
{
    const struct exchange *before = CAST(exchange, arg);
    struct http_connection *connection = connection_new(before->server, fd);
    struct exchange *exchange = connection ? exchange_new(connection, &chunked_ops) : NULL;
    if (!exchange) {
        if (connection)
            connection_free(connection);
        return;
    }
    connection->on_free = chunked_on_free;
    connection->on_free_arg = exchange;
    buffer_append(&exchange->rest, rest, length);
    chunked_begin(exchange, before);
}

enum MHD_Result exchange_take_over(struct exchange *exchange)
{
    struct http_connection *connection = exchange->connection;
    exchange->state = EXCHANGE_DETACHED;
    int r = mhd_takeover_start(&exchange->takeover, exchange->mhd, connection->fd, chunked_taken,
                               exchange);
    connection_leaves_daemon(connection);
    return r < 0 ? MHD_NO : MHD_YES;
}
