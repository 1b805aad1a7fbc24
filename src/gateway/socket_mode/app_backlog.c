// SPDX-License-Identifier: Apache-2.0
// The app backlog: events kept in Postgres for apps in Socket Mode (sql/13_events_api.sql). Workers
// store each event, and an ack ends it. An event that was not acked in time, or arrived while the
// app had no socket, becomes due, and is taken by any gateway with a socket of the app.
#include "app_backlog.h"

#include "../core.h"
#include "app.h"

#include "base/check.h"
#include "base/metrics.h"

#include <stdlib.h>
#include <string.h>

// UNKNOWN_MAX bounds a cost: each unknown id is compared with all events kept for its app.
enum { TAKE_MS = 500, UNKNOWN_MAX = 100 };

#define ENVELOPES "envelopes" // the key by which all changes take turns

static const struct statement ACK = {"link_events_ack", "SELECT link_events_ack($1, $2, $3, $4)"};
static const struct statement RETURN = {"link_events_return",
                                        "SELECT link_events_return($1, $2, $3, $4, $5, $6)"};
static const struct statement TAKE = {"link_events_take",
                                      "SELECT app, channel, seq, happened, frame, tries FROM "
                                      "link_events_take($1, $2, $3, $4)"};
static const struct statement LINKED = {"link_events_linked",
                                        "UPDATE apps SET linked_at = now() WHERE id = $1"};

static bool is_any(const struct envelope *envelope)
{
    (void)envelope;
    return true;
}

static bool is_returning(const struct envelope *envelope)
{
    return envelope->returns;
}

typedef bool choose_fn(const struct envelope *envelope);

static void app_id_add(struct params *params, const struct envelope *envelope)
{
    params_element_text(params, envelope->app_id);
}

static void channel_id_add(struct params *params, const struct envelope *envelope)
{
    params_element_text(params, envelope->channel_id);
}

static void seq_add(struct params *params, const struct envelope *envelope)
{
    params_element_int(params, envelope->seq);
}

static void id_add(struct params *params, const struct envelope *envelope)
{
    params_element_text(params, envelope->id);
}

static void happened_add(struct params *params, const struct envelope *envelope)
{
    params_element_int(params, envelope->happened_us);
}

static void attempt_add(struct params *params, const struct envelope *envelope)
{
    params_element_int(params, envelope->attempt);
}

static void frame_add(struct params *params, const struct envelope *envelope)
{
    params_element_text_n(params, envelope->frame, envelope->length);
}

// Appends one array: `add` appends an element for each chosen envelope. Returns their number.
static int column_params(struct params *params, const struct list *envelopes, choose_fn *choose,
                         void (*open)(struct params *params),
                         void (*add)(struct params *params, const struct envelope *envelope))
{
    int count = 0;

    open(params);
    LIST_FOREACH(link, envelopes)
    {
        const struct envelope *envelope = LIST_ITEM(link, struct envelope, link);
        if (!choose(envelope))
            continue;
        add(params, envelope);
        count++;
    }
    params_close_array(params);
    return count;
}

// Appends three arrays: app, channel, seq. Returns their length.
static int keys_params(struct params *params, const struct list *envelopes, choose_fn *choose)
{
    column_params(params, envelopes, choose, params_open_text_array, app_id_add);
    column_params(params, envelopes, choose, params_open_text_array, channel_id_add);
    return column_params(params, envelopes, choose, params_open_int_array, seq_add);
}

static void acks_send(struct gateway *gateway);

static bool is_unknown(const struct envelope *envelope)
{
    return envelope->channel_id[0] == '\0';
}

static void acked_free(struct gateway *gateway, struct list *envelopes)
{
    LIST_FOREACH(link, envelopes)
    {
        struct envelope *envelope = LIST_ITEM(link, struct envelope, link);
        list_remove(link);
        gateway->envelopes->unknown_count -= is_unknown(envelope);
        free(envelope);
    }
}

static void on_acked(void *arg, const struct store_outcome *outcome)
{
    struct gateway *gateway = CAST(gateway, arg);
    if (!gateway_answer(gateway))
        return;
    gateway->envelopes->acks_asked = false;
    if (outcome->r < 0) {
        list_append_all(&gateway->envelopes->acked, &gateway->envelopes->acking);
        return; // the next tick retries
    }
    acked_free(gateway, &gateway->envelopes->acking);
    acks_send(gateway);
}

// Envelopes acked while a statement is in progress are recorded by the next one.
static void acks_send(struct gateway *gateway)
{
    CLEANUP_PARAMS struct params params = {0};
    if (gateway->envelopes->acks_asked || list_is_empty(&gateway->envelopes->acked))
        return;
    list_append_all(&gateway->envelopes->acking, &gateway->envelopes->acked);
    keys_params(&params, &gateway->envelopes->acking, is_any);
    column_params(&params, &gateway->envelopes->acking, is_any, params_open_text_array, id_add);
    gateway->envelopes->acks_asked = true;
    gateway_ask(gateway);
    store_change(gateway->store, ENVELOPES, &ACK, &params, on_acked, gateway);
}

