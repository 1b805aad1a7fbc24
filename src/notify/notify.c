// SPDX-License-Identifier: Apache-2.0
// The thread that sends pushes. Each app has a lane with limits of its own, so a provider that does
// not respond delays only its own pushes.
#include "notify/notify.h"

#include "answer.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"
#include "base/log.h"
#include "base/metrics.h"
#include "provider_request.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// STREAMS_FIRST: fewer than curl's initial limit of streams per connection, which applies until the
// server announces its own.
enum {
    STREAMS_FIRST = 90,
    WAIT_MS = 1000,
    SIZE_BASE = 1024,
    SIZE_FACTOR = 8, // a request is at most so many times the size of its push
    VALUES_MAX = 100
};

// A push being held: in its lane's list while waiting, in none while in flight.
struct held_push {
    uint32_t tag;
    struct list link;
    struct app_lane *lane;
    struct notify_push *push;
    notify_done_fn *fn;
    void *arg;
    int64_t size;
    int64_t begun_us; // 0: not in flight
};

struct app_lane {
    uint32_t tag;
    struct list link;
    struct notify *notify;
    enum push_platform platform;
    char app_id[NOTIFY_APP_ID_SIZE];
    struct list waiting;
    int64_t held;       // waiting and in flight
    int64_t sent;       // of these, in flight
    bool has_responded; // so the provider's connection is up and its limits are known; the thread's
    bool asks_token;    // Google for an access token; the thread's
};

struct notify {
    uint32_t tag;
    struct notify_options options;
    struct outbound *outbound;      // its thread is meant below
    struct provider_tokens *tokens; // the thread's

    pthread_mutex_t lock; // protects everything below, and the lanes' waiting, held and sent
    struct list lanes;    // those that hold pushes
    int64_t held;
    int64_t bytes;
    bool is_stopping;
};

static void message_free(struct notify_message *message)
{
    free(message->title);
    free(message->subtitle);
    free(message->body);
    free(message->workspace_id);
    free(message->channel_id);
    free(message->ts);
    free(message->thread_ts);
    free(message->position);
    free(message->collapse_id);
}

void notify_push_free(struct notify_push *push)
{
    if (!push)
        return;
    if (push->secret)
        OPENSSL_cleanse(push->secret, strlen(push->secret));
    free(push->secret);
    json_decref(push->app);
    json_decref(push->address);
    message_free(&push->message);
    free(push);
}

static int64_t size_of(const struct notify_push *push)
{
    const struct notify_message *message = &push->message;
    const char *const texts[] = {push->secret, message->title, message->subtitle, message->body};
    size_t size = SIZE_BASE;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        size += texts[i] ? strlen(texts[i]) : 0;
    return (int64_t)size;
}

// The app's lane, created on demand. NULL: out of memory. Call with the lock.
static struct app_lane *lane_get(struct notify *notify, const struct notify_push *push)
{
    LIST_FOREACH(link, &notify->lanes)
    {
        struct app_lane *lane = LIST_ITEM(link, struct app_lane, link);
        if (lane->platform == push->platform && strcmp(lane->app_id, push->app_id) == 0)
            return lane;
    }
    struct app_lane *lane = TAGGED_NEW(app_lane);
    if (!lane)
        return NULL;
    lane->notify = notify;
    lane->platform = push->platform;
    memcpy(lane->app_id, push->app_id, sizeof lane->app_id);
    list_init(&lane->waiting);
    list_append(&notify->lanes, &lane->link);
    return lane;
}

static void lane_drop_if_idle(struct app_lane *lane)
{
    if (lane->held > 0 || lane->asks_token)
        return;
    list_remove(&lane->link);
    TAGGED_FREE(lane);
}

static int held_add(struct notify *notify, struct held_push *held)
{
    const struct notify_options *options = &notify->options;

    if (notify->is_stopping)
        return -ERROR_UNAVAILABLE;
    if (notify->held >= options->settings.push_queue_max ||
        notify->bytes + held->size > options->settings.push_queue_bytes)
        return -ERROR_BUSY;
    struct app_lane *lane = lane_get(notify, held->push);
    if (!lane)
        return -ERROR_MEMORY;
    if (lane->held >= options->settings.push_app_queue_max)
        return -ERROR_BUSY;
    held->lane = lane;
    lane->held++;
    notify->held++;
    notify->bytes += held->size;
    list_append(&lane->waiting, &held->link);
    return 0;
}

int notify_send(struct notify *notify, struct notify_push *push, notify_done_fn *fn, void *arg)
{
    struct held_push *held = calloc(1, sizeof *held);

    ASSERT(push && fn);
    if (!held)
        return -ERROR_MEMORY;
    *held = (struct held_push){
        .tag = TAG(held_push), .push = push, .fn = fn, .arg = arg, .size = size_of(push)};
    pthread_mutex_lock(&notify->lock);
    int r = held_add(notify, held);
    pthread_mutex_unlock(&notify->lock);
    if (r < 0) {
        TAGGED_FREE(held);
        metric_add(METRIC_NOTIFY_FULL, r == -ERROR_BUSY);
        return r;
    }
    outbound_wake(notify->outbound);
    return 0;
}

