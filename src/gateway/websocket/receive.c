// SPDX-License-Identifier: Apache-2.0
// Parses the peer's bytes by wslay. A wslay context has 8 KB of buffers, so it exists only while a
// message has partly arrived: it is freed when all its input belongs to whole frames and no
// fragment is missing.
#include "receive.h"

#include "../connection/connection.h"
#include "../connection/outlet.h"
#include "../core.h"

#include "base/check.h"
#include "base/error.h"
#include "base/metrics.h"

#include <stdlib.h>
#include <string.h>
#include <wslay/wslay.h>

enum { MASK_LENGTH = 4, HEADER_MAX = 10 };

struct receiver {
    uint32_t tag;
    wslay_event_context_ptr context;
    struct connection *connection;
    struct socket *socket;
    receive_fn *fn;
    const uint8_t *data; // the rest of the input
    size_t length;
    uint64_t given;             // bytes passed to wslay
    uint64_t framed;            // of these, bytes of whole frames
    uint64_t frame_length;      // of the current frame, including its header
    bool in_message;            // between the first and the last fragment of a message
    uint8_t header[HEADER_MAX]; // the part of a frame's header that has arrived, without mask
    size_t header_length;
    uint64_t skip;         // bytes until the next header
    uint64_t message_left; // bytes the current message may still have
    bool is_wrong;
};

