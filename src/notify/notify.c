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
#include "provider_tokens.h"
#include "transfer.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// STREAMS_FIRST: fewer than curl's initial limit of streams per connection, which applies until the
// server announces its own.
enum {
    STREAMS_MAX = 1000,
    STREAMS_FIRST = 90,
    GATHER_MIN = 64,
    GATHER_NS = 1000000,
    WAIT_MS = 1000,
    SIZE_BASE = 1024,
    VALUES_MAX = 100
};

// A push being held: in its lane's list while waiting, in the thread's while in flight.
struct held_push {
    uint32_t tag;
    struct list link;
    struct app_lane *lane;
    struct notify_push *push;
    notify_done_fn *fn;
    void *arg;
    int64_t size;
    struct transfer *transfer;
};

struct app_lane {
    uint32_t tag;
    struct list link;
    enum push_platform platform;
    char app_id[NOTIFY_APP_ID_SIZE];
    struct list waiting;
    int64_t held;         // waiting and in flight
    int64_t sent;         // of these, in flight
    int64_t responded_ms; // time of the last response; the thread's
    bool
        has_responded; // a provider has responded, so its connection is up and its limits are known
    struct transfer *token; // the request for Google's access token in progress; the thread's
};

struct notify {
    uint32_t tag;
    struct notify_options options;
    pthread_t thread;
    CURLM *multi;
    struct provider_tokens *tokens; // the thread's
    struct list under_way;          // the thread's

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
    lane->platform = push->platform;
    memcpy(lane->app_id, push->app_id, sizeof lane->app_id);
    lane->responded_ms = clock_monotonic_ms();
    list_init(&lane->waiting);
    list_append(&notify->lanes, &lane->link);
    return lane;
}

static void lane_drop_if_idle(struct app_lane *lane)
{
    if (lane->held > 0 || lane->token)
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
    curl_multi_wakeup(notify->multi);
    return 0;
}

static void outcome_count(const struct held_push *held, const struct notify_answer *answer)
{
    // Ordered like enum push_platform and enum notify_outcome.
    int at = (int)held->push->platform * NOTIFY_OUTCOME_MAX + (int)answer->outcome;

    metric_add((enum metric)(METRIC_NOTIFY_APNS_DELIVERED + at), 1);
    if (held->transfer && answer->status != 0)
        metric_time(METRIC_TIMES_NOTIFY_ANSWER, clock_monotonic_us() - held->transfer->begun_us);
}

// Every push ends here. It must not be in any list.
static void held_end(struct notify *notify, struct held_push *held,
                     const struct notify_answer *answer)
{
    outcome_count(held, answer);
    held->fn(held->arg, answer);
    pthread_mutex_lock(&notify->lock);
    held->lane->held--;
    held->lane->sent -= held->transfer != NULL;
    notify->held--;
    notify->bytes -= held->size;
    lane_drop_if_idle(held->lane);
    pthread_mutex_unlock(&notify->lock);
    transfer_free(held->transfer);
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

// Whether an FCM lane has an access token. If not, requests one; if that is impossible, ends the
// waiting pushes.
static bool lane_has_token(struct notify *notify, struct app_lane *lane,
                           const struct notify_push *push)
{
    if (lane->token)
        return false;
    if (provider_tokens_google(notify->tokens, push, clock_wall_us() / 1000000))
        return true;
    int r = transfer_new_token(&notify->options, push, lane, &lane->token);
    if (r < 0) {
        struct notify_answer answer = unsent(r);
        lane_fail(notify, lane, &answer);
        return false;
    }
    curl_multi_add_handle(notify->multi, lane->token->easy);
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

static void held_send(struct notify *notify, struct held_push *held)
{
    struct app_lane *lane = held->lane;

    int r = transfer_new_push(&notify->options, notify->tokens, held->push, held, &held->transfer);
    if (r < 0) {
        struct notify_answer answer = unsent(r);
        held_end(notify, held, &answer);
        return;
    }
    pthread_mutex_lock(&notify->lock);
    if (lane->sent++ == 0)
        lane->responded_ms = clock_monotonic_ms();
    pthread_mutex_unlock(&notify->lock);
    list_append(&notify->under_way, &held->link);
    curl_multi_add_handle(notify->multi, held->transfer->easy);
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

// Ends a push. A connection without any response for the duration of a whole request is closed:
// otherwise it may look alive for hours.
static void held_finish(struct notify *notify, struct held_push *held, CURLcode code)
{
    struct answer_source source = transfer_answer(held->transfer, code);
    struct notify_answer answer = answer_read(held->push, &source);
    struct app_lane *lane = held->lane;

    if (source.status != 0) {
        lane->responded_ms = clock_monotonic_ms();
        lane->has_responded = true;
    } else if (code == CURLE_OPERATION_TIMEDOUT &&
               lane->responded_ms * 1000 <= held->transfer->begun_us)
        transfer_disconnect(held->transfer);
    if (held->push->platform == PUSH_FCM && source.status == 401)
        provider_tokens_google_forget(notify->tokens, held->push);
    curl_multi_remove_handle(notify->multi, held->transfer->easy);
    list_remove(&held->link);
    held_end(notify, held, &answer);
}

// Caches the token in Google's response. False: there is none.
static bool token_take(struct notify *notify, const struct notify_push *push,
                       const struct answer_source *source)
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

static void token_finish(struct notify *notify, struct app_lane *lane, CURLcode code)
{
    struct transfer *transfer = TAKE(lane->token);
    struct answer_source source = transfer_answer(transfer, code);
    struct notify_answer answer = answer_read_google(&source);

    pthread_mutex_lock(&notify->lock);
    struct held_push *first = LIST_ITEM(lane->waiting.next, struct held_push, link);
    pthread_mutex_unlock(&notify->lock);
    if (!token_take(notify, first->push, &source))
        lane_fail(notify, lane, &answer);
    curl_multi_remove_handle(notify->multi, transfer->easy);
    transfer_free(transfer);
}

static void harvest(struct notify *notify)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(notify->multi, &left))) {
        struct transfer *transfer = NULL;
        CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
        if (transfer->is_token)
            token_finish(notify, CAST(app_lane, transfer->owner), code);
        else
            held_finish(notify, CAST(held_push, transfer->owner), code);
    }
}

