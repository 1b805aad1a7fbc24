// SPDX-License-Identifier: Apache-2.0
// The queue of events for apps' URLs, a table in Postgres.
#include "queue.h"

#include "base/error.h"
#include "base/log.h"
#include "base/metrics.h"
#include "chat/app_mention.h"
#include "chat/callback.h"
#include "chat/workspace_ids.h"

#include <stdio.h>
#include <stdlib.h>

// LEASE_EXTRA_MS: time after a request's timeout until the event counts as lost with its instance.
enum { LEASE_EXTRA_MS = 10000, CLEAN_MAX = 1000, SECRET_MAX = 1024, SECRET_PLACE_SIZE = 64 };

static const struct statement ADD = {
    "app_events_add",
    "SELECT kept, dropped, app_sockets_dropped FROM app_events_add($1, $2, $3, $4, "
    "$5, $6, $7, $8, $9, $10, $11, $12)"};
static const struct statement TAKE = {
    "app_events_take", "SELECT app, workspace, bot, url, secret, channel, seq, happened, frame, "
                       "tries, reason FROM app_events_take($1, $2, $3, $4)"};
static const struct statement SETTLE = {"app_events_settle",
                                        "SELECT app_events_settle($1, $2, $3, $4, $5, $6)"};
static const struct statement WORKSPACES = {"app_workspaces",
                                            "SELECT workspace FROM app_workspaces()"};
static const struct statement CLEAN = {
    "app_events_clean",
    "SELECT dropped, app_sockets_dropped, has_more FROM app_events_clean($1, $2, $3)"};

// A row for apps: an event, or an app_mention of it.
struct queue_entry {
    const struct event *event;
    int64_t seq;
    const char *frame;
    size_t frame_length;
    const char *users; // the mentioned users, of an app_mention
    const char *name;
};

static void entry_params(struct params *params, const struct queue_entry *entries, size_t count,
                         const struct events_api_options *options)
{
#define COLUMN(open, add)                                                                          \
    open(params);                                                                                  \
    for (const struct queue_entry *entry = entries; entry < entries + count; entry++)              \
        add;                                                                                       \
    params_close_array(params)
    COLUMN(params_open_text_array, params_element_text(params, entry->event->workspace_id));
    COLUMN(params_open_text_array, params_element_text(params, entry->event->channel_id));
    COLUMN(params_open_int_array, params_element_int(params, entry->seq));
    COLUMN(params_open_int_array, params_element_int(params, entry->event->event_ts));
    COLUMN(params_open_text_array,
           params_element_text_n(params, entry->frame, entry->frame_length));
    COLUMN(params_open_text_array, params_element_text(params, entry->name));
    COLUMN(params_open_text_array, params_element_text(params, entry->users));
    params_int(params, options->settings.events_api_queue_max);
    params_int(params, options->settings.events_api_total_max);
    params_int(params, options->app_socket_max);
    params_int(params, options->app_socket_keep_s);
    params_int(params, options->app_socket_wait_ms);
}

static int entries_store(struct session *session, const struct queue_entry *entries, size_t count,
                         const struct events_api_options *options)
{
    CLEANUP_RESULT struct result *result = NULL;
    struct params params = {0};
    entry_params(&params, entries, count, options);
    int r = session_call(session, &ADD, &params, &result);
    if (r < 0)
        return r;
    metric_add(METRIC_EVENTS_API_FULL, result_int(result, 0, 1));
    metric_add(METRIC_ENVELOPES_DROPPED, result_int(result, 0, 2));
    return (int)result_int(result, 0, 0);
}

// Adds an event's entries: the event itself, and an app_mention, which is stored in `mention`.
// Returns their number. -ERROR_MEMORY.
static int entries_add(struct queue_entry *entries, const struct event *event,
                       struct app_mention *mention)
{
    int count = 0;
    enum channel_type channel_type = (enum channel_type)event->channel_type;
    const char *name = event->kind == EVENT_NOTE ? callback_name_of_note(event->note)
                                                 : callback_name(event->kind, channel_type);
    if (name)
        entries[count++] =
            (struct queue_entry){event, event->seq, event->frame, event->frame_length, "", name};
    int r = event->kind != EVENT_POST
                ? 0
                : app_mention_read(channel_type, event->frame, event->frame_length, mention);
    if (r > 0)
        entries[count++] = (struct queue_entry){event,          -event->seq,
                                                mention->frame, mention->frame_length,
                                                mention->users, "app_mention"};
    return r < 0 ? r : count;
}

int queue_add(struct session *session, struct event *const *events, size_t count,
              const struct events_api_options *options)
{
    CLEANUP_FREE struct queue_entry *entries = calloc(2 * count, sizeof *entries);
    CLEANUP_FREE struct app_mention *mentions = calloc(count, sizeof *mentions);
    size_t total = 0;
    int r = entries && mentions ? 0 : -ERROR_MEMORY;
    for (size_t i = 0; r >= 0 && i < count; i++) {
        r = entries_add(entries + total, events[i], &mentions[i]);
        total += r < 0 ? 0 : (size_t)r;
    }
    if (r >= 0 && total > 0)
        r = entries_store(session, entries, total, options);
    for (size_t i = 0; mentions && i < count; i++)
        app_mention_done(&mentions[i]);
    return r;
}

