// SPDX-License-Identifier: Apache-2.0
// Reads the head of an event stream's request.
#include "sse_head.h"
#include "../text_cut.h"

#include "http/path.h"

#include <string.h>

static struct text target_of(struct text *line, struct text *ret_verb)
{
    *ret_verb = text_take(line, " ");
    return text_take(line, " ");
}

bool sse_head_is_one(const char *head, size_t length)
{
    struct text rest = {head, length};
    struct text line = text_take(&rest, "\r\n");
    struct text verb;
    struct text target = target_of(&line, &verb);
    return path_kind_of(target.data, target.length) == PATH_EVENTS;
}

// Copies visible ASCII; false when it does not fit or holds anything else.
static bool text_keep(struct text text, char *ret_text, size_t size)
{
    if (text.length >= size)
        return false;
    for (size_t i = 0; i < text.length; i++)
        if (text.data[i] <= ' ' || text.data[i] > '~')
            return false;
    memcpy(ret_text, text.data, text.length);
    ret_text[text.length] = '\0';
    return true;
}

static void since_read(struct sse_head *head, struct text value)
{
    head->resumes = value.length > 0;
    head->since_is_bad =
        head->resumes &&
        position_parse(value.data, value.length, &head->place.since, &head->place.progress) < 0;
}

static bool query_read(struct sse_head *head, struct text query)
{
    while (query.length > 0) {
        struct text value = text_take(&query, "&");
        struct text name = text_take(&value, "=");
        if (text_is(name, "since"))
            since_read(head, value);
        if (!text_is(name, "ticket"))
            continue;
        head->is_ticket = true;
        if (!text_keep(value, head->credential, sizeof head->credential))
            return false;
    }
    return true;
}

static bool authorization_read(struct sse_head *head, struct text value)
{
    struct text scheme = text_take(&value, " ");
    if (!text_is(scheme, "Bearer"))
        return true;
    head->is_ticket = false;
    return text_keep(text_trim(value), head->credential, sizeof head->credential);
}

static bool field_read(struct sse_head *head, struct text line, bool *has_authorization)
{
    struct text name = text_take(&line, ":");
    struct text value = text_trim(line);
    if (name.length == 0 || line.data[-1] != ':' || memchr(name.data, ' ', name.length) ||
        memchr(value.data, '\0', value.length))
        return false;
    if (text_is(name, "Authorization")) {
        bool twice = *has_authorization;
        *has_authorization = true;
        return !twice && authorization_read(head, value);
    }
    if (text_is(name, "Last-Event-ID"))
        since_read(head, value);
    else if (text_is(name, "Origin"))
        return text_keep(value, head->origin, sizeof head->origin);
    else if (text_is(name, "Transfer-Encoding") ||
             (text_is(name, "Content-Length") && !text_is(value, "0")))
        return false;
    return true;
}

int sse_head_read(const char *data, size_t length, struct sse_head *ret_head)
{
    struct text rest = {data, length - 4}; // without the empty line
    struct text line = text_take(&rest, "\r\n");
    struct text verb;
    struct text target = target_of(&line, &verb);
    bool has_authorization = false;
    *ret_head = (struct sse_head){0};
    (void)text_take(&target, "?");
    if (!text_is(line, "HTTP/1.1") && !text_is(line, "HTTP/1.0"))
        return 400;
    ret_head->is_preflight = text_is(verb, "OPTIONS");
    if (!ret_head->is_preflight && !text_is(verb, "GET"))
        return 405;
    bool fine = query_read(ret_head, target);
    while (fine && rest.length > 0)
        fine = field_read(ret_head, text_take(&rest, "\r\n"), &has_authorization);
    return fine ? 0 : 400;
}
