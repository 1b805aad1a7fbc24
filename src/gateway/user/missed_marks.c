// SPDX-License-Identifier: Apache-2.0
// Catch-up on missed marks, notification settings and threads. They have no seq that would reveal a
// gap: after an outage of the topics, all changes since then for the users here are read from
// Postgres and sent again. Their frames are absolute, so a repeat changes nothing. New channels
// (created_channels.c) are part of the same sweep.
//
// The start of an outage is known as a transaction, not as a time: every second while the topics
// are subscribed, the gateway reads the lowest running transaction. It takes a new note of it when
// the last note is some seconds old and the outbox has no late rows. So everything committed below
// the note before the last has left the outbox while the topics were subscribed.
#include "missed_marks.h"

#include "../channel/held_marks.h"
#include "../core.h"
#include "../late.h"
#include "created_channels.h"
#include "unread_frames.h"
#include "users.h"

#include "base/buffer.h"
#include "base/check.h"
#include "base/memory.h"
#include "chat/frame.h"
#include "unread/view.h"

#include <stdlib.h>

enum { FRAME_MAX_BYTES = 65536 };

struct missed_marks {
    int64_t notes[2]; // the first is the older
    int64_t noted_ms; // when the newer one was taken
    bool is_asked;
};

// Runs every second: late events are detected, and read from Postgres, within two.
static const struct statement NOTE = {
    "gateway_note",
    "SELECT pg_snapshot_xmin(pg_current_snapshot())::text, " OUTBOX_LATE("700 milliseconds")};

// The first column: whether the member ever marked anything. A join alone is not a mark.
static const struct statement SWEEP = {
    "gateway_marks", "SELECT " MEMBER_IS_MARKED("m") ", " UNREAD_VIEW_SELECT(
                         "m") " FROM unread_rows m WHERE m.user_id = ANY ($1) AND m.active"
                              " AND m.member_changed >= $2::xid8"};
enum { COLUMN_MARKED, COLUMN_VIEW };

static const struct statement THREADS = {
    "gateway_threads", "SELECT m.user_id, e.is_followed, e.members FROM thread_members m"
                       " CROSS JOIN LATERAL thread_event(m.channel_id, m.thread_ts, m.user_id) e"
                       " WHERE m.user_id = ANY ($1) AND m.changed >= $2::xid8"
                       " AND EXISTS (SELECT 1 FROM channel_members x WHERE x.channel_id ="
                       " m.channel_id AND x.user_id = m.user_id AND x.active)"};

static void notes_set(struct gateway *gateway, int64_t note)
{
    gateway->missed_marks->notes[0] = gateway->missed_marks->notes[1] = note;
    gateway->missed_marks->noted_ms = loop_now_ms(gateway->loop);
}

static void note_take(struct gateway *gateway, int64_t note, bool late)
{
    int64_t now_ms = loop_now_ms(gateway->loop);

    if (gateway->missed_marks->notes[0] == 0) {
        notes_set(gateway, note);
        return;
    }
    if (late || now_ms - gateway->missed_marks->noted_ms < RECEIVED_LAG_S * 1000)
        return;
    gateway->missed_marks->notes[0] = gateway->missed_marks->notes[1];
    gateway->missed_marks->notes[1] = note;
    gateway->missed_marks->noted_ms = now_ms;
}

static void on_note(void *arg, const struct store_outcome *outcome)
{
    struct gateway *gateway = CAST(gateway, arg);

    if (!gateway_answer(gateway))
        return;
    gateway->missed_marks->is_asked = false;
    if (outcome->r < 0)
        return;
    gateway->on_late(gateway, result_bool(outcome->result, 0, 1));
    note_take(gateway, result_int(outcome->result, 0, 0), gateway->is_late);
}

void missed_marks_note(struct gateway *gateway)
{
    if (gateway->missed_marks->is_asked)
        return;
    gateway->missed_marks->is_asked = true;
    gateway_ask(gateway);
    store_call(gateway->store, STORE_SYNC, &NOTE, NULL, on_note, gateway);
}

// While there were no users, no notes were taken and no one missed anything: starts with new notes.
void missed_marks_note_first(struct gateway *gateway)
{
    if (!gateway->users && gateway->openings == 0)
        notes_set(gateway, 0);
    if (gateway->missed_marks->notes[0] == 0)
        missed_marks_note(gateway);
}

int64_t missed_marks_noted_xid(const struct gateway *gateway)
{
    return gateway->missed_marks->notes[0];
}

void missed_marks_lower(struct gateway *gateway, int64_t xid)
{
    for (int i = 0; i < 2; i++)
        if (gateway->missed_marks->notes[i] > xid)
            gateway->missed_marks->notes[i] = xid;
}

// The next tick retries, from the same note.
static void sweep_fail(struct gateway *gateway)
{
    gateway->missed_marks->is_asked = false;
    gateway->missed_marks_due = true;
}

static void thread_send(struct gateway *gateway, enum event_kind kind, const struct result *result,
                        int row)
{
    CLEANUP(buffer_done) struct buffer frame = BUFFER(FRAME_MAX_BYTES);
    const char *type = frame_write_thread(&frame, kind, result, row, 1);

    if (!buffer_failed(&frame))
        user_send_native(gateway, result_text(result, row, 0), type, &frame);
}

