// SPDX-License-Identifier: Apache-2.0
// Sends each event of an app in Socket Mode, in an envelope, to one of the app's sockets on any
// instance. Every gateway with such a socket receives the event; the first to set a key in Redis
// sends it. Without Redis all send it: the app can discard repeats by envelope_id, which is always
// the same. An event that is not acked, or arrived while there was no socket, waits in Postgres for
// a gateway with a socket (app_backlog.c).
#include "envelope.h"

#include "../channel/feed.h"
#include "../connection/connection.h"
#include "../core.h"
#include "../websocket/receive.h"
#include "app.h"
#include "app_backlog.h"

#include "base/buffer.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "chat/app_mention.h"
#include "chat/callback.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TICK_MS = 100, KEY_SIZE = 128, KEY_LIFE_S = 120, ENVELOPE_MAX = 8 << 20 };

// A request to Redis in flight; the envelope may be gone when the answer arrives.
struct claim {
    uint32_t tag;
    struct gateway *gateway;
    char app_id[EVENT_ID_SIZE];
    char envelope_id[UUID_SIZE];
};

static void id_write(const char *app_id, const char *channel_id, int64_t seq, char *ret_id)
{
    char text[KEY_SIZE], hex[DIGEST_HEX_SIZE];
    int length = snprintf(text, sizeof text, "%s.%s.%" PRId64, app_id, channel_id, seq);
    digest_sha256_hex(text, (size_t)length, hex);
    snprintf(ret_id, UUID_SIZE, "%.8s-%.4s-5%.3s-8%.3s-%.12s", hex, hex + 8, hex + 12, hex + 15,
             hex + 18);
}

static void envelope_free(struct app *app, struct envelope *envelope)
{
    list_remove(&envelope->link);
    app->envelope_count--;
    free(envelope);
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
        .happened_us = envelope->happened_us,
        .frame = envelope->frame,
        .frame_length = envelope->length,
    };
    callback_write(w, &callback);
}

static void envelope_send(struct envelope *envelope, struct app_socket *app_socket)
{
    const struct connection *c = app_socket->connection;
    CLEANUP(buffer_done) struct buffer out = BUFFER(ENVELOPE_MAX);
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
    envelope->sent = app_socket;
    envelope->state = ENVELOPE_SENT;
    envelope->due_ms = loop_now_ms(c->gateway->loop) +
                       (c->gateway->options.settings.app_socket_ack_ms << envelope->attempt);
    metric_add(METRIC_ENVELOPES_SENT, 1);
    metric_add(METRIC_ENVELOPES_AGAIN, envelope->attempt > 0);
    if (!buffer_failed(&out))
        app_socket_send(app_socket, out.data, out.length);
}

static void timer_start(struct gateway *gateway)
{
    if (gateway->envelopes->timer_runs)
        return;
    gateway->envelopes->timer_runs = true;
    loop_timer_set(gateway->envelopes->timer, TICK_MS);
}

static struct envelope *envelope_new(struct app *app, const struct app_event *event)
{
    bool has_room = app->envelope_count < app->gateway->options.settings.app_socket_queue_max;
    struct envelope *envelope = has_room ? calloc(1, sizeof *envelope + event->length) : NULL;
    if (!envelope)
        return NULL;
    id_write(app->id, event->channel_id, event->seq, envelope->id);
    snprintf(envelope->app_id, sizeof envelope->app_id, "%s", app->id);
    snprintf(envelope->channel_id, sizeof envelope->channel_id, "%s", event->channel_id);
    envelope->seq = event->seq;
    envelope->happened_us = event->happened_us;
    envelope->attempt = event->attempt;
    envelope->length = event->length;
    memcpy(envelope->frame, event->frame, event->length);
    list_append(&app->envelopes, &envelope->link);
    app->envelope_count++;
    return envelope;
}

