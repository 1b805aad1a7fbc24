// SPDX-License-Identifier: Apache-2.0
// A lane: one pipelined connection to Postgres that keeps the order of its statements.
#include "lane_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"

#include "connector_internal.h"

enum {
    BACKOFF_MIN_MS = 50,
    BACKOFF_MAX_MS = 1600,
    ANSWER_MARGIN_MS = 1000,
    NULLS_MAX = 2,
    TAKE_US = 1000
};

enum lane_state { LANE_DOWN, LANE_CONNECTING, LANE_GREETING, LANE_UP };

struct lane_hook {
    loop_fn *fn;
    void *arg;
};

struct lane {
    uint32_t tag;
    struct lane_options options;
    _Atomic enum lane_state state; // written by the loop only; any thread may read it
    struct connector *connector;   // only while CONNECTING
    PGconn *conn;                  // NULL while down
    struct loop_io *watch;
    struct loop_timer *timer;
    struct prepared prepared;
    struct list queued;
    struct list sent;
    int count;    // calls in both lists
    size_t bytes; // of their parameters
    int64_t backoff_ms;
    int64_t logged_ms;     // when its loss was last logged
    int64_t head_since_ms; // since when the oldest sent call has been the oldest
    bool watching_head;    // whether the timer watches that call
    bool patient;          // whether calls may wait for the first connection
    bool reading; // delivering replies: the connection must not be closed now, only marked broken
    bool pulled;  // whether replies may have been read that no event announces
    bool resting; // a turn's share of replies is taken; the next turn continues
    const char *broken; // why sent calls get no more replies; NULL while they do
    struct lane_hook *on_up;
    size_t on_up_count;
};

static void lane_lose(struct lane *lane, const char *why);

int lane_count(const struct lane *lane)
{
    return lane->count;
}

bool lane_is_up(const struct lane *lane)
{
    return lane->state == LANE_UP;
}

void lane_on_up(struct lane *lane, loop_fn *fn, void *arg)
{
    lane->on_up = memory_must_resize(lane->on_up, lane->on_up_count + 1, sizeof *lane->on_up);
    lane->on_up[lane->on_up_count++] = (struct lane_hook){.fn = fn, .arg = arg};
}

static void lane_refuse(struct lane *lane, struct lane_call *call, int r, bool unknown)
{
    call->r = r;
    call->unknown = unknown;
    lane->options.refuse(lane->options.store, call);
}

static void lane_add(struct lane *lane, struct list *calls, struct lane_call *call)
{
    call->bytes = call->params.bytes.length;
    list_append(calls, &call->link);
    lane->count++;
    lane->bytes += call->bytes;
}

static void lane_remove(struct lane *lane, struct lane_call *call)
{
    ASSERT(lane->count > 0 && lane->bytes >= call->bytes);
    list_remove(&call->link);
    lane->count--;
    lane->bytes -= call->bytes;
}

static void lane_refuse_all(struct lane *lane, struct list *calls, bool unknown)
{
    LIST_FOREACH(link, calls)
    {
        struct lane_call *call = LIST_ITEM(link, struct lane_call, link);
        lane_remove(lane, call);
        lane_refuse(lane, call, -ERROR_UNAVAILABLE, unknown);
    }
}

static bool lane_has_room(const struct lane *lane, const struct lane_call *call)
{
    const struct store_options *settings = lane->options.settings;
    size_t bytes = lane->bytes + call->params.bytes.length;
    return lane->count < settings->queue_max &&
           (lane->bytes == 0 || bytes <= settings->queue_bytes);
}

void lane_call(struct lane *lane, struct lane_call *call)
{
    ASSERT(list_is_empty(&call->link));
    if (!params_are_whole(&call->params)) {
        lane_refuse(lane, call, -ERROR_MEMORY, false);
    } else if (!lane_has_room(lane, call)) {
        metric_add(METRIC_STORE_QUEUE_FULL, 1);
        lane_refuse(lane, call, -ERROR_BUSY, false);
    } else {
        lane_add(lane, &lane->queued, call);
    }
}

