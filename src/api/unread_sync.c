// SPDX-License-Identifier: Apache-2.0
// unread.sync: everything a sidebar shows, in one call; with an earlier call's token, only the
// changes since.
#include "methods.h"
#include "sync_token.h"

#include "base/check.h"
#include "base/clock.h"
#include "gateway/gateway.h"
#include "store/session.h"
#include "unread/sidebar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// SLICE_BYTES: a loop's turn writes this much of a long reply.
enum { LIMIT_MAX = 1000, TOKEN_DAYS_MAX = 30, SLICE_BYTES = 1 << 20 };
#define DAY_US (86400LL * 1000000)

static const struct statement USERS_CHANGED = {"users_changed",
                                               "SELECT users_changed($1, $2::xid8)"};

struct sync {
    uint32_t tag;
    bool was_since_given;
    bool has_since;
    struct sync_token since;
    bool has_page;
    struct sync_page page;
    int64_t limit;    // 0: all
    unsigned types;   // bits 1 << enum channel_type
    bool with_badges; // client.counts
    // the reply
    const struct sidebar_state *state;
    struct sync_token token;
    struct result *users; // who has changed; NULL: not known
    struct json_writer *w;
    int first; // of this page's entries
    int end;
    int list; // being written
    int next; // of its entries
    bool has_more;
};

static bool take_since(struct invocation *invocation, struct sync *sync)
{
    const char *text = NULL;

    if (!take_optional_word(invocation, "since", &text))
        return false;
    if (!text)
        return true;
    sync->was_since_given = true;
    if (!sync_token_parse(text, &sync->since)) {
        invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                                "since: must be the sync_token of an earlier reply");
        return false;
    }
    // Retention may have removed data since an old token, so it yields a full reply.
    sync->has_since =
        sync->since.seconds > clock_wall_us() / 1000000 - TOKEN_DAYS_MAX * (DAY_US / 1000000);
    return true;
}

static bool take_sync(struct invocation *invocation, struct sync *sync)
{
    const char *page = NULL;

    sync->types = TYPES_ALL;
    if (!take_since(invocation, sync) || !take_limit(invocation, LIMIT_MAX, &sync->limit) ||
        !take_cursor(invocation, "p1", &page) || !take_optional_types(invocation, &sync->types))
        return false;
    sync->has_page = page != NULL;
    if (!page || sync_page_parse(page, &sync->page))
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_CURSOR,
                            "cursor: must be the next_cursor of an earlier reply");
    return false;
}

// Whether an entry comes after the previous page. Order: unread first, then newest activity, then
// id.
static bool entry_is_after(const struct sync *sync, const struct sidebar_entry *entry)
{
    const struct sync_page *page = &sync->page;
    const char *id = sidebar_entry_id(sync->state, entry);
    size_t length = strlen(page->id);
    size_t common = length < entry->id_length ? length : entry->id_length;

    if (entry->is_unread != page->unread)
        return page->unread;
    if (entry->updated != page->updated)
        return entry->updated < page->updated;
    int order = memcmp(id, page->id, common);
    return order > 0 || (order == 0 && entry->id_length > length);
}

static bool entry_is_gone(const struct sidebar_entry *entry)
{
    return entry->json_length == 0;
}

static bool entry_is_asked(const struct sync *sync, const struct sidebar_entry *entry)
{
    bool has_changed = sync->has_since ? entry->changed >= sync->since.xid : !entry_is_gone(entry);

    return has_changed && (sync->types >> entry->type & 1) != 0;
}

// Sets first and end, around the entries asked for; returns whether there are more pages.
static bool page_find(struct sync *sync)
{
    const struct sidebar_state *state = sync->state;
    int64_t left = sync->limit > 0 ? sync->limit : INT64_MAX;
    int i = 0;

    while (sync->has_page && i < state->count && !entry_is_after(sync, &state->entries[i]))
        i++;
    sync->first = sync->end = i;
    for (; i < state->count; i++) {
        if (!entry_is_asked(sync, &state->entries[i]))
            continue;
        if (left-- == 0)
            return true;
        if (sync->end == sync->first)
            sync->first = i;
        sync->end = i + 1;
    }
    return false;
}

