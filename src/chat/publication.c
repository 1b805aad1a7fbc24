// SPDX-License-Identifier: Apache-2.0
// Passes a commit to the loop's own sockets, and one turn later to the log.
#include "publication.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/error.h"

int publication_init(struct publication *ret_publication, struct loop *loop,
                     const struct writer_options *options, size_t events_max)
{
    *ret_publication = (struct publication){
        .tag = TAG(publication),
        .loop = loop,
        .on_local = options->on_local,
        .on_committed = options->on_committed,
        .arg = options->arg,
        .events = calloc(events_max, sizeof(struct event *)),
    };
    return ret_publication->events ? 0 : -ERROR_MEMORY;
}

static void events_drop(struct publication *publication)
{
    for (size_t i = 0; i < publication->count; i++)
        event_unref(TAKE(publication->events[i]));
    publication->count = 0;
}

void publication_done(struct publication *publication)
{
    if (publication->events)
        events_drop(publication);
    free(TAKE(publication->events));
}

// The order of the turn's calls is not known: Postgres may reply after a hand-over was deferred,
// and then the commit is handed over before its own offer runs.
static void offer(void *arg)
{
    struct publication *publication = CAST(publication, arg);

    if (publication->is_offered || publication->outbox_id[0] == '\0')
        return;
    publication->is_offered = true;
    publication->on_local(publication->arg, publication->events, publication->count);
    loop_again(publication->loop);
}

static void hand_over(void *arg)
{
    struct publication *publication = CAST(publication, arg);

    if (publication->outbox_id[0] == '\0')
        return;
    offer(publication);
    publication->is_offered = false;
    publication->on_committed(publication->arg, publication->outbox_id, publication->events,
                              publication->count);
    publication->outbox_id[0] = '\0';
    events_drop(publication);
}

struct event **publication_next(struct publication *publication)
{
    hand_over(publication);
    return publication->events;
}

void publication_commit(struct publication *publication, const char *outbox_id, size_t count)
{
    ASSERT(publication->outbox_id[0] == '\0' && outbox_id[0] != '\0');
    publication->count = count;
    memcpy(publication->outbox_id, outbox_id, sizeof publication->outbox_id);
    loop_defer(publication->loop, offer, publication);
}

void publication_turn(struct publication *publication)
{
    if (publication->is_offered)
        loop_defer(publication->loop, hand_over, publication);
}
