// SPDX-License-Identifier: Apache-2.0
// Goes through the backlog of a resumed event stream, channel by channel.
#include "resume.h"

#include "../connection.h"
#include "../core.h"
#include "../outlet.h"
#include "../people.h"
#include "../position.h"
#include "../stream.h"
#include "resume_internal.h"
#include "sse_state.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_FIRST = 64 };

// All channels of a user, those left since included, in the order in which they are told: first
// those of the first pass. Without a row of its own the position still comes.
const struct statement resume_statement = {
    "gateway_resume",
    "SELECT t.xid, t.seconds, r.* FROM (SELECT pg_snapshot_xmin(s)::text AS xid,"
    " extract(epoch FROM clock_timestamp())::bigint AS seconds FROM pg_current_snapshot() s) t"
    " LEFT JOIN (SELECT c.id, c.seq, c.last_ts, m.active, m.member_seq, m.is_second,"
    " c.changed >= m.sent OR m.changed >= m.heard,"
    " f.id IS NOT NULL AND (f.is_second OR NOT m.is_second)"
    " FROM (SELECT p.*, CASE WHEN is_second THEN $4::xid8 ELSE $2::xid8 END AS sent,"
    " CASE WHEN is_second THEN $4::xid8 ELSE $3::xid8 END AS heard"
    " FROM (SELECT *, (channel_id, 0) < ($5, $6::integer) AS is_second"
    " FROM channel_members WHERE user_id = $1) p) m JOIN channel_heads c ON c.id = m.channel_id"
    " LEFT JOIN (SELECT channel_id AS id, bool_or(changed >= $4::xid8) AS is_second"
    " FROM thread_members WHERE user_id = $1 AND changed >= $3::xid8 GROUP BY channel_id) f"
    " ON f.id = c.id WHERE m.active OR m.changed >= m.heard) r ON true ORDER BY r.is_second, r.id"};

enum {
    COLUMN_XID,
    COLUMN_SECONDS,
    COLUMN_ID,
    COLUMN_SEQ,
    COLUMN_LAST_TS,
    COLUMN_ACTIVE,
    COLUMN_MEMBER_SEQ,
    COLUMN_IS_SECOND,
    COLUMN_CHANGED,
    COLUMN_THREADS,
};

// The channels before ($5, $6) are those of the second pass.
static void bound_params(const struct progress *progress, struct params *params)
{
    const char *channel_id = progress->channel_id;
    if (progress->until.xid == 0)
        channel_id = "";
    else if (progress->part == PROGRESS_CREATED)
        channel_id = "~"; // behind all ids
    params_text(params, channel_id);
    params_int(params, progress->part == PROGRESS_THREADS);
}

void resume_params(struct connection *c, struct params *params)
{
    const struct position *since = &sse_of(c)->since;
    struct position *until = &sse_of(c)->progress.until;
    if (!store_era_holds(c->gateway->store, until->era, until->xid))
        sse_of(c)->progress = (struct progress){0};
    params_xid(params, since->xid > 0 ? since->xid : INT64_MAX);
    params_xid(params, since->xid > 0 ? since->heard_xid : INT64_MAX);
    params_xid(params, until->xid > 0 ? until->xid : INT64_MAX);
    bound_params(&sse_of(c)->progress, params);
}

bool resume_is_too_old(const struct connection *c, const struct result *result)
{
    const struct position *since = &sse_of(c)->since;
    int64_t age_s = result_int(result, 0, COLUMN_SECONDS) - since->seconds;
    return since->xid > 0 && (age_s > c->gateway->options.resume_max_s ||
                              !store_era_holds(c->gateway->store, since->era, since->xid));
}

static void resume_done(struct resume *resume)
{
    free(resume->behind);
    free(resume);
}

void resume_free(struct connection *c)
{
    struct resume *resume = TAKE(sse_of(c)->resume);
    if (!resume)
        return;
    resume->connection = NULL;
    if (!resume->is_asked) // else freed with the answer
        resume_done(resume);
}

