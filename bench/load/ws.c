// SPDX-License-Identifier: Apache-2.0
#include "ws.h"

#include "../common/tool.h"
#include "http.h"

#include <stdio.h>
#include <string.h>

enum opcode { OPCODE_TEXT = 0x1, OPCODE_CLOSE = 0x8, OPCODE_PING = 0x9, OPCODE_PONG = 0xA };

// Length of the header; 0: not all there yet.
static size_t frame_head(const unsigned char *data, size_t len, size_t *ret_payload_len)
{
    size_t head = 2, extra;

    if (len < head)
        return 0;
    extra = (data[1] & 0x7f) == 126 ? 2 : (data[1] & 0x7f) == 127 ? 8 : 0;
    if (len < head + extra)
        return 0;
    *ret_payload_len = extra == 0 ? data[1] & 0x7f : 0;
    for (size_t i = 0; i < extra; i++)
        *ret_payload_len = *ret_payload_len << 8 | data[head + i];
    return head + extra;
}

// Masked with zeros, which is as good as any mask for a client that is no browser.
static void send_pong(struct ws_socket *socket, const char *payload, size_t len)
{
    char frame[6 + 125] = {(char)(0x80 | OPCODE_PONG), (char)(0x80 | (len & 0x7f))};

    if (len > 125)
        tool_die("a ping of %zu bytes", len);
    memcpy(frame + 6, payload, len);
    net_conn_send(&socket->conn, frame, 6 + len);
}

static void take_frame(struct ws_socket *socket, unsigned first, const char *payload, size_t len)
{
    switch (first & 0x0f) {
    case OPCODE_TEXT:
        socket->on_frame(socket, payload, len);
        break;
    case OPCODE_PING:
        send_pong(socket, payload, len);
        break;
    case OPCODE_CLOSE:
        socket->is_closed = true;
        break;
    default:
        tool_die("a frame of opcode %u", first & 0x0f);
    }
}

static size_t take_frames(struct ws_socket *socket, const char *data, size_t len)
{
    size_t used = 0;

    while (socket->conn.fd >= 0) {
        size_t payload_len = 0;
        size_t head = frame_head((const unsigned char *)data + used, len - used, &payload_len);

        if (head == 0 || len - used < head + payload_len)
            break;
        take_frame(socket, (unsigned char)data[used], data + used + head, payload_len);
        used += head + payload_len;
    }
    return used;
}

static size_t on_data(struct net_conn *conn, const char *data, size_t len)
{
    struct ws_socket *socket = (struct ws_socket *)conn;
    const char *end;

    if (socket->is_open)
        return take_frames(socket, data, len);
    end = memmem(data, len, "\r\n\r\n", 4);
    if (!end)
        return 0;
    if (len < 12 || memcmp(data, "HTTP/1.1 101", 12) != 0)
        tool_die("no WebSocket: %.*s", (int)len, data);
    socket->is_open = true;
    end += 4;
    return (size_t)(end - data) + take_frames(socket, end, len - (size_t)(end - data));
}

void ws_socket_open(struct ws_socket *socket, struct net_loop *loop, const char *url)
{
    char host[16], request[512];
    uint16_t port;
    const char *path = http_url_parse(url, host, &port);
    int len = snprintf(request, sizeof(request),
                       "GET %s HTTP/1.1\r\nHost: %s:%u\r\nUpgrade: websocket\r\n"
                       "Connection: Upgrade\r\nSec-WebSocket-Key: dGlkaW5ncy1iZW5jaC0xMg==\r\n"
                       "Sec-WebSocket-Version: 13\r\n\r\n",
                       path, host, port);

    if (len < 0 || (size_t)len >= sizeof(request))
        tool_die("%s is too long", url);
    net_conn_open(&socket->conn, loop, host, port, on_data);
    net_conn_send(&socket->conn, request, (size_t)len);
}

void ws_socket_open_raw(struct ws_socket *socket, struct net_loop *loop, const char *url)
{
    char host[16];
    uint16_t port;

    http_url_parse(url, host, &port);
    net_conn_open(&socket->conn, loop, host, port, on_data);
    socket->is_open = true;
}

static void id_store(struct ws_socket *socket, const char *event, size_t len)
{
    static const char mark[] = "id: "; // the first line of each
    const char *id = event + sizeof(mark) - 1, *end;

    if (len < sizeof(mark) - 1 || memcmp(event, mark, sizeof(mark) - 1) != 0)
        return;
    end = memchr(id, '\n', (size_t)(event + len - id));
    if (!end || end - id >= WS_ID_ROOM)
        tool_die("not the id of an event: %.*s", (int)len, event);
    memcpy(socket->last_id, id, (size_t)(end - id));
    socket->last_id[end - id] = '\0';
}

// One event's lines up to the empty one; comments have no data.
static void take_event(struct ws_socket *socket, const char *event, size_t len)
{
    static const char mark[] = "\ndata: ";
    const char *data = memmem(event, len, mark, sizeof(mark) - 1);

    if (!data)
        return;
    data += sizeof(mark) - 1;
    if (socket->last_id)
        id_store(socket, event, len);
    socket->on_frame(socket, data, (size_t)(event + len - data));
}

static size_t take_events(struct ws_socket *socket, const char *data, size_t len)
{
    size_t used = 0;
    const char *end;

    while (socket->conn.fd >= 0 && (end = memmem(data + used, len - used, "\n\n", 2))) {
        take_event(socket, data + used, (size_t)(end - data) - used);
        used = (size_t)(end - data) + 2;
    }
    return used;
}

static size_t on_event_data(struct net_conn *conn, const char *data, size_t len)
{
    struct ws_socket *socket = (struct ws_socket *)conn;
    const char *end;

    if (socket->is_open)
        return take_events(socket, data, len);
    end = memmem(data, len, "\r\n\r\n", 4);
    if (!end)
        return 0;
    if (len >= 12 && memcmp(data, "HTTP/1.1 503", 12) == 0) {
        socket->is_refused = true;
        return len;
    }
    if (len < 12 || memcmp(data, "HTTP/1.1 200", 12) != 0)
        tool_die("no event stream: %.*s", (int)len, data);
    socket->is_open = true;
    end += 4;
    return (size_t)(end - data) + take_events(socket, end, len - (size_t)(end - data));
}

static void open_events(struct ws_socket *socket, struct net_loop *loop, const char *url,
                        const char *headers)
{
    char host[16], request[1024];
    uint16_t port;
    const char *path = http_url_parse(url, host, &port);
    int len = snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: %s:%u\r\n%s\r\n", path,
                       host, port, headers);

    if (len < 0 || (size_t)len >= sizeof(request))
        tool_die("%s is too long", url);
    net_conn_open(&socket->conn, loop, host, port, on_event_data);
    net_conn_send(&socket->conn, request, (size_t)len);
}

void ws_socket_open_events(struct ws_socket *socket, struct net_loop *loop, const char *url)
{
    open_events(socket, loop, url, "");
}

void ws_socket_resume_events(struct ws_socket *socket, struct net_loop *loop, const char *url,
                             const char *token)
{
    char whole_url[128], headers[512];
    bool resumes = socket->last_id && socket->last_id[0] != '\0';

    snprintf(whole_url, sizeof(whole_url), "%s/events", url);
    snprintf(headers, sizeof(headers), "Authorization: Bearer %s\r\n%s%s%s", token,
             resumes ? "Last-Event-ID: " : "", resumes ? socket->last_id : "",
             resumes ? "\r\n" : "");
    socket->is_open = socket->is_refused = false;
    open_events(socket, loop, whole_url, headers);
}