void app_backlog_ack(struct gateway *gateway, struct envelope *envelope)
{
    list_append(&gateway->envelopes->acked, &envelope->link);
    acks_send(gateway);
}

void app_backlog_ack_unknown(const struct app *app, const char *id)
{
    struct envelopes *envelopes = app->gateway->envelopes;
    bool is_taken = strlen(id) == UUID_SIZE - 1 && envelopes->unknown_count < UNKNOWN_MAX;
    struct envelope *envelope = is_taken ? calloc(1, sizeof *envelope) : NULL;
    if (!envelope)
        return;
    memcpy(envelope->app_id, app->id, sizeof envelope->app_id);
    memcpy(envelope->id, id, sizeof envelope->id);
    envelopes->unknown_count++;
    app_backlog_ack(app->gateway, envelope);
}

static void on_returned(void *arg, const struct store_outcome *outcome)
{
    struct gateway *gateway = CAST(gateway, arg);
    if (gateway_answer(gateway) && outcome->r >= 0)
        app_backlog_take(gateway);
}

void app_backlog_return(struct app *app)
{
    CLEANUP_PARAMS struct params params = {0};
    if (keys_params(&params, &app->envelopes, is_returning) == 0)
        return;
    column_params(&params, &app->envelopes, is_returning, params_open_int_array, happened_add);
    column_params(&params, &app->envelopes, is_returning, params_open_text_array, frame_add);
    column_params(&params, &app->envelopes, is_returning, params_open_int_array, attempt_add);
    LIST_FOREACH(link, &app->envelopes)
    {
        LIST_ITEM(link, struct envelope, link)->returns = false;
    }
    gateway_ask(app->gateway);
    store_change(app->gateway->store, ENVELOPES, &RETURN, &params, on_returned, app->gateway);
}

static struct app_event row_read(const struct result *result, int row)
{
    return (struct app_event){
        .app_id = result_text(result, row, 0),
        .channel_id = result_text(result, row, 1),
        .seq = result_int(result, row, 2),
        .happened_us = result_int(result, row, 3),
        .frame = result_is_null(result, row, 4) ? NULL : result_text(result, row, 4),
        .length = result_length(result, row, 4),
        .attempt = result_int(result, row, 5),
    };
}

static void on_taken(void *arg, const struct store_outcome *outcome)
{
    struct gateway *gateway = CAST(gateway, arg);
    if (!gateway_answer(gateway))
        return;
    gateway->envelopes->take_asked = false;
    for (int row = 0; outcome->r >= 0 && row < result_rows(outcome->result); row++) {
        const struct app_event event = row_read(outcome->result, row);
        gateway->envelopes->on_taken(gateway, &event);
    }
    if (gateway->envelopes->take_soon)
        app_backlog_take(gateway);
}

void app_backlog_take(struct gateway *gateway)
{
    CLEANUP_PARAMS struct params params = {0};
    int count = 0;
    gateway->envelopes->take_soon = gateway->envelopes->take_asked;
    if (gateway->envelopes->take_asked || gateway->draining)
        return;
    params_open_text_array(&params);
    for (const struct app *app = gateway->envelopes->apps; app; app = app->hh.next) {
        if (app_room(app) == 0)
            continue;
        params_element_text(&params, app->id);
        count++;
    }
    params_close_array(&params);
    params_open_int_array(&params);
    for (const struct app *app = gateway->envelopes->apps; app; app = app->hh.next)
        if (app_room(app) > 0)
            params_element_int(&params, app_room(app));
    params_close_array(&params);
    if (count == 0)
        return;
    params_int(&params, gateway->options.settings.app_socket_ack_ms);
    params_int(&params, gateway->options.settings.app_socket_attempts_max);
    gateway->envelopes->taken_ms = loop_now_ms(gateway->loop);
    gateway->envelopes->take_asked = true;
    gateway_ask(gateway);
    store_change(gateway->store, ENVELOPES, &TAKE, &params, on_taken, gateway);
}

void app_backlog_tick(struct gateway *gateway)
{
    acks_send(gateway);
    if (loop_now_ms(gateway->loop) - gateway->envelopes->taken_ms >= TAKE_MS)
        app_backlog_take(gateway);
}

static void on_linked(void *arg, const struct store_outcome *outcome)
{
    (void)outcome; // the next refresh repeats it
    (void)gateway_answer(CAST(gateway, arg));
}

void app_backlog_extend(const struct app *app)
{
    CLEANUP_PARAMS struct params params = {0};
    params_text(&params, app->id);
    gateway_ask(app->gateway);
    store_change(app->gateway->store, ENVELOPES, &LINKED, &params, on_linked, app->gateway);
}

void app_backlog_end(struct gateway *gateway)
{
    acked_free(gateway, &gateway->envelopes->acked);
    acked_free(gateway, &gateway->envelopes->acking);
}
