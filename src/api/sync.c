// SPDX-License-Identifier: Apache-2.0
// unread.sync: all that a sidebar needs, in one call; with a token of an earlier one, only what
// changed since.
//
// A sync token names a snapshot of Postgres: "s1.<xid>.<seconds>". Every transaction below that xid
// had ended, so its effects are in the answer; all others are looked at again by the next call.
// Nothing is missed whatever was being committed.
#include "methods.h"

#include "base/clock.h"
#include "chat/message.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// All channels of a user, in any order; without a row of its own the token still comes. What is
// asked of it here costs a microsecond a channel; sorting and totals are cheaper in C.
#define SYNC_SELECT                                                                                \
    "SELECT t.token, r.channel_id, r.name, r.type, r.epoch, r.ts, r.head_seq, r.updated_ts,"       \
    " NULLIF(r.latest_ts, r.updated_ts), r.latest_user, r.latest_preview, r.unread, r.muted,"      \
    " r.mentions"
#define SYNC_FROM                                                                                  \
    " FROM (SELECT (SELECT pg_snapshot_xmin(pg_current_snapshot())::text) AS token) t LEFT JOIN "
static const struct statement SYNC_FULL = {
    "unread_sync_full", SYNC_SELECT SYNC_FROM
    "(SELECT * FROM unread_rows u WHERE u.user_id = $2 AND u.workspace_id = $1"
    " AND u.active AND u.is_open AND NOT u.is_archived) r ON true"};
// Also what is gone, and which channels may have changed after the snapshot $3.
static const struct statement SYNC_SINCE = {
    "unread_sync_since",
    SYNC_SELECT ", r.gone, r.changed" SYNC_FROM "(SELECT u.*, NOT u.active OR u.is_archived OR NOT "
                "u.is_open AS gone, u.member_changed >= $3::xid8 OR"
                " u.channel_changed >= $3::xid8 AS changed FROM unread_rows u"
                " WHERE u.user_id = $2 AND u.workspace_id = $1) r ON true"};
enum {
    COLUMN_TOKEN,
    COLUMN_ID,
    COLUMN_NAME,
    COLUMN_TYPE,
    COLUMN_EPOCH,
    COLUMN_TS,
    COLUMN_SEQ,
    COLUMN_UPDATED,
    COLUMN_LATEST_TS, // NULL when it is `updated`
    COLUMN_LATEST_USER,
    COLUMN_LATEST_PREVIEW,
    COLUMN_UNREAD,
    COLUMN_MUTED,
    COLUMN_MENTIONS,
    COLUMN_GONE, // both of SYNC_SINCE alone
    COLUMN_CHANGED,
};

enum { LIMIT_MAX = 1000, TOKEN_DAYS_MAX = 30, TOKEN_TEXT_SIZE = 64 };
#define DAY_US (86400LL * 1000000)

struct sync_token {
    int64_t xid;
    int64_t seconds;
};

// One channel, as far as its place in the list depends on it.
struct entry {
    int row;
    bool gone;
    bool unread; // and not muted
    int64_t updated;
    const char *id;
};

struct sync_totals {
    int64_t unread_channels;
    int64_t unread_count;
    int64_t muted_unread_count;
    int64_t mention_count;  // of muted channels too, not of muted direct conversations
    int64_t unread_directs; // among unread_channels
};

// Where the page before ended; with the token that the first page gave.
struct sync_page {
    struct sync_token token;
    bool unread;
    int64_t updated;
    char id[ID_SIZE];
};

struct sync {
    bool has_since;
    struct sync_token since;
    bool has_page;
    struct sync_page page;
    int64_t limit;    // 0: all
    unsigned types;   // bits 1 << enum channel_type
    bool with_badges; // client.counts
    const char *caller_id;
};

static bool token_parse(const char *text, struct sync_token *ret_token)
{
    char again[TOKEN_TEXT_SIZE];

    if (sscanf(text, "s1.%" SCNd64 ".%" SCNd64, &ret_token->xid, &ret_token->seconds) != 2 ||
        ret_token->xid < 0)
        return false;
    snprintf(again, sizeof again, "s1.%" PRId64 ".%" PRId64, ret_token->xid, ret_token->seconds);
    return strcmp(again, text) == 0; // nothing but what we print
}

