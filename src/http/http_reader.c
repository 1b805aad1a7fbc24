// SPDX-License-Identifier: Apache-2.0
// The only reader of HTTP/1.1. It peeks, and consumes no byte that is not part of the current
// request: what follows, be it a next request, stays in the kernel for whoever owns the connection
// then. So nothing is buffered here, and each turn of the loop serves one request of a connection.
#include "http_reader.h"

#include "exchange_gzip.h"
#include "exchange_load.h"
#include "exchange_reply.h"
#include "exchange_steps.h"
#include "exchange_transfer.h"
#include "http_connection.h"
#include "lingering_close.h"
#include "page_daemon.h"

#include "base/check.h"
#include "base/error.h"
#include "http/path.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>

// Limits what a fast sender can take of a turn; the rest is read in the next.
enum { READS_A_TURN = 4 };

static void reader_ready(void *arg, uint32_t events);

// Waits for `events`. Frees the connection if it cannot.
static void reader_await(struct http_connection *connection, uint32_t events)
{
    if (connection->watch)
        loop_io_set(connection->watch, events);
    else if (loop_io_new_peer(connection->server->loop, connection->fd, events, reader_ready,
                              connection, &connection->watch) < 0)
        connection_free(connection);
}

// Sets the number of bytes that make the descriptor readable: while a partial head is left unread,
// only more bytes are an event.
static void low_water_set(const struct http_connection *connection, int bytes)
{
    (void)setsockopt(connection->fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
}

static void reply_end(struct http_connection *connection)
{
    struct exchange *exchange = connection->exchange;
    int64_t budget = exchange_linger_bytes(exchange);
    bool is_last = exchange->is_last;
    connection->exchange = NULL;
    connection->bytes = 0;
    exchange_free(exchange);
    if (is_last) {
        lingering_close_start(connection, budget);
        return;
    }
    connection_move(connection, CONNECTION_IDLE);
    reader_await(connection, EPOLLIN);
}

static void reply_write(struct http_connection *connection);

// Replies with an error instead of the file, of which nothing was sent.
static void file_refuse(struct http_connection *connection, int status, const char *code)
{
    struct exchange *exchange = connection->exchange;
    buffer_clear(&exchange->text);
    exchange->request.file.object = NULL;
    exchange->content_type = "application/json; charset=utf-8";
    exchange_plain_error(exchange, status, code, NULL);
    connection_move(connection, CONNECTION_REPLY);
    reply_write(connection);
}

// Leaves the connection to the thread of transfers until the file is sent.
static void file_write(struct http_connection *connection)
{
    int r = exchange_write_file(connection->exchange);
    if (r == -ERROR_BUSY) {
        file_refuse(connection, 503, error_code(r));
        return;
    }
    if (r < 0) {
        connection_free(connection);
        return;
    }
    connection_move(connection, CONNECTION_WORK);
    loop_io_free(TAKE(connection->watch));
}

static void reply_write(struct http_connection *connection)
{
    if (exchange_has_file(connection->exchange)) {
        file_write(connection);
        return;
    }
    int r = exchange_write(connection->exchange, connection->fd);
    if (r < 0)
        connection_free(connection);
    else if (r == 0)
        reader_await(connection, EPOLLOUT);
    else
        reply_end(connection);
}

// Goes on as the state of the exchange says.
static void reader_continue(struct http_connection *connection)
{
    switch (connection->exchange->state) {
    case EXCHANGE_PAGE:
        page_daemon_take(connection);
        break;
    case EXCHANGE_BODY:
        if (connection->state != CONNECTION_BODY)
            connection_move(connection, CONNECTION_BODY);
        reader_await(connection, EPOLLIN);
        break;
    case EXCHANGE_REPLY:
        connection_move(connection, CONNECTION_REPLY);
        reply_write(connection);
        break;
    default:
        connection_move(connection, CONNECTION_WORK);
        // Watched for a hang-up, too.
        reader_await(connection, EPOLLIN);
        break;
    }
}

// Feeds the body. Returns the number of bytes that were part of it.
static size_t reader_feed(struct exchange *exchange, const char *text, size_t length)
{
    struct framing *framing = &exchange->framing;
    size_t at = 0;
    while (exchange->state == EXCHANGE_BODY && at < length && !framing->ops->at_end(framing)) {
        const char *data;
        size_t size;
        at += framing->ops->read(framing, text + at, length - at, &data, &size);
        if (framing->reason)
            exchange_refuse(exchange, 400, framing->reason);
        else if (size > 0)
            exchange_take(exchange, data, size);
    }
    return at;
}

// Takes what has been peeked of the body, after `before` bytes of the head. False: the connection
// is broken.
static bool reader_take_body(struct http_connection *connection, size_t before, size_t length)
{
    struct exchange *exchange = connection->exchange;
    const char *text = connection->server->input + before;
    size_t count = before + reader_feed(exchange, text, length - before);
    if (!connection_consume(connection, count))
        return false;
    if (exchange->state == EXCHANGE_BODY && exchange->framing.ops->at_end(&exchange->framing))
        exchange_answer(exchange);
    return true;
}

static ssize_t reader_peek(const struct http_connection *connection)
{
    char *input = connection->server->input;
    return recv(connection->fd, input, SERVER_HEAD_MAX_BYTES, MSG_PEEK);
}

static void reader_read_body(struct http_connection *connection)
{
    for (int i = 0; i < READS_A_TURN && connection->exchange->state == EXCHANGE_BODY; i++) {
        ssize_t length = reader_peek(connection);
        if (length < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (length <= 0 || !reader_take_body(connection, 0, (size_t)length)) {
            connection_free(connection);
            return;
        }
    }
    reader_continue(connection);
}

// Sends 100 Continue to a client that waits for it before sending the body.
static void expect_answer(const struct exchange *exchange)
{
    static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
    const char *expect = exchange->head.expect;
    if (expect && strcasecmp(expect, "100-continue") == 0 && !head_is_1_0(&exchange->head) &&
        exchange->state == EXCHANGE_BODY && !exchange->framing.ops->at_end(&exchange->framing))
        (void)!send(exchange->connection->fd, interim, sizeof interim - 1, MSG_NOSIGNAL);
}

static void reader_resume(struct exchange *exchange)
{
    if (exchange->state == EXCHANGE_ASKED) {
        exchange_admit_end(exchange);
        expect_answer(exchange);
    } else {
        exchange->state = EXCHANGE_REPLY;
    }
    reader_continue(exchange->connection);
}

static void reader_sent(struct exchange *exchange, int r)
{
    struct http_connection *connection = exchange->connection;
    if (r >= 0) {
        reply_end(connection);
    } else if (r == -ERROR_FILE_NOT_FOUND && exchange->sent == 0) {
        file_refuse(connection, 404, error_code(r));
    } else {
        connection_free(connection);
    }
}

static const struct exchange_ops reader_ops = {
    .stream = exchange_stream,
    .sent = reader_sent,
    .send = exchange_send,
    .load = exchange_load,
    .resume = reader_resume,
};

static struct exchange *reader_exchange(struct http_connection *connection)
{
    struct exchange *exchange = exchange_new(connection, &reader_ops);
    connection->exchange = exchange;
    if (!exchange)
        connection_free(connection);
    return exchange;
}

// Refuses a head that does not become complete.
static void head_refuse(struct http_connection *connection, int status, const char *reason)
{
    struct exchange *exchange = reader_exchange(connection);
    if (!exchange)
        return;
    (void)!exchange_name(exchange);
    exchange_refuse(exchange, status, reason);
    reader_continue(connection);
}

// Parses a complete head of `length` bytes. -ERROR_MEMORY.
static int head_read(struct exchange *exchange, size_t length)
{
    char *text = arena_copy(&exchange->request.arena, exchange->server->input, length);
    const char *reason = text ? head_parse(text, length, &exchange->head) : NULL;
    if (!text || exchange_store_head(exchange) < 0)
        return -ERROR_MEMORY;
    if (reason)
        exchange_refuse(exchange, 400, reason);
    else
        exchange_begin(exchange);
    return 0;
}

// Takes a request whose head, of `head` bytes, is complete; `length` bytes have been peeked.
static void request_take(struct http_connection *connection, size_t head, size_t length)
{
    struct exchange *exchange = reader_exchange(connection);
    if (!exchange)
        return;
    bool is_taken = head_read(exchange, head) >= 0;
    if (length == head)
        expect_answer(exchange);
    if (is_taken && exchange->state != EXCHANGE_PAGE)
        is_taken = reader_take_body(connection, head, length);
    if (is_taken)
        reader_continue(connection);
    else
        connection_free(connection);
}

// Hands over a long-lived connection. Consumes exactly the head: the rest is for the new owner.
static void reader_hand_over(struct http_connection *connection, size_t length)
{
    struct server *server = connection->server;
    struct http_head head;
    if (!connection_consume(connection, length)) {
        connection_free(connection);
        return;
    }
    const char *reason = head_parse(server->input, length, &head);
    if (reason) {
        head_refuse(connection, 400, reason);
        return;
    }
    int fd = connection_take_fd(connection);
    server->options.on_takeover(server->options.arg, fd, &head);
}

static bool is_takeover(const struct server *server, const struct head_progress *progress)
{
    return server->options.on_takeover &&
           path_kind_of(progress->target, progress->target_length) != PATH_OTHER;
}

// Waits for more of a head, of which `seen` bytes are there.
static void head_await(struct http_connection *connection, size_t seen)
{
    if (connection->state == CONNECTION_IDLE && seen > 0)
        connection_move(connection, CONNECTION_HEADERS);
    if (seen > 0)
        low_water_set(connection, (int)seen + 1);
    connection->bytes = (int64_t)seen;
    // Short of memory, the kernel disregards the low-water mark. Edges then still mean new bytes.
    reader_await(connection, seen > 0 ? EPOLLIN | EPOLLRDHUP | EPOLLET : EPOLLIN);
}

// Decides by the `length` bytes of a head that have been peeked, which may be all (`is_end`).
static void head_decide(struct http_connection *connection, size_t length, bool is_end)
{
    struct server *server = connection->server;
    struct head_progress progress;
    const char *reason = head_scan(server->input, length, &progress);
    if (!reason && progress.length == 0 && length < sizeof server->input) {
        if (is_end)
            connection_free(connection);
        else
            head_await(connection, length);
        return;
    }
    if (connection->bytes > 0)
        low_water_set(connection, 1);
    connection->bytes = 0;
    if (reason)
        head_refuse(connection, 400, reason);
    else if (progress.length > 0 && is_takeover(server, &progress))
        reader_hand_over(connection, progress.length);
    else if (progress.length > 0)
        request_take(connection, progress.length, length);
    else if (progress.line_length > 0)
        head_refuse(connection, 431, "the headers are too long");
    else
        head_refuse(connection, 414, "the request line is too long");
}

static void head_peek(struct http_connection *connection, uint32_t events)
{
    bool is_end = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);
    ssize_t length = reader_peek(connection);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        head_await(connection, (size_t)connection->bytes);
    else if (length <= 0)
        connection_free(connection);
    else
        head_decide(connection, (size_t)length, is_end);
}

static void reader_ready(void *arg, uint32_t events)
{
    struct http_connection *connection = CAST(http_connection, arg);
    switch (connection->state) {
    case CONNECTION_BODY:
        reader_read_body(connection);
        break;
    case CONNECTION_WORK:
        // The end of the input, or a next request: either waits for the reply.
        if (events & (EPOLLERR | EPOLLHUP))
            connection_free(connection);
        else
            loop_io_set(connection->watch, 0);
        break;
    case CONNECTION_REPLY:
        reply_write(connection);
        break;
    default:
        head_peek(connection, events);
        break;
    }
}

void http_reader_start(struct http_connection *connection)
{
    head_peek(connection, 0);
}
