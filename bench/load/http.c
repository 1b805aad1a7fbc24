// SPDX-License-Identifier: Apache-2.0
#include "http.h"

#include "../common/tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// The number that a header with this name says; false: there is no such header.
static bool header_number(const char *head, const char *end, const char *name, size_t *ret_number)
{
    size_t name_len = strlen(name);

    for (const char *line = head; line && line < end; line++) {
        if ((size_t)(end - line) > name_len && strncasecmp(line, name, name_len) == 0) {
            *ret_number = strtoul(line + name_len, NULL, 10);
            return true;
        }
        line = memchr(line, '\n', (size_t)(end - line));
        if (!line)
            break;
    }
    return false;
}

static bool status_is_known(const struct http_client *client)
{
    return client->status == 200 ||
           (client->may_refuse && (client->status == 429 || client->status == 503));
}

// Notes what a reply's head says; returns the length of its body.
static size_t head_read(struct http_client *client, const char *head, const char *end)
{
    size_t body_len, retry_after_s = 0;

    client->status = 0;
    if (end - head > 12 && memcmp(head, "HTTP/1.1 ", 9) == 0)
        client->status = (unsigned)strtoul(head + 9, NULL, 10);
    if (!status_is_known(client))
        tool_die("HTTP failed: %.*s", (int)(end - head), head);
    if (!header_number(head, end, "Content-Length:", &body_len))
        tool_die("a reply without Content-Length: %.*s", (int)(end - head), head);
    header_number(head, end, "Retry-After:", &retry_after_s);
    client->retry_after_s = (unsigned)retry_after_s;
    return body_len;
}

static size_t on_data(struct net_conn *conn, const char *data, size_t len)
{
    struct http_client *client = (struct http_client *)conn;
    const char *end = memmem(data, len, "\r\n\r\n", 4);
    size_t head_len, body_len;

    if (!end)
        return 0;
    head_len = (size_t)(end - data) + 4;
    body_len = head_read(client, data, end + 2);
    if (len < head_len + body_len) {
        conn->need = head_len + body_len;
        return 0;
    }
    client->busy = false;
    client->on_reply(client, data + head_len, body_len);
    return head_len + body_len;
}

const char *http_url_parse(const char *url, char ret_host[16], uint16_t *ret_port)
{
    const char *scheme = strstr(url, "://");
    unsigned port = 0;
    int used = 0;

    if (!scheme || sscanf(scheme, "://%15[0-9.]:%u%n", ret_host, &port, &used) != 2 || port == 0 ||
        port > UINT16_MAX)
        tool_die("%s is no http://IPv4:port", url);
    *ret_port = (uint16_t)port;
    return scheme + used;
}

void http_pool_init(struct http_pool *pool, struct net_loop *loop, const char *url, unsigned count,
                    http_reply_fn on_reply, void *owner)
{
    *pool = (struct http_pool){.count = count, .loop = loop};
    http_url_parse(url, pool->host, &pool->port);
    pool->clients = tool_alloc(count, sizeof(*pool->clients));
    for (unsigned i = 0; i < count; i++) {
        struct http_client *client = &pool->clients[i];

        net_conn_open(&client->conn, loop, pool->host, pool->port, on_data);
        client->owner = owner;
        client->on_reply = on_reply;
        http_pool_give(pool, client);
    }
}

void http_pool_done(struct http_pool *pool)
{
    for (unsigned i = 0; i < pool->count; i++)
        net_conn_close(&pool->clients[i].conn);
    free(pool->clients);
    *pool = (struct http_pool){0};
}

struct http_client *http_pool_take(struct http_pool *pool)
{
    struct http_client *client = pool->idle;

    if (!client)
        return NULL;
    pool->idle = client->next_idle;
    if (client->conn.fd < 0 && pool->may_reopen) {
        net_conn_close(&client->conn);
        net_conn_open(&client->conn, pool->loop, pool->host, pool->port, on_data);
    }
    return client;
}

void http_pool_give(struct http_pool *pool, struct http_client *client)
{
    client->next_idle = pool->idle;
    pool->idle = client;
}

void http_client_send(struct http_client *client, const char *request, size_t len, uint64_t due_ns,
                      size_t tag)
{
    if (client->conn.fd < 0)
        tool_die("the server closed a keep-alive connection");
    client->busy = true;
    client->due_ns = due_ns;
    client->tag = tag;
    net_conn_send(&client->conn, request, len);
}

size_t http_request_write(char *ret_request, size_t room, const char *method, const char *token,
                          const char *host, const char *json)
{
    int len = snprintf(ret_request, room,
                       "POST /api/%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"
                       "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                       method, host, token, strlen(json), json);

    if (len < 0 || (size_t)len >= room)
        tool_die("a request of %d bytes does not fit", len);
    return (size_t)len;
}

bool http_reply_is_ok(const char *body, size_t len)
{
    return memmem(body, len, "\"ok\":true", 9) != NULL;
}

void http_reply_check(const char *body, size_t len)
{
    if (!http_reply_is_ok(body, len))
        tool_die("refused: %.*s", (int)(len < 500 ? len : 500), body);
}

void http_reply_text(const char *body, size_t len, const char *key, char *ret_value, size_t room)
{
    char start[64];
    int start_len = snprintf(start, sizeof(start), "\"%s\":\"", key);
    const char *at = memmem(body, len, start, (size_t)start_len), *end;

    if (!at)
        tool_die("no %s in %.*s", key, (int)(len < 500 ? len : 500), body);
    at += start_len;
    end = memchr(at, '"', len - (size_t)(at - body));
    if (!end || (size_t)(end - at) >= room)
        tool_die("%s is too long", key);
    memcpy(ret_value, at, (size_t)(end - at));
    ret_value[end - at] = '\0';
}
