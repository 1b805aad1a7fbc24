// SPDX-License-Identifier: Apache-2.0
// Events for an app in Socket Mode: each goes, in an envelope, to one of the app's links, wherever
// they are. Every gateway with a link of the app keeps the event until it was acked; for each
// attempt the one that sets a key in Redis first sends it. Without Redis all send: an app may get
// an event twice, and has its envelope_id (the same each time) to know it by. A gateway whose last
// link of the app went keeps what it has for the next one until the attempts are over.
#include "gateway_int.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/json_writer.h"
#include "base/metrics.h"
#include "chat/callback.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_MS = 100, KEY_SIZE = 128, KEY_LIFE_S = 120, ENVELOPE_MAX = 8 << 20, UUID_SIZE = 37 };

struct envelope {
    struct list link;
    char id[UUID_SIZE];
    char channel_id[EVENT_ID_SIZE];
    int64_t seq;
    int64_t event_us;
    int64_t due_ms; // of the next step; 0: its link went, the next attempt is to begin
    int attempt;
    bool is_asked;           // Redis was, and has not answered
    bool is_mine;            // this gateway made the attempt
    bool waits;              // for a link, to make the attempt then
    struct connection *sent; // to which link, while it is there
    size_t length;
    char frame[];
};

// An answer of Redis that is to come: the envelope may be gone by then.
struct step {
    struct gateway *gateway;
    bool is_look; // whether it was acked elsewhere, else a claim
    char app_id[EVENT_ID_SIZE];
    char envelope_id[UUID_SIZE];
};

static void id_write(const struct app *app, const char *channel_id, int64_t seq, char *ret_id)
{
    char text[KEY_SIZE], hex[DIGEST_HEX_SIZE];
    int length = snprintf(text, sizeof text, "%s.%s.%" PRId64, app->id, channel_id, seq);
    digest_sha256_hex(text, (size_t)length, hex);
    (void)snprintf(ret_id, UUID_SIZE, "%.8s-%.4s-5%.3s-8%.3s-%.12s", hex, hex + 8, hex + 12,
                   hex + 15, hex + 18);
}

static void envelope_free(struct app *app, struct envelope *envelope)
{
    list_remove(&envelope->link);
    app->envelope_count--;
    free(envelope);
}

void envelopes_free(struct app *app)
{
    LIST_FOREACH(link, &app->envelopes)
    {
        envelope_free(app, LIST_ITEM(link, struct envelope, link));
    }
}

static struct envelope *envelope_find(struct app *app, const char *id)
{
    LIST_FOREACH(link, &app->envelopes)
    {
        struct envelope *envelope = LIST_ITEM(link, struct envelope, link);
        if (strcmp(envelope->id, id) == 0)
            return envelope;
    }
    return NULL;
}

static void payload_write(struct json_writer *w, const struct envelope *envelope,
                          const struct connection *c)
{
    const struct callback callback = {
        .app_id = c->actor.app_id,
        .workspace_id = c->actor.workspace_id,
        .bot_user_id = c->actor.user_id,
        .channel_id = envelope->channel_id,
        .seq = envelope->seq,
        .happened_us = envelope->event_us,
        .frame = envelope->frame,
        .frame_length = envelope->length,
    };
    callback_write(w, &callback);
}

static void envelope_send(struct envelope *envelope, struct connection *c)
{
    CLEANUP(buffer_done) struct buffer out;
    buffer_init(&out, ENVELOPE_MAX);
    struct json_writer w = json_writer_to(&out);
    json_open_object(&w);
    json_key_string(&w, "envelope_id", envelope->id);
    json_key_string(&w, "type", "events_api");
    json_key_bool(&w, "accepts_response_payload", false);
    json_key_int(&w, "retry_attempt", envelope->attempt);
    json_key_string(&w, "retry_reason", envelope->attempt > 0 ? "timeout" : "");
    json_key(&w, "payload");
    payload_write(&w, envelope, c);
    json_close_object(&w);
    envelope->sent = c;
    metric_add(METRIC_ENVELOPES_SENT, 1);
    metric_add(METRIC_ENVELOPES_AGAIN, envelope->attempt > 0);
    if (!buffer_failed(&out))
        link_send(c, out.data, out.length);
}

// The next link in turn; another one than `last` when there is one.
static struct connection *link_choose(struct app *app, const struct connection *last)
{
    struct connection *found = NULL;
    LIST_FOREACH(link, &app->links)
    {
        struct connection *c = LIST_ITEM(link, struct connection, app_link);
        bool is_open = c->state == CONNECTION_OPEN &&
                       (c->link_state == LINK_READY || c->link_state == LINK_WARNED);
        if (is_open && (!found || found == last))
            found = c;
    }
    if (found) {
        list_remove(&found->app_link);
        list_append(&app->links, &found->app_link);
    }
    return found;
}

static void app_look_soon(struct gateway *gateway)
{
    if (gateway->envelopes_wait)
        return;
    gateway->envelopes_wait = true;
    loop_timer_set(gateway->envelope_timer, LOOK_MS);
}

static void step_ask(struct app *app, struct envelope *envelope, bool is_look);

static void attempt_begin(struct app *app, struct envelope *envelope)
{
    int64_t window_ms = app->gateway->options.link_ack_ms << envelope->attempt;
    envelope->due_ms = loop_now_ms(app->gateway->loop) + window_ms;
    envelope->is_mine = false;
    envelope->waits = list_is_empty(&app->links);
    if (!envelope->waits)
        step_ask(app, envelope, false);
}

static void attempt_next(struct app *app, struct envelope *envelope)
{
    if (++envelope->attempt < app->gateway->options.link_attempts_max)
        return attempt_begin(app, envelope);
    metric_add(METRIC_ENVELOPES_DROPPED, 1);
    envelope_free(app, envelope);
}

