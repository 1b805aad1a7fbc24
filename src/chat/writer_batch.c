// SPDX-License-Identifier: Apache-2.0
#include "writer_internal.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum { PREVIEW_CODE_POINTS = 80 };

typedef const char *post_text_fn(const struct post *post);

static const char *workspace_of(const struct post *post)
{
    return post->actor->workspace_id;
}

static const char *channel_of(const struct post *post)
{
    return post->channel_id;
}

static const char *author_of(const struct post *post)
{
    return post->actor->user_id;
}

static const char *extra_of(const struct post *post)
{
    return post->extra;
}

static const char *key_of(const struct post *post)
{
    return post->key;
}

static const char *digest_of(const struct post *post)
{
    return post->digest;
}

static const char *client_msg_id_of(const struct post *post)
{
    return post->client_msg_id;
}

static void texts_add(struct params *params, struct post *const *posts, int count, post_text_fn *fn)
{
    params_open_text_array(params);
    for (int i = 0; i < count; i++) {
        const char *text = fn(posts[i]);
        params_element_text(params, text, text == NULL ? 0 : strlen(text));
    }
    params_close_array(params);
}

static void bodies_add(struct params *params, struct post *const *posts, int count)
{
    params_open_text_array(params);
    for (int i = 0; i < count; i++)
        params_element_text(params, posts[i]->text, posts[i]->text_length);
    params_close_array(params);
}

static bool threads_add(struct params *params, struct post *const *posts, int count)
{
    bool any = false;

    params_open_int_array(params);
    for (int i = 0; i < count; i++) {
        params_element_int(params, posts[i]->thread_ts);
        any = any || posts[i]->thread_ts != 0;
    }
    params_close_array(params);
    params_open_bool_array(params);
    for (int i = 0; i < count; i++)
        params_element_bool(params, posts[i]->broadcast);
    params_close_array(params);
    return any;
}

bool writer_batch_params(struct params *params, const char *batch_id, struct post *const *posts, int count)
{
    params_text(params, batch_id);
    params_open_int_array(params);
    for (int i = 0; i < count; i++)
        params_element_int(params, i);
    params_close_array(params);
    texts_add(params, posts, count, workspace_of);
    texts_add(params, posts, count, channel_of);
    texts_add(params, posts, count, author_of);
    bodies_add(params, posts, count);
    texts_add(params, posts, count, extra_of);
    bool has_replies = threads_add(params, posts, count);
    texts_add(params, posts, count, key_of);
    texts_add(params, posts, count, digest_of);
    texts_add(params, posts, count, client_msg_id_of);
    params_bool(params, has_replies);
    return has_replies;
}

void writer_event_name(struct event *event, const struct post *post)
{
    snprintf(event->workspace_id, sizeof event->workspace_id, "%s", post->actor->workspace_id);
    snprintf(event->channel_id, sizeof event->channel_id, "%s", post->channel_id);
    snprintf(event->user_id, sizeof event->user_id, "%s", post->actor->user_id);
    snprintf(event->origin, sizeof event->origin, "%s", post->origin);
}

// The first 80 code points in one line, as preview() in migrations/002_events.sql does it.
static void preview_write(char *preview, size_t size, const char *text, size_t length)
{
    size_t prefix = text_prefix_length(text, length, PREVIEW_CODE_POINTS);

    if (prefix >= size)
        prefix = 0;
    memcpy(preview, text, prefix);
    preview[prefix] = '\0';
    for (char *c = preview; *c != '\0'; c++)
        if (*c == '\n' || *c == '\r' || *c == '\t')
            *c = ' ';
}

void writer_event_head(struct event *event, const struct post *post, int64_t ord)
{
    struct event_head *head = &event->head;

    head->seq = event->seq;
    head->ord = ord;
    head->updated_ts = event->ts;
    head->latest_ts = event->ts;
    snprintf(head->latest_user, sizeof head->latest_user, "%s", post->actor->user_id);
    preview_write(head->latest_preview, sizeof head->latest_preview, post->text, post->text_length);
}
