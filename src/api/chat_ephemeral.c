// SPDX-License-Identifier: Apache-2.0
// chat.getPermalink and chat.postEphemeral.
#include "methods.h"

#include "base/check.h"
#include "base/clock.h"
#include "chat/frame.h"
#include "content.h"
#include "destination.h"
#include "permalink.h"
#include "unread/keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAME_MAX_BYTES = 4 * 1024 * 1024 };

static const struct statement LINKED = {
    "linked",
    "SELECT a.error, m.ts, m.thread_ts FROM (SELECT channel_refusal($1, $2, $3) AS error) a"
    " LEFT JOIN messages m ON a.error IS NULL AND m.channel_id = $3 AND m.ts = $4 AND NOT m.deleted"
    " AND m.subtype IS DISTINCT FROM 'channel_open'",
};

static void link_answer(struct invocation *invocation, const struct result *result)
{
    const char *channel_id = request_arg(invocation->request, "channel");

    if (!invocation_succeeded(invocation, result))
        return;
    if (result_is_null(result, 0, 1)) {
        invocation_fail(invocation, -ERROR_MESSAGE_NOT_FOUND);
        return;
    }
    struct json_writer *w = invocation_open(invocation);
    json_key_string(w, "channel", channel_id);
    permalink_write(w, invocation, channel_id, result_int(result, 0, 1), result_int(result, 0, 2));
    invocation_close(invocation);
}

void chat_get_permalink(struct invocation *invocation)
{
    struct params params = {0};
    const char *channel_id;
    int64_t ts;

    if (!take_channel(invocation, &channel_id) ||
        !take_ts(invocation, "message_ts", -ERROR_INVALID_TIMESTAMP, &ts))
        return;
    invocation_caller_params(invocation, &params);
    params_text(&params, channel_id);
    params_int(&params, ts);
    invocation_query(invocation, STORE_READ, &LINKED, &params, link_answer);
}

static const struct statement CHECK = {
    "aside", "SELECT error, type, root FROM ephemeral_check($1, $2, $3, $4, $5)"};
enum { COLUMN_ERROR, COLUMN_TYPE, COLUMN_ROOT };

// An ephemeral message in progress.
struct chat_ephemeral {
    uint32_t tag;
    struct invocation *invocation;
    struct content content;
    const char *channel; // as given by the caller
    char channel_id[ID_SIZE];
    const char *user_id;
    int64_t ts;
    int64_t thread_ts;
};

static void ephemeral_free(struct chat_ephemeral *ephemeral)
{
    content_done(&ephemeral->content);
    TAGGED_FREE(ephemeral);
}

static void ephemeral_fail(struct chat_ephemeral *ephemeral, int r)
{
    invocation_fail(ephemeral->invocation, r);
    ephemeral_free(ephemeral);
}

static void published(void *arg, int r, const struct cache_value *value)
{
    struct chat_ephemeral *ephemeral = CAST(chat_ephemeral, arg);
    struct json_writer *w;

    (void)value;
    if (r < 0) {
        ephemeral_fail(ephemeral, -ERROR_UNAVAILABLE);
        return;
    }
    w = invocation_open(ephemeral->invocation);
    json_key_ts(w, "message_ts", ephemeral->ts);
    invocation_close(ephemeral->invocation);
    ephemeral_free(ephemeral);
}

static struct event *ephemeral_event(const struct chat_ephemeral *ephemeral, enum channel_type type)
{
    const struct actor *actor = ephemeral->invocation->actor;
    const struct frame_context context = {.workspace_id = actor->workspace_id,
                                          .channel_id = ephemeral->channel_id,
                                          .type = type,
                                          .event_ts = ephemeral->ts};
    const struct post post = {.actor = actor,
                              .text = ephemeral->content.text ? ephemeral->content.text : "",
                              .text_length = ephemeral->content.text_length,
                              .extra = ephemeral->content.extra,
                              .thread_ts = ephemeral->thread_ts};
    const struct message message = post_message(&post, ephemeral->ts, 0, "");
    struct buffer frame;

