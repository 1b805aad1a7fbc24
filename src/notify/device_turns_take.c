// SPDX-License-Identifier: Apache-2.0
// Reads the devices whose turn it is, and builds the push of each.
#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/unicode.h"
#include "device_turns.h"

#include <stdio.h>
#include <string.h>

// If secrets cannot be decrypted, the push waits until the operator provides the key.
enum { KEY_WAIT_MS = 60000 };

static const struct statement TAKE = {
    "pushes_take", "SELECT workspace, user_id, app, device_id, lease, platform, fields, secret, "
                   "address, registered, channel, thread_ts, ts, seq, happened_us, ttl_s, kind, "
                   "title, subtitle, body, badge, told_badge, position, died "
                   "FROM pushes_take($1, $2, $3, $4, $5, $6)"};
enum {
    COLUMN_WORKSPACE,
    COLUMN_USER_ID,
    COLUMN_APP,
    COLUMN_DEVICE_ID,
    COLUMN_LEASE,
    COLUMN_PLATFORM,
    COLUMN_FIELDS,
    COLUMN_SECRET,
    COLUMN_ADDRESS,
    COLUMN_REGISTERED,
    COLUMN_CHANNEL,
    COLUMN_THREAD_TS,
    COLUMN_TS,
    COLUMN_SEQ,
    COLUMN_HAPPENED_US,
    COLUMN_TTL_S,
    COLUMN_KIND,
    COLUMN_TITLE,
    COLUMN_SUBTITLE,
    COLUMN_BODY,
    COLUMN_BADGE,
    COLUMN_TOLD_BADGE,
    COLUMN_POSITION,
    COLUMN_DIED
};

enum { BODY_CODE_POINTS = 1000 };

// Copies a column; NULL stays NULL. False: out of memory.
static bool text_copy(const struct result *result, int row, int column, char **ret_text)
{
    if (!result_is_null(result, row, column))
        *ret_text = strdup(result_text(result, row, column));
    return *ret_text || result_is_null(result, row, column);
}

// Prints a ts; 0 becomes NULL.
static bool ts_copy(int64_t ts, char **ret_text)
{
    char text[TS_SIZE];

    if (ts == 0)
        return true;
    ts_print(ts, text);
    *ret_text = strdup(text);
    return *ret_text != NULL;
}

// Pushes of a conversation replace each other, and so do badges, and summaries.
static bool collapse_id_make(const struct device_turn *turn, struct notify_message *message)
{
    int length = turn->channel_id[0] == '\0'
                     ? asprintf(&message->collapse_id, "%s",
                                strcmp(turn->kind, "silent") == 0 ? "badge" : "summary")
                 : message->thread_ts ? asprintf(&message->collapse_id, "%s.%s", turn->channel_id,
                                                 message->thread_ts)
                                      : asprintf(&message->collapse_id, "%s", turn->channel_id);

    return length >= 0;
}

// Copies a text's beginning, up to the end of a grapheme cluster.
static bool body_copy(const struct result *result, int row, char **ret_text)
{
    const char *text = result_text(result, row, COLUMN_BODY);
    size_t length = result_length(result, row, COLUMN_BODY);

    if (result_is_null(result, row, COLUMN_BODY))
        return true;
    *ret_text = strndup(text, unicode_prefix_length(text, length, BODY_CODE_POINTS));
    return *ret_text != NULL;
}

static bool message_read(const struct result *result, int row, const struct device_turn *turn,
                         struct notify_message *message)
{
    message->seq = result_int(result, row, COLUMN_SEQ);
    message->badge = turn->badge;
    message->ttl_s = result_int(result, row, COLUMN_TTL_S);
    message->is_quiet = strcmp(turn->kind, "replacement") == 0;
    if (turn->channel_id[0] != '\0')
        message->channel_id = strdup(turn->channel_id);
    return text_copy(result, row, COLUMN_TITLE, &message->title) &&
           text_copy(result, row, COLUMN_SUBTITLE, &message->subtitle) &&
           body_copy(result, row, &message->body) &&
           text_copy(result, row, COLUMN_WORKSPACE, &message->workspace_id) &&
           text_copy(result, row, COLUMN_POSITION, &message->position) &&
           ts_copy(turn->ts, &message->ts) && ts_copy(turn->thread_ts, &message->thread_ts) &&
           (message->channel_id || turn->channel_id[0] == '\0') && collapse_id_make(turn, message);
}

static bool turn_read(const struct result *result, int row, struct device_turn *turn)
{
    turn->lease = result_int(result, row, COLUMN_LEASE);
    turn->thread_ts = result_int(result, row, COLUMN_THREAD_TS);
    turn->ts = result_int(result, row, COLUMN_TS);
    turn->happened_us = result_int(result, row, COLUMN_HAPPENED_US);
    turn->badge = result_int(result, row, COLUMN_BADGE);
    turn->shown_badge = result_is_null(result, row, COLUMN_TOLD_BADGE)
                            ? -1
                            : result_int(result, row, COLUMN_TOLD_BADGE);
    snprintf(turn->app_id, sizeof turn->app_id, "%s/%s", result_text(result, row, COLUMN_WORKSPACE),
             result_text(result, row, COLUMN_APP));
    return text_copy(result, row, COLUMN_USER_ID, &turn->user_id) &&
           text_copy(result, row, COLUMN_APP, &turn->app) &&
           text_copy(result, row, COLUMN_DEVICE_ID, &turn->device_id) &&
           text_copy(result, row, COLUMN_CHANNEL, &turn->channel_id) &&
           text_copy(result, row, COLUMN_KIND, &turn->kind);
}