static void outcome_count(const struct held_push *held, const struct notify_answer *answer)
{
    // Ordered like enum push_platform and enum notify_outcome.
    int at = (int)held->push->platform * NOTIFY_OUTCOME_MAX + (int)answer->outcome;

    metric_add((enum metric)(METRIC_NOTIFY_APNS_DELIVERED + at), 1);
    if (answer->status != 0)
        metric_time(METRIC_TIMES_NOTIFY_ANSWER, clock_monotonic_us() - held->begun_us);
}

// Every push ends here. It must not be in any list.
static void held_end(struct notify *notify, struct held_push *held,
                     const struct notify_answer *answer)
{
    outcome_count(held, answer);
    held->fn(held->arg, answer);
    pthread_mutex_lock(&notify->lock);
    held->lane->held--;
    held->lane->sent -= held->begun_us > 0;
    notify->held--;
    notify->bytes -= held->size;
    lane_drop_if_idle(held->lane);
    pthread_mutex_unlock(&notify->lock);
    notify_push_free(held->push);
    TAGGED_FREE(held);
}

// The outcome of a push that could not be sent.
static struct notify_answer unsent(int r)
{
    switch (r) {
    case -ERROR_INVALID_KEY:
        return answer_make(NOTIFY_REFUSED, "the app's key signs nothing");
    case -ERROR_INVALID_ARGUMENTS:
        return answer_make(NOTIFY_GONE, "the device's address is none");
    case -ERROR_TOO_LONG:
        return answer_make(NOTIFY_REFUSED, "the push is too long");
    case -ERROR_BUSY:
        return answer_make(NOTIFY_RETRY, "too many pushes are held");
    case -ERROR_UNAVAILABLE:
        return answer_make(NOTIFY_RETRY, "the server is stopping");
    default:
        return answer_make(NOTIFY_RETRY, "out of memory");
    }
}

// Ends all pushes waiting in a lane.
static void lane_fail(struct notify *notify, struct app_lane *lane,
                      const struct notify_answer *answer)
{
    struct list failed;

    list_init(&failed);
    pthread_mutex_lock(&notify->lock);
    list_append_all(&failed, &lane->waiting);
    pthread_mutex_unlock(&notify->lock);
    LIST_FOREACH(link, &failed)
    {
        list_remove(link);
        held_end(notify, LIST_ITEM(link, struct held_push, link), answer);
    }
}

// Caches the token in Google's response. False: there is none.
static bool token_take(struct notify *notify, const struct notify_push *push,
                       const struct outbound_answer *source)
{
    CLEANUP_JSON json_t *body = NULL;

    if (source->status != 200 || source->length == 0 ||
        json_read(source->body, source->length, JSON_DEPTH_MAX, VALUES_MAX, &body) < 0)
        return false;
    const char *token = json_string_value(json_object_get(body, "access_token"));
    json_int_t life_s = json_integer_value(json_object_get(body, "expires_in"));
    if (!token || life_s <= 0 || strpbrk(token, "\r\n"))
        return false;
    provider_tokens_google_put(notify->tokens, push, token, clock_wall_us() / 1000000, life_s);
    return true;
}

static void on_token_answer(void *arg, const struct outbound_answer *response)
{
    struct app_lane *lane = CAST(app_lane, arg);
    struct notify *notify = lane->notify;
    struct notify_answer answer = answer_read_google(response);

    lane->asks_token = false;
    pthread_mutex_lock(&notify->lock);
    struct held_push *first = LIST_ITEM(lane->waiting.next, struct held_push, link);
    pthread_mutex_unlock(&notify->lock);
    if (!token_take(notify, first->push, response))
        lane_fail(notify, lane, &answer);
}

static int token_ask(struct notify *notify, struct app_lane *lane, const struct notify_push *push)
{
    struct provider_request request = {.http = OUTBOUND_REQUEST(PROVIDER_BODY_MAX)};

    int r = provider_request_token(&notify->options, push, &request);
    if (r >= 0)
        r = outbound_send(notify->outbound, &request.http, on_token_answer, lane);
    outbound_request_done(&request.http);
    return r;
}

// Whether an FCM lane has an access token. If not, requests one; if that is impossible, ends the
// waiting pushes.
static bool lane_has_token(struct notify *notify, struct app_lane *lane,
                           const struct notify_push *push)
{
    if (lane->asks_token)
        return false;
    if (provider_tokens_google(notify->tokens, push, clock_wall_us() / 1000000))
        return true;
    int r = token_ask(notify, lane, push);
    lane->asks_token = r >= 0;
    if (r < 0) {
        struct notify_answer answer = unsent(r);
        lane_fail(notify, lane, &answer);
    }
    return false;
}

