// SPDX-License-Identifier: Apache-2.0
// Parses request heads strictly: rejects anything that could smuggle a second request past a proxy.
#include "http/head.h"

#include <string.h>
#include <strings.h>

enum {
    HEAD_VERB_MAX = 16,
    HEAD_FIELDS_MAX = 100,
    // ten to the power of this is below 2^63
    HEAD_LENGTH_DIGITS_MAX = 18
};

static size_t verb_length(const char *text, size_t length)
{
    size_t count = 0;
    while (count < length && text[count] >= 'A' && text[count] <= 'Z')
        count++;
    return count;
}

static size_t target_length(const char *text, size_t length)
{
    size_t count = 0;
    while (count < length && (unsigned char)text[count] > 0x20 && text[count] != 0x7f)
        count++;
    return count;
}

// Whether `text` starts with a verb and a blank, or may still do so.
static bool verb_is_fine(const char *text, size_t length)
{
    size_t count = verb_length(text, length);
    return count <= HEAD_VERB_MAX && (count == length || (count > 0 && text[count] == ' '));
}

static const char *line_check(const char *line, size_t length)
{
    size_t verb = verb_length(line, length);
    if (verb == 0 || verb == length || line[verb] != ' ')
        return "a malformed request line";
    const char *target = line + verb + 1;
    size_t left = length - verb - 1;
    size_t count = target_length(target, left);
    if (count == 0 || target[0] != '/')
        return "a malformed target";
    if (count == left || target[count] != ' ')
        return "a malformed request line";
    const char *version = target + count + 1;
    left -= count + 1;
    if (left != 8 || (memcmp(version, "HTTP/1.1", 8) != 0 && memcmp(version, "HTTP/1.0", 8) != 0))
        return "an unknown version";
    return NULL;
}

static bool length_is_fine(const char *value, size_t length)
{
    while (length > 0 && (*value == ' ' || *value == '\t')) {
        value++;
        length--;
    }
    if (length == 0 || length > HEAD_LENGTH_DIGITS_MAX)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (value[i] < '0' || value[i] > '9')
            return false;
    }
    return true;
}

static const char *field_check(const char *line, size_t length)
{
    static const char name[] = "Content-Length:";
    const size_t name_length = sizeof name - 1;
    const char *colon = memchr(line, ':', length);
    if (!colon || colon == line || line[0] == ' ' || line[0] == '\t')
        return "a malformed header line";
    if (length >= name_length && strncasecmp(line, name, name_length) == 0 &&
        !length_is_fine(line + name_length, length - name_length))
        return "a malformed Content-Length header";
    return NULL;
}

// The length, without CR LF, of the line that begins at `text` and ends at `end`; negative if it
// does not end with CR LF.
static ptrdiff_t line_length(const char *text, const char *end)
{
    return end > text && end[-1] == '\r' ? end - 1 - text : -1;
}

static const char *fields_scan(const char *text, size_t length, size_t *ret_length)
{
    const char *end = text + length;
    const char *feed;
    *ret_length = 0;
    for (const char *line = text; (feed = memchr(line, '\n', (size_t)(end - line)));
         line = feed + 1) {
        ptrdiff_t count = line_length(line, feed);
        if (count == 0) {
            *ret_length = (size_t)(feed + 1 - text);
            return NULL;
        }
        const char *reason =
            count < 0 ? "a malformed end of a line" : field_check(line, (size_t)count);
        if (reason)
            return reason;
    }
    return NULL;
}

const char *head_scan(const char *text, size_t length, struct head_progress *ret_progress)
{
    *ret_progress = (struct head_progress){0};
    if (!verb_is_fine(text, length))
        return "a malformed request line";
    const char *feed = memchr(text, '\n', length);
    if (!feed)
        return NULL;
    ptrdiff_t count = line_length(text, feed);
    const char *reason = count < 0 ? "a malformed end of a line" : line_check(text, (size_t)count);
    if (reason)
        return reason;
    ret_progress->line_length = (size_t)count;
    ret_progress->target = text + verb_length(text, length) + 1;
    ret_progress->target_length =
        target_length(ret_progress->target, (size_t)(feed - ret_progress->target));
    size_t fields_at = (size_t)(feed + 1 - text);
    size_t fields_length;
    reason = fields_scan(feed + 1, length - fields_at, &fields_length);
    ret_progress->length = fields_length > 0 ? fields_at + fields_length : 0;
    return reason;
}

struct head_field {
    const char *name;
    size_t length;
    size_t offset;     // of the member in struct http_head
    const char *twice; // the reason to reject duplicates; NULL: allowed
};

#define FIELD(name, member)                                                                        \
    {name, sizeof name - 1, offsetof(struct http_head, member), "two " name " headers"}
// Duplicates are allowed; the first one counts.
#define FIELD_OR_MORE(name, member)                                                                \
    {name, sizeof name - 1, offsetof(struct http_head, member), NULL}

static const struct head_field fields[] = {
    FIELD("Host", host),
    FIELD("Authorization", authorization),
    FIELD("Content-Type", content_type),
    FIELD("Content-Length", content_length),
    FIELD("Transfer-Encoding", transfer_encoding),
    FIELD("X-Request-Id", request_id),
    FIELD("Idempotency-Key", idempotency_key),
    FIELD("X-Tidings-Errors", errors),
    FIELD("Origin", origin),
    FIELD("Upgrade", upgrade),
    FIELD("Sec-WebSocket-Version", websocket_version),
    FIELD("Sec-WebSocket-Key", websocket_key),
    FIELD_OR_MORE("Last-Event-ID", last_event_id),
    FIELD_OR_MORE("Expect", expect),
    FIELD_OR_MORE("If-None-Match", if_none_match),
    FIELD_OR_MORE("Range", range),
    FIELD_OR_MORE("Accept-Encoding", accept_encoding),
};