static struct behind *behind_add(struct resume *resume, const char *channel_id)
{
    struct behind *behind = &resume->behind[resume->count++];
    snprintf(behind->channel_id, sizeof behind->channel_id, "%s", channel_id);
    behind->at_seq = -1;
    behind->to_seq = INT64_MAX;
    return behind;
}

static void behind_read(struct connection *c, const struct result *result, int row, bool has_events)
{
    const struct progress *progress = &sse_of(c)->progress;
    struct resume *resume = sse_of(c)->resume;
    bool is_active = result_bool(result, row, COLUMN_ACTIVE);
    bool threads_due = is_active && result_bool(result, row, COLUMN_THREADS);
    if (!has_events && !threads_due)
        return;
    struct behind *behind = behind_add(resume, result_text(result, row, COLUMN_ID));
    behind->stage = has_events ? BEHIND_EVENTS : BEHIND_THREADS;
    behind->threads_due = threads_due;
    if (is_active)
        behind->seen_seq = result_int(result, row, COLUMN_SEQ);
    else
        behind->to_seq = result_int(result, row, COLUMN_MEMBER_SEQ);
    if (progress->until.xid > 0 && progress->part == PROGRESS_EVENTS &&
        strcmp(behind->channel_id, progress->channel_id) == 0)
        behind->told_seq = progress->number;
    if (!result_bool(result, row, COLUMN_IS_SECOND))
        resume->pass_end = resume->count;
}

static int channel_left(struct connection *c, const struct result *result, int row)
{
    if (sse_of(c)->resume)
        behind_read(c, result, row, result_bool(result, row, COLUMN_CHANGED));
    return 0;
}

// A seat that is behind gets nothing until it has caught up. What its stream sent after the
// snapshot went past this connection, too.
static int channel_enter(struct connection *c, const struct result *result, int row)
{
    const char *id = result_text(result, row, COLUMN_ID);
    int64_t seq = result_int(result, row, COLUMN_SEQ);
    struct stream *stream = stream_follow(c->gateway, c->actor.workspace_id, id, seq);
    if (!stream)
        return -ERROR_MEMORY;
    if (stream->sent_ts == 0)
        stream->sent_ts = result_int(result, row, COLUMN_LAST_TS);
    bool is_behind = result_bool(result, row, COLUMN_CHANGED) || stream->sent_seq > seq;
    if (sse_of(c)->resume)
        behind_read(c, result, row, is_behind);
    return stream_enter(stream, c, seq, sse_of(c)->resume && is_behind ? INT64_MAX : seq);
}

// The threads that are left of the channel whose read state was told last.
static void threads_left_add(struct resume *resume, const struct progress *progress)
{
    if (progress->until.xid == 0 || progress->part != PROGRESS_THREADS)
        return;
    struct behind *behind = behind_add(resume, progress->channel_id);
    behind->stage = BEHIND_THREADS;
    behind->thread_ts = progress->number;
    behind->threads_due = true;
    resume->pass_end = resume->count;
}

static int resume_new(struct connection *c, const struct result *result, const struct position *now)
{
    struct resume *resume = sse_of(c)->resume = calloc(1, sizeof *resume);
    if (!resume)
        return -ERROR_MEMORY;
    resume->connection = c;
    resume->gateway = c->gateway;
    resume->now = *now;
    resume->page = PAGE_FIRST;
    resume->batch = 1;
    resume->is_last_pass = sse_of(c)->progress.until.xid == 0;
    resume->behind = calloc((size_t)result_rows(result) + 1, sizeof *resume->behind);
    if (!resume->behind)
        return -ERROR_MEMORY;
    threads_left_add(resume, &sse_of(c)->progress);
    return 0;
}

int resume_begin(struct connection *c, const struct result *result)
{
    struct sse *sse = sse_of(c);
    int64_t xid = result_int(result, 0, COLUMN_XID);
    struct position now = {xid, xid, result_int(result, 0, COLUMN_SECONDS),
                           store_era(c->gateway->store).number};
    int r = 0;
    if (sse->since.xid > 0) {
        r = resume_new(c, result, &now);
    } else {
        sse->since = now;
        sse->progress = (struct progress){0};
    }
    if (r >= 0)
        r = user_enter(c);
    if (r >= 0 && sse->resume && (c->user->resumed_xid == 0 || c->user->resumed_xid > xid))
        c->user->resumed_xid = xid;
    for (int row = 0; r >= 0 && row < result_rows(result); row++)
        if (!result_is_null(result, row, COLUMN_ID))
            r = result_bool(result, row, COLUMN_ACTIVE) ? channel_enter(c, result, row)
                                                        : channel_left(c, result, row);
    if (sse->progress.until.xid == 0)
        sse->progress.until = now;
    position_print(&sse->since, &sse->progress, sse->id);
    return r;
}