// Since PostgreSQL 17, libpq can leave sending to the next PQflush(): one write per turn instead of
// one per call.
static bool lane_put_sync(PGconn *conn)
{
#ifdef LIBPQ_HAS_SEND_PIPELINE_SYNC
    return PQsendPipelineSync(conn) == 1;
#else
    return PQpipelineSync(conn) == 1;
#endif
}

// Passes the call, already in the sent list, to libpq. False if the connection is unusable.
static bool lane_put(struct lane *lane, struct lane_call *call, bool known)
{
    call->preparing = !known;
    if (!known) {
        if (!postgres_send_prepare(lane->conn, call->statement, &call->params))
            return false;
        prepared_add(&lane->prepared, call->statement, &call->params);
    }
    if (!postgres_send_call(lane->conn, call->statement, &call->params))
        return false;
    params_done(&call->params);
    return lane_put_sync(lane->conn);
}

// Moves the oldest queued call to the sent list and sends it.
static bool lane_send_next(struct lane *lane)
{
    struct lane_call *call = LIST_ITEM(lane->queued.next, struct lane_call, link);
    int known = prepared_find(&lane->prepared, call->statement, &call->params);
    if (known < 0) {
        lane_remove(lane, call);
        lane_refuse(lane, call, known, false);
        return true;
    }
    if (list_is_empty(&lane->sent))
        lane->head_since_ms = loop_now_ms(lane->options.loop);
    list_remove(&call->link);
    list_append(&lane->sent, &call->link);
    return lane_put(lane, call, known > 0);
}

static int64_t lane_answer_limit_ms(const struct lane *lane)
{
    return lane->options.settings->statement_timeout_ms + ANSWER_MARGIN_MS;
}

static void lane_watch_head(struct lane *lane, int64_t delay_ms)
{
    lane->watching_head = true;
    loop_timer_set(lane->timer, delay_ms);
}

static void lane_break(struct lane *lane, const char *why)
{
    if (lane->reading)
        lane->broken = why;
    else
        lane_lose(lane, why);
}