static int push_read(const struct result *result, int row, const struct secrets *secrets,
                     const struct device_turn *turn, struct notify_push **ret_push)
{
    const struct sealed_push sealed = {
        .workspace_id = result_text(result, row, COLUMN_WORKSPACE),
        .user_id = turn->user_id,
        .app = turn->app,
        .device_id = turn->device_id,
        .platform = result_text(result, row, COLUMN_PLATFORM),
        .fields = result_text(result, row, COLUMN_FIELDS),
        .secret = result_is_null(result, row, COLUMN_SECRET)
                      ? NULL
                      : result_text(result, row, COLUMN_SECRET),
        .address = result_text(result, row, COLUMN_ADDRESS),
        .registered_s = result_int(result, row, COLUMN_REGISTERED),
    };
    struct notify_push *push = NULL;
    int r = sealed_push_open(&sealed, secrets, &push);

    if (r >= 0 && !message_read(result, row, turn, &push->message)) {
        notify_push_free(push);
        r = -ERROR_MEMORY;
    }
    if (r >= 0)
        *ret_push = push;
    return r;
}

// Ends the turn without a push: with a dead letter, if there is a message.
static void answer_unreadable(struct device_turn *turn, int r)
{
    turn->answer = (struct notify_answer){.outcome = NOTIFY_REFUSED};
    snprintf(turn->answer.reason, sizeof turn->answer.reason,
             "the app's fields or the device's address cannot be read: %s", error_code(r));
    log_row_aside("notify", turn->answer.reason, "push to %s/%s/%s", turn->user_id, turn->app,
                  turn->device_id);
}

// Ends the turn without a push, to be retried.
static void answer_without_key(struct device_turn *turn)
{
    turn->answer = (struct notify_answer){.outcome = NOTIFY_RETRY, .wait_ms = KEY_WAIT_MS};
    snprintf(turn->answer.reason, sizeof turn->answer.reason,
             "TIDINGS_SECRET_KEY does not open what the app and the device need");
    metric_add(METRIC_SECRETS_REFUSED, 1);
    log_write(LOG_ERROR, "notify",
              "cannot send a push of app %s: TIDINGS_SECRET_KEY does not decrypt its secrets",
              turn->app_id);
}

static int row_take(const struct result *result, int row,
                    const struct device_turns_options *options, struct list *ready)
{
    metric_add(METRIC_NOTIFY_DIED, result_int(result, row, COLUMN_DIED));
    if (result_is_null(result, row, COLUMN_KIND))
        return 0;
    struct device_turn *turn = TAGGED_NEW(device_turn);
    if (!turn)
        return -ERROR_MEMORY;
    turn->hold_at_ms = clock_monotonic_ms() + options->lease_ms / 3;
    int r = turn_read(result, row, turn)
                ? push_read(result, row, options->secrets, turn, &turn->push)
                : -ERROR_MEMORY;
    if (r == -ERROR_MEMORY) {
        device_turn_free(turn);
        return r;
    }
    if (r == -ERROR_SECRET_KEY_MISSING)
        answer_without_key(turn);
    else if (r < 0)
        answer_unreadable(turn, r);
    list_append(ready, &turn->link);
    return 0;
}

static int take_call(struct session *session, const struct list *under_way, int64_t most,
                     const struct device_turns_options *options, bool is_careful,
                     struct result **ret_result)
{
    struct params params = {0};

    params_open_text_array(&params);
    LIST_FOREACH(link, under_way)
    {
        params_element_text(&params, LIST_ITEM(link, struct device_turn, link)->app_id);
    }
    params_close_array(&params);
    params_int(&params, options->app_parallel);
    params_int(&params, most);
    params_int(&params, options->lease_ms);
    params_int(&params, options->ttl_s);
    params_bool(&params, is_careful);
    return session_call(session, &TAKE, &params, ret_result);
}

int device_turns_take(struct session *session, const struct list *under_way, int64_t most,
                      const struct device_turns_options *options, struct list *ready)
{
    CLEANUP_RESULT struct result *result = NULL;

    int r = take_call(session, under_way, most, options, false, &result);
    if (r == -ERROR_INTERNAL)
        r = take_call(session, under_way, most, options, true, &result);
    // Without memory, the devices come up again when their leases expire.
    for (int row = 0; r >= 0 && row < result_rows(result); row++)
        r = row_take(result, row, options, ready);
    return r < 0 ? r : result_rows(result);
}
