// SPDX-License-Identifier: Apache-2.0
// All channels of one user as a sidebar shows them, sorted, for unread.sync. They are read from
// Postgres in chunks. For users in many channels the result is kept and updated with what has
// changed since. One sidebar per loop; all on the loop's thread.
//
// What is kept is a copy as of a snapshot of Postgres, identified by its xmin. Each use reads, in
// one snapshot, every row that may have been changed by a transaction not in that copy
// (sql/10_bulk.sql says how they are found), so the result is as exact as a fresh one.
#pragma once

#include "base/actor.h"
#include "base/json_writer.h"
#include "base/loop.h"
#include "store/store.h"

struct sidebar;

// One of the user's channels, or one that is gone (left, kicked, archived).
struct sidebar_entry {
    int64_t changed; // the transaction that last changed it
    int64_t updated; // ts of the last counted post
    int64_t unread;  // as it is shown: see unread_shown()
    int64_t mentions;
    uint64_t id_hash;
    uint32_t json_at;     // where its JSON is in the state's bytes
    uint32_t json_length; // 0: the channel is gone, and there is only its id
    uint8_t id_length;
    bool is_unread; // and not muted: sorts first
    bool is_muted;
    uint8_t type; // enum channel_type
};

// A user's channels. Valid until sidebar_release().
struct sidebar_state {
    int64_t xid;                         // contains every transaction before this one
    int64_t era;                         // of `xid`: see store.h
    int64_t since_s;                     // when the reading began
    const struct sidebar_entry *entries; // in a sidebar's order
    int count;
    int64_t thread_unread; // of all threads that the user follows
    int64_t thread_mentions;
    int64_t shared_mentions; // among them, those that their channel's count has, too
};

struct sidebar_totals {
    int64_t unread_channels;
    int64_t unread_count;
    int64_t muted_unread_count;
    int64_t mention_count;  // of muted channels too, not of muted direct conversations
    int64_t unread_directs; // among unread_channels
    int64_t badge;          // mentions, those of threads included, each once
};

// The channel's JSON object, with both braces; not for one that is gone.
const char *sidebar_entry_json(const struct sidebar_state *state,
                               const struct sidebar_entry *entry);
// Its id, of entry->id_length bytes, not NUL-terminated.
const char *sidebar_entry_id(const struct sidebar_state *state, const struct sidebar_entry *entry);

// r: 0 with the state, which the caller must release, or as in store.h.
typedef void sidebar_fn(void *arg, int r, const struct sidebar_state *state);

struct sidebar_options {
    int64_t kept_bytes; // memory for the channels of all users together
    int64_t kept_min;   // for users in fewer channels nothing is kept
};

NODISCARD int sidebar_new(struct loop *loop, struct store *store,
                          const struct sidebar_options *options, struct sidebar **ret_sidebar);
void sidebar_free(struct sidebar *sidebar); // after the store; takes NULL

// Reads the user's channels. `fn` is called once, on a later turn. A state has one user at a time:
// further calls for the same user wait until it is released. -ERROR_MEMORY (fn is not called then).
NODISCARD int sidebar_read(struct sidebar *sidebar, const struct actor *actor, sidebar_fn *fn,
                           void *arg);
void sidebar_release(const struct sidebar_state *state);

// Totals over all channels except those that are gone.
struct sidebar_totals sidebar_totals_of(const struct sidebar_state *state);
void sidebar_totals_write(struct json_writer *w, const struct sidebar_totals *totals);
