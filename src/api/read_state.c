// SPDX-License-Identifier: Apache-2.0
// channels.mark, channels.markUnread and channels.markMessages: move the caller's read cursor.
#include "methods.h"

#include "base/check.h"

#include <stdlib.h>

enum { MESSAGES_MAX = 100 };

struct marking {
    uint32_t tag;
    struct invocation *invocation;
    struct mark mark;
    int64_t tss[MESSAGES_MAX]; // for markMessages
};

static void marked(void *arg, int r, const struct unread_view *view)
{
    struct marking *marking = CAST(marking, arg);
    struct invocation *invocation = marking->invocation;

    if (r < 0) {
        invocation_fail(invocation, r); // frees marking
        return;
    }
    unread_view_write(invocation_open(invocation), view);
    invocation_close(invocation);
}

static struct marking *marking_new(struct invocation *invocation)
{
    struct marking *marking = TAGGED_NEW(marking);

    if (!marking) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return NULL;
    }
    invocation->state = marking;
    marking->invocation = invocation;
    marking->mark.actor = invocation->actor;
    marking->mark.epoch = MARK_ANY_EPOCH;
    marking->mark.fn = marked;
    marking->mark.arg = marking;
    return marking;
}

static struct marking *take_marking(struct invocation *invocation)
{
    struct marking *marking = marking_new(invocation);

    if (!marking || !take_channel(invocation, &marking->mark.channel_id) ||
        !take_ts(invocation, "ts", -ERROR_INVALID_TIMESTAMP, &marking->mark.ts))
        return NULL;
    return marking;
}

void channels_mark(struct invocation *invocation)
{
    struct marking *marking = take_marking(invocation);

    if (!marking || !take_optional_int(invocation, "read_epoch", -ERROR_INVALID_ARGUMENTS, 0,
                                       INT64_MAX / 2, &marking->mark.epoch))
        return;
    int r = marker_mark(invocation->api->options.marker, &marking->mark);
    if (r < 0)
        invocation_fail(invocation, r);
}

void channels_mark_unread(struct invocation *invocation)
{
    struct marking *marking = take_marking(invocation);

    if (marking)
        marker_mark_unread(invocation->api->options.marker, &marking->mark);
}

void channels_mark_messages(struct invocation *invocation)
{
    struct marking *marking = marking_new(invocation);

    if (!marking || !take_channel(invocation, &marking->mark.channel_id) ||
        !take_tss(invocation, "ts", marking->tss, MESSAGES_MAX, &marking->mark.ts_count))
        return;
    marking->mark.tss = marking->tss;
    marker_mark_messages(invocation->api->options.marker, &marking->mark);
}