static bool is_stopping(struct notify *notify)
{
    pthread_mutex_lock(&notify->lock);
    bool stopping = notify->is_stopping;
    pthread_mutex_unlock(&notify->lock);
    return stopping;
}

// Ends all pushes; no new ones can arrive.
static void give_up(struct notify *notify)
{
    struct notify_answer answer = answer_make(NOTIFY_RETRY, "the server is stopping");

    LIST_FOREACH(link, &notify->under_way)
    {
        struct held_push *held = LIST_ITEM(link, struct held_push, link);
        curl_multi_remove_handle(notify->multi, held->transfer->easy);
        list_remove(link);
        held_end(notify, held, &answer);
    }
    LIST_FOREACH(link, &notify->lanes)
    {
        struct app_lane *lane = LIST_ITEM(link, struct app_lane, link);
        if (lane->token)
            curl_multi_remove_handle(notify->multi, lane->token->easy);
        transfer_free(TAKE(lane->token));
        lane_fail(notify, lane, &answer);
    }
}

// curl checks all transfers whenever one of them makes progress: with many, a short pause lets
// several progress at once.
static void transfers_gather(int running)
{
    const struct timespec pause = {.tv_nsec = GATHER_NS};

    if (running >= GATHER_MIN)
        nanosleep(&pause, NULL);
}

static void *notify_run(void *arg)
{
    struct notify *notify = CAST(notify, arg);
    int running;

    while (!is_stopping(notify)) {
        while (send_one(notify)) {
        }
        curl_multi_perform(notify->multi, &running);
        harvest(notify);
        log_flush();
        curl_multi_poll(notify->multi, NULL, 0, WAIT_MS, NULL);
        transfers_gather(running);
    }
    give_up(notify);
    return NULL;
}

void notify_free(struct notify *notify)
{
    if (!notify)
        return;
    provider_tokens_free(notify->tokens);
    curl_multi_cleanup(notify->multi);
    pthread_mutex_destroy(&notify->lock);
    TAGGED_FREE(notify);
    curl_global_cleanup();
}

int notify_start(const struct notify_options *options, struct notify **ret_notify)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return -ERROR_MEMORY;
    struct notify *notify = TAGGED_NEW(notify);
    if (!notify) {
        curl_global_cleanup();
        return -ERROR_MEMORY;
    }
    notify->options = *options;
    list_init(&notify->under_way);
    list_init(&notify->lanes);
    pthread_mutex_init(&notify->lock, NULL);
    notify->multi = curl_multi_init();
    notify->tokens = provider_tokens_new();
    if (notify->multi)
        curl_multi_setopt(notify->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, (long)STREAMS_MAX);
    if (!notify->multi || !notify->tokens ||
        pthread_create(&notify->thread, NULL, notify_run, notify) != 0) {
        notify_free(notify);
        return -ERROR_MEMORY;
    }
    *ret_notify = notify;
    return 0;
}

void notify_stop(struct notify *notify)
{
    if (!notify)
        return;
    pthread_mutex_lock(&notify->lock);
    notify->is_stopping = true;
    pthread_mutex_unlock(&notify->lock);
    curl_multi_wakeup(notify->multi);
    pthread_join(notify->thread, NULL);
}
