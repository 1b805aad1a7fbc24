// SPDX-License-Identifier: Apache-2.0
// A user's sorted list of channels, for unread.sync. Read from Postgres in chunks. For users in
// many channels, the result is cached and updated with later changes. One sidebar per loop; all on
// the loop's thread.
//
// The cached list is the state of one snapshot of Postgres, identified by its xmin. Each use reads,
// in a new snapshot, every row that a transaction outside the cached one may have changed
// (sql/10_bulk.sql explains how these are found), so the result is as exact as a full read.
#pragma once

#include "base/actor.h"
#include "base/json_writer.h"
#include "base/loop.h"
#include "store/store.h"

struct sidebar;

// One of the user's channels, or one that the user lost (left, kicked, archived).
struct sidebar_entry {
    int64_t changed; // the transaction of its last change
    int64_t updated; // ts of the last counted post
    int64_t unread;  // as shown to clients: see unread_shown()
    int64_t mentions;
    uint64_t id_hash;
    uint32_t json_at;     // offset of its JSON in the state's bytes
    uint32_t json_length; // 0: the channel is gone; only its id is kept
    uint8_t id_length;
    bool is_unread; // and not muted: sorts first
    bool is_muted;
    uint8_t type; // enum channel_type
};

// A user's channels. Valid until sidebar_release().
struct sidebar_state {
    int64_t xid;                         // includes every transaction before this one
    int64_t era;                         // the era of `xid`: see store.h
    int64_t since_s;                     // when the read began, in seconds since 1970
    const struct sidebar_entry *entries; // in display order
    int count;
    int64_t thread_unread; // total of all threads that the user follows
    int64_t thread_mentions;
    int64_t shared_mentions; // of these, those also counted by their channel
};

struct sidebar_totals {
    int64_t unread_channels;
    int64_t unread_count;
    int64_t muted_unread_count;
    int64_t mention_count;  // including muted channels, excluding muted direct conversations
    int64_t unread_directs; // of unread_channels
    int64_t badge;          // mentions, including those in threads, without double counting
};

// The channel's JSON object, including its braces. Not for a channel that is gone.
const char *sidebar_entry_json(const struct sidebar_state *state,
                               const struct sidebar_entry *entry);
// The channel's id, of entry->id_length bytes, not NUL-terminated.
const char *sidebar_entry_id(const struct sidebar_state *state, const struct sidebar_entry *entry);

// r: 0 with the state, which the caller must release, or an error of store.h.
typedef void sidebar_fn(void *arg, int r, const struct sidebar_state *state);

struct sidebar_options {
    int64_t cached_bytes; // memory for all users' cached channels
    int64_t cached_min;   // minimum number of channels for a user to be cached
};

NODISCARD int sidebar_new(struct loop *loop, struct store *store,
                          const struct sidebar_options *options, struct sidebar **ret_sidebar);
void sidebar_free(struct sidebar *sidebar); // after the store; NULL is allowed

// Reads the user's channels. `fn` is called once, on a later turn. Only one caller uses a state at
// a time: further calls for the same user wait until it is released. -ERROR_MEMORY; fn is not
// called.
NODISCARD int sidebar_read(struct sidebar *sidebar, const struct actor *actor, sidebar_fn *fn,
                           void *arg);
void sidebar_release(const struct sidebar_state *state);

// Totals over all channels except those that are gone.
struct sidebar_totals sidebar_totals_of(const struct sidebar_state *state);
void sidebar_totals_write(struct json_writer *w, const struct sidebar_totals *totals);
