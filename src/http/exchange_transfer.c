// SPDX-License-Identifier: Apache-2.0
// Moves the body of an upload to its sink, and a file to the socket.
#include "exchange_transfer.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

// What one transfer moves at a time, before the others have their turn.
enum { PIECE_BYTES = 65536, SENT_AT_ONCE_BYTES = 1 << 18, DIGITS_MAX = 18 };

static struct exchange *exchange_of(struct file_transfer *transfer)
{
    return LIST_ITEM(transfer, struct exchange, transfer);
}

// Feeds a piece of what was received, which may end the body.
static int piece_take(struct exchange *exchange, const char *text, size_t length)
{
    struct framing *framing = &exchange->framing;
    int r = 0;
    for (size_t at = 0; r >= 0 && at < length && !framing->ops->at_end(framing);) {
        const char *data = NULL;
        size_t size = 0;
        at += framing->ops->read(framing, text + at, length - at, &data, &size);
        if (framing->reason)
            return -ERROR_INVALID_FORM_DATA;
        if (size > 0)
            r = upload_body_add(&exchange->upload, data, size);
    }
    return r;
}

static int upload_step(struct file_transfer *transfer)
{
    struct exchange *exchange = exchange_of(transfer);
    char piece[PIECE_BYTES];
    ssize_t length = recv(transfer->fd, piece, sizeof piece, MSG_DONTWAIT);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (length <= 0)
        return -ERROR_UNAVAILABLE;
    transfer->moved_ms = clock_monotonic_ms();
    int r = piece_take(exchange, piece, (size_t)length);
    if (r < 0 || !exchange->framing.ops->at_end(&exchange->framing))
        return r;
    return upload_body_is_complete(&exchange->upload) ? 1 : -ERROR_INVALID_FORM_DATA;
}

static int upload_end(struct file_transfer *transfer, int r)
{
    struct body_sink *sink = exchange_of(transfer)->sink;
    return sink->end(sink, r);
}

static void upload_done(struct file_transfer *transfer, int r)
{
    struct exchange *exchange = exchange_of(transfer);
    exchange->streamed_fn(exchange->streamed_arg, r);
}

static int transfer_start(struct exchange *exchange, short events)
{
    struct file_transfer *transfer = &exchange->transfer;
    snprintf(transfer->owner, sizeof transfer->owner, "%.*s", ID_LENGTH_MAX,
             exchange->request.actor.user_id);
    transfer->events = events;
    transfer->fd = exchange->connection ? dup(exchange->connection->fd) : -1;
    if (transfer->fd < 0)
        return -ERROR_UNAVAILABLE;
    int r = transfer_thread_add(exchange->server->transfers, transfer);
    if (r < 0)
        close(transfer->fd);
    return r;
}

int exchange_stream(struct request *request, struct body_sink *sink, request_streamed_fn *fn,
                    void *arg)
{
    static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct exchange *exchange = CAST(exchange, request);
    const char *expect = exchange->head.expect;
    if (exchange->framing.ops->at_end(&exchange->framing))
        return -ERROR_INVALID_FORM_DATA;
    int r = upload_body_init(&exchange->upload, exchange->head.content_type, sink);
    if (r < 0)
        return r;
    exchange->sink = sink;
    exchange->streamed_fn = fn;
    exchange->streamed_arg = arg;
    exchange->transfer.step = upload_step;
    exchange->transfer.end = upload_end;
    exchange->transfer.done = upload_done;
    r = transfer_start(exchange, POLLIN);
    if (r >= 0 && expect && strcasecmp(expect, "100-continue") == 0)
        (void)!send(exchange->connection->fd, interim, sizeof interim - 1, MSG_NOSIGNAL);
    return r;
}

bool exchange_has_file(const struct exchange *exchange)
{
    return exchange->request.file.object && exchange->request.error[0] == '\0';
}

// Reads digits at *at, and moves it behind them. -1: there are none, or too many.
static int64_t digits_read(const char **at)
{
    size_t length = strspn(*at, "0123456789");
    int64_t number = 0;
    if (length == 0 || length > DIGITS_MAX)
        return -1;
    for (size_t i = 0; i < length; i++)
        number = number * 10 + (*(*at)++ - '0');
    return number;
}