static void channel_write(const struct sync *sync, const struct sidebar_entry *entry)
{
    const char *json = sidebar_entry_json(sync->state, entry);

    if (!sync->with_badges) {
        json_raw(sync->w, json, entry->json_length);
        return;
    }
    json_raw(sync->w, json, entry->json_length - 1);
    json_key_ts(sync->w, "history_invalid", 0);
    json_close_object(sync->w);
}

// The lists of a reply in order, each with its types of channels.
static const struct {
    const char *key;
    unsigned types;
} lists[] = {
    {"channels", 1U << CHANNEL_PUBLIC | 1U << CHANNEL_PRIVATE},
    {"mpims", 1U << CHANNEL_MPIM},
    {"ims", 1U << CHANNEL_IM},
};
enum { LIST_COUNT = sizeof lists / sizeof *lists };

// Writes more of a list, up to a turn's share. Returns whether all of it is written.
static bool list_write(struct sync *sync)
{
    size_t start = sync->w->out->length;

    for (; sync->next < sync->end; sync->next++) {
        const struct sidebar_entry *entry = &sync->state->entries[sync->next];
        if (sync->w->out->length - start > SLICE_BYTES)
            return false;
        if (!entry_is_gone(entry) && (lists[sync->list].types >> entry->type & 1) != 0 &&
            entry_is_asked(sync, entry))
            channel_write(sync, entry);
    }
    json_close_array(sync->w);
    return true;
}

static void list_open(struct sync *sync)
{
    sync->next = sync->first;
    json_key(sync->w, lists[sync->list].key);
    json_open_array(sync->w);
}

// Returns whether all lists are written.
static bool lists_write(struct sync *sync)
{
    while (list_write(sync)) {
        if (++sync->list == LIST_COUNT)
            return true;
        list_open(sync);
    }
    return false;
}

static void removed_write(const struct sync *sync)
{
    json_key(sync->w, "removed");
    json_open_array(sync->w);
    for (int i = sync->first; i < sync->end; i++) {
        const struct sidebar_entry *entry = &sync->state->entries[i];
        if (entry_is_gone(entry) && entry_is_asked(sync, entry))
            json_string_n(sync->w, sidebar_entry_id(sync->state, entry), entry->id_length);
    }
    json_close_array(sync->w);
}

static void threads_write(struct json_writer *w, const struct sidebar_state *state)
{
    json_key(w, "threads");
    json_open_object(w);
    json_key_bool(w, "has_unreads", state->thread_unread > 0);
    json_key_int(w, "unread_count", state->thread_unread);
    json_key_int(w, "mention_count", state->thread_mentions);
    json_close_object(w);
}

