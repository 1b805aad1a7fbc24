// SPDX-License-Identifier: Apache-2.0
// A call of events.sync: collects what a user missed, as a resumed event stream would receive it,
// up to a limit.
#include "../core.h"
#include "../position.h"
#include "resume.h"
#include "resume_ops.h"

#include "base/buffer.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS_BYTES = 1 << 20, EVENTS_MAX = 16 << 20, GAPS_MAX = 1 << 20 };

_Static_assert((int)GATEWAY_BEYOND_MAX == (int)BEYOND_MAX, "all of them fit");
_Static_assert((int)GATEWAY_POSITION_SIZE == (int)PLACE_SIZE, "a position is not cut off");

static const struct statement users_changed = {"gateway_users_changed",
                                               "SELECT users_changed($1, $2::xid8)"};

struct sync_read {
    uint32_t tag;
    struct gateway *gateway;
    struct actor actor;
    struct place place;
    int64_t since_xid; // of the caller's position
    struct resume *resume;
    const char *users; // JSON
    size_t users_length;
    struct buffer events;
    struct buffer gaps;
    int64_t limit;
    int64_t count;
    bool has_continued; // continues a backlog that an earlier call began
    bool is_full;       // there was more than the limit
    bool is_too_old;
    gateway_sync_fn *fn;
    void *arg;
};

// Answers the call and frees it.
static void sync_end(struct sync_read *sync, int r)
{
    bool has_failed = buffer_failed(&sync->events) || buffer_failed(&sync->gaps);
    char position[PLACE_SIZE];

    place_drop_reached(&sync->place);
    place_print_all(&sync->place, position);
    const struct gateway_missed missed = {
        .events = sync->events.data,
        .events_length = sync->events.length,
        .gaps = sync->gaps.data,
        .gaps_length = sync->gaps.length,
        .users = sync->users,
        .users_length = sync->users_length,
        .position = position,
        .has_more = sync->is_full,
        .is_too_old = sync->is_too_old,
    };

    if (r == 0 && has_failed)
        r = -ERROR_MEMORY;
    sync->fn(sync->arg, r, r < 0 ? NULL : &missed);
    resume_free(sync->resume);
    buffer_done(&sync->events);
    buffer_done(&sync->gaps);
    TAGGED_FREE(sync);
}

static void on_users(void *arg, const struct store_outcome *outcome)
{
    struct sync_read *sync = CAST(sync_read, arg);

    (void)gateway_answer(sync->gateway);
    if (outcome->r == 0) {
        sync->users = result_text(outcome->result, 0, 0);
        sync->users_length = result_length(outcome->result, 0, 0);
    }
    sync_end(sync, outcome->r);
}

// Asks who has changed, last of all: what was committed before the reply's position is seen then.
static void sync_finish(struct sync_read *sync)
{
    CLEANUP_PARAMS struct params params = {0};

    params_text(&params, sync->actor.workspace_id);
    params_xid(&params, sync->since_xid);
    gateway_ask(sync->gateway);
    store_call(sync->gateway->store, STORE_SYNC, &users_changed, &params, on_users, sync);
}

static void member_add(struct buffer *out, const char *json, size_t length)
{
    if (out->length > 0)
        buffer_append_byte(out, ',');
    buffer_append(out, json, length);
}

// A frame that does not fit ends the call, but only in is_ready(): the caller still uses `arg`.
static bool has_room(void *arg, int frames)
{
    struct sync_read *sync = CAST(sync_read, arg);

    sync->is_full = sync->count > 0 &&
                    (sync->count + frames > sync->limit || sync->events.length >= EVENTS_BYTES);
    return !sync->is_full;
}

static bool is_ready(void *arg)
{
    struct sync_read *sync = CAST(sync_read, arg);

    if (!sync->is_full)
        return true;
    sync_finish(sync);
    return false;
}

static void frame_add(void *arg, const char *type, const struct buffer *frame)
{
    struct sync_read *sync = CAST(sync_read, arg);

    (void)type;
    member_add(&sync->events, frame->data, frame->length);
    sync->count++;
}

static void gap_add(void *arg, const char *channel_id, int64_t from_seq, int64_t to_seq)
{
    struct sync_read *sync = CAST(sync_read, arg);
    char json[EVENT_ID_SIZE + 2];
    size_t length = (size_t)snprintf(json, sizeof json, "\"%s\"", channel_id);

    (void)from_seq;
    (void)to_seq;
    bool is_listed = sync->gaps.length >= length &&
                     memcmp(sync->gaps.data + sync->gaps.length - length, json, length) == 0;
    if (!is_listed)
        member_add(&sync->gaps, json, length);
}

static void sync_ask(struct sync_read *sync);

// A continued backlog ends at the snapshot of its first call. Events since then are for this reply,
// too: starts another pass.
static void sync_over(void *arg)
{
    struct sync_read *sync = CAST(sync_read, arg);

    if (!sync->has_continued) {
        sync_finish(sync);
        return;
    }
    resume_free(TAKE(sync->resume));
    sync->place.progress = (struct progress){0};
    sync_ask(sync);
}