// The last part of a sweep. It is not known whether the follow or the mark changed: sends both.
static void on_threads(void *arg, const struct store_outcome *outcome)
{
    struct gateway *gateway = CAST(gateway, arg);

    if (!gateway_answer(gateway))
        return;
    if (outcome->r < 0 || created_channels_swept_xid(gateway) == 0) {
        sweep_fail(gateway);
        return;
    }
    gateway->missed_marks->is_asked = false;
    for (int row = 0; row < result_rows(outcome->result); row++) {
        thread_send(gateway, EVENT_THREAD_FOLLOW, outcome->result, row);
        thread_send(gateway, EVENT_THREAD_MARK, outcome->result, row);
    }
    notes_set(gateway, created_channels_swept_xid(gateway));
}

// Appends the users here, and the note since which changes must be sent.
static void sweep_params(struct params *params, const struct gateway *gateway)
{
    users_params(gateway, params);
    params_xid(params, gateway->missed_marks->notes[0]);
}

static void threads_ask(struct gateway *gateway)
{
    CLEANUP_PARAMS struct params params = {0};

    sweep_params(&params, gateway);
    gateway_ask(gateway);
    store_call(gateway->store, STORE_SYNC, &THREADS, &params, on_threads, gateway);
}

// The second part of a sweep: unread counts, in case something other than a mark changed them. They
// are read again, in the lane that keeps their order.
static void on_swept(void *arg, const struct store_outcome *outcome)
{
    struct gateway *gateway = CAST(gateway, arg);

    if (!gateway_answer(gateway))
        return;
    if (outcome->r < 0) {
        sweep_fail(gateway);
        return;
    }
    unread_frames_send(gateway, outcome->result);
    threads_ask(gateway);
}

static void column_params(struct params *params, const struct result *result, int column)
{
    params_open_text_array(params);
    for (int row = 0; row < result_rows(result); row++)
        params_element_text_n(params, result_text(result, row, column),
                              result_length(result, row, column));
    params_close_array(params);
}

static void missed_marks_send(struct gateway *gateway, const struct result *result)
{
    struct unread_view view;

    for (int row = 0; row < result_rows(result); row++) {
        if (!result_bool(result, row, COLUMN_MARKED))
            continue;
        unread_view_read(result, row, COLUMN_VIEW, &view);
        held_marks_offer_view(gateway, UNREAD_FRAME_MARKED, &view);
    }
}

static void on_sweep(void *arg, const struct store_outcome *outcome)
{
    CLEANUP_PARAMS struct params params = {0};
    struct gateway *gateway = CAST(gateway, arg);

    if (!gateway_answer(gateway))
        return;
    if (outcome->r < 0) {
        sweep_fail(gateway);
        return;
    }
    missed_marks_send(gateway, outcome->result);
    column_params(&params, outcome->result, COLUMN_VIEW);
    column_params(&params, outcome->result, COLUMN_VIEW + 1);
    unread_frames_read(gateway, &params, on_swept);
}

void missed_marks_sweep(struct gateway *gateway)
{
    CLEANUP_PARAMS struct params params = {0};

    if (gateway->missed_marks->notes[0] == 0) // there was no user to miss anything
        return;
    gateway->missed_marks_due = true;
    if (gateway->missed_marks->is_asked || !gateway->users)
        return;
    gateway->missed_marks_due = false; // set again by later misses, which this sweep may not cover
    created_channels_sweep(gateway, gateway->missed_marks->notes[0]);
    sweep_params(&params, gateway);
    gateway->missed_marks->is_asked = true;
    gateway_ask(gateway);
    store_call(gateway->store, STORE_SYNC, &SWEEP, &params, on_sweep, gateway);
}

static void on_sweep_resumed(void *arg, const struct store_outcome *outcome)
{
    struct gateway *gateway = CAST(gateway, arg);

    if (!gateway_answer(gateway))
        return;
    if (outcome->r < 0)
        gateway->missed_marks_due = true;
    else
        missed_marks_send(gateway, outcome->result);
}

static void resumed_ask(struct gateway *gateway, struct params *params, int64_t since_xid)
{
    params_close_array(params);
    params_xid(params, since_xid);
    gateway_ask(gateway);
    store_call(gateway->store, STORE_SYNC, &SWEEP, params, on_sweep_resumed, gateway);
}

void missed_marks_sweep_resumed(struct gateway *gateway)
{
    CLEANUP_PARAMS struct params params = {0};
    int64_t since_xid = INT64_MAX;
    int count = 0;

    for (struct user *user = gateway->users; user; user = user->hh.next) {
        if (user->resumed_xid == 0)
            continue;
        if (count++ == 0)
            params_open_text_array(&params);
        params_element_text(&params, user->id);
        since_xid = user->resumed_xid < since_xid ? user->resumed_xid : since_xid;
        user->resumed_xid = 0;
        if (count == USERS_SLICE) {
            resumed_ask(gateway, &params, since_xid);
            count = 0;
        }
    }
    if (count > 0)
        resumed_ask(gateway, &params, since_xid);
}

int missed_marks_new(struct gateway *gateway)
{
    gateway->missed_marks = memory_must_new(sizeof *gateway->missed_marks);
    return 0;
}

void missed_marks_free(struct gateway *gateway)
{
    free(TAKE(gateway->missed_marks));
}
