// SPDX-License-Identifier: Apache-2.0
// The thread that sends requests, and the bounds of what it holds.
#include "outbound/outbound.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"
#include "base/log.h"
#include "base/metrics.h"
#include "transfer.h"

#include <pthread.h>
#include <time.h>

enum {
    STREAMS_MAX = 1000,
    CONNECTIONS_MAX = 1000, // kept open for later requests
    SOCKETS = 4096,
    GATHER_MIN = 64,
    GATHER_NS = 1000000,
    WAIT_MS = 1000
};

struct outbound {
    uint32_t tag;
    struct outbound_options options;
    pthread_t thread;
    CURLM *multi;
    struct list under_way;        // the thread's
    int64_t answered_us[SOCKETS]; // time of the last answer, by descriptor; the thread's

    pthread_mutex_t lock;  // protects everything below
    struct list submitted; // not under way yet
    int64_t held;
    int64_t bytes;
    bool is_waiting; // or about to
    bool is_woken;
    bool is_stopping;
};

// Call with the lock.
static int transfer_add(struct outbound *outbound, struct transfer *transfer)
{
    if (outbound->is_stopping)
        return -ERROR_UNAVAILABLE;
    if (outbound->held >= outbound->options.requests_max ||
        transfer->size > outbound->options.bytes_max - outbound->bytes)
        return -ERROR_BUSY;
    outbound->held++;
    outbound->bytes += transfer->size;
    list_append(&outbound->submitted, &transfer->link);
    return 0;
}

int outbound_send(struct outbound *outbound, struct outbound_request *request, outbound_fn *fn,
                  void *arg)
{
    struct transfer *transfer;
    int r = transfer_new(request, fn, arg, &transfer);
    if (r < 0)
        return r;
    pthread_mutex_lock(&outbound->lock);
    r = transfer_add(outbound, transfer);
    bool is_waiting = outbound->is_waiting;
    pthread_mutex_unlock(&outbound->lock);
    if (r < 0) {
        metric_add(METRIC_OUTBOUND_FULL, r == -ERROR_BUSY);
        transfer_free(transfer);
        return r;
    }
    if (is_waiting)
        curl_multi_wakeup(outbound->multi);
    return 0;
}

void outbound_wake(struct outbound *outbound)
{
    pthread_mutex_lock(&outbound->lock);
    outbound->is_woken = true;
    bool is_waiting = outbound->is_waiting;
    pthread_mutex_unlock(&outbound->lock);
    if (is_waiting)
        curl_multi_wakeup(outbound->multi);
}

// Begins a turn. False: the thread must end.
static bool turn_begin(struct outbound *outbound)
{
    pthread_mutex_lock(&outbound->lock);
    bool is_stopping = outbound->is_stopping;
    outbound->is_waiting = false;
    outbound->is_woken = false;
    pthread_mutex_unlock(&outbound->lock);
    return !is_stopping;
}

static void transfers_begin(struct outbound *outbound)
{
    struct list begun;

    list_init(&begun);
    pthread_mutex_lock(&outbound->lock);
    list_append_all(&begun, &outbound->submitted);
    pthread_mutex_unlock(&outbound->lock);
    LIST_FOREACH(link, &begun)
    {
        curl_multi_add_handle(outbound->multi, LIST_ITEM(link, struct transfer, link)->easy);
    }
    list_append_all(&outbound->under_way, &begun);
}

// Every transfer ends here.
static void transfer_end(struct outbound *outbound, struct transfer *transfer,
                         const struct outbound_answer *answer)
{
    list_remove(&transfer->link);
    pthread_mutex_lock(&outbound->lock);
    outbound->held--;
    outbound->bytes -= transfer->size;
    pthread_mutex_unlock(&outbound->lock);
    transfer->fn(transfer->arg, answer);
    transfer_free(transfer);
}

// Closes a connection on which nothing was answered for as long as a whole request may take:
// otherwise it may look alive for hours, and all later requests wait for it, too.
static void connection_judge(struct outbound *outbound, const struct transfer *transfer,
                             const struct outbound_answer *answer)
{
    int fd = transfer_socket(transfer);
    if (fd < 0)
        return;
    int64_t *answered_us = &outbound->answered_us[fd % SOCKETS];
    if (answer->failure == OUTBOUND_ANSWERED)
        *answered_us = clock_monotonic_us();
    else if (answer->failure == OUTBOUND_TIMEOUT && *answered_us <= transfer->begun_us)
        transfer_disconnect(transfer);
}