static bool page_parse(const char *text, struct sync_page *ret_page)
{
    int unread;
    int end = 0;

    if (sscanf(text, "%" SCNd64 ".%" SCNd64 ".%1d.%" SCNd64 ".%20[A-Z0-9]%n", &ret_page->token.xid,
               &ret_page->token.seconds, &unread, &ret_page->updated, ret_page->id, &end) != 5 ||
        text[end] != '\0' || !id_is_valid(ret_page->id, "CGD"))
        return false;
    ret_page->unread = unread != 0;
    return true;
}

static bool take_since(struct invocation *invocation, struct sync *sync)
{
    const char *text = NULL;

    if (!take_optional_text(invocation, "since", &text))
        return false;
    if (text == NULL || text[0] == '\0')
        return true;
    if (!token_parse(text, &sync->since)) {
        invocation_complain(invocation, -ERROR_INVALID_ARGUMENTS,
                            "since: must be the sync_token of an earlier reply");
        return false;
    }
    // A token too old to be trusted with retention gives a full answer.
    sync->has_since =
        sync->since.seconds > clock_wall_us() / 1000000 - TOKEN_DAYS_MAX * (DAY_US / 1000000);
    return true;
}

static bool take_sync(struct invocation *invocation, struct sync *sync)
{
    const char *page = NULL;

    sync->types = TYPES_ALL;
    if (!take_since(invocation, sync) ||
        !take_optional_int(invocation, "limit", -ERROR_INVALID_LIMIT, 1, LIMIT_MAX, &sync->limit) ||
        !take_cursor(invocation, "p1", &page))
        return false;
    if (request_arg(invocation->request, "types") != NULL && !take_types(invocation, &sync->types))
        return false;
    sync->has_page = page != NULL;
    if (page == NULL || page_parse(page, &sync->page))
        return true;
    invocation_complain(invocation, -ERROR_INVALID_CURSOR,
                        "cursor: must be the next_cursor of an earlier reply");
    return false;
}

static enum channel_type type_of(const struct result *result, int row)
{
    return (enum channel_type)result_int(result, row, COLUMN_TYPE);
}

// Every message of a direct conversation counts as a mention.
static int64_t mentions_of(const struct result *result, int row)
{
    return result_int(result, row,
                      channel_type_is_direct(type_of(result, row)) ? COLUMN_UNREAD
                                                                   : COLUMN_MENTIONS);
}

// A direct conversation is named by the ids of the two: "U1,U2", or "U1" with oneself. The client
// knows the other one.
static void peer_write(struct json_writer *w, const char *people, const char *caller_id)
{
    size_t first = strcspn(people, ",");
    const char *second = people + first + (people[first] == ',');
    bool caller_is_first = strncmp(people, caller_id, first) == 0 && caller_id[first] == '\0';

    json_key(w, "user");
    if (caller_is_first && second[0] != '\0')
        json_text(w, second);
    else
        json_string_n(w, people, first);
}

static void channel_write(struct json_writer *w, const struct sync *sync,
                          const struct result *result, int row)
{
    int64_t unread = result_int(result, row, COLUMN_UNREAD);
    enum channel_type type = type_of(result, row);

    json_open_object(w);
    json_key_string(w, "id", result_text(result, row, COLUMN_ID));
    if (type == CHANNEL_IM)
        peer_write(w, result_text(result, row, COLUMN_NAME), sync->caller_id);
    else
        json_key_string(w, "name", result_text(result, row, COLUMN_NAME));
    json_key_bool(w, "is_private", type != CHANNEL_PUBLIC);
    json_key_ts(w, "last_read", result_int(result, row, COLUMN_TS));
    json_key_ts(w, "latest",
                result_int(result, row,
                           result_is_null(result, row, COLUMN_LATEST_TS) ? COLUMN_UPDATED
                                                                         : COLUMN_LATEST_TS));
    json_key_string(w, "latest_user", result_text(result, row, COLUMN_LATEST_USER));
    json_key_string(w, "latest_preview", result_text(result, row, COLUMN_LATEST_PREVIEW));
    json_key_int(w, "seq", result_int(result, row, COLUMN_SEQ));
    json_key_ts(w, "updated", result_int(result, row, COLUMN_UPDATED));
    json_key_int(w, "read_epoch", result_int(result, row, COLUMN_EPOCH));
    json_key_bool(w, "has_unreads", unread > 0);
    json_key_int(w, "unread_count", unread);
    json_key_int(w, "unread_count_display", unread);
    json_key_bool(w, "unread_capped", false);
    json_key_int(w, "mention_count", mentions_of(result, row));
    json_key_bool(w, "is_muted", result_bool(result, row, COLUMN_MUTED));
    if (sync->with_badges)
        json_key_ts(w, "history_invalid", 0);
    json_close_object(w);
}