// Adds the app of each request in flight.
static void busy_params(struct params *params, const struct list *under_way)
{
    params_open_text_array(params);
    LIST_FOREACH(link, under_way)
    {
        params_element_text(params, LIST_ITEM(link, struct delivery, link)->app_id);
    }
    params_close_array(params);
}

// Secrets stored before there was a key are in plain text. If a secret cannot be decrypted, its
// requests wait until the operator provides the key.
static int secret_open(const struct secrets *secrets, const char *app_id, const char *stored,
                       struct buffer *out)
{
    char place[SECRET_PLACE_SIZE];
    int r = 0;
    if (secrets_is_sealed(stored)) {
        snprintf(place, sizeof place, APP_SECRET_PLACE "%s", app_id);
        r = secrets_open(secrets, place, stored, out);
    } else {
        buffer_append_text(out, stored);
    }
    if (r == -ERROR_REFUSED) {
        metric_add(METRIC_SECRETS_REFUSED, 1);
        log_write(LOG_ERROR, "events_api",
                  "cannot decrypt the signing secret of app %s: TIDINGS_SECRET_KEY lacks its key",
                  app_id);
    }
    buffer_append_byte(out, '\0');
    if (buffer_failed(out))
        log_row_aside("events_api", "it is too long", "signing secret of app %s", app_id);
    return r < 0 ? r : buffer_failed(out) ? -ERROR_MEMORY : 0;
}

// Without its secret, the request comes up again when its lease expires.
static void row_take(const struct result *result, int row, const struct events_api_options *options,
                     struct list *ready)
{
    CLEANUP(buffer_done) struct buffer secret = BUFFER(SECRET_MAX);
    if (secret_open(options->secrets, result_text(result, row, 0), result_text(result, row, 4),
                    &secret) < 0)
        return;
    const struct delivery_source source = {
        .to = {.app_id = result_text(result, row, 0),
               .workspace_id = result_text(result, row, 1),
               .bot_user_id = result_text(result, row, 2),
               .url = result_text(result, row, 3),
               .secret = secret.data,
               .channel_id = result_text(result, row, 5)},
        .seq = result_int(result, row, 6),
        .happened_us = result_int(result, row, 7),
        .frame = result_text(result, row, 8),
        .frame_length = result_length(result, row, 8),
        .tries = result_int(result, row, 9),
        .reason = result_text(result, row, 10),
    };
    struct delivery *delivery;
    if (delivery_new(&source, options, &delivery) >= 0)
        list_append(ready, &delivery->link);
}

int queue_take(struct session *session, const struct list *under_way, int64_t most,
               const struct events_api_options *options, struct list *ready)
{
    CLEANUP_RESULT struct result *result = NULL;
    struct params params = {0};
    busy_params(&params, under_way);
    params_int(&params, options->settings.events_api_app_parallel);
    params_int(&params, most);
    params_int(&params, options->settings.events_api_timeout_ms + LEASE_EXTRA_MS);
    int r = session_call(session, &TAKE, &params, &result);
    for (int row = 0; r >= 0 && row < result_rows(result); row++)
        row_take(result, row, options, ready);
    return r < 0 ? r : result_rows(result);
}

int queue_settle(struct session *session, const struct list *settled)
{
    CLEANUP_RESULT struct result *result = NULL;
    struct params params = {0};
#define TEXTS(value)                                                                               \
    params_open_text_array(&params);                                                               \
    LIST_FOREACH(link, settled)                                                                    \
    {                                                                                              \
        params_element_text(&params, LIST_ITEM(link, struct delivery, link)->value);               \
    }                                                                                              \
    params_close_array(&params)
#define INTEGERS(value)                                                                            \
    params_open_int_array(&params);                                                                \
    LIST_FOREACH(link, settled)                                                                    \
    {                                                                                              \
        params_element_int(&params, LIST_ITEM(link, struct delivery, link)->value);                \
    }                                                                                              \
    params_close_array(&params)
    TEXTS(app_id);
    TEXTS(channel_id);
    INTEGERS(seq);
    INTEGERS(tries);
    INTEGERS(wait_ms);
    TEXTS(reason);
    return session_call(session, &SETTLE, &params, &result);
}

int queue_workspaces(struct session *session, struct buffer *ids)
{
    return workspace_ids_read(session, &WORKSPACES, ids);
}

int queue_clean(struct session *session, const struct events_api_options *options)
{
    CLEANUP_RESULT struct result *result = NULL;
    struct params params = {0};
    params_int(&params, options->settings.events_api_keep_s);
    params_int(&params, options->app_socket_keep_s);
    params_int(&params, CLEAN_MAX);
    int r = session_call(session, &CLEAN, &params, &result);
    if (r < 0)
        return r;
    metric_add(METRIC_EVENTS_API_EXPIRED, result_int(result, 0, 0));
    metric_add(METRIC_ENVELOPES_DROPPED, result_int(result, 0, 1));
    return result_bool(result, 0, 2);
}
