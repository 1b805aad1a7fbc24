// SPDX-License-Identifier: Apache-2.0
// channels.info: a channel as seen by its viewer, with the viewer's unread state.
#include "methods.h"

#include "base/check.h"
#include "channel_json_cache.h"
#include "channel_state.h"
#include "chat/message.h"
#include "unread/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OBJECT_MAX = 8 << 20 };

// The state, the channel's object for its viewer, and the latest remaining message. Preparing the
// latter two costs more than everything else, even if they are not needed, so the state has a
// statement of its own.
#define OBJECT ", conversation_object(c, $2, m.active IS TRUE, m.closed_ord), "
#define LATEST                                                                                     \
    " LEFT JOIN LATERAL (SELECT * FROM message_rows l WHERE l.channel_id = c.id AND l.ts = "       \
    "coalesce(h.latest_ts, c.latest_ts) LIMIT 1) r ON true"
#define INFO_FROM " FROM channels c" CHANNEL_STATE_MEMBER("$2") LATEST
#define INFO_WHERE " WHERE c.id = $3 AND " CHANNEL_STATE_SEEN("$1")
static const struct statement INFO = {
    "channels_info",
    "SELECT " CHANNEL_STATE_SELECT("0", "$2") OBJECT MESSAGE_SELECT("r", "$2") INFO_FROM INFO_WHERE,
};
enum { COLUMN_OBJECT = STATE_COLUMNS, COLUMN_MESSAGE };

// A channels.info in progress.
struct info {
    uint32_t tag;
    struct channel_state_call call;
    struct invocation *invocation;
    struct unread_view view;
    char version[OBJECT_VERSION_SIZE];
    size_t length;
    char object[]; // JSON with `latest`, without the closing brace
};

static bool wants_locale(struct invocation *invocation)
{
    bool wanted = false;

    return take_optional_bool(invocation, "include_locale", &wanted) && wanted;
}

static void info_reply(struct info *info)
{
    struct invocation *invocation = info->invocation;
    struct json_writer *w = invocation_open(invocation);

    json_key(w, invocation_key(invocation, "channel"));
    json_raw(w, info->object, info->length);
    w->comma = true;
    if (wants_locale(invocation))
        json_key_string(w, "locale", "en-US"); // Slack's default
    unread_view_write_fields(w, &info->view);
    json_close_object(w);
    invocation_close(invocation);
}

static void info_read(void *arg, int r)
{
    struct info *info = CAST(info, arg);

    if (r < 0)
        invocation_fail(info->invocation, r);
    else
        info_reply(info);
}

// Stored as the invocation's state.
static struct info *info_new(struct invocation *invocation, const char *object, size_t length)
{
    struct info *info = calloc(1, sizeof *info + length);

    if (!info)
        return NULL;
    info->tag = TAG(info);
    memcpy(info->object, object, length);
    info->length = length;
    info->invocation = invocation;
    free(invocation->state);
    invocation->state = info;
    return info;
}

// Writes the object with `latest`, without its closing brace.
static void object_write(struct buffer *out, const struct invocation *invocation,
                         const struct result *result)
{
    struct json_writer w = json_writer_to(out);
    struct message latest;

    buffer_append(out, result_text(result, 0, COLUMN_OBJECT),
                  result_length(result, 0, COLUMN_OBJECT) - 1);
    w.comma = true;
    json_key(&w, "latest");
    if (result_is_null(result, 0, COLUMN_MESSAGE)) {
        json_none(&w);
    } else {
        message_read(result, 0, COLUMN_MESSAGE, &latest);
        message_write(&w, &latest, invocation->actor->workspace_id);
    }
}

// Direct conversations look different to each member, and are not cached.
static bool is_for_all_members(const struct result *result)
{
    int64_t type = result_int(result, 0, STATE_TYPE);

    return result_bool(result, 0, STATE_ACTIVE) &&
           (type == CHANNEL_PUBLIC || type == CHANNEL_PRIVATE);
}

// Uses the object in the reply, and caches it.
static struct info *info_make(struct invocation *invocation, const struct result *result)
{
    CLEANUP(buffer_done) struct buffer object = BUFFER(OBJECT_MAX);