static void claim_take(struct app *app, struct envelope *envelope, bool is_won)
{
    struct connection *c = is_won ? link_choose(app, envelope->sent) : NULL;
    envelope->is_mine = is_won;
    if (c)
        envelope_send(envelope, c);
}

static void on_step(void *arg, int r, const struct cache_value *value)
{
    struct step *step = arg;
    bool alive = gateway_answer(step->gateway);
    struct app *app = alive ? app_find(step->gateway, step->app_id) : NULL;
    struct envelope *envelope = app ? envelope_find(app, step->envelope_id) : NULL;
    bool is_look = step->is_look;
    free(step);
    if (!envelope)
        return;
    bool is_set = r == 0 && !cache_value_is_null(value);
    envelope->is_asked = false;
    if (!is_look)
        claim_take(app, envelope, r < 0 || is_set);
    else if (is_set)
        envelope_free(app, envelope); // acked elsewhere
    else
        attempt_next(app, envelope);
}

static void key_write(const struct app *app, const struct envelope *envelope, const char *what,
                      char *ret_key)
{
    (void)snprintf(ret_key, KEY_SIZE, "app-events:{%s}:%s:%" PRId64 ":%s", app->id,
                   envelope->channel_id, envelope->seq, what);
}

static void step_ask(struct app *app, struct envelope *envelope, bool is_look)
{
    char key[KEY_SIZE], what[16] = "done", life[16];
    struct step *step = calloc(1, sizeof *step);
    if (!step)
        return; // the next look tries again
    step->gateway = app->gateway;
    step->is_look = is_look;
    memcpy(step->app_id, app->id, sizeof step->app_id);
    memcpy(step->envelope_id, envelope->id, sizeof step->envelope_id);
    envelope->is_asked = true;
    if (!is_look)
        (void)snprintf(what, sizeof what, "%d", envelope->attempt);
    key_write(app, envelope, what, key);
    (void)snprintf(life, sizeof life, "%d", KEY_LIFE_S);
    gateway_ask(app->gateway);
    if (is_look)
        cache_call(app->gateway->cache, 2, (const char *[]){"GET", key}, NULL, on_step, step);
    else
        cache_call(app->gateway->cache, 6,
                   (const char *[]){"SET", key, app->gateway->device, "NX", "EX", life}, NULL,
                   on_step, step);
}

void envelope_offer(struct connection *c, const struct stream *stream,
                    const struct stream_item *item)
{
    struct app *app = c->app;
    if (!app || (app->last_seq == item->seq && strcmp(app->last_channel, stream->channel_id) == 0))
        return; // another link of the app brought it already
    app->last_seq = item->seq;
    memcpy(app->last_channel, stream->channel_id, sizeof app->last_channel);
    struct envelope *envelope = app->envelope_count < app->gateway->options.link_queue_max
                                    ? calloc(1, sizeof *envelope + item->frame_length)
                                    : NULL;
    if (!envelope) {
        metric_add(METRIC_ENVELOPES_DROPPED, 1);
        return;
    }
    id_write(app, stream->channel_id, item->seq, envelope->id);
    memcpy(envelope->channel_id, stream->channel_id, sizeof envelope->channel_id);
    envelope->seq = item->seq;
    envelope->event_us = clock_wall_us();
    envelope->length = item->frame_length;
    memcpy(envelope->frame, item->frame, item->frame_length);
    list_append(&app->envelopes, &envelope->link);
    app->envelope_count++;
    attempt_begin(app, envelope);
    app_look_soon(app->gateway);
}

void envelope_ack(struct connection *c, const char *id)
{
    char key[KEY_SIZE], life[16];
    struct envelope *envelope = c->app ? envelope_find(c->app, id) : NULL;
    if (!envelope)
        return;
    key_write(c->app, envelope, "done", key);
    (void)snprintf(life, sizeof life, "%d", KEY_LIFE_S);
    cache_call(c->gateway->cache, 5, (const char *[]){"SET", key, "1", "EX", life}, NULL, NULL,
               NULL);
    envelope_free(c->app, envelope);
}

void envelopes_leave(struct app *app, const struct connection *c)
{
    LIST_FOREACH(link, &app->envelopes)
    {
        struct envelope *envelope = LIST_ITEM(link, struct envelope, link);
        if (envelope->sent != c)
            continue;
        envelope->sent = NULL;
        envelope->due_ms = 0;
    }
}

// A link is ready: what was claimed, or waited, while there was none goes now.
void envelopes_wake(struct app *app)
{
    LIST_FOREACH(link, &app->envelopes)
    {
        struct envelope *envelope = LIST_ITEM(link, struct envelope, link);
        if (envelope->is_asked)
            continue;
        if (envelope->waits)
            step_ask(app, envelope, false);
        else if (envelope->is_mine && !envelope->sent && envelope->due_ms > 0)
            claim_take(app, envelope, true);
        envelope->waits = false;
    }
}

static void app_look(struct app *app, int64_t now_ms)
{
    LIST_FOREACH(link, &app->envelopes)
    {
        struct envelope *envelope = LIST_ITEM(link, struct envelope, link);
        if (envelope->is_asked || envelope->due_ms > now_ms)
            continue;
        if (envelope->is_mine)
            attempt_next(app, envelope);
        else
            step_ask(app, envelope, true);
    }
}

void envelope_on_timer(void *arg)
{
    struct gateway *gateway = arg;
    bool any = false;
    gateway->envelopes_wait = false;
    struct app *app, *next;
    HASH_ITER(hh, gateway->apps, app, next)
    {
        app_look(app, loop_now_ms(gateway->loop));
        any = any || app->envelope_count > 0;
        app_tidy(app);
    }
    if (any)
        app_look_soon(gateway);
}