// Makes it due, for app_backlog_return(): the gateway that takes it next sends it.
static void envelope_return(struct app *app, struct envelope *envelope)
{
    envelope->state = ENVELOPE_OVER;
    envelope->due_ms =
        loop_now_ms(app->gateway->loop) + app->gateway->options.settings.app_socket_ack_ms;
    envelope->returns = true;
}

static void on_claim(void *arg, int r, const struct cache_value *value)
{
    struct claim *claim = CAST(claim, arg);
    bool alive = gateway_answer(claim->gateway);
    struct app *app = alive ? app_find(claim->gateway, claim->app_id) : NULL;
    struct envelope *envelope = app ? envelope_find(app, claim->envelope_id) : NULL;
    TAGGED_FREE(claim);
    if (!envelope || envelope->state != ENVELOPE_ASKED)
        return;
    if (r == 0 && cache_value_is_null(value)) {
        envelope_free(app, envelope); // another gateway sends it
        return;
    }
    struct app_socket *app_socket = app_next_socket(app, NULL);
    if (app_socket) {
        envelope_send(envelope, app_socket);
        return;
    }
    envelope_return(app, envelope);
    app_backlog_return(app);
}

static bool claim_ask(const struct app *app, const struct envelope *envelope)
{
    char key[KEY_SIZE], life[16];
    struct claim *claim = TAGGED_NEW(claim);
    if (!claim)
        return false;
    claim->gateway = app->gateway;
    memcpy(claim->app_id, app->id, sizeof claim->app_id);
    memcpy(claim->envelope_id, envelope->id, sizeof claim->envelope_id);
    snprintf(key, sizeof key, "app-events:{%s}:%s:%" PRId64, app->id, envelope->channel_id,
             envelope->seq);
    snprintf(life, sizeof life, "%d", KEY_LIFE_S);
    gateway_ask(app->gateway);
    cache_call(app->gateway->cache, 6,
               (const char *[]){"SET", key, app->gateway->device, "NX", "EX", life}, NULL, on_claim,
               claim);
    return true;
}

// Without room nothing is lost: all events are kept in Postgres, too.
static void event_offer(struct app *app, const struct app_event *event)
{
    struct envelope *envelope = envelope_new(app, event);
    if (envelope && !claim_ask(app, envelope))
        envelope_free(app, envelope);
}

// Whether the app has subscribed to such events (login.c). Events that have no name for apps, such
// as joins of a DM, are sent to no app.
static bool is_wanted(const struct actor *actor, const struct feed_item *item)
{
    const char *name = item->kind == EVENT_NOTE ? callback_name_of_note(item->type)
                                                : callback_name(item->kind, item->channel_type);
    return name && actor_has_scope(actor, name);
}

// Offers an app_mention if the message mentions the bot. Parses the frame only if it contains the
// bot's id.
static void mention_offer(struct app *app, const char *bot_user_id, enum channel_type channel_type,
                          const struct app_event *event)
{
    CLEANUP_APP_MENTION struct app_mention mention = {0};
    if (!memmem(event->frame, event->length, bot_user_id, strlen(bot_user_id)) ||
        app_mention_read(channel_type, event->frame, event->length, &mention) <= 0 ||
        !app_mention_names(&mention, bot_user_id))
        return;
    struct app_event named = *event;
    named.seq = -event->seq;
    named.frame = mention.frame;
    named.length = mention.frame_length;
    event_offer(app, &named);
}

void envelope_offer(struct app_socket *app_socket, const struct feed *feed,
                    const struct feed_item *item)
{
    struct app *app = app_socket->app;
    const struct actor *actor = &app_socket->connection->actor;
    if (!app || (app->last_seq == item->seq && strcmp(app->last_channel, feed->channel_id) == 0))
        return; // already offered by another socket of the app
    app->last_seq = item->seq;
    memcpy(app->last_channel, feed->channel_id, sizeof app->last_channel);
    const struct app_event event = {.channel_id = feed->channel_id,
                                    .seq = item->seq,
                                    .happened_us = clock_wall_us(),
                                    .frame = item->frame,
                                    .length = item->frame_length};
    if (is_wanted(actor, item))
        event_offer(app, &event);
    if (item->kind == EVENT_POST && actor_has_scope(actor, "app_mention"))
        mention_offer(app, actor->user_id, item->channel_type, &event);
}

