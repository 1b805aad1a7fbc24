// SPDX-License-Identifier: Apache-2.0
// The parts of a backlog that are not channel events: read states, threads that were followed or
// read, new channels. They have no seq; their frames are absolute, so that a repeat is harmless.
#include "resume_others.h"

#include "../core.h"
#include "../position.h"
#include "../user/created_channels.h"
#include "../user/missed_marks.h"
#include "resume_state.h"

#include "base/buffer.h"
#include "base/check.h"
#include "base/clock.h"
#include "chat/frame.h"
#include "events/event_type.h"
#include "unread/view.h"

enum { FRAME_MAX_BYTES = 65536, PAGE = 100 };

static const struct statement STATE = {
    "gateway_resume_state",
    "SELECT u.member_changed >= $3::xid8 AND " MEMBER_IS_MARKED("u") ", " UNREAD_VIEW_SELECT(
        "u") " FROM unread_rows u WHERE u.user_id = $1 AND u.channel_id = $2 AND u.active"};

static const struct statement THREADS = {
    "gateway_resume_threads",
    "SELECT m.thread_ts, e.is_followed, e.members FROM (SELECT t.channel_id, t.thread_ts, t.user_id"
    " FROM thread_members t WHERE t.user_id = $1 AND t.channel_id = $2 AND t.changed >= $3::xid8"
    " AND t.thread_ts > $4 AND EXISTS (SELECT 1 FROM channel_members x"
    " WHERE x.channel_id = $2 AND x.user_id = $1 AND x.active)"
    " ORDER BY t.thread_ts LIMIT $5::integer) m"
    " LEFT JOIN LATERAL thread_event(m.channel_id, m.thread_ts, m.user_id) e ON true"
    " ORDER BY m.thread_ts"};
enum { THREAD_FRAMES = 2 }; // of each thread

static const struct statement CREATED = {
    "gateway_resume_created",
    "SELECT c.made::text, c.id, c.name, c.is_private, c.creator, c.created FROM channels c"
    " WHERE c.workspace_id = $2 AND c.made >= $3::xid8 AND (c.made, c.id) > ($4::xid8, $5)"
    " AND (NOT c.is_private OR c.creator = $1) ORDER BY c.made, c.id LIMIT $6::integer"};

static void state_send(struct resume *resume, const struct result *result)
{
    CLEANUP(buffer_done) struct buffer out = BUFFER(FRAME_MAX_BYTES);
    struct unread_view view;

    bool is_marked = result_bool(result, 0, 0);
    unread_view_read(result, 0, 1, &view);
    unread_frame_write(&out, is_marked ? UNREAD_FRAME_MARKED : UNREAD_FRAME_CHANGED, &view,
                       clock_wall_us());
    resume_progress_set(resume, view.channel_id, PROGRESS_THREADS, 0);
    const char *type = event_type_of_mark(view.type, !is_marked);
    if (is_marked)
        resume_send(resume, type, &out);
    else
        resume_send_own(resume, type, &out);
}

static void on_state(void *arg, const struct store_outcome *outcome)
{
    struct resume *resume = CAST(resume, arg);

    if (!resume_answer(resume, outcome))
        return;
    bool is_there = result_rows(outcome->result) > 0;
    if (!is_there || resume->ops->has_room(resume->arg, 1)) {
        if (is_there)
            state_send(resume, outcome->result);
        resume->behind[resume->next].state_due = false;
    }
    resume->advance(resume);
}

static void behind_params(const struct resume *resume, const struct behind *behind,
                          struct params *params)
{
    params_text(params, resume->actor->user_id);
    params_text(params, behind->channel_id);
    params_xid(params, resume->place->since.received_xid);
}

void resume_state_ask(struct resume *resume, const struct behind *behind)
{
    CLEANUP_PARAMS struct params params = {0};

    behind_params(resume, behind, &params);
    resume_ask(resume);
    store_call(resume->gateway->store, STORE_SYNC, &STATE, &params, on_state, resume);
}

static void thread_frame_send(struct resume *resume, enum event_kind kind,
                              const struct result *result, int row)
{
    CLEANUP(buffer_done) struct buffer out = BUFFER(FRAME_MAX_BYTES);

    if (result_is_null(result, row, 2))
        return;
    const char *type = frame_write_thread(&out, kind, result, row, 1);
    resume_send_own(resume, type, &out);
}

// A thread counts as sent with the last of its frames.
static void thread_send(struct resume *resume, struct behind *behind, const struct result *result,
                        int row)
{
    thread_frame_send(resume, EVENT_THREAD_FOLLOW, result, row);
    behind->thread_ts = result_int(result, row, 0);
    resume_progress_set(resume, behind->channel_id, PROGRESS_THREADS, behind->thread_ts);
    thread_frame_send(resume, EVENT_THREAD_MARK, result, row);
}

static void on_threads(void *arg, const struct store_outcome *outcome)
{
    struct resume *resume = CAST(resume, arg);
    int row = 0;

    if (!resume_answer(resume, outcome))
        return;
    struct behind *behind = &resume->behind[resume->next];
    int rows = result_rows(outcome->result);
    for (; row < rows && resume->ops->has_room(resume->arg, THREAD_FRAMES); row++)
        thread_send(resume, behind, outcome->result, row);
    behind->threads_due = row < rows || rows == PAGE;
    resume->advance(resume);
}

void resume_threads_ask(struct resume *resume, const struct behind *behind)
{
    CLEANUP_PARAMS struct params params = {0};

    behind_params(resume, behind, &params);
    params_int(&params, behind->thread_ts);
    params_int(&params, PAGE);
    resume_ask(resume);
    store_call(resume->gateway->store, STORE_SYNC, &THREADS, &params, on_threads, resume);
}

static void created_channel_send(struct resume *resume, const struct result *result, int row)
{
    CLEANUP(buffer_done) struct buffer out = BUFFER(FRAME_MAX_BYTES);

    created_channel_write(result, row, &out);
    resume_progress_set(resume, result_text(result, row, 1), PROGRESS_CREATED,
                        result_int(result, row, 0));
    resume_send(resume, event_type(EVENT_CREATED, CHANNEL_PUBLIC), &out);
}

static void on_created(void *arg, const struct store_outcome *outcome)
{
    struct resume *resume = CAST(resume, arg);
    int row = 0;

    if (!resume_answer(resume, outcome))
        return;
    int rows = result_rows(outcome->result);
    for (; row < rows && resume->ops->has_room(resume->arg, 1); row++)
        created_channel_send(resume, outcome->result, row);
    resume->created_sent = row == rows && rows < PAGE;
    resume->advance(resume);
}

void resume_created_ask(struct resume *resume)
{
    CLEANUP_PARAMS struct params params = {0};
    const struct progress *progress = &resume->place->progress;
    bool begun = progress->part == PROGRESS_CREATED;

    params_text(&params, resume->actor->user_id);
    params_text(&params, resume->actor->workspace_id);
    params_xid(&params, resume->place->since.received_xid);
    params_xid(&params, begun ? progress->number : 0);
    params_text(&params, begun ? progress->channel_id : "");
    params_int(&params, PAGE);
    resume_ask(resume);
    store_call(resume->gateway->store, STORE_SYNC, &CREATED, &params, on_created, resume);
}