// Reads a range: "bytes=1-5", "bytes=1-" or "bytes=-5". 1: it is one that the file has; 0: it has
// none of these bytes; -1: it is another kind of range, which is ignored.
static int range_read(const char *text, int64_t size, int64_t *ret_from, int64_t *ret_to)
{
    if (strncmp(text, "bytes=", 6) != 0)
        return -1;
    const char *at = text + 6;
    int64_t from = *at == '-' ? 0 : digits_read(&at);
    bool is_suffix = text[6] == '-';
    if (from < 0 || *at++ != '-')
        return -1;
    int64_t to = *at == '\0' && !is_suffix ? size - 1 : digits_read(&at);
    if (to < 0 || *at != '\0')
        return size == 0 && !is_suffix ? 0 : -1;
    *ret_from = !is_suffix ? from : to < size ? size - to : 0;
    *ret_to = is_suffix || to >= size ? size - 1 : to;
    if (is_suffix && to == 0)
        return 0;
    return !is_suffix && to < from ? (from >= size ? 0 : -1) : *ret_from < size;
}

void exchange_file_prepare(struct exchange *exchange)
{
    const struct reply_file *file = &exchange->request.file;
    int64_t from = 0, to = file->size - 1;
    int range =
        exchange->head.range ? range_read(exchange->head.range, file->size, &from, &to) : -1;
    exchange->request.status = range < 0 ? 200 : range == 0 ? 416 : 206;
    if (range < 0) {
        from = 0;
        to = file->size - 1;
    }
    exchange->file_at = from;
    exchange->file_end = range == 0 ? from : to + 1;
    if (range == 0)
        snprintf(exchange->content_range, sizeof exchange->content_range, "bytes */%lld",
                 (long long)file->size);
    else if (range > 0)
        snprintf(exchange->content_range, sizeof exchange->content_range, "bytes %lld-%lld/%lld",
                 (long long)from, (long long)to, (long long)file->size);
    exchange->content_type = file->type;
    exchange->is_last = true;
}

// Sends what is left of the head. Returns 1 when it is sent, as step() otherwise.
static int head_send(struct exchange *exchange)
{
    const struct buffer *text = &exchange->text;
    if (exchange->sent == text->length)
        return 1;
    ssize_t count = send(exchange->transfer.fd, text->data + exchange->sent,
                         text->length - exchange->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && errno != EAGAIN && errno != EINTR)
        return -ERROR_UNAVAILABLE;
    exchange->sent += count > 0 ? (size_t)count : 0;
    return exchange->sent == text->length;
}

static int file_send(struct exchange *exchange)
{
    int64_t left = exchange->file_end - exchange->file_at;
    off_t at = exchange->file_at;
    if (left == 0 || strcmp(exchange->head.verb, "HEAD") == 0)
        return 1;
    ssize_t count = sendfile(exchange->transfer.fd, exchange->file_fd, &at,
                             left < SENT_AT_ONCE_BYTES ? (size_t)left : SENT_AT_ONCE_BYTES);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
        return -ERROR_UNAVAILABLE; // a file that is shorter than it was, or a peer that is gone
    if (count > 0) {
        exchange->file_at += count;
        exchange->transfer.moved_ms = clock_monotonic_ms();
    }
    return exchange->file_at == exchange->file_end;
}

static int sending_step(struct file_transfer *transfer)
{
    struct exchange *exchange = exchange_of(transfer);
    const struct reply_file *file = &exchange->request.file;
    if (exchange->file_fd < 0)
        exchange->file_fd = file->open(file->storage, file->object);
    if (exchange->file_fd < 0)
        return -ERROR_FILE_NOT_FOUND;
    int r = head_send(exchange);
    return r > 0 ? file_send(exchange) : r;
}

static int sending_end(struct file_transfer *transfer, int r)
{
    struct exchange *exchange = exchange_of(transfer);
    if (exchange->file_fd >= 0)
        close(exchange->file_fd);
    return r;
}

static void sending_done(struct file_transfer *transfer, int r)
{
    struct exchange *exchange = exchange_of(transfer);
    exchange->is_sending = false;
    if (!exchange->connection)
        exchange_free(exchange);
    else
        exchange->ops->sent(exchange, r);
}

int exchange_send_file(struct exchange *exchange)
{
    exchange->file_fd = -1;
    exchange->transfer.step = sending_step;
    exchange->transfer.end = sending_end;
    exchange->transfer.done = sending_done;
    exchange->is_sending = true;
    int r = transfer_start(exchange, POLLOUT);
    if (r < 0)
        exchange->is_sending = false;
    return r;
}