    object_write(&object, invocation, result);
    if (buffer_failed(&object))
        return NULL;
    if (is_for_all_members(result))
        channel_json_cache_put(invocation->api->objects,
                               request_arg(invocation->request, "channel"),
                               result_text(result, 0, STATE_VERSION), object.data, object.length);
    return info_new(invocation, object.data, object.length);
}

static void view_read(struct unread_view *view, const struct invocation *invocation,
                      const struct result *result, int row)
{
    snprintf(view->channel_id, sizeof view->channel_id, "%s",
             request_arg(invocation->request, "channel"));
    snprintf(view->user_id, sizeof view->user_id, "%s", invocation->actor->user_id);
    view->type = channel_type_of(result_int(result, row, STATE_TYPE));
    view->muted = result_bool(result, row, STATE_MUTED);
    view->notify = result_int(result, row, STATE_NOTIFY);
    view->oldest_ts = result_int(result, row, STATE_OLDEST);
    view->mentions = result_int(result, row, STATE_MENTIONS);
    view->head.seq = result_int(result, row, STATE_SEQ);
    view->head.ord = result_int(result, row, STATE_HEAD_ORD);
    view->member.active = true;
    view->member.epoch = result_int(result, row, STATE_EPOCH);
    view->member.ts = result_int(result, row, STATE_TS);
    view->member.ord = result_int(result, row, STATE_ORD);
    view->member.own = result_int(result, row, STATE_OWN);
    view->member.posts = result_int(result, row, STATE_POSTS);
    view->head.strategy = result_int(result, row, STATE_STRATEGY);
    view->head.generation = result_int(result, row, STATE_GENERATION);
    view->member.number = result_int(result, row, STATE_NUMBER);
    view->member.single_version = result_int(result, row, STATE_SINGLE_VERSION);
    view->singles = result_int(result, row, STATE_SINGLES);
}

static void info_count(struct info *info, const struct result *result, int row)
{
    if (!result_bool(result, row, STATE_ACTIVE)) {
        info_reply(info);
        return;
    }
    view_read(&info->view, info->invocation, result, row);
    bool exact = result_int(result, row, STATE_DELETED_ORD) <= info->view.member.ord &&
                 info->view.singles == 0; // the rows suffice
    if (exact)
        info->view.unread = unread_view_count(&info->view, 0);
    unread_read(info->invocation->api->options.reader, &info->view, exact, info_read, info);
}

static void info_answer(struct invocation *invocation, const struct result *result)
{
    struct info *info = result_rows(result) == 0 ? NULL : info_make(invocation, result);

    if (info)
        info_count(info, result, 0);
    else
        invocation_fail(invocation,
                        result_rows(result) == 0 ? -ERROR_CHANNEL_NOT_FOUND : -ERROR_MEMORY);
}

static void info_ask(struct invocation *invocation)
{
    struct params params = {0};

    invocation_caller_params(invocation, &params);
    params_text(&params, request_arg(invocation->request, "channel"));
    invocation_query(invocation, STORE_READ, &INFO, &params, info_answer);
}

static void info_state_answer(void *arg, int r, const struct result *result, int row)
{
    struct info *info = CAST(info, arg);

    if (r < 0)
        invocation_fail(info->invocation, r);
    else if (row >= 0 && result_bool(result, row, STATE_ACTIVE) &&
             strcmp(result_text(result, row, STATE_VERSION), info->version) == 0)
        info_count(info, result, row);
    else
        info_ask(info->invocation);
}

void channels_info(struct invocation *invocation)
{
    const char *channel_id, *object, *version;
    bool with_locale;

    if (!take_channel(invocation, &channel_id) ||
        !take_optional_bool(invocation, "include_locale", &with_locale))
        return;
    object = channel_json_cache_find(invocation->api->objects, channel_id, &version);
    struct info *info = object ? info_new(invocation, object, strlen(object)) : NULL;
    if (!info) {
        info_ask(invocation);
        return;
    }
    snprintf(info->version, sizeof info->version, "%s", version);
    info->call = (struct channel_state_call){
        .viewer = invocation->actor,
        .channel_id = channel_id,
        .fn = info_state_answer,
        .arg = info,
    };
    int r = channel_state_read(invocation->api->channel_states, &info->call);
    if (r < 0)
        invocation_fail(invocation, r);
}
