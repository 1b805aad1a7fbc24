// SPDX-License-Identifier: Apache-2.0
// Refuses request heads that could smuggle a second request past a proxy.
#include "gate.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

enum { GATE_HEADERS_MAX = 100 };

struct gate {
    struct gate_head *head;
    const char *next; // where the next header's name must begin
    const char *reason;
    int count;
};

struct gate_name {
    const char *name;
    size_t length;
    size_t offset; // of the value in struct gate_head
    const char *twice;
};

#define GATE_NAME(name, member)                                                                    \
    {                                                                                              \
        name, sizeof name - 1, offsetof(struct gate_head, member), "two " name " headers"          \
    }

static const struct gate_name gate_names[] = {
    GATE_NAME("Host", host),
    GATE_NAME("Authorization", authorization),
    GATE_NAME("Content-Type", content_type),
    GATE_NAME("Content-Length", content_length),
    GATE_NAME("Transfer-Encoding", transfer_encoding),
    GATE_NAME("X-Request-Id", request_id),
    GATE_NAME("Idempotency-Key", idempotency_key),
    GATE_NAME("X-Tidings-Errors", errors),
    GATE_NAME("Origin", origin),
};

static bool is_token(const char *text, size_t length)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < length; i++) {
        char byte = text[i];
        bool alnum = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                     (byte >= '0' && byte <= '9');
        if (!alnum && (byte == '\0' || !strchr(others, byte)))
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

// libmicrohttpd cuts lines by writing NULs over their ends, in place. So a well-formed head is
// still one run of bytes: each name follows the two NULs of the line end before it. What does not
// was cut elsewhere: at a NUL that the peer sent, at a bare LF, or where it glued a folded line to
// the wrong string.
static bool is_in_place(struct gate *gate, const char *name, const char *value, size_t length)
{
    bool fine = name == gate->next && value[length] == '\0' && value[length + 1] == '\0';
    gate->next = value + length + 2;
    return fine;
}

static const char *gate_keep(struct gate *gate, const char *name, size_t length, const char *value)
{
    for (size_t i = 0; i < sizeof gate_names / sizeof gate_names[0]; i++) {
        const struct gate_name *known = &gate_names[i];
        if (known->length != length || strncasecmp(known->name, name, length) != 0)
            continue;
        const char **member = (const char **)(void *)((char *)gate->head + known->offset);
        if (*member)
            return known->twice;
        *member = value;
        return NULL;
    }
    return NULL;
}

static enum MHD_Result gate_header(void *arg, enum MHD_ValueKind kind, const char *name,
                                   size_t name_length, const char *value, size_t length)
{
    struct gate *gate = arg;
    (void)kind;
    if (++gate->count > GATE_HEADERS_MAX)
        gate->reason = "too many headers";
    else if (!value || !is_token(name, name_length))
        gate->reason = "a malformed header name";
    else if (!is_value(value, length))
        gate->reason = "a control character in a header";
    else if (!is_in_place(gate, name, value, length))
        gate->reason = "a malformed header line";
    else
        gate->reason = gate_keep(gate, name, name_length, value);
    return gate->reason ? MHD_NO : MHD_YES;
}

static bool is_host(const char *host)
{
    static const char others[] = ".-_:[]";
    for (const char *at = host; *at != '\0'; at++) {
        bool alnum =
            (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9');
        if (!alnum && !strchr(others, *at))
            return false;
    }
    return host[0] != '\0';
}

bool gate_target_is_fine(const char *target)
{
    for (const char *at = target; *at != '\0'; at++) {
        unsigned char byte = (unsigned char)*at;
        if (byte <= 0x20 || byte == 0x7f)
            return false;
    }
    return target[0] == '/';
}

static const char *gate_line_check(const struct gate_line *line)
{
    static const char *const verbs[] = {"GET",     "HEAD",  "POST",  "PUT",  "DELETE",
                                        "OPTIONS", "PATCH", "TRACE", "QUERY"};
    bool known = false;
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        known = known || strcmp(verbs[i], line->verb) == 0;
    if (!known)
        return "an unknown method";
    // One byte, a NUL now, was the blank between target and version; more means a NUL that the peer
    // sent.
    if (line->version != line->target_end + 1)
        return "a malformed request line";
    if (strcmp(line->version, "HTTP/1.1") != 0 && strcmp(line->version, "HTTP/1.0") != 0)
        return "an unknown version";
    return NULL;
}

static const char *gate_head_check(const struct gate_head *head, bool is_1_0)
{
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

// Whether nothing but the empty line came after the last header. (A line that begins with a colon
// would do for libmicrohttpd as the end, and what follows it for the next request.)
static bool gate_is_at_end(const struct gate *gate, struct MHD_Connection *mhd, const char *start)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info && gate->next + 2 == start + info->header_size;
}

const char *gate_check(struct MHD_Connection *mhd, const struct gate_line *line,
                       struct gate_head *ret_head)
{
    const char *reason = gate_line_check(line);
    if (reason)
        return reason;
    struct gate_head head = {0};
    struct gate gate = {.head = &head, .next = line->version + strlen(line->version) + 2};
    MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, gate_header, &gate);
    if (gate.reason)
        return gate.reason;
    if (!gate_is_at_end(&gate, mhd, line->verb))
        return "a malformed end of the headers";
    reason = gate_head_check(&head, strcmp(line->version, "HTTP/1.0") == 0);
    if (!reason)
        *ret_head = head;
    return reason;
}