static struct behind *behind_find(struct connection *c, const char *channel_id)
{
    struct resume *resume = sse_of(c)->resume;
    for (int i = resume ? resume->next : 0; resume && i < resume->count; i++)
        if (resume->behind[i].stage == BEHIND_EVENTS &&
            strcmp(resume->behind[i].channel_id, channel_id) == 0)
            return &resume->behind[i];
    return NULL;
}

bool resume_joined(struct connection *c, const struct stream *stream)
{
    struct behind *behind = behind_find(c, stream->channel_id);
    if (behind)
        behind->to_seq = INT64_MAX;
    return behind;
}

bool resume_awaits(struct connection *c, const struct event *event)
{
    struct behind *behind = behind_find(c, event->channel_id);
    if (behind && event->kind == EVENT_MARK)
        behind->state_due = true;
    else if (behind)
        behind->threads_due = true;
    return behind;
}

bool resume_has_room(const struct connection *c)
{
    return outlet_unsent(&c->outlet) <= (size_t)c->gateway->options.queue_max_bytes / 4;
}

void resume_note(struct connection *c, const char *channel_id, enum progress_part part,
                 int64_t number)
{
    struct progress *progress = &sse_of(c)->progress;
    snprintf(progress->channel_id, sizeof progress->channel_id, "%s", channel_id);
    progress->part = part;
    progress->number = number;
    position_print(&sse_of(c)->since, progress, sse_of(c)->id);
}

void resume_ask(struct resume *resume)
{
    gateway_ask(resume->gateway);
    resume->is_asked = true;
}

struct connection *resume_answer(struct resume *resume, const struct store_outcome *outcome)
{
    bool alive = gateway_answer(resume->gateway);
    struct connection *c = resume->connection;
    resume->is_asked = false;
    if (!alive || !c) {
        resume_done(resume);
        return NULL;
    }
    if (outcome->r >= 0)
        return c;
    connection_doom(c, CLOSE_RESTART, "try again");
    return NULL;
}

void resume_pass_end(struct connection *c)
{
    struct sse *sse = sse_of(c);
    struct resume *resume = sse->resume;
    sse->since = sse->progress.until;
    sse->progress = (struct progress){.until = resume->now};
    position_print(&sse->since, &sse->progress, sse->id);
    if (resume->is_last_pass) {
        resume_free(c);
        c->ops->settle(c);
        return;
    }
    resume->is_last_pass = true;
    resume->pass_end = resume->count;
    resume_go_on(c);
}

// Asks for what comes next of the channel. False when there is nothing left of this stage.
static bool behind_ask(struct connection *c, struct behind *behind)
{
    struct resume *resume = sse_of(c)->resume;
    switch (behind->stage) {
    case BEHIND_EVENTS:
        return resume_events_ask(c, behind);
    case BEHIND_STATE:
        if (behind->state_due)
            resume_state_ask(resume, behind);
        return behind->state_due;
    case BEHIND_THREADS:
        if (behind->threads_due)
            resume_threads_ask(resume, behind);
        return behind->threads_due;
    case BEHIND_DONE:
        break;
    }
    return false;
}

void resume_go_on(struct connection *c)
{
    struct resume *resume = sse_of(c)->resume;
    if (!resume || resume->is_asked || c->state != CONNECTION_OPEN || !resume_has_room(c))
        return;
    while (resume->next < resume->pass_end) {
        struct behind *behind = &resume->behind[resume->next];
        if (behind_ask(c, behind))
            return;
        if (behind->stage < BEHIND_DONE)
            behind->stage++;
        else
            resume->next++;
    }
    resume_created_ask(resume);
}