    buffer_init(&frame, FRAME_MAX_BYTES);
    frame_write_ephemeral(&frame, &context, &message);
    struct event *event = event_take_frame(EVENT_EPHEMERAL, &frame);
    if (!event)
        return NULL;
    snprintf(event->workspace_id, sizeof event->workspace_id, "%s", actor->workspace_id);
    snprintf(event->channel_id, sizeof event->channel_id, "%s", ephemeral->channel_id);
    snprintf(event->user_id, sizeof event->user_id, "%s", ephemeral->user_id);
    event->is_private = type != CHANNEL_PUBLIC;
    event->event_ts = event->ts = ephemeral->ts;
    return event;
}

// Publishes it to the user's sockets through Redis only: an offline user does not receive it.
static void ephemeral_publish(struct chat_ephemeral *ephemeral, enum channel_type type)
{
    CLEANUP(buffer_done) struct buffer wire = BUFFER(2 * FRAME_MAX_BYTES);
    char topic[KEY_SIZE];
    struct event *event = ephemeral_event(ephemeral, type);

    if (event)
        event_encode(event, &wire);
    event_unref(event);
    if (!event || buffer_failed(&wire)) {
        ephemeral_fail(ephemeral, -ERROR_MEMORY);
        return;
    }
    key_user_topic(topic, ephemeral->user_id);
    const char *texts[] = {"SPUBLISH", topic, wire.data};
    const size_t lengths[] = {strlen(texts[0]), strlen(topic), wire.length};
    cache_call(ephemeral->invocation->api->options.cache, 3, texts, lengths, published, ephemeral);
}

static void ephemeral_checked(void *arg, const struct store_outcome *outcome)
{
    struct chat_ephemeral *ephemeral = CAST(chat_ephemeral, arg);

    if (outcome->r < 0) {
        ephemeral_fail(ephemeral, outcome->r);
    } else if (!result_is_null(outcome->result, 0, COLUMN_ERROR)) {
        ephemeral_fail(ephemeral, error_from_code(result_text(outcome->result, 0, COLUMN_ERROR)));
    } else {
        ephemeral->thread_ts = result_int(outcome->result, 0, COLUMN_ROOT);
        ephemeral_publish(ephemeral, channel_type_of(result_int(outcome->result, 0, COLUMN_TYPE)));
    }
}

static bool take_ephemeral(struct invocation *invocation, struct chat_ephemeral *ephemeral)
{
    if (!take_text(invocation, "channel", &ephemeral->channel) ||
        !take_user(invocation, "user", &ephemeral->user_id) ||
        !take_optional_ts(invocation, "thread_ts", -ERROR_INVALID_TIMESTAMP,
                          &ephemeral->thread_ts) ||
        !take_content(invocation, &ephemeral->content))
        return false;
    if (ephemeral->content.text || ephemeral->content.shows)
        return true;
    invocation_fail_message(invocation, -ERROR_NO_TEXT,
                            "text: must be given, or blocks or attachments");
    return false;
}

static void destination_found(void *arg, int r, const char *channel_id)
{
    struct chat_ephemeral *ephemeral = CAST(chat_ephemeral, arg);
    const struct invocation *invocation = ephemeral->invocation;
    struct params params = {0};

    if (r < 0) {
        destination_fail(ephemeral->invocation, r);
        ephemeral_free(ephemeral);
        return;
    }
    snprintf(ephemeral->channel_id, sizeof ephemeral->channel_id, "%s", channel_id);
    invocation_caller_params(invocation, &params);
    params_text(&params, ephemeral->channel_id);
    params_text(&params, ephemeral->user_id);
    params_int(&params, ephemeral->thread_ts);
    store_call(invocation->api->options.store, STORE_READ, &CHECK, &params, ephemeral_checked,
               ephemeral);
}

static void ephemeral_linked(void *arg, bool good)
{
    struct chat_ephemeral *ephemeral = CAST(chat_ephemeral, arg);

    if (good && content_complete(ephemeral->invocation, &ephemeral->content))
        destination_find(ephemeral->invocation, ephemeral->channel, destination_found, ephemeral);
    else
        ephemeral_free(ephemeral);
}

void chat_post_ephemeral(struct invocation *invocation)
{
    struct chat_ephemeral *ephemeral = TAGGED_NEW(chat_ephemeral);

    if (!ephemeral) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return;
    }
    if (!take_ephemeral(invocation, ephemeral)) {
        ephemeral_free(ephemeral);
        return;
    }
    ephemeral->invocation = invocation;
    ephemeral->ts = clock_wall_us();
    content_link(invocation, &ephemeral->content, ephemeral_linked, ephemeral);
}