static bool is_alnum(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9');
}

static bool is_token(const char *text, size_t length)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < length; i++) {
        if (!is_alnum(text[i]) && (text[i] == '\0' || !strchr(others, text[i])))
            return false;
    }
    return length > 0;
}

static bool is_value(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        if ((byte < 0x20 && byte != '\t') || byte == 0x7f)
            return false;
    }
    return true;
}

static const char **head_member(struct http_head *head, const struct head_field *field)
{
    return (const char **)(void *)((char *)head + field->offset);
}

bool head_list_has(const char *list, const char *word)
{
    size_t wanted = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += strspn(at, ", \t");
        size_t length = strcspn(at, ",");
        while (length > 0 && (at[length - 1] == ' ' || at[length - 1] == '\t'))
            length--;
        if (length == wanted && strncasecmp(at, word, wanted) == 0)
            return true;
    }
    return false;
}

static bool is_connection(const char *name, size_t length)
{
    static const char connection[] = "Connection";
    return length == sizeof connection - 1 && strncasecmp(name, connection, length) == 0;
}

static const char *field_store(struct http_head *head, const char *name, size_t length,
                               const char *value)
{
    if (is_connection(name, length)) {
        head->wants_upgrade = head->wants_upgrade || head_list_has(value, "upgrade");
        head->wants_close = head->wants_close || head_list_has(value, "close");
        head->wants_keep = head->wants_keep || head_list_has(value, "keep-alive");
    }
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const struct head_field *known = &fields[i];
        if (known->length != length || strncasecmp(known->name, name, length) != 0)
            continue;
        const char **member = head_member(head, known);
        if (*member)
            return known->twice;
        *member = value;
        return NULL;
    }
    return NULL;
}

// Parses a field line of `length` bytes. Overwrites its line end.
static const char *field_parse(struct http_head *head, char *line, size_t length)
{
    const char *reason = field_check(line, length);
    if (reason)
        return reason;
    size_t name_length = (size_t)((char *)memchr(line, ':', length) - line);
    char *value = line + name_length + 1;
    line[length] = '\0';
    value += strspn(value, " \t");
    if (++head->fields > HEAD_FIELDS_MAX)
        return "too many headers";
    if (!is_token(line, name_length))
        return "a malformed header name";
    if (!is_value(value, (size_t)(line + length - value)))
        return "a control character in a header";
    return field_store(head, line, name_length, value);
}

// Parses a request line that line_check() has accepted.
static const char *line_parse(struct http_head *head, char *line, size_t length)
{
    static const char *const verbs[] = {"GET",     "HEAD",  "POST",  "PUT",  "DELETE",
                                        "OPTIONS", "PATCH", "TRACE", "QUERY"};
    char *blank = memchr(line, ' ', length);
    *blank = '\0';
    head->verb = line;
    head->target = blank + 1;
    head->version = line + length - strlen("HTTP/1.1");
    head->target[head->version - head->target - 1] = '\0';
    line[length] = '\0';
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i], line) == 0)
            return NULL;
    }
    return "an unknown method";
}

static bool is_host(const char *host)
{
    for (const char *at = host; *at != '\0'; at++) {
        if (!is_alnum(*at) && !strchr(".-_:[]", *at))
            return false;
    }
    return host[0] != '\0';
}

bool head_is_1_0(const struct http_head *head)
{
    return strcmp(head->version, "HTTP/1.0") == 0;
}

// Checks that the fields are consistent.
static const char *head_check(const struct http_head *head)
{
    bool is_1_0 = head_is_1_0(head);
    if (!head->host && !is_1_0)
        return "no Host header";
    if (head->host && !is_host(head->host))
        return "a malformed Host header";
    if (!head->transfer_encoding)
        return NULL;
    if (head->content_length)
        return "both Content-Length and Transfer-Encoding";
    if (is_1_0)
        return "Transfer-Encoding in HTTP/1.0";
    if (strcmp(head->transfer_encoding, "chunked") != 0)
        return "an unknown Transfer-Encoding";
    return NULL;
}

static const char *fields_parse(struct http_head *head, char *text, const char *end)
{
    for (char *line = text, *feed; (feed = memchr(line, '\n', (size_t)(end - line)));
         line = feed + 1) {
        ptrdiff_t length = line_length(line, feed);
        if (length == 0 && feed + 1 == end)
            return head_check(head);
        const char *reason =
            length <= 0 ? "a malformed end of a line" : field_parse(head, line, (size_t)length);
        if (reason)
            return reason;
    }
    return "a malformed end of the headers";
}

const char *head_parse(char *text, size_t length, struct http_head *ret_head)
{
    *ret_head = (struct http_head){0};
    char *feed = memchr(text, '\n', length);
    ptrdiff_t count = feed ? line_length(text, feed) : -1;
    const char *reason = count < 0 ? "a malformed request line" : line_check(text, (size_t)count);
    if (!reason)
        reason = line_parse(ret_head, text, (size_t)count);
    return reason ? reason : fields_parse(ret_head, feed + 1, text + length);
}

bool head_has_body(const struct http_head *head)
{
    return head->transfer_encoding ||
           (head->content_length && strcmp(head->content_length, "0") != 0);
}
