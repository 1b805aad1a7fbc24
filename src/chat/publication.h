// SPDX-License-Identifier: Apache-2.0
// The last commit of a writer on its way out. Its events go to this loop's sockets first; the log
// follows one turn later, because the threads and processes it wakes may take this core, or a
// client's. All on the loop's thread.
#pragma once

#include "base/id.h"
#include "base/loop.h"
#include "chat/writer.h"

#include <stddef.h>
#include <stdint.h>

struct publication {
    uint32_t tag;
    struct loop *loop;
    writer_on_local_fn *on_local;
    writer_on_committed_fn *on_committed;
    void *arg;
    char outbox_id[OUTBOX_ID_SIZE]; // "": everything is handed over
    bool is_offered;                // the sockets have it
    struct event **events;          // owned until handed over
    size_t count;
};

// Makes room for commits of up to `events_max` events. -ERROR_MEMORY; publication_done() must be
// called even then.
NODISCARD int publication_init(struct publication *ret_publication, struct loop *loop,
                               const struct writer_options *options, size_t events_max);

// Drops what is not handed over: its outbox row remains.
void publication_done(struct publication *publication);

// Hands over the previous commit. Returns where to put the events of the next.
NODISCARD struct event **publication_next(struct publication *publication);

// Publishes a commit and the first `count` of the events put there (0: they must be read back), and
// takes their references.
void publication_commit(struct publication *publication, const char *outbox_id, size_t count);

// Must be called once a turn: lets the log have what the sockets were offered in earlier turns.
void publication_turn(struct publication *publication);
