// SPDX-License-Identifier: Apache-2.0
// Parses the request head of an event stream.
#include "sse_head.h"
#include "../text_cut.h"

#include "http/head.h"

#include <string.h>

// Copies visible ASCII; false: too long, or other characters.
static bool text_copy(struct text text, char *ret_text, size_t size)
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

// The last position counts, but an invalid one stays an error even if a valid one follows.
static void since_read(struct sse_head *head, struct text value)
{
    head->resumes = value.length > 0;
    if (head->resumes && place_parse(value.data, value.length, &head->place) < 0)
        head->since_is_bad = true;
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
        if (!text_copy(value, head->credential, sizeof head->credential))
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
    return text_copy(text_trim(value), head->credential, sizeof head->credential);
}

static bool fields_read(struct sse_head *sse, const struct http_head *head)
{
    if (head->authorization && !authorization_read(sse, text_of(head->authorization)))
        return false;
    if (head->last_event_id) {
        sse->since_is_bad = false; // set by the browser: newer than the URL's, which never changes
        since_read(sse, text_of(head->last_event_id));
    }
    return (!head->origin || text_copy(text_of(head->origin), sse->origin, sizeof sse->origin)) &&
           !head_has_body(head);
}

int sse_head_read(const struct http_head *head, struct sse_head *ret_head)
{
    struct text query = text_of(head->target);
    *ret_head = (struct sse_head){0};
    (void)text_take(&query, "?");
    ret_head->is_preflight = strcmp(head->verb, "OPTIONS") == 0;
    if (!ret_head->is_preflight && strcmp(head->verb, "GET") != 0)
        return 405;
    return query_read(ret_head, query) && fields_read(ret_head, head) ? 0 : 400;
}