static ssize_t on_recv(wslay_event_context_ptr context, uint8_t *buf, size_t len, int flags,
                       void *arg)
{
    struct receiver *receiver = CAST(receiver, arg);
    (void)flags;
    if (receiver->length == 0) {
        wslay_event_set_error(context, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    size_t part = len < receiver->length ? len : receiver->length;
    memcpy(buf, receiver->data, part);
    receiver->data += part;
    receiver->length -= part;
    receiver->given += part;
    return (ssize_t)part;
}

// Queues Pong and Close frames, which wslay generates. No frame may follow our own Close.
static ssize_t on_send(wslay_event_context_ptr context, const uint8_t *data, size_t len, int flags,
                       void *arg)
{
    struct receiver *receiver = CAST(receiver, arg);
    (void)flags;
    if (receiver->connection->state != CONNECTION_OPEN)
        return (ssize_t)len;
    if (outlet_raw(&receiver->connection->outlet, data, len) < 0) {
        wslay_event_set_error(context, WSLAY_ERR_CALLBACK_FAILURE);
        return -1;
    }
    connection_mark_dirty(receiver->connection);
    return (ssize_t)len;
}

static int64_t frame_cost_us(const struct connection *c)
{
    return 1000000 / c->gateway->options.settings.socket_frames_per_s;
}

void receive_free_of_cost(const struct connection *c, struct socket *socket)
{
    socket->frames_due_us -= frame_cost_us(c);
}

static bool frames_are_too_many(const struct connection *c, struct socket *socket)
{
    const struct gateway_options *options = &c->gateway->options;
    int64_t cost_us = frame_cost_us(c);
    int64_t now_us = 1000 * loop_now_ms(c->gateway->loop);
    if (socket->frames_due_us < now_us)
        socket->frames_due_us = now_us;
    socket->frames_due_us += cost_us;
    return socket->frames_due_us - now_us > options->settings.socket_frames_burst * cost_us;
}

static uint64_t header_length(uint64_t payload_length)
{
    return 2 + MASK_LENGTH + (payload_length < 126 ? 0 : payload_length <= UINT16_MAX ? 2 : 8);
}

static void on_frame_start(wslay_event_context_ptr context,
                           const struct wslay_event_on_frame_recv_start_arg *frame, void *arg)
{
    struct receiver *receiver = CAST(receiver, arg);
    receiver->frame_length = header_length(frame->payload_length) + frame->payload_length;
    if (!wslay_is_ctrl_frame(frame->opcode))
        receiver->in_message = !frame->fin;
    if (frame->opcode == WSLAY_CONNECTION_CLOSE && frame->payload_length == 1)
        receiver->is_wrong = true;
    if (frames_are_too_many(receiver->connection, receiver->socket)) {
        connection_close_counted(receiver->connection, METRIC_SOCKETS_FRAMES, CLOSE_POLICY,
                                 "too many frames");
        wslay_event_shutdown_read(context);
    }
}

static void on_frame_end(wslay_event_context_ptr context, void *arg)
{
    struct receiver *receiver = CAST(receiver, arg);
    (void)context;
    receiver->framed += receiver->frame_length;
}

static void on_message(wslay_event_context_ptr context,
                       const struct wslay_event_on_msg_recv_arg *message, void *arg)
{
    struct receiver *receiver = CAST(receiver, arg);
    struct connection *c = receiver->connection;
    (void)context;
    if (message->opcode == WSLAY_TEXT_FRAME && c->state == CONNECTION_OPEN)
        receiver->fn(c, (const char *)message->msg, message->msg_length);
    else if (message->opcode == WSLAY_BINARY_FRAME)
        connection_close_counted(c, METRIC_SOCKETS_PROTOCOL, CLOSE_UNSUPPORTED, "text only");
}

// Reads the payload length in a header; false: the header is incomplete.
static bool header_is_whole(const struct receiver *receiver, uint64_t *ret_payload_length)
{
    if (receiver->header_length < 2)
        return false;
    uint64_t length = receiver->header[1] & 0x7f;
    size_t more = length == 127 ? 8 : length == 126 ? 2 : 0;
    if (receiver->header_length < 2 + more)
        return false;
    for (size_t i = 0; i < more; i++)
        length = (i == 0 ? 0 : length << 8) | receiver->header[2 + i];
    *ret_payload_length = length;
    return true;
}

// wslay checks a length when the first byte of the payload arrives, which may never happen. So this
// checks the headers of all frames in the input; false: a message is too long.
static bool messages_may_be_so_long(struct receiver *receiver, const uint8_t *data, size_t length)
{
    const struct gateway_options *options = &receiver->connection->gateway->options;
    while (length > 0) {
        size_t part = length < receiver->skip ? length : (size_t)receiver->skip;
        receiver->skip -= part;
        data += part;
        length -= part;
        if (length == 0)
            break;
        uint64_t payload;
        receiver->header[receiver->header_length++] = *data++;
        length--;
        if (!header_is_whole(receiver, &payload))
            continue;
        uint8_t opcode = receiver->header[0] & 0x0f;
        receiver->header_length = 0;
        if (wslay_is_ctrl_frame(opcode)) {
            receiver->skip = MASK_LENGTH + (payload & 0x7f); // wslay refuses a longer one
            continue;
        }
        if (opcode != WSLAY_CONTINUATION_FRAME)
            receiver->message_left = (uint64_t)options->settings.socket_message_max_bytes;
        if (payload > receiver->message_left)
            return false;
        receiver->message_left -= payload;
        receiver->skip = MASK_LENGTH + payload;
    }
    return true;
}

static struct receiver *receiver_new(struct connection *c, struct socket *socket, receive_fn *fn)
{
    static const struct wslay_event_callbacks callbacks = {
        .recv_callback = on_recv,
        .send_callback = on_send,
        .on_frame_recv_start_callback = on_frame_start,
        .on_frame_recv_end_callback = on_frame_end,
        .on_msg_recv_callback = on_message,
    };
    CLEANUP_FREE struct receiver *receiver = TAGGED_NEW(receiver);
    if (!receiver || wslay_event_context_server_init(&receiver->context, &callbacks, receiver) != 0)
        return NULL;
    wslay_event_config_set_max_recv_msg_length(
        receiver->context, (uint64_t)c->gateway->options.settings.socket_message_max_bytes);
    receiver->connection = c;
    receiver->socket = socket;
    receiver->fn = fn;
    return TAKE(receiver);
}

static void receiver_free(struct receiver *receiver)
{
    if (!receiver)
        return;
    wslay_event_context_free(receiver->context);
    TAGGED_FREE(receiver);
}

void receive_done(struct socket *socket)
{
    receiver_free(TAKE(socket->receiver));
}

// Queues wslay's answers. Negative: the connection ends.
static int receiver_answer(struct receiver *receiver)
{
    struct connection *c = receiver->connection;
    if (wslay_event_send(receiver->context) != 0) {
        connection_slow(c);
        return -ERROR_INVALID_ARGUMENTS;
    }
    if (!wslay_event_get_close_sent(receiver->context))
        return 0;
    c->peer_closed = wslay_event_get_close_received(receiver->context);
    if (!c->peer_closed)
        metric_add(METRIC_SOCKETS_PROTOCOL, 1);
    outlet_drop_backlog(&c->outlet);
    connection_end(c);
    return -ERROR_INVALID_ARGUMENTS;
}

int receive(struct connection *c, struct socket *socket, receive_fn *fn, const void *data,
            size_t length)
{
    if (!socket->receiver)
        socket->receiver = receiver_new(c, socket, fn);
    struct receiver *receiver = socket->receiver;
    if (!receiver) {
        connection_close(c, CLOSE_POLICY, "no memory");
        return -ERROR_MEMORY;
    }
    receiver->data = data;
    receiver->length = length;
    bool fine = messages_may_be_so_long(receiver, data, length);
    int r = wslay_event_recv(receiver->context);
    if (r != 0 || receiver->is_wrong) {
        connection_close_counted(c, METRIC_SOCKETS_PROTOCOL, CLOSE_PROTOCOL, "protocol error");
        return -ERROR_INVALID_ARGUMENTS;
    }
    r = receiver_answer(receiver);
    if (r < 0)
        return r;
    if (!fine) {
        connection_close_counted(c, METRIC_SOCKETS_PROTOCOL, CLOSE_TOO_BIG, "message too long");
        return -ERROR_INVALID_ARGUMENTS;
    }
    if (receiver->given == receiver->framed && receiver->length == 0 && !receiver->in_message)
        receive_done(socket);
    return 0;
}