// Answers what has ended. Returns whether anything has.
static bool transfers_harvest(struct outbound *outbound)
{
    CURLMsg *message;
    int left;
    bool any = false;

    while ((message = curl_multi_info_read(outbound->multi, &left))) {
        struct transfer *transfer = transfer_of(message->easy_handle);
        struct outbound_answer answer = transfer_answer(transfer, message->data.result);
        connection_judge(outbound, transfer, &answer);
        curl_multi_remove_handle(outbound->multi, transfer->easy);
        transfer_end(outbound, transfer, &answer);
        any = true;
    }
    return any;
}

// Waits, unless something came since the turn began.
static void turn_end(struct outbound *outbound, int64_t wait_ms)
{
    pthread_mutex_lock(&outbound->lock);
    bool is_idle =
        !outbound->is_stopping && !outbound->is_woken && list_is_empty(&outbound->submitted);
    outbound->is_waiting = is_idle;
    pthread_mutex_unlock(&outbound->lock);
    curl_multi_poll(outbound->multi, NULL, 0, is_idle ? (int)wait_ms : 0, NULL);
}

// curl checks all transfers whenever one of them makes progress: with many, a short pause lets
// several progress at once.
static void transfers_gather(int running)
{
    const struct timespec pause = {.tv_nsec = GATHER_NS};

    if (running >= GATHER_MIN)
        nanosleep(&pause, NULL);
}

// Ends all transfers; no new ones can come.
static void transfers_give_up(struct outbound *outbound)
{
    const struct outbound_answer stopped = {
        .failure = OUTBOUND_STOPPED, .error = "the server is stopping", .retry_after_s = -1};

    transfers_begin(outbound);
    LIST_FOREACH(link, &outbound->under_way)
    {
        struct transfer *transfer = LIST_ITEM(link, struct transfer, link);
        curl_multi_remove_handle(outbound->multi, transfer->easy);
        transfer_end(outbound, transfer, &stopped);
    }
}

static void *outbound_run(void *arg)
{
    struct outbound *outbound = CAST(outbound, arg);
    const struct outbound_options *options = &outbound->options;
    int running;

    while (turn_begin(outbound)) {
        int64_t wait_ms = options->on_turn ? options->on_turn(options->arg) : WAIT_MS;
        transfers_begin(outbound);
        curl_multi_perform(outbound->multi, &running);
        if (transfers_harvest(outbound))
            wait_ms = 0; // on_turn may have something to do
        log_flush();
        turn_end(outbound, wait_ms);
        transfers_gather(running);
    }
    transfers_give_up(outbound);
    return NULL;
}

static bool multi_make(struct outbound *outbound)
{
    int64_t requests_max = outbound->options.requests_max;

    outbound->multi = curl_multi_init();
    if (!outbound->multi)
        return false;
    curl_multi_setopt(outbound->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, (long)STREAMS_MAX);
    curl_multi_setopt(outbound->multi, CURLMOPT_MAXCONNECTS,
                      (long)(requests_max < CONNECTIONS_MAX ? requests_max : CONNECTIONS_MAX));
    return true;
}

int outbound_start(const struct outbound_options *options, struct outbound **ret_outbound)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return -ERROR_MEMORY;
    struct outbound *outbound = TAGGED_NEW(outbound);
    if (!outbound) {
        curl_global_cleanup();
        return -ERROR_MEMORY;
    }
    outbound->options = *options;
    list_init(&outbound->under_way);
    list_init(&outbound->submitted);
    pthread_mutex_init(&outbound->lock, NULL);
    *ret_outbound = outbound; // before on_turn, which may use it
    if (!multi_make(outbound) ||
        pthread_create(&outbound->thread, NULL, outbound_run, outbound) != 0) {
        outbound_free(outbound);
        *ret_outbound = NULL;
        return -ERROR_MEMORY;
    }
    return 0;
}

void outbound_stop(struct outbound *outbound)
{
    if (!outbound)
        return;
    pthread_mutex_lock(&outbound->lock);
    outbound->is_stopping = true;
    pthread_mutex_unlock(&outbound->lock);
    curl_multi_wakeup(outbound->multi);
    pthread_join(outbound->thread, NULL);
}

void outbound_free(struct outbound *outbound)
{
    if (!outbound)
        return;
    curl_multi_cleanup(outbound->multi);
    pthread_mutex_destroy(&outbound->lock);
    TAGGED_FREE(outbound);
    curl_global_cleanup();
}