// Sends an event taken from the backlog. If that fails, it becomes due again when its time to ack
// is over.
static void envelope_take(struct gateway *gateway, const struct app_event *event)
{
    char id[UUID_SIZE];
    struct app *app = app_find(gateway, event->app_id);
    id_write(event->app_id, event->channel_id, event->seq, id);
    struct envelope *before = app ? envelope_find(app, id) : NULL;
    struct app_socket *app_socket =
        app && event->frame ? app_next_socket(app, before ? before->sent : NULL) : NULL;
    if (before)
        envelope_free(app, before);
    metric_add(METRIC_ENVELOPES_DROPPED, !event->frame);
    struct envelope *envelope = app_socket ? envelope_new(app, event) : NULL;
    if (envelope)
        envelope_send(envelope, app_socket);
}

void envelope_ack(struct app_socket *app_socket, const char *id)
{
    struct app *app = app_socket->app;
    struct envelope *envelope = app ? envelope_find(app, id) : NULL;
    if (app && !envelope)
        app_backlog_ack_unknown(app, id);
    if (!envelope)
        return;
    receive_free_of_cost(app_socket->connection, &app_socket->socket);
    list_remove(&envelope->link);
    app->envelope_count--;
    app_backlog_ack(app->gateway, envelope);
    if (app_is_idle(app))
        app_backlog_take(app->gateway);
}

void envelopes_leave(struct app *app, const struct app_socket *app_socket)
{
    LIST_FOREACH(item, &app->envelopes)
    {
        struct envelope *envelope = LIST_ITEM(item, struct envelope, link);
        if (envelope->sent == app_socket && envelope->state == ENVELOPE_SENT)
            envelope_return(app, envelope);
        if (envelope->sent == app_socket)
            envelope->sent = NULL;
    }
    if (!app->gateway->ended)
        app_backlog_return(app);
}

void envelopes_wake(struct app *app)
{
    timer_start(app->gateway);
    app_backlog_take(app->gateway);
}

// Ends states that are over. A kept event becomes due by itself; but after the first attempt a
// worker may not have kept it yet, so this returns it.
static void app_tick(struct app *app, int64_t now_ms)
{
    LIST_FOREACH(link, &app->envelopes)
    {
        struct envelope *envelope = LIST_ITEM(link, struct envelope, link);
        if (envelope->state == ENVELOPE_ASKED || envelope->due_ms > now_ms)
            continue;
        if (envelope->state == ENVELOPE_OVER)
            envelope_free(app, envelope);
        else if (envelope->attempt == 0)
            envelope_return(app, envelope);
        else
            envelope->state = ENVELOPE_OVER;
    }
    app_backlog_return(app);
}

static void on_timer(void *arg)
{
    struct gateway *gateway = CAST(gateway, arg);
    gateway->envelopes->timer_runs = false;
    for (struct app *app = gateway->envelopes->apps; app; app = app->hh.next)
        app_tick(app, loop_now_ms(gateway->loop));
    app_backlog_tick(gateway);
    if (gateway->envelopes->apps || !list_is_empty(&gateway->envelopes->acked))
        timer_start(gateway);
}

int envelopes_new(struct gateway *gateway)
{
    struct envelopes *envelopes = gateway->envelopes = memory_must_new(sizeof *envelopes);
    list_init(&envelopes->acked);
    list_init(&envelopes->acking);
    envelopes->on_taken = envelope_take;
    return loop_timer_new(gateway->loop, on_timer, gateway, &envelopes->timer);
}

void envelopes_free(struct gateway *gateway)
{
    if (!gateway->envelopes)
        return;
    app_backlog_end(gateway);
    loop_timer_free(gateway->envelopes->timer);
    free(TAKE(gateway->envelopes));
}
