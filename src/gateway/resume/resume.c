// SPDX-License-Identifier: Apache-2.0
// Sends a client's backlog, channel by channel.
#include "resume.h"

#include "../core.h"
#include "../position.h"
#include "resume_events.h"
#include "resume_others.h"
#include "resume_state.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// All channels of a user, including those left since, in the order of sending: the first pass comes
// first. A user without channels still gets one row, with the position.
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

void resume_covered(const struct gateway *gateway, struct place *place,
                    struct gateway_covered *ret_covered)
{
    const struct position *until = &place->progress.until;
    const struct progress *progress = &place->progress;
    if (!store_era_holds(gateway->store, until->era, until->xid))
        place->progress = (struct progress){0};
    bool is_created = progress->part == PROGRESS_CREATED;
    *ret_covered = (struct gateway_covered){
        .xid = place->since.xid,
        .later_xid = until->xid,
        .is_after_events = progress->part == PROGRESS_THREADS,
        .seq = progress->number,
    };
    snprintf(ret_covered->channel_id, sizeof ret_covered->channel_id, "%s",
             is_created ? "~" /* after all ids */ : progress->channel_id);
}

// The channels before ($5, $6) are in the second pass.
void resume_params(struct gateway *gateway, struct place *place, struct params *params)
{
    struct gateway_covered covered;
    resume_covered(gateway, place, &covered);
    params_xid(params, covered.xid > 0 ? covered.xid : INT64_MAX);
    params_xid(params, covered.xid > 0 ? place->since.received_xid : INT64_MAX);
    params_xid(params, covered.later_xid > 0 ? covered.later_xid : INT64_MAX);
    params_text(params, covered.channel_id);
    params_int(params, covered.is_after_events);
}

struct position resume_now(struct gateway *gateway, const char *user_id,
                           const struct result *result)
{
    int64_t xid = result_int(result, 0, RESUME_XID);
    return (struct position){xid, xid, result_int(result, 0, RESUME_SECONDS),
                             store_era(gateway->store).number, position_owner(user_id)};
}

bool resume_is_too_old(const struct gateway *gateway, const struct place *place,
                       const struct result *result)
{
    const struct position *since = &place->since;
    int64_t age_s = result_int(result, 0, RESUME_SECONDS) - since->seconds;
    return since->xid > 0 && (age_s > gateway->options.settings.resume_max_s ||
                              !store_era_holds(gateway->store, since->era, since->xid));
}

void resume_free(struct resume *resume)
{
    if (!resume)
        return;
    resume->arg = NULL;
    if (!resume->is_asked) // otherwise the answer frees it
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

void resume_add(struct resume *resume, const struct result *result, int row, bool has_events)
{
    const struct progress *progress = &resume->place->progress;
    bool is_active = result_bool(result, row, RESUME_ACTIVE);
    bool threads_due = is_active && result_bool(result, row, RESUME_THREADS);
    bool is_later = resume->ops->is_call && result_bool(result, row, RESUME_IS_SECOND);
    if (is_later || (!has_events && !threads_due))
        return;
    struct behind *behind = behind_add(resume, result_text(result, row, RESUME_CHANNEL));
    behind->stage = has_events ? BEHIND_EVENTS : BEHIND_THREADS;
    behind->threads_due = threads_due;
    behind->is_member = is_active;
    if (is_active)
        behind->seen_seq = result_int(result, row, RESUME_SEQ);
    else
        behind->to_seq = result_int(result, row, RESUME_MEMBER_SEQ);
    if (is_active && resume->ops->is_call)
        behind->to_seq = behind->seen_seq;
    behind->earlier_seq = beyond_seq(&resume->place->beyond, behind->channel_id);
    if (progress->until.xid > 0 && progress->part == PROGRESS_EVENTS &&
        strcmp(behind->channel_id, progress->channel_id) == 0)
        behind->earlier_seq = progress->number;
    if (!result_bool(result, row, RESUME_IS_SECOND))
        resume->pass_end = resume->count;
}

// Adds the remaining threads of the channel whose read state was sent last.
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

struct resume *resume_new(struct gateway *gateway, const struct actor *actor, struct place *place,
                          const struct resume_ops *ops, void *arg, const struct result *result)
{
    struct resume *resume = TAGGED_NEW(resume);
    if (!resume)
        return NULL;
    resume->gateway = gateway;
    resume->actor = actor;
    resume->place = place;
    resume->ops = ops;
    resume->arg = arg;
    resume->advance = resume_advance;
    resume->now = resume_now(gateway, actor->user_id, result);
    resume->page = ops->first_page;
    resume->batch = ops->first_batch;
    resume->is_last_pass = place->progress.until.xid == 0;
    resume->behind = calloc((size_t)result_rows(result) + 1, sizeof *resume->behind);
    if (!resume->behind) {
        resume_done(resume);
        return NULL;
    }
    place->since.owner = resume->now.owner;
    threads_left_add(resume, &place->progress);
    return resume;
}

void resume_added(struct resume *resume)
{
    if (resume->place->progress.until.xid == 0)
        resume->place->progress.until = resume->now;
    place_print(resume->place);
}

static struct behind *behind_find(const struct resume *resume, const char *channel_id)
{
    for (int i = resume ? resume->next : 0; resume && i < resume->count; i++)
        if (resume->behind[i].stage == BEHIND_EVENTS &&
            strcmp(resume->behind[i].channel_id, channel_id) == 0)
            return &resume->behind[i];
    return NULL;
}

bool resume_joined(struct resume *resume, const char *channel_id)
{
    struct behind *behind = behind_find(resume, channel_id);
    if (behind)
        behind->to_seq = INT64_MAX;
    return behind;
}

bool resume_awaits(struct resume *resume, const struct event *event)
{
    struct behind *behind = behind_find(resume, event->channel_id);
    if (behind && event->kind == EVENT_MARK)
        behind->state_due = true;
    else if (behind)
        behind->threads_due = true;
    return behind;
}

// The pass is over: everything before `until` was sent, which becomes the position.
static void pass_end(struct resume *resume)
{
    struct place *place = resume->place;
    place->since = place->progress.until;
    place->since.owner = resume->now.owner;
    place->progress = (struct progress){.until = resume->now};
    place->beyond.count = 0;
    place_print(place);
    if (resume->is_last_pass || resume->ops->is_call) {
        resume->ops->over(resume->arg);
        return;
    }
    resume->is_last_pass = true;
    resume->created_sent = false;
    resume->pass_end = resume->count;
    resume_advance(resume);
}

// Requests the channel's next part. False: nothing is left in this stage.
static bool behind_ask(struct resume *resume, struct behind *behind)
{
    switch (behind->stage) {
    case BEHIND_EVENTS:
        return resume_events_ask(resume, behind);
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

void resume_advance(struct resume *resume)
{
    if (!resume || resume->is_asked)
        return;
    if (resume->created_sent) {
        pass_end(resume);
        return;
    }
    if (!resume->ops->is_ready(resume->arg))
        return;
    while (resume->next < resume->pass_end) {
        struct behind *behind = &resume->behind[resume->next];
        if (behind_ask(resume, behind))
            return;
        if (behind->stage < BEHIND_DONE)
            behind->stage++;
        else
            resume->next++;
    }
    resume_created_ask(resume);
}
