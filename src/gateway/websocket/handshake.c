// SPDX-License-Identifier: Apache-2.0
// Parses the request head of a WebSocket, and writes the reply.
#include "handshake.h"
#include "../text_cut.h"

#include "http/head.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#define REFUSAL(status, headers)                                                                   \
    "HTTP/1.1 " status "\r\n" headers "Content-Length: 0\r\nConnection: close\r\n\r\n"

const char handshake_bad_request[] = REFUSAL("400 Bad Request", "");
static const char not_found[] = REFUSAL("404 Not Found", "");
static const char upgrade_required[] =
    REFUSAL("426 Upgrade Required", "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n");
const char handshake_unavailable[] = REFUSAL("503 Service Unavailable", "Retry-After: 1\r\n");

static const char key_suffix[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
enum { KEY_LENGTH = 24 }; // 16 bytes in base64

static bool key_is_good(struct text key)
{
    uint8_t decoded[KEY_LENGTH];
    char text[KEY_LENGTH + 1];
    if (key.length != KEY_LENGTH || memcmp(key.data + KEY_LENGTH - 2, "==", 2) != 0 ||
        key.data[KEY_LENGTH - 3] == '=')
        return false;
    memcpy(text, key.data, KEY_LENGTH);
    return EVP_DecodeBlock(decoded, (const uint8_t *)text, KEY_LENGTH) == 18;
}

// Removes `path` from the start of `text`; false if `text` does not start with it.
static bool path_take(struct text *text, const char *path)
{
    size_t length = strlen(path);
    if (text->length < length || memcmp(text->data, path, length) != 0)
        return false;
    text->data += length;
    text->length -= length;
    return true;
}

static bool ticket_copy(struct text ticket, char *ret_ticket)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    if (ticket.length == 0 || ticket.length >= HANDSHAKE_TICKET_SIZE)
        return false;
    for (size_t i = 0; i < ticket.length; i++)
        if (!memchr(letters, ticket.data[i], sizeof letters - 1))
            return false;
    memcpy(ret_ticket, ticket.data, ticket.length);
    ret_ticket[ticket.length] = '\0';
    return true;
}

// Reads the ticket of "/rtm/TICKET", "/rtm/TICKET?anything" or "/link/…". If the path has none, it
// may be in the query, as in Slack's URLs. Leaves the rest of the query in `target`.
static bool ticket_read(struct text *target, struct handshake *ret_handshake)
{
    struct text ticket = text_take(target, "?");
    ret_handshake->is_app_socket = path_take(&ticket, "/link/");
    if (!ret_handshake->is_app_socket && !path_take(&ticket, "/rtm/"))
        return false;
    if (ticket.length == 0 && path_take(target, "ticket="))
        ticket = text_take(target, "&");
    return ticket_copy(ticket, ret_handshake->ticket);
}

// False: `since` is not a position.
static bool query_read(struct text query, struct handshake *ret_handshake)
{
    struct place *place = &ret_handshake->place;
    ret_handshake->resumes = false;
    *place = (struct place){0};
    while (query.length > 0) {
        struct text value = text_take(&query, "&");
        struct text name = text_take(&value, "=");
        if (!text_is(name, "since"))
            continue;
        ret_handshake->resumes = true;
        if (place_parse(value.data, value.length, place) < 0)
            return false;
    }
    return true;
}

static void reply_write(struct text key, char *ret_reply)
{
    uint8_t joined[KEY_LENGTH + sizeof key_suffix], digest[SHA_DIGEST_LENGTH];
    char accept[32];
    memcpy(joined, key.data, KEY_LENGTH);
    memcpy(joined + KEY_LENGTH, key_suffix, sizeof key_suffix - 1);
    (void)SHA1(joined, KEY_LENGTH + sizeof key_suffix - 1, digest);
    (void)EVP_EncodeBlock((uint8_t *)accept, digest, sizeof digest);
    snprintf(ret_reply, HANDSHAKE_REPLY_SIZE,
             "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
             "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
             accept);
}

const char *handshake_read(const struct http_head *head, struct handshake *ret_handshake)
{
    struct text target = text_of(head->target);
    struct text key = text_of(head->websocket_key);
    if (!ticket_read(&target, ret_handshake))
        return not_found;
    if (!query_read(target, ret_handshake) || strcmp(head->verb, "GET") != 0 ||
        strcmp(head->version, "HTTP/1.1") != 0 || head_has_body(head))
        return handshake_bad_request;
    if (!head_list_has(head->upgrade, "websocket"))
        return upgrade_required;
    if (!head->wants_upgrade)
        return handshake_bad_request;
    if (!text_is(text_of(head->websocket_version), "13"))
        return upgrade_required;
    if (!key_is_good(key))
        return handshake_bad_request;
    reply_write(key, ret_handshake->reply);
    return NULL;
}