// Unread first, then newest activity, then by id.
static int entry_compare(const struct entry *a, const struct entry *b)
{
    if (a->unread != b->unread)
        return a->unread ? -1 : 1;
    if (a->updated != b->updated)
        return a->updated > b->updated ? -1 : 1;
    return strcmp(a->id, b->id);
}

static int entry_qsort_compare(const void *left, const void *right)
{
    return entry_compare(left, right);
}

static void totals_add(struct sync_totals *totals, const struct result *result,
                       const struct entry *entry, bool muted)
{
    int64_t unread = result_int(result, entry->row, COLUMN_UNREAD);
    bool direct = channel_type_is_direct(type_of(result, entry->row));

    if (entry->gone)
        return;
    totals->unread_channels += entry->unread;
    totals->unread_directs += direct && entry->unread;
    if (!direct || !muted)
        totals->mention_count += mentions_of(result, entry->row);
    if (muted)
        totals->muted_unread_count += unread;
    else
        totals->unread_count += unread;
}

static bool entry_is_asked(const struct sync *sync, const struct result *result,
                           const struct entry *entry)
{
    const struct sync_page *page = &sync->page;
    struct entry last = {.unread = page->unread, .updated = page->updated, .id = page->id};

    if (sync->has_since && !result_bool(result, entry->row, COLUMN_CHANGED))
        return false;
    if (sync->has_page && entry_compare(entry, &last) <= 0)
        return false;
    return (sync->types >> type_of(result, entry->row) & 1) != 0;
}

// Fills in the entries that are asked for, sorted, and the totals over all; returns how many
// entries. `entries` has room for all rows.
static int entries_read(const struct sync *sync, const struct result *result, struct entry *entries,
                        struct sync_totals *totals)
{
    int count = 0;

    for (int row = 0; row < result_rows(result); row++) {
        if (result_is_null(result, row, COLUMN_ID))
            continue;
        int64_t unread = result_int(result, row, COLUMN_UNREAD);
        bool muted = result_bool(result, row, COLUMN_MUTED);
        struct entry entry = {.row = row,
                              .gone = result_bool(result, row, COLUMN_GONE),
                              .unread = unread > 0 && !muted,
                              .updated = result_int(result, row, COLUMN_UPDATED),
                              .id = result_text(result, row, COLUMN_ID)};
        totals_add(totals, result, &entry, muted);
        if (entry_is_asked(sync, result, &entry))
            entries[count++] = entry;
    }
    qsort(entries, (size_t)count, sizeof *entries, entry_qsort_compare);
    return count;
}

// The entries of the types in `types`.
static void list_write(struct json_writer *w, const char *key, unsigned types,
                       const struct sync *sync, const struct result *result,
                       const struct entry *entries, int count)
{
    json_key(w, key);
    json_open_array(w);
    for (int i = 0; i < count; i++)
        if (!entries[i].gone && (types >> type_of(result, entries[i].row) & 1) != 0)
            channel_write(w, sync, result, entries[i].row);
    json_close_array(w);
}

static void channels_write(struct json_writer *w, const struct sync *sync,
                           const struct result *result, const struct entry *entries, int count)
{
    list_write(w, "channels", 1U << CHANNEL_PUBLIC | 1U << CHANNEL_PRIVATE, sync, result, entries,
               count);
    list_write(w, "mpims", 1U << CHANNEL_MPIM, sync, result, entries, count);
    list_write(w, "ims", 1U << CHANNEL_IM, sync, result, entries, count);
    json_key(w, "removed");
    json_open_array(w);
    for (int i = 0; i < count; i++)
        if (entries[i].gone)
            json_text(w, entries[i].id);
    json_close_array(w);
}

static void totals_write(struct json_writer *w, const struct sync_totals *totals)
{
    json_key(w, "threads");
    json_open_object(w);
    json_key_bool(w, "has_unreads", false);
    json_key_int(w, "unread_count", 0);
    json_key_int(w, "mention_count", 0);
    json_close_object(w);
    json_key(w, "totals");
    json_open_object(w);
    json_key_int(w, "unread_channels", totals->unread_channels);
    json_key_int(w, "unread_count", totals->unread_count);
    json_key_int(w, "mention_count", totals->mention_count);
    json_key_int(w, "muted_unread_count", totals->muted_unread_count);
    json_close_object(w);
}