// Writes libpq's buffered data to the socket, and watches for writability if some is left.
static void lane_write(struct lane *lane)
{
    int left = PQflush(lane->conn);
    if (left < 0)
        lane_break(lane, "cannot send");
    else
        loop_io_set(lane->watch, left > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void lane_flush(struct lane *lane)
{
    if (list_is_empty(&lane->queued))
        return;
    if (lane->state != LANE_UP) {
        if (!lane->patient)
            lane_refuse_all(lane, &lane->queued, false);
        return;
    }
    while (!list_is_empty(&lane->queued))
        if (!lane_send_next(lane)) {
            lane_break(lane, "cannot send");
            return;
        }
    if (!lane->watching_head && !list_is_empty(&lane->sent))
        lane_watch_head(lane, lane_answer_limit_ms(lane));
    lane_write(lane);
}

void lane_end_patience(struct lane *lane)
{
    lane->patient = false;
}

static void lane_finish_head(struct lane *lane, struct lane_call *call)
{
    lane_remove(lane, call);
    lane->head_since_ms = loop_now_ms(lane->options.loop);
    lane->options.answer(lane->options.store, call);
}

static void lane_take_error(struct lane *lane, struct lane_call *call, const PGresult *result)
{
    if (postgres_is_fatal(result)) {
        lane->broken = "connection lost";
        return;
    }
    call->r = postgres_error(result, call->statement->name);
    call->locked = postgres_is_locked(result);
    if (call->preparing || prepared_is_gone(result))
        prepared_forget(&lane->prepared, call->statement);
}

// Results per call: (that of preparing), that of running, Sync. After an error, everything up to
// the Sync is reported as aborted.
static void lane_take(struct lane *lane, PGresult *result)
{
    ASSERT(!list_is_empty(&lane->sent));
    struct lane_call *call = LIST_ITEM(lane->sent.next, struct lane_call, link);
    switch (PQresultStatus(result)) {
    case PGRES_PIPELINE_SYNC:
        lane_finish_head(lane, call);
        break;
    case PGRES_PIPELINE_ABORTED:
        ASSERT(call->r < 0);
        break;
    case PGRES_COMMAND_OK:
    case PGRES_TUPLES_OK:
        if (!call->preparing) {
            PQclear(call->result);
            call->result = result;
            return;
        }
        call->preparing = false;
        break;
    default:
        lane_take_error(lane, call, result);
    }
    PQclear(result);
}

// Takes the replies that are there. Of a live connection only for about TAKE_US: Postgres may send
// long replies as fast as they are taken, and all else would wait.
static void lane_take_all(struct lane *lane, bool alive)
{
    int nulls = 0; // one NULL ends each statement's results; two in a row: no more results
    int64_t until_us = alive ? clock_monotonic_us() + TAKE_US : INT64_MAX;
    while (!lane->broken && !list_is_empty(&lane->sent) && !PQisBusy(lane->conn)) {
        if (clock_monotonic_us() >= until_us) {
            lane->pulled = lane->resting = true;
            loop_again(lane->options.loop);
            return;
        }
        PGresult *result = PQgetResult(lane->conn);
        if (result) {
            lane_take(lane, result);
            nulls = 0;
        } else if (++nulls == NULLS_MAX) {
            return;
        }
    }
}

// Reads received data. Replies that arrived before the connection was lost still count.
static void lane_read(struct lane *lane)
{
    bool alive = PQconsumeInput(lane->conn) == 1 && PQstatus(lane->conn) == CONNECTION_OK;
    lane->pulled = false;
    lane->reading = true;
    lane_take_all(lane, alive);
    lane->reading = false;
    if (!alive || lane->broken || PQstatus(lane->conn) != CONNECTION_OK)
        lane_lose(lane, lane->broken ? lane->broken : "connection lost");
    else
        lane_write(lane);
}

// Ignores a broken connection: the next lane_read() detects it. The kernel may signal no event for
// data read here, so lane_read_pulled() processes it.
void lane_pull(struct lane *lane)
{
    if (lane->state != LANE_UP)
        return;
    (void)PQconsumeInput(lane->conn);
    if (lane->reading)
        return;
    lane->pulled = true;
    loop_again(lane->options.loop);
}

void lane_read_pulled(struct lane *lane)
{
    if (!lane->resting && lane->pulled && lane->state == LANE_UP)
        lane_read(lane);
    lane->resting = false;
}

static void lane_come_up(struct lane *lane)
{
    if (lane->backoff_ms > BACKOFF_MIN_MS)
        log_write(LOG_INFO, "store", "%s: connected again", lane->options.name);
    ASSERT(lane->state == LANE_GREETING);
    lane->state = LANE_UP;
    lane->patient = false;
    lane->backoff_ms = BACKOFF_MIN_MS;
    lane->logged_ms = 0;
    loop_timer_clear(lane->timer);
    metric_add(METRIC_STORE_CONNECTS, 1);
    for (size_t i = 0; i < lane->on_up_count; i++)
        lane->on_up[i].fn(lane->on_up[i].arg);
    // The end of this turn sends the calls queued meanwhile.
    loop_again(lane->options.loop);
}

void lane_greeted(struct lane *lane)
{
    if (lane->state == LANE_GREETING)
        lane_come_up(lane);
}

void lane_reject(struct lane *lane)
{
    if (lane->state == LANE_GREETING)
        lane_break(lane, "the functions of this version are not there: run tidings migrate");
}

static void lane_greet(struct lane *lane)
{
    struct lane_call *call = lane->options.greet(lane->options.store, lane);
    lane->state = LANE_GREETING;
    lane_add(lane, &lane->sent, call);
    if (lane_put(lane, call, false))
        lane_write(lane);
    else
        lane_break(lane, "cannot send");
}

static void lane_ready(void *arg, uint32_t events)
{
    (void)events;
    lane_read(CAST(lane, arg));
}

static void lane_connected(void *arg, PGconn *conn)
{
    struct lane *lane = CAST(lane, arg);
    ASSERT(lane->state == LANE_CONNECTING && !lane->conn);
    connector_free(TAKE(lane->connector));
    lane->conn = conn;
    if (PQstatus(conn) != CONNECTION_OK || !PQenterPipelineMode(conn) ||
        PQsetnonblocking(conn, 1) != 0) {
        lane_lose(lane, "cannot connect");
        return;
    }
    int r =
        loop_io_new(lane->options.loop, PQsocket(conn), EPOLLIN, lane_ready, lane, &lane->watch);
    if (r < 0) {
        lane_lose(lane, error_code(r));
        return;
    }
    loop_timer_set(lane->timer, lane->options.settings->connect_timeout_ms);
    lane_greet(lane);
}

static void lane_connect(struct lane *lane)
{
    ASSERT(lane->state == LANE_DOWN && !lane->connector);
    lane->state = LANE_CONNECTING;
    int r = connector_new(lane->options.loop, lane->options.keywords, lane_connected, lane,
                          &lane->connector);
    if (r < 0)
        lane_lose(lane, error_code(r));
}

static void lane_log_loss(struct lane *lane, const char *why)
{
    // Log at a lower level for each failed reconnect.
    bool is_due = log_is_due(&lane->logged_ms);
    log_write(is_due ? LOG_WARN : LOG_DEBUG, "store", "%s: %s: %.*s", lane->options.name, why,
              POSTGRES_WHY(lane->conn));
}

// The pause before the next attempt, randomised so that lanes and instances do not all reconnect at
// once.
static int64_t lane_next_pause_ms(struct lane *lane)
{
    uint16_t random;
    random_fill(&random, sizeof random);
    int64_t pause_ms = lane->backoff_ms / 2 + random % (lane->backoff_ms / 2);
    lane->backoff_ms *= 2;
    if (lane->backoff_ms > BACKOFF_MAX_MS)
        lane->backoff_ms = BACKOFF_MAX_MS;
    return pause_ms;
}

static void lane_drop_connection(struct lane *lane)
{
    loop_io_free(TAKE(lane->watch));
    PQfinish(TAKE(lane->conn));
    prepared_done(&lane->prepared);
    lane->state = LANE_DOWN;
    lane->watching_head = false;
    lane->broken = NULL;
}

static void lane_lose(struct lane *lane, const char *why)
{
    ASSERT(lane->state != LANE_DOWN);
    if (lane->state == LANE_UP)
        metric_add(METRIC_STORE_LOST, 1);
    lane_log_loss(lane, why);
    lane_drop_connection(lane);
    // The server may have run, and committed, any of the sent calls.
    lane_refuse_all(lane, &lane->sent, true);
    if (!lane->patient)
        lane_refuse_all(lane, &lane->queued, false);
    loop_timer_set(lane->timer, lane_next_pause_ms(lane));
}

// Drops the connection if the oldest call has used up its time and the server has not even refused
// it. The time counts from when the call became the oldest, so a long queue that makes progress is
// not affected.
static void lane_check_head(struct lane *lane)
{
    lane->watching_head = false;
    if (list_is_empty(&lane->sent))
        return;
    int64_t waited_ms = loop_now_ms(lane->options.loop) - lane->head_since_ms;
    if (waited_ms >= lane_answer_limit_ms(lane))
        lane_lose(lane, "no answer in time");
    else
        lane_watch_head(lane, lane_answer_limit_ms(lane) - waited_ms);
}

static void lane_timeout(void *arg)
{
    struct lane *lane = CAST(lane, arg);
    if (lane->state == LANE_DOWN)
        lane_connect(lane);
    else if (lane->state != LANE_UP)
        lane_lose(lane, "no connection in time");
    else
        lane_check_head(lane);
}

int lane_new(const struct lane_options *options, struct lane **ret_lane)
{
    struct lane *lane = calloc(1, sizeof *lane);
    if (!lane)
        return -ERROR_MEMORY;
    *lane = (struct lane){
        .tag = TAG(lane), .options = *options, .patient = true, .backoff_ms = BACKOFF_MIN_MS};
    list_init(&lane->queued);
    list_init(&lane->sent);
    int r = loop_timer_new(options->loop, lane_timeout, lane, &lane->timer);
    if (r < 0) {
        TAGGED_FREE(lane);
        return r;
    }
    lane_connect(lane);
    *ret_lane = lane;
    return 0;
}

void lane_free(struct lane *lane)
{
    if (!lane)
        return;
    connector_free(lane->connector);
    lane_drop_connection(lane);
    lane_refuse_all(lane, &lane->sent, true);
    lane_refuse_all(lane, &lane->queued, false);
    ASSERT(lane->count == 0);
    loop_timer_free(lane->timer);
    free(lane->on_up);
    TAGGED_FREE(lane);
}
