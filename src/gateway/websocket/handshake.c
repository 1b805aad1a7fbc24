// SPDX-License-Identifier: Apache-2.0
// Reads the head of a WebSocket's request, and makes the answer.
#include "handshake.h"
#include "../text_cut.h"

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
const char handshake_too_large[] = REFUSAL("431 Request Header Fields Too Large", "");
const char handshake_unavailable[] = REFUSAL("503 Service Unavailable", "Retry-After: 1\r\n");

static const char key_suffix[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
enum { KEY_LENGTH = 24 }; // 16 bytes in base64

struct fields {
    struct text upgrade;
    struct text version;
    struct text key;
    bool upgrades; // one of the Connection fields says so: several are one list
    bool bad;      // a line that is none, another field twice, or a body announced
};

// Whether a list of words with commas holds `word`.
static bool list_has(struct text list, const char *word)
{
    while (list.length > 0)
        if (text_is(text_trim(text_take(&list, ",")), word))
            return true;
    return false;
}

static void field_set(struct fields *fields, struct text *field, struct text value)
{
    if (field->data)
        fields->bad = true;
    *field = value;
}

static void field_read(struct fields *fields, struct text line)
{
    struct text name = text_take(&line, ":");
    struct text value = text_trim(line);
    bool is_field = name.length > 0 && line.data[-1] == ':' &&
                    !memchr(name.data, ' ', name.length) && !memchr(name.data, '\t', name.length);
    if (!is_field || memchr(value.data, '\0', value.length))
        fields->bad = true;
    else if (text_is(name, "Upgrade"))
        field_set(fields, &fields->upgrade, value);
    else if (text_is(name, "Connection"))
        fields->upgrades = fields->upgrades || list_has(value, "upgrade");
    else if (text_is(name, "Sec-WebSocket-Version"))
        field_set(fields, &fields->version, value);
    else if (text_is(name, "Sec-WebSocket-Key"))
        field_set(fields, &fields->key, value);
    else if (text_is(name, "Transfer-Encoding") ||
             (text_is(name, "Content-Length") && !text_is(value, "0")))
        fields->bad = true;
}

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

// Takes `path` off the beginning of `text`; false when it begins otherwise.
static bool path_take(struct text *text, const char *path)
{
    size_t length = strlen(path);
    if (text->length < length || memcmp(text->data, path, length) != 0)
        return false;
    text->data += length;
    text->length -= length;
    return true;
}

static bool ticket_keep(struct text ticket, char *ret_ticket)
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

// The ticket of "/rtm/TICKET" or "/rtm/TICKET?anything", or of "/link/…"; where it is not in the
// path it may be in the query, as Slack has it. Leaves the rest of the query.
static bool ticket_read(struct text *target, struct handshake *ret_handshake)
{
    struct text ticket = text_take(target, "?");
    ret_handshake->is_link = path_take(&ticket, "/link/");
    if (!ret_handshake->is_link && !path_take(&ticket, "/rtm/"))
        return false;
    if (ticket.length == 0 && path_take(target, "ticket="))
        ticket = text_take(target, "&");
    return ticket_keep(ticket, ret_handshake->ticket);
}

// False when it asks to go on from what is no position.
static bool query_read(struct text query, struct handshake *ret_handshake)
{
    struct place *place = &ret_handshake->place;
    bool fine = true;
    ret_handshake->goes_on = false;
    *place = (struct place){0};
    while (query.length > 0) {
        struct text value = text_take(&query, "&");
        struct text name = text_take(&value, "=");
        if (!text_is(name, "since"))
            continue;
        ret_handshake->goes_on = true;
        fine = position_parse(value.data, value.length, &place->since, &place->progress) >= 0;
    }
    return fine;
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

size_t handshake_head_length(const char *data, size_t length)
{
    const char *end = length > 0 ? memmem(data, length, "\r\n\r\n", 4) : NULL;
    return end ? (size_t)(end - data) + 4 : 0;
}

const char *handshake_read(const char *head, size_t length, struct handshake *ret_handshake)
{
    struct text rest = {head, length - 4}; // without the empty line
    struct text line = text_take(&rest, "\r\n");
    struct text verb = text_take(&line, " ");
    struct text target = text_take(&line, " ");
    struct fields fields = {0};
    if (!ticket_read(&target, ret_handshake))
        return not_found;
    if (!query_read(target, ret_handshake) || verb.length != 3 ||
        memcmp(verb.data, "GET", 3) != 0 || line.length != 8 ||
        memcmp(line.data, "HTTP/1.1", 8) != 0)
        return handshake_bad_request;
    while (rest.length > 0)
        field_read(&fields, text_take(&rest, "\r\n"));
    if (fields.bad)
        return handshake_bad_request;
    if (!list_has(fields.upgrade, "websocket"))
        return upgrade_required;
    if (!fields.upgrades)
        return handshake_bad_request;
    if (!text_is(fields.version, "13"))
        return upgrade_required;
    if (!key_is_good(fields.key))
        return handshake_bad_request;
    reply_write(fields.key, ret_handshake->reply);
    return NULL;
}
