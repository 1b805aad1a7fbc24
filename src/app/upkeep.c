// SPDX-License-Identifier: Apache-2.0
// Deletes expired data in many short transactions, and drops months of messages.
#include "upkeep.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/metrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// After each transaction it pauses for as long as that one took, so it uses at most half of a
// connection's capacity.
enum { PIECE_MS = 20, SLICE_MS = 10 * 1000, TRIES = 5, TRY_AGAIN_MS = 500 };

static const struct statement BEGIN = {"upkeep_begin", "SELECT upkeep_begin()"};
static const struct statement END = {"upkeep_end", "SELECT upkeep_end()"};
static const struct statement MONTH = {
    "month_expire", "SELECT state, month, step, piece_rows, rows, pieces, age_ms "
                    "FROM month_expire($1::integer, $2::integer, $3)"};
static const struct statement ROWS = {
    "rows_expire", "SELECT state, next, rows FROM rows_expire($1, $2, $3::integer, $4::integer)"};
enum { MONTH_STATE, MONTH_NAME, MONTH_STEP, MONTH_PIECE_ROWS, MONTH_ROWS, MONTH_PIECES, MONTH_AGE };

static const char *const tables[] = {"message_keys", "tickets", "tokens",   "outbox",
                                     "change_log",   "eras",    "reactions"};
enum { TABLES = sizeof tables / sizeof tables[0] };

struct upkeep {
    struct upkeep_options options;
    bool begins;
    bool holds;          // the right to upkeep, unless its connection was lost
    int64_t longest_ms;  // of this month's transactions
    int64_t detached_ms; // duration of detaching the month, including waiting
    size_t table;        // where upkeep_rows() continues
    int64_t block;
};

int upkeep_new(const struct upkeep_options *options, struct upkeep **ret_upkeep)
{
    struct upkeep *upkeep = calloc(1, sizeof *upkeep);

    if (!upkeep)
        return -ERROR_MEMORY;
    upkeep->options = *options;
    *ret_upkeep = upkeep;
    return 0;
}

void upkeep_free(struct upkeep *upkeep)
{
    free(upkeep);
}

static int outcome_of(const char *state)
{
    if (strcmp(state, "elsewhere") == 0)
        return UPKEEP_ELSEWHERE;
    return strcmp(state, "none") == 0 ? UPKEEP_DONE : UPKEEP_UNFINISHED;
}

static void piece_count(int64_t rows)
{
    metric_add(METRIC_UPKEEP_PIECES, 1);
    metric_add(METRIC_UPKEEP_ROWS, rows);
}

static void month_record(struct upkeep *upkeep, const struct result *result, int64_t took_ms)
{
    const char *month = result_text(result, 0, MONTH_NAME);

    upkeep->longest_ms = took_ms > upkeep->longest_ms ? took_ms : upkeep->longest_ms;
    if (strcmp(result_text(result, 0, MONTH_STEP), "detach") == 0)
        upkeep->detached_ms = took_ms;
    if (strcmp(result_text(result, 0, MONTH_STATE), "gone") != 0)
        return;
    metric_add(METRIC_MONTHS_EXPIRED, 1);
    log_write(LOG_INFO, "app",
              "%s is dropped: %" PRId64 " rows in %" PRId64 " pieces, %" PRId64
              " ms; the longest piece by this instance %" PRId64 " ms, detaching %" PRId64 " ms",
              month, result_int(result, 0, MONTH_ROWS), result_int(result, 0, MONTH_PIECES),
              result_int(result, 0, MONTH_AGE), upkeep->longest_ms, upkeep->detached_ms);
    upkeep->longest_ms = upkeep->detached_ms = 0;
}

static int month_piece(struct upkeep *upkeep)
{
    CLEANUP_RESULT struct result *result = NULL;
    struct params params = {0};
    int64_t began_ms = clock_monotonic_ms();

    params_int(&params, upkeep->options.retention_days);
    params_int(&params, PIECE_MS);
    params_bool(&params, upkeep->begins);
    int r = session_call(upkeep->options.session, &MONTH, &params, &result);
    if (r < 0)
        return r;
    int outcome = outcome_of(result_text(result, 0, MONTH_STATE));
    if (outcome == UPKEEP_UNFINISHED) {
        piece_count(result_int(result, 0, MONTH_PIECE_ROWS));
        month_record(upkeep, result, clock_monotonic_ms() - began_ms);
    }
    return outcome;
}

static int rows_piece(struct upkeep *upkeep)
{
    CLEANUP_RESULT struct result *result = NULL;
    struct params params = {0};

    params_text(&params, tables[upkeep->table]);
    params_int(&params, upkeep->block);
    params_int(&params, upkeep->options.key_days);
    params_int(&params, PIECE_MS);
    int r = session_call(upkeep->options.session, &ROWS, &params, &result);
    if (r < 0)
        return r;
    int outcome = outcome_of(result_text(result, 0, 0));
    if (outcome != UPKEEP_UNFINISHED)
        return outcome;
    piece_count(result_int(result, 0, 2));
    upkeep->block = result_int(result, 0, 1); // 0: no next one
    if (upkeep->block == 0)
        upkeep->table = (upkeep->table + 1) % TABLES;
    return upkeep->table == 0 && upkeep->block == 0 ? UPKEEP_DONE : UPKEEP_UNFINISHED;
}

// Runs a transaction; if a lock of another session blocks it, retries several times.
static int piece_try(struct upkeep *upkeep, int (*piece)(struct upkeep *upkeep))
{
    int r = piece(upkeep);

    for (int i = 1; r == -ERROR_BUSY && i < TRIES; i++) {
        if (!upkeep->options.wait(upkeep->options.arg, clock_monotonic_ms() + TRY_AGAIN_MS))
            return r;
        r = piece(upkeep);
    }
    return r;
}

static int pieces_run(struct upkeep *upkeep, int (*piece)(struct upkeep *upkeep))
{
    int64_t end_ms = clock_monotonic_ms() + SLICE_MS, began_ms, now_ms;
    int outcome;

    do {
        began_ms = clock_monotonic_ms();
        outcome = piece_try(upkeep, piece);
        now_ms = clock_monotonic_ms();
    } while (outcome == UPKEEP_UNFINISHED && now_ms < end_ms &&
             upkeep->options.wait(upkeep->options.arg, now_ms + (now_ms - began_ms)));
    return outcome;
}

static int statement_run(struct upkeep *upkeep, const struct statement *statement, bool *ret_holds)
{
    CLEANUP_RESULT struct result *result = NULL;
    int r = session_call(upkeep->options.session, statement, NULL, &result);

    if (r >= 0)
        *ret_holds = result_bool(result, 0, 0);
    return r;
}

// Keeps other instances out from the first call to the last.
static int upkeep_run(struct upkeep *upkeep, int (*piece)(struct upkeep *upkeep))
{
    bool ended;
    int r = upkeep->holds ? 0 : statement_run(upkeep, &BEGIN, &upkeep->holds);

    if (r >= 0)
        r = upkeep->holds ? pieces_run(upkeep, piece) : UPKEEP_ELSEWHERE;
    if (r == UPKEEP_UNFINISHED || !upkeep->holds)
        return r;
    upkeep->holds = false;
    int end_r = statement_run(upkeep, &END, &ended);
    return r < 0 ? r : end_r < 0 ? end_r : r;
}

int upkeep_months(struct upkeep *upkeep, bool begins)
{
    upkeep->begins = begins;
    return upkeep_run(upkeep, month_piece);
}

int upkeep_rows(struct upkeep *upkeep)
{
    return upkeep_run(upkeep, rows_piece);
}