// The next push that the limits allow, with its place in them; NULL: none.
static struct held_push *lane_take(struct notify *notify, struct app_lane *lane)
{
    struct held_push *held = NULL;
    int64_t most = notify->options.settings.push_app_parallel;

    if (!lane->has_responded && most > STREAMS_FIRST)
        most = STREAMS_FIRST; // more would open additional connections
    pthread_mutex_lock(&notify->lock);
    if (!list_is_empty(&lane->waiting) && lane->sent < most)
        held = LIST_ITEM(lane->waiting.next, struct held_push, link);
    pthread_mutex_unlock(&notify->lock);
    if (!held || (lane->platform == PUSH_FCM && !lane_has_token(notify, lane, held->push)))
        return NULL;
    pthread_mutex_lock(&notify->lock);
    list_remove(&held->link);
    pthread_mutex_unlock(&notify->lock);
    return held;
}

static void on_answer(void *arg, const struct outbound_answer *response)
{
    struct held_push *held = CAST(held_push, arg);
    struct app_lane *lane = held->lane;
    struct notify *notify = lane->notify;
    struct notify_answer answer = answer_read(held->push, response);

    lane->has_responded |= response->status != 0;
    if (held->push->platform == PUSH_FCM && response->status == 401)
        provider_tokens_google_forget(notify->tokens, held->push);
    held_end(notify, held, &answer);
}

static void held_send(struct notify *notify, struct held_push *held)
{
    struct provider_request request = {.http = OUTBOUND_REQUEST(PROVIDER_BODY_MAX)};

    int r = provider_request_push(&notify->options, notify->tokens, held->push, &request);
    if (r >= 0)
        r = outbound_send(notify->outbound, &request.http, on_answer, held);
    outbound_request_done(&request.http);
    if (r < 0) {
        struct notify_answer answer = unsent(r);
        held_end(notify, held, &answer);
        return;
    }
    held->begun_us = clock_monotonic_us();
    pthread_mutex_lock(&notify->lock);
    held->lane->sent++;
    pthread_mutex_unlock(&notify->lock);
}

// Sends the next push that the limits allow. Starts over with the lanes for each push, since ending
// a push may free a lane.
static bool send_one(struct notify *notify)
{
    struct held_push *held = NULL;

    pthread_mutex_lock(&notify->lock);
    struct list *next = notify->lanes.next;
    pthread_mutex_unlock(&notify->lock);
    while (next != &notify->lanes && !held) {
        struct app_lane *lane = LIST_ITEM(next, struct app_lane, link);
        pthread_mutex_lock(&notify->lock);
        next = next->next;
        pthread_mutex_unlock(&notify->lock);
        held = lane_take(notify, lane);
    }
    if (held)
        held_send(notify, held);
    return held != NULL;
}

static int64_t on_turn(void *arg)
{
    struct notify *notify = CAST(notify, arg);

    while (send_one(notify)) {
    }
    return WAIT_MS;
}

void notify_free(struct notify *notify)
{
    if (!notify)
        return;
    outbound_free(notify->outbound);
    provider_tokens_free(notify->tokens);
    pthread_mutex_destroy(&notify->lock);
    TAGGED_FREE(notify);
}

int notify_start(const struct notify_options *options, struct notify **ret_notify)
{
    struct notify *notify = TAGGED_NEW(notify);
    if (!notify)
        return -ERROR_MEMORY;
    const struct outbound_options outbound_options = {
        .requests_max = options->settings.push_queue_max,
        .bytes_max = options->settings.push_queue_bytes * SIZE_FACTOR,
        .on_turn = on_turn,
        .arg = notify,
    };
    notify->options = *options;
    list_init(&notify->lanes);
    pthread_mutex_init(&notify->lock, NULL);
    notify->tokens = provider_tokens_new();
    int r = notify->tokens ? outbound_start(&outbound_options, &notify->outbound) : -ERROR_MEMORY;
    if (r < 0) {
        notify_free(notify);
        return r;
    }
    *ret_notify = notify;
    return 0;
}

void notify_stop(struct notify *notify)
{
    struct notify_answer answer = answer_make(NOTIFY_RETRY, "the server is stopping");

    if (!notify)
        return;
    pthread_mutex_lock(&notify->lock);
    notify->is_stopping = true;
    pthread_mutex_unlock(&notify->lock);
    outbound_stop(notify->outbound);
    LIST_FOREACH(link, &notify->lanes)
    {
        lane_fail(notify, LIST_ITEM(link, struct app_lane, link), &answer);
    }
}
