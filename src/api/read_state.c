// SPDX-License-Identifier: Apache-2.0
// channels.mark, channels.markUnread, channels.markMessages and channels.info: what one has read,
// and what is left.
#include "methods.h"

#include "chat/message.h"
#include "objects.h"
#include "unread/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGES_MAX = 100, OBJECT_MAX = 8 << 20 };

struct marking {
    struct invocation *invocation;
    struct mark mark;
    int64_t tss[MESSAGES_MAX]; // of markMessages
};

static void marked(void *arg, int r, const struct unread_view *view)
{
    struct marking *marking = arg;
    struct invocation *invocation = marking->invocation;

    if (r < 0) {
        invocation_fail(invocation, r); // frees marking
        return;
    }
    unread_view_write(invocation_open(invocation), view);
    invocation_close(invocation);
}

static struct marking *marking_new(struct invocation *invocation)
{
    struct marking *marking = calloc(1, sizeof *marking);

    if (marking == NULL) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return NULL;
    }
    invocation->state = marking;
    marking->invocation = invocation;
    marking->mark.actor = invocation->actor;
    marking->mark.epoch = MARK_ANY_EPOCH;
    marking->mark.fn = marked;
    marking->mark.arg = marking;
    return marking;
}

static struct marking *take_marking(struct invocation *invocation)
{
    struct marking *marking = marking_new(invocation);

    if (marking == NULL || !take_channel(invocation, &marking->mark.channel_id) ||
        !take_ts(invocation, "ts", -ERROR_INVALID_TIMESTAMP, &marking->mark.ts))
        return NULL;
    return marking;
}

void channels_mark(struct invocation *invocation)
{
    struct marking *marking = take_marking(invocation);

    if (marking == NULL || !take_optional_int(invocation, "read_epoch", -ERROR_INVALID_ARGUMENTS, 0,
                                              INT64_MAX / 2, &marking->mark.epoch))
        return;
    int r = marker_mark(invocation->api->options.marker, &marking->mark);
    if (r < 0)
        invocation_fail(invocation, r);
}

void channels_mark_unread(struct invocation *invocation)
{
    struct marking *marking = take_marking(invocation);

    if (marking != NULL)
        marker_mark_unread(invocation->api->options.marker, &marking->mark);
}

void channels_mark_messages(struct invocation *invocation)
{
    struct marking *marking = marking_new(invocation);

    if (marking == NULL || !take_channel(invocation, &marking->mark.channel_id) ||
        !take_tss(invocation, "ts", marking->tss, MESSAGES_MAX, &marking->mark.ts_count))
        return;
    marking->mark.tss = marking->tss;
    marker_mark_messages(invocation->api->options.marker, &marking->mark);
}

// What a viewer has read, and the version of the channel's row: each change of it, and each event
// of the channel, makes another. IS TRUE: the workspace is checked, not looked up by.
#define STATE                                                                                      \
    "SELECT c.xmin::text || '.' || c.last_ts, c.seq, c.type, m.active, m.epoch, m.ts, m.posts,"    \
    " m.muted, m.ord, m.own, c.ord, c.deleted_ord, CASE WHEN c.ord > m.ord THEN (SELECT o.ts"      \
    " FROM messages o WHERE o.channel_id = c.id AND o.ts > m.ts AND o.counted AND NOT o.deleted"   \
    " AND o.user_id <> $2 AND (m.singles = 0 OR NOT is_read_singly(c.id, $2, o.ts))"               \
    " ORDER BY o.ts LIMIT 1) END, CASE WHEN m.mention_ts > m.ts OR c.mention_ts > m.ts"            \
    " THEN mentions_after(c.id, $2, m.ts, m.singles > 0) ELSE 0 END, c.strategy_in_use,"           \
    " c.generation, m.number, m.single_version, m.singles"
#define OF_CHANNEL                                                                                 \
    " FROM channels c LEFT JOIN channel_members m ON m.channel_id = c.id AND m.user_id = $2"
#define WHERE_SEEN                                                                                 \
    " WHERE c.id = $3 AND (c.workspace_id = $1) IS TRUE AND (NOT c.is_private OR m.active)"

static const struct statement INFO_STATE = {"channels_info_state", STATE OF_CHANNEL WHERE_SEEN};

// And the channel as its viewer sees it, with the latest message that stands. To make these ready
// costs more than all the rest, whether they are needed or not: so they are a statement of their
// own.
static const struct statement INFO = {
    "channels_info",
    STATE ", conversation_object(c, $2, m.active IS TRUE, m.closed_ord), " MESSAGE_SELECT("r")
        OF_CHANNEL " LEFT JOIN LATERAL (SELECT * FROM message_rows l WHERE l.channel_id = c.id"
                   " AND l.ts = c.latest_ts LIMIT 1) r ON true" WHERE_SEEN,
};
enum {
    COLUMN_VERSION,
    COLUMN_SEQ,
    COLUMN_TYPE,
    COLUMN_ACTIVE,
    COLUMN_EPOCH,
    COLUMN_TS,
    COLUMN_POSTS,
    COLUMN_MUTED,
    COLUMN_ORD,
    COLUMN_OWN,
    COLUMN_HEAD_ORD,
    COLUMN_DELETED_ORD,
    COLUMN_OLDEST,
    COLUMN_MENTIONS,
    COLUMN_STRATEGY,
    COLUMN_GENERATION,
    COLUMN_NUMBER,
    COLUMN_SINGLE_VERSION,
    COLUMN_SINGLES,
    COLUMN_OBJECT,
    COLUMN_MESSAGE
};