// What Slack's own clients look for in client.counts.
static void badges_write(struct json_writer *w, const struct sync_totals *totals)
{
    json_key(w, "channel_badges");
    json_open_object(w);
    json_key_int(w, "channels", totals->unread_channels - totals->unread_directs);
    json_key_int(w, "dms", totals->unread_directs);
    json_key_int(w, "app_dms", 0);
    json_key_int(w, "thread_mentions", 0);
    json_key_int(w, "thread_unreads", 0);
    json_close_object(w);
    json_key(w, "alerts");
    json_open_object(w);
    json_close_object(w);
    json_key(w, "saved");
    json_open_object(w);
    json_key_int(w, "uncompleted_count", 0);
    json_key_int(w, "uncompleted_overdue_count", 0);
    json_close_object(w);
}

// `last` is where this page ended; NULL: there is no other.
static void page_write(struct json_writer *w, const struct sync_token *token,
                       const struct entry *last)
{
    char text[128] = "";

    if (last != NULL)
        snprintf(text, sizeof text, "%" PRId64 ".%" PRId64 ".%d.%" PRId64 ".%s", token->xid,
                 token->seconds, last->unread, last->updated, last->id);
    write_next_cursor(w, "p1", text);
}

static void sync_reply(struct invocation *invocation, const struct result *result,
                       struct sync_token token, struct entry *entries)
{
    const struct sync *sync = invocation->state;
    struct sync_totals totals = {0};
    char text[TOKEN_TEXT_SIZE];

    int count = entries_read(sync, result, entries, &totals);
    bool has_more = sync->limit > 0 && count > sync->limit;
    count = has_more ? (int)sync->limit : count;
    snprintf(text, sizeof text, "s1.%" PRId64 ".%" PRId64, token.xid, token.seconds);
    struct json_writer *w = invocation_open(invocation);
    json_key_bool(w, "full", !sync->has_since);
    json_key_string(w, "sync_token", text);
    channels_write(w, sync, result, entries, count);
    totals_write(w, &totals);
    if (sync->with_badges)
        badges_write(w, &totals);
    page_write(w, &token, has_more ? &entries[count - 1] : NULL);
    invocation_close(invocation);
}

static void sync_ask(struct invocation *invocation);

static void sync_answer(struct invocation *invocation, const struct result *result)
{
    struct sync *sync = invocation->state;
    struct sync_token token = {.xid = result_int(result, 0, COLUMN_TOKEN),
                               .seconds = clock_wall_us() / 1000000};

    if (sync->has_since &&
        sync->since.xid > token.xid) { // of another database: nothing can be told by it
        sync->has_since = false;
        sync_ask(invocation);
        return;
    }
    if (sync->has_page)
        token = sync->page.token; // later pages know more, but not of what earlier ones showed
    CLEANUP_FREE struct entry *entries = calloc((size_t)result_rows(result), sizeof *entries);
    if (entries == NULL)
        invocation_fail(invocation, -ERROR_MEMORY);
    else
        sync_reply(invocation, result, token, entries);
}

static void sync_ask(struct invocation *invocation)
{
    const struct sync *sync = invocation->state;
    struct params params = {0};
    char xid[24];

    params_text(&params, invocation->actor->workspace_id);
    params_text(&params, invocation->actor->user_id);
    if (sync->has_since) {
        snprintf(xid, sizeof xid, "%" PRId64, sync->since.xid);
        params_text(&params, xid);
    }
    invocation_query(invocation, STORE_SYNC, sync->has_since ? &SYNC_SINCE : &SYNC_FULL, &params,
                     sync_answer);
}

static void sync_begin(struct invocation *invocation, bool with_badges)
{
    struct sync *sync = calloc(1, sizeof *sync);

    if (sync == NULL) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return;
    }
    invocation->state = sync;
    sync->with_badges = with_badges;
    sync->caller_id = invocation->actor->user_id;
    if (take_sync(invocation, sync))
        sync_ask(invocation);
}

void unread_sync(struct invocation *invocation)
{
    sync_begin(invocation, false);
}

void client_counts(struct invocation *invocation)
{
    sync_begin(invocation, true);
}