static void sync_fail(void *arg)
{
    sync_end(CAST(sync_read, arg), -ERROR_UNAVAILABLE);
}

static const struct resume_ops OPS = {.is_ready = is_ready,
                                      .has_room = has_room,
                                      .send = frame_add,
                                      .send_own = frame_add,
                                      .gap = gap_add,
                                      .over = sync_over,
                                      .fail = sync_fail,
                                      .is_call = true,
                                      .first_batch = 16,
                                      .first_page = 256};

// The position is too old: the client must read everything, and continue from now.
static void sync_begin_anew(struct sync_read *sync, const struct result *result)
{
    sync->place = (struct place){.since = resume_now(sync->gateway, sync->actor.user_id, result)};
    sync->is_too_old = true;
    sync->users = "null";
    sync->users_length = strlen(sync->users);
    sync_end(sync, 0);
}

static void sync_begin(struct sync_read *sync, const struct result *result)
{
    if (resume_is_too_old(sync->gateway, &sync->place, result)) {
        sync_begin_anew(sync, result);
        return;
    }
    sync->resume = resume_new(sync->gateway, &sync->actor, &sync->place, &OPS, sync, result);
    if (!sync->resume) {
        sync_end(sync, -ERROR_MEMORY);
        return;
    }
    for (int row = 0; row < result_rows(result); row++)
        if (!result_is_null(result, row, RESUME_CHANNEL))
            resume_add(sync->resume, result, row, result_bool(result, row, RESUME_CHANGED));
    resume_added(sync->resume);
    resume_advance(sync->resume);
}

static void on_channels(void *arg, const struct store_outcome *outcome)
{
    struct sync_read *sync = CAST(sync_read, arg);
    bool alive = gateway_answer(sync->gateway);

    if (!alive || outcome->r < 0)
        sync_end(sync, alive ? outcome->r : -ERROR_UNAVAILABLE);
    else
        sync_begin(sync, outcome->result);
}

static void sync_ask(struct sync_read *sync)
{
    CLEANUP_PARAMS struct params params = {0};
    struct gateway *gateway = sync->gateway;

    params_text(&params, sync->actor.user_id);
    resume_params(gateway, &sync->place, &params);
    sync->has_continued = sync->place.progress.until.xid > 0;
    gateway_ask(gateway);
    store_call(gateway->store, STORE_SYNC, &resume_statement, &params, on_channels, sync);
}

// Whether `text` is a position, and not another user's.
static bool since_read(const char *text, const char *user_id, struct place *ret_place)
{
    return place_parse(text, strlen(text), ret_place) >= 0 &&
           !position_is_of_another(&ret_place->since, user_id);
}

int gateway_position_take(const char *user_id, const char *text, char *ret_text)
{
    struct place place;

    if (!since_read(text, user_id, &place))
        return -ERROR_INVALID_POSITION;
    place.since.owner = position_owner(user_id);
    place_print_all(&place, ret_text);
    return 0;
}

int gateway_position_covers(const struct gateway *gateway, const char *user_id, const char *text,
                            struct gateway_covered *ret_covered)
{
    struct place place;

    if (!since_read(text, user_id, &place) ||
        clock_wall_us() / 1000000 - place.since.seconds > gateway->options.settings.resume_max_s ||
        !store_era_holds(gateway->store, place.since.era, place.since.xid))
        return -ERROR_INVALID_POSITION;
    resume_covered(gateway, &place, ret_covered);
    ret_covered->beyond_count = place.beyond.count;
    for (int i = 0; i < place.beyond.count; i++) {
        snprintf(ret_covered->beyond[i].channel_id, EVENT_ID_SIZE, "%s",
                 place.beyond.channels[i].channel_id);
        ret_covered->beyond[i].seq = place.beyond.channels[i].seq;
    }
    return 0;
}

int gateway_sync(struct gateway *gateway, const struct actor *actor, const char *since,
                 int64_t limit, gateway_sync_fn *fn, void *arg)
{
    struct place place;

    if (!since_read(since, actor->user_id, &place))
        return -ERROR_INVALID_POSITION;
    struct sync_read *sync = TAGGED_NEW(sync_read);
    if (!sync)
        return -ERROR_MEMORY;
    sync->gateway = gateway;
    sync->actor = *actor;
    sync->place = place;
    sync->since_xid = place.since.xid;
    sync->limit = limit;
    sync->fn = fn;
    sync->arg = arg;
    buffer_init(&sync->events, EVENTS_MAX);
    buffer_init(&sync->gaps, GAPS_MAX);
    sync_ask(sync);
    return 0;
}

void gateway_position_print(const char *user_id, int64_t xid, int64_t era, int64_t seconds,
                            char *ret_text)
{
    const struct position position = {xid, xid, seconds, era, position_owner(user_id)};

    position_print(&position, NULL, ret_text);
}