// channels.info on its way.
struct info {
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
        json_key_string(w, "locale", "en-US"); // as Slack gives it where none was chosen
    unread_view_write_fields(w, &info->view);
    json_close_object(w);
    invocation_close(invocation);
}

static void info_read(void *arg, int r)
{
    struct info *info = arg;

    if (r < 0)
        invocation_fail(info->invocation, r);
    else
        info_reply(info);
}

// The invocation's state from here on.
static struct info *info_new(struct invocation *invocation, const char *object, size_t length)
{
    struct info *info = calloc(1, sizeof *info + length);

    if (info == NULL)
        return NULL;
    memcpy(info->object, object, length);
    info->length = length;
    info->invocation = invocation;
    free(invocation->state);
    invocation->state = info;
    return info;
}

// Writes the object with `latest`, and without its closing brace.
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

// Direct conversations are shown to each of their members in another way, and are not kept.
static bool is_for_all_members(const struct result *result)
{
    int64_t type = result_int(result, 0, COLUMN_TYPE);

    return result_bool(result, 0, COLUMN_ACTIVE) &&
           (type == CHANNEL_PUBLIC || type == CHANNEL_PRIVATE);
}

// With the object that the answer brought, which is kept.
static struct info *info_make(struct invocation *invocation, const struct result *result)
{
    CLEANUP(buffer_done) struct buffer object;

    buffer_init(&object, OBJECT_MAX);
    object_write(&object, invocation, result);
    if (buffer_failed(&object))
        return NULL;
    if (is_for_all_members(result))
        objects_keep(invocation->api->objects, request_arg(invocation->request, "channel"),
                     result_text(result, 0, COLUMN_VERSION), object.data, object.length);
    return info_new(invocation, object.data, object.length);
}

static void view_read(struct unread_view *view, const struct invocation *invocation,
                      const struct result *result)
{
    snprintf(view->channel_id, sizeof view->channel_id, "%s",
             request_arg(invocation->request, "channel"));
    snprintf(view->user_id, sizeof view->user_id, "%s", invocation->actor->user_id);
    view->type = (enum channel_type)result_int(result, 0, COLUMN_TYPE);
    view->muted = result_bool(result, 0, COLUMN_MUTED);
    view->oldest_ts = result_int(result, 0, COLUMN_OLDEST);
    view->mentions = result_int(result, 0, COLUMN_MENTIONS);
    view->head.seq = result_int(result, 0, COLUMN_SEQ);
    view->head.ord = result_int(result, 0, COLUMN_HEAD_ORD);
    view->member.active = true;
    view->member.epoch = result_int(result, 0, COLUMN_EPOCH);
    view->member.ts = result_int(result, 0, COLUMN_TS);
    view->member.ord = result_int(result, 0, COLUMN_ORD);
    view->member.own = result_int(result, 0, COLUMN_OWN);
    view->member.posts = result_int(result, 0, COLUMN_POSTS);
    view->head.strategy = result_int(result, 0, COLUMN_STRATEGY);
    view->head.generation = result_int(result, 0, COLUMN_GENERATION);
    view->member.number = result_int(result, 0, COLUMN_NUMBER);
    view->member.single_version = result_int(result, 0, COLUMN_SINGLE_VERSION);
    view->singles = result_int(result, 0, COLUMN_SINGLES);
}

static void info_count(struct info *info, const struct result *result)
{
    if (!result_bool(result, 0, COLUMN_ACTIVE)) {
        info_reply(info);
        return;
    }
    view_read(&info->view, info->invocation, result);
    bool exact = result_int(result, 0, COLUMN_DELETED_ORD) <= info->view.member.ord &&
                 info->view.singles == 0; // the row says it all
    if (exact)
        info->view.unread = unread_view_count(&info->view, 0);
    unread_read(info->invocation->api->options.reader, &info->view, exact, info_read, info);
}

static void info_answer(struct invocation *invocation, const struct result *result)
{
    struct info *info = result_rows(result) == 0 ? NULL : info_make(invocation, result);

    if (info != NULL)
        info_count(info, result);
    else
        invocation_fail(invocation,
                        result_rows(result) == 0 ? -ERROR_CHANNEL_NOT_FOUND : -ERROR_MEMORY);
}

static void info_ask(struct invocation *invocation, const struct statement *statement,
                     invocation_rows_fn *fn)
{
    struct params params = {0};

    params_text(&params, invocation->actor->workspace_id);
    params_text(&params, invocation->actor->user_id);
    params_text(&params, request_arg(invocation->request, "channel"));
    invocation_query(invocation, STORE_READ, statement, &params, fn);
}

static void info_state_answer(struct invocation *invocation, const struct result *result)
{
    struct info *info = invocation->state;

    if (result_rows(result) > 0 && result_bool(result, 0, COLUMN_ACTIVE) &&
        strcmp(result_text(result, 0, COLUMN_VERSION), info->version) == 0)
        info_count(info, result);
    else
        info_ask(invocation, &INFO, info_answer);
}

void channels_info(struct invocation *invocation)
{
    const char *channel_id, *object, *version;
    bool with_locale;

    if (!take_channel(invocation, &channel_id) ||
        !take_optional_bool(invocation, "include_locale", &with_locale))
        return;
    object = objects_find(invocation->api->objects, channel_id, &version);
    struct info *info = object == NULL ? NULL : info_new(invocation, object, strlen(object));
    if (info == NULL) {
        info_ask(invocation, &INFO, info_answer);
        return;
    }
    snprintf(info->version, sizeof info->version, "%s", version);
    info_ask(invocation, &INFO_STATE, info_state_answer);
}
