// SPDX-License-Identifier: Apache-2.0
// All channels of one user as a sidebar shows them, sorted, for unread.sync. Read from Postgres in
// chunks; what was read is kept for users in many channels, and brought up to date by what changed
// since. One sidebar per loop; all on the loop's thread.
//
// What is kept is a copy as of a snapshot of Postgres, named by its xmin. Each use reads, in one
// snapshot, every row that transactions not in that copy may have changed (migrations/010_bulk.sql
// tells how they are found), so the answer is as exact as one read anew.
#pragma once

#include "base/actor.h"
#include "base/json_writer.h"
#include "base/loop.h"
#include "store/store.h"

struct sidebar;

// One channel of the user's, also one that is gone (left, kicked, archived).
struct sidebar_entry {
    int64_t changed; // the transaction that last changed anything of it
    int64_t updated; // ts of the last counted post
    int64_t unread;  // as it is shown: see unread_shown()
    int64_t mentions;
    uint64_t id_hash;
    uint32_t json_at;     // where its JSON is in the state's bytes
    uint32_t json_length; // 0: gone, and there is only an id
    uint8_t id_length;
    bool is_unread; // and not muted: sorts first
    bool is_muted;
    uint8_t type; // enum channel_type
};

// A user's channels. Valid until sidebar_release().
struct sidebar_state {
    int64_t xid;                         // everything before this transaction is in it
    int64_t era;                         // in which that is so: see store.h
    int64_t since_s;                     // when it was begun to be read
    const struct sidebar_entry *entries; // in a sidebar's order
    int count;
    int64_t thread_unread; // of all threads that the user follows
    int64_t thread_mentions;
};

struct sidebar_totals {
    int64_t unread_channels;
    int64_t unread_count;
    int64_t muted_unread_count;
    int64_t mention_count;  // of muted channels too, not of muted direct conversations
    int64_t unread_directs; // among unread_channels
};

// The channel's JSON object, which has a closing brace at its end; not for one that is gone.
const char *sidebar_entry_json(const struct sidebar_state *state,
                               const struct sidebar_entry *entry);
// Its id, of entry->id_length bytes, not NUL-terminated.
const char *sidebar_entry_id(const struct sidebar_state *state, const struct sidebar_entry *entry);

// r: 0 with the state, which the caller must release, or as in store.h.
typedef void sidebar_fn(void *arg, int r, const struct sidebar_state *state);

struct sidebar_options {
    int64_t kept_bytes; // kept for all users together
    int64_t kept_min;   // users in fewer channels are read anew each time
};

NODISCARD int sidebar_new(struct loop *loop, struct store *store,
                          const struct sidebar_options *options, struct sidebar **ret_sidebar);
void sidebar_free(struct sidebar *sidebar); // after the store; takes NULL

// Reads the user's channels. `fn` is called once, on a later turn; a state is used by one at a
// time, others for the same user wait until it is released. -ERROR_MEMORY (fn is not called then).
NODISCARD int sidebar_read(struct sidebar *sidebar, const struct actor *actor, sidebar_fn *fn,
                           void *arg);
void sidebar_release(const struct sidebar_state *state);

// Over all channels but those that are gone.
struct sidebar_totals sidebar_totals_of(const struct sidebar_state *state);
void sidebar_totals_write(struct json_writer *w, const struct sidebar_totals *totals);