// Members that Slack's own clients expect in client.counts.
static void badges_write(struct json_writer *w, const struct sidebar_state *state,
                         const struct sidebar_totals *totals)
{
    json_key(w, "channel_badges");
    json_open_object(w);
    json_key_int(w, "channels", totals->unread_channels - totals->unread_directs);
    json_key_int(w, "dms", totals->unread_directs);
    json_key_int(w, "app_dms", 0);
    json_key_int(w, "thread_mentions", state->thread_mentions);
    json_key_int(w, "thread_unreads", state->thread_unread);
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

// Writes where this page ended, if there is a next one.
static void page_write(const struct sync *sync, bool has_more)
{
    char text[SYNC_PAGE_SIZE] = "";

    if (has_more) {
        const struct sidebar_entry *last = &sync->state->entries[sync->end - 1];
        struct sync_page page = {
            .token = sync->token, .unread = last->is_unread, .updated = last->updated};
        snprintf(page.id, sizeof page.id, "%.*s", last->id_length,
                 sidebar_entry_id(sync->state, last));
        sync_page_print(&page, text);
    }
    invocation_write_next_cursor(sync->w, "p1", text);
}

// The position from which events.sync or a stream continues.
static void position_write(const struct invocation *invocation)
{
    const struct sync *sync = CAST(sync, invocation->state);
    const struct sync_token *token = &sync->token;
    char text[GATEWAY_POSITION_SIZE];

    gateway_position_print(invocation->actor->user_id, token->xid, token->era, token->seconds,
                           text);
    json_key_string(sync->w, "position", text);
}

// In a full reply to a token that was too old, anybody may have changed.
static void users_write(struct sync *sync)
{
    if (!sync->was_since_given)
        return;
    json_key(sync->w, "users_changed");
    if (sync->users)
        json_raw(sync->w, result_text(sync->users, 0, 0), result_length(sync->users, 0, 0));
    else
        json_none(sync->w);
    result_free(TAKE(sync->users));
}

static void reply_begin(struct invocation *invocation)
{
    struct sync *sync = CAST(sync, invocation->state);
    char text[SYNC_TOKEN_SIZE];

    sync_token_print(&sync->token, text);
    sync->w = invocation_open(invocation);
    json_key_bool(sync->w, "full", !sync->has_since);
    json_key_string(sync->w, "sync_token", text);
    list_open(sync);
}

static void reply_end(struct invocation *invocation)
{
    struct sync *sync = CAST(sync, invocation->state);
    struct sidebar_totals totals = sidebar_totals_of(sync->state);

    removed_write(sync);
    users_write(sync);
    threads_write(sync->w, sync->state);
    sidebar_totals_write(sync->w, &totals);
    if (sync->with_badges)
        badges_write(sync->w, sync->state, &totals);
    position_write(invocation);
    page_write(sync, sync->has_more);
    sidebar_release(sync->state);
    invocation_close(invocation);
}

// Writes a slice per turn, so that others are served in between.
static void reply_advance(void *arg)
{
    struct invocation *invocation = CAST(invocation, arg);

    while (!lists_write(CAST(sync, invocation->state)))
        if (loop_post(invocation->api->loop, reply_advance, invocation) == 0)
            return;
    reply_end(invocation);
}

static void users_answer(void *arg, const struct store_outcome *outcome)
{
    struct invocation *invocation = CAST(invocation, arg);
    struct sync *sync = CAST(sync, invocation->state);

    if (outcome->r < 0) {
        sidebar_release(sync->state);
        invocation_fail(invocation, outcome->r);
        return;
    }
    sync->users = store_take(outcome);
    reply_begin(invocation);
    reply_advance(invocation);
}

// After the channels, so that nothing is missed between this reply and the next one.
static void users_ask(struct invocation *invocation)
{
    const struct sync *sync = CAST(sync, invocation->state);
    struct params params = {0};

    params_text(&params, invocation->actor->workspace_id);
    params_xid(&params, sync->since.xid);
    store_call(invocation->api->options.store, STORE_READ, &USERS_CHANGED, &params, users_answer,
               invocation);
}

static void sync_answer(void *arg, int r, const struct sidebar_state *state)
{
    struct invocation *invocation = CAST(invocation, arg);
    struct sync *sync = CAST(sync, invocation->state);

    if (r < 0) {
        invocation_fail(invocation, r);
        return;
    }
    sync->state = state;
    sync->token = (struct sync_token){state->xid, state->since_s, state->era};
    if (sync->since.xid > state->xid || // of another database: its token is useless here
        !store_era_holds(invocation->api->options.store, sync->since.era, sync->since.xid))
        sync->has_since = false;
    if (sync->has_page)
        sync->token = sync->page.token; // the first page's: it misses all later changes
    sync->has_more = page_find(sync);
    if (sync->has_since) {
        users_ask(invocation);
        return;
    }
    reply_begin(invocation);
    reply_advance(invocation);
}

static void sync_begin(struct invocation *invocation, bool with_badges)
{
    struct sync *sync = TAGGED_NEW(sync);

    if (!sync) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return;
    }
    invocation->state = sync;
    sync->with_badges = with_badges;
    if (!take_sync(invocation, sync))
        return;
    int r =
        sidebar_read(invocation->api->options.sidebar, invocation->actor, sync_answer, invocation);
    if (r < 0)
        invocation_fail(invocation, r);
}

void unread_sync(struct invocation *invocation)
{
    sync_begin(invocation, false);
}

void client_counts(struct invocation *invocation)
{
    sync_begin(invocation, true);
}
