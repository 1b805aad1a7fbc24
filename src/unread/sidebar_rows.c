// SPDX-License-Identifier: Apache-2.0
// The rows of one cached sidebar: reads them from results and writes them as JSON.
#include "sidebar_rows.h"

#include "unread/view.h"

#include "base/channel.h"
#include "base/check.h"
#include "base/cleanup.h"
#include "base/json_writer.h"
#include "base/unicode.h"
#include "chat/message.h"

#include <stdlib.h>
#include <string.h>

enum {
    COLUMN_ID,
    COLUMN_NAME,
    COLUMN_SEQ,
    COLUMN_UPDATED,
    COLUMN_TS,
    COLUMN_LATEST_USER,
    COLUMN_LATEST_PREVIEW,
    COLUMN_UNREAD,
    COLUMN_CHANGED,
    COLUMN_REST, // NULL: all values are 0, except REST_LATEST_TS, which is `updated`
    COLUMN_MAX
};

enum {
    REST_TYPE,
    REST_STRATEGY,
    REST_EPOCH,
    REST_LATEST_TS,
    REST_MUTED,
    REST_GONE,
    REST_MENTIONS,
    REST_NOTIFY,
    REST_MAX
};

// A row as received: numbers as digits, none for 0.
struct sidebar_row {
    struct result_field field[COLUMN_MAX];
    int64_t updated;
    int64_t unread;
    int64_t rest[REST_MAX];
};

enum { FIRST_CAPACITY = 256, RUN_MAX = 8192, MERGED_AT_ONCE = 8192 };

static const char json_start[] = "{\"id\":\"";

void sidebar_rows_init(struct sidebar_rows *rows, const char *user_id)
{
    *rows = (struct sidebar_rows){.user_id = user_id};
    buffer_init(&rows->bytes, UINT32_MAX);
}

void sidebar_rows_clear(struct sidebar_rows *rows)
{
    free(rows->spare); // it may be too small for `entries`, if there was no memory
    *rows = (struct sidebar_rows){.user_id = rows->user_id,
                                  .bytes = rows->bytes,
                                  .entries = rows->entries,
                                  .capacity = rows->capacity};
    buffer_clear(&rows->bytes);
}

void sidebar_rows_done(struct sidebar_rows *rows)
{
    free(rows->entries);
    free(rows->spare);
    buffer_done(&rows->bytes);
}

size_t sidebar_rows_size(const struct sidebar_rows *rows)
{
    return rows->bytes.length + (size_t)rows->state.count * sizeof *rows->entries;
}

static const char *entry_id(const struct sidebar_rows *rows, const struct sidebar_entry *entry)
{
    size_t start = entry->json_length > 0 ? sizeof json_start - 1 : 0;

    return rows->bytes.data + entry->json_at + start;
}

// FNV-1a.
static uint64_t hash_of(const char *text, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    return hash;
}

// Order: unread first, then newest activity, then id. Negative: `a` comes first.
static int entry_compare(const struct sidebar_rows *rows, const struct sidebar_entry *a,
                         const struct sidebar_entry *b)
{
    size_t length = a->id_length < b->id_length ? a->id_length : b->id_length;

    if (a->is_unread != b->is_unread)
        return a->is_unread ? -1 : 1;
    if (a->updated != b->updated)
        return a->updated > b->updated ? -1 : 1;
    int order = memcmp(entry_id(rows, a), entry_id(rows, b), length);
    return order != 0 ? order : (int)a->id_length - (int)b->id_length;
}

static bool entries_resize(struct sidebar_rows *rows, struct sidebar_entry **entries, int capacity)
{
    void *resized = reallocarray(*entries, (size_t)capacity, sizeof **entries);

    if (!resized) {
        rows->failed = true;
        return false;
    }
    *entries = resized;
    return true;
}

// Ensures capacity for `count` more entries.
static bool entries_reserve(struct sidebar_rows *rows, int count)
{
    int capacity = rows->capacity == 0 ? FIRST_CAPACITY : rows->capacity;

    while (capacity < rows->state.count + count)
        capacity *= 2;
    if (capacity > rows->capacity && !entries_resize(rows, &rows->entries, capacity))
        return false;
    rows->capacity = capacity;
    return true;
}

// The same, with `spare`.
static bool rows_reserve(struct sidebar_rows *rows, int count)
{
    int capacity = rows->capacity;

    return entries_reserve(rows, count) && ((rows->spare && rows->capacity == capacity) ||
                                            entries_resize(rows, &rows->spare, rows->capacity));
}

static void row_read(const struct result *result, int number, int column,
                     struct sidebar_row *ret_row)
{
    result_fields(result, number, column, COLUMN_MAX, ret_row->field);
    ret_row->updated = result_field_int(&ret_row->field[COLUMN_UPDATED]);
    ret_row->unread = result_field_int(&ret_row->field[COLUMN_UNREAD]);
    memset(ret_row->rest, 0, sizeof ret_row->rest);
    ret_row->rest[REST_LATEST_TS] = ret_row->updated;
    result_ints(result, number, column + COLUMN_REST, ret_row->rest, REST_MAX);
}

static enum channel_type type_of(const struct sidebar_row *row)
{
    return channel_type_of(row->rest[REST_TYPE]);
}

// Every message of a direct conversation counts as a mention, unless it is muted.
static int64_t mentions_of(const struct sidebar_row *row)
{
    bool all = channel_type_is_direct(type_of(row)) && row->rest[REST_MUTED] == 0;

    return all ? row->unread : row->rest[REST_MENTIONS];
}

// The name of a direct conversation is both users' ids: "U1,U2", or "U1" with oneself. Clients need
// the other user.
static void peer_write(struct json_writer *w, const char *people, const char *user_id)
{
    size_t first = strcspn(people, ",");
    const char *second = people + first + (people[first] == ',');
    bool user_is_first = strncmp(people, user_id, first) == 0 && user_id[first] == '\0';

    json_key(w, "user");
    if (user_is_first && second[0] != '\0')
        json_text(w, second);
    else
        json_string_n(w, people, first);
}

static void field_write(struct json_writer *w, const char *key, const struct result_field *field)
{
    json_key(w, key);
    json_string_n(w, field->text, field->length);
}

// What is stored has one code point more than is shown.
static void preview_write(struct json_writer *w, const struct result_field *field)
{
    json_key(w, "latest_preview");
    json_string_n(w, field->text,
                  unicode_prefix_length(field->text, field->length, PREVIEW_CODE_POINTS));
}

// Writes one channel for unread.sync.
static void row_write(struct json_writer *w, const char *user_id, const struct sidebar_row *row)
{
    enum channel_type type = type_of(row);

    json_open_object(w);
    field_write(w, "id", &row->field[COLUMN_ID]);
    if (type == CHANNEL_IM)
        peer_write(w, row->field[COLUMN_NAME].text, user_id);
    else
        field_write(w, "name", &row->field[COLUMN_NAME]);
    json_key_bool(w, "is_private", type != CHANNEL_PUBLIC);
    json_key_ts(w, "last_read", result_field_int(&row->field[COLUMN_TS]));
    json_key_ts(w, "updated", row->updated);
    json_key_ts(w, "latest", row->rest[REST_LATEST_TS]);
    field_write(w, "latest_user", &row->field[COLUMN_LATEST_USER]);
    preview_write(w, &row->field[COLUMN_LATEST_PREVIEW]);
    json_key(w, "seq");
    json_raw(w, row->field[COLUMN_SEQ].text, row->field[COLUMN_SEQ].length);
    json_key_int(w, "read_epoch", row->rest[REST_EPOCH]);
    unread_counts_write(w, row->rest[REST_STRATEGY], row->unread, mentions_of(row));
    unread_settings_write(w, row->rest[REST_MUTED] != 0, row->rest[REST_NOTIFY]);
    json_close_object(w);
}

// Builds a row's entry and its JSON.
static void entry_read(struct sidebar_rows *rows, const struct result *result, int number,
                       int column, struct sidebar_entry *ret_entry)
{
    struct sidebar_row row;
    row_read(result, number, column, &row);
    const struct result_field *id = &row.field[COLUMN_ID];
    struct json_writer w = json_writer_to(&rows->bytes);
    struct sidebar_entry entry = {
        .changed = result_field_int(&row.field[COLUMN_CHANGED]),
        .updated = row.updated,
        .unread = unread_shown(row.rest[REST_STRATEGY], row.unread),
        .mentions = mentions_of(&row),
        .id_hash = hash_of(id->text, id->length),
        .id_length = (uint8_t)id->length,
        .is_muted = row.rest[REST_MUTED] != 0,
        .type = (uint8_t)type_of(&row),
        .json_at = (uint32_t)rows->bytes.length,
    };

    ASSERT(id->length <= UINT8_MAX);
    entry.is_unread = row.unread > 0 && !entry.is_muted;
    if (row.rest[REST_GONE] != 0) {
        buffer_append(&rows->bytes, id->text, id->length);
    } else {
        row_write(&w, rows->user_id, &row);
        entry.json_length = (uint32_t)(rows->bytes.length - entry.json_at);
    }
    rows->failed = rows->failed || buffer_failed(&rows->bytes);
    *ret_entry = entry;
}

static int entry_sort_compare(const void *left, const void *right, void *rows)
{
    return entry_compare(rows, left, right);
}

static void entries_sort(struct sidebar_rows *rows, struct sidebar_entry *entries, int count)
{
    if (!rows->failed && count > 1)
        qsort_r(entries, (size_t)count, sizeof *entries, entry_sort_compare, rows);
}

// Merges two adjacent sorted runs.
static void runs_merge(struct sidebar_rows *rows, int start, int middle, int end)
{
    const struct sidebar_entry *a = rows->entries + start;
    const struct sidebar_entry *b = rows->entries + middle;
    const struct sidebar_entry *a_end = b;
    const struct sidebar_entry *b_end = rows->entries + end;
    struct sidebar_entry *to = rows->spare;
    ASSERT(start <= middle && middle <= end && end <= rows->capacity);

    while (a < a_end && b < b_end)
        *to++ = entry_compare(rows, a, b) <= 0 ? *a++ : *b++;
    memcpy(to, a, (size_t)(a_end - a) * sizeof *a);
    to += a_end - a;
    memcpy(to, b, (size_t)(b_end - b) * sizeof *b);
    memcpy(rows->entries + start, rows->spare, (size_t)(end - start) * sizeof *to);
}

static int run_length(const struct sorted_run *run)
{
    return run->end - run->at;
}

static void last_runs_merge(struct sidebar_rows *rows)
{
    struct sorted_run *last = &rows->runs[--rows->run_count];

    if (!rows->failed)
        runs_merge(rows, last[-1].at, last->at, last->end);
    last[-1].end = last->end;
}

// Adds the last `count` entries as a run. A run is merged with the previous one once it is as long,
// which limits the number of runs and how often an entry moves. Long runs are excluded, since
// merging them takes long.
static void run_push(struct sidebar_rows *rows, int count)
{
    int end = rows->state.count;

    if (rows->run_count == RUNS_MAX)
        last_runs_merge(rows);
    ASSERT(count <= end && rows->run_count < RUNS_MAX);
    rows->runs[rows->run_count++] = (struct sorted_run){end - count, end};
    while (rows->run_count > 1) {
        const struct sorted_run *last = &rows->runs[rows->run_count - 1];
        int length = run_length(last);
        if (2 * length <= run_length(&last[-1]) || length + run_length(&last[-1]) > RUN_MAX)
            return;
        last_runs_merge(rows);
    }
}

void sidebar_rows_add(struct sidebar_rows *rows, const struct result *result, int first, int count)
{
    struct sidebar_entry *entries;

    if (count == 0 || !rows_reserve(rows, count))
        return;
    entries = rows->entries + rows->state.count;
    for (int i = 0; i < count; i++)
        entry_read(rows, result, first + i, 0, &entries[i]);
    ASSERT(rows->state.count + count <= rows->capacity);
    rows->state.count += count;
    rows->state.entries = rows->entries;
    entries_sort(rows, entries, count);
    run_push(rows, count);
}

static bool run_is_first(const struct sidebar_rows *rows, int a, int b)
{
    return entry_compare(rows, &rows->entries[rows->runs[a].at], &rows->entries[rows->runs[b].at]) <
           0;
}

// The runs are a heap by their first entries, except `run`, which may belong further down.
static void run_sink(struct sidebar_rows *rows, int run)
{
    for (int child = 2 * run + 1; child < rows->run_count; child = 2 * run + 1) {
        if (child + 1 < rows->run_count && run_is_first(rows, child + 1, child))
            child++;
        if (run_is_first(rows, run, child))
            return;
        struct sorted_run down = rows->runs[run];
        rows->runs[run] = rows->runs[child];
        rows->runs[child] = down;
        run = child;
    }
}

static void first_entry_take(struct sidebar_rows *rows)
{
    struct sorted_run *first = &rows->runs[0];

    ASSERT(rows->run_count > 0 && first->at < first->end && rows->merged < rows->capacity);
    rows->spare[rows->merged++] = rows->entries[first->at++];
    if (first->at == first->end)
        *first = rows->runs[--rows->run_count];
    run_sink(rows, 0);
}

bool sidebar_rows_sort(struct sidebar_rows *rows)
{
    bool in_order = rows->merged == 0 && rows->run_count <= 1;

    if (rows->failed || in_order) {
        free(TAKE(rows->spare));
        return true;
    }
    for (int run = rows->run_count - 1; rows->merged == 0 && run >= 0; run--)
        run_sink(rows, run);
    for (int i = 0; i < MERGED_AT_ONCE && rows->merged < rows->state.count; i++)
        first_entry_take(rows);
    if (rows->merged < rows->state.count)
        return false;
    free(rows->entries);
    rows->entries = TAKE(rows->spare);
    rows->state.entries = rows->entries;
    return true;
}

// The ids of changed entries, for finding the entries that they replace.
struct replaced {
    const struct sidebar_entry **entries; // sorted by hash
    int count;
    uint64_t filter; // bits 1 << hash % 64: most entries need no search
};

static int hash_compare(const void *left, const void *right)
{
    uint64_t a = (*(const struct sidebar_entry *const *)left)->id_hash;
    uint64_t b = (*(const struct sidebar_entry *const *)right)->id_hash;

    return a < b ? -1 : a > b;
}

static uint64_t filter_bit(uint64_t hash)
{
    return UINT64_C(1) << (hash & 63);
}

static bool replaced_begin(struct replaced *replaced, const struct sidebar_entry *fresh, int count)
{
    *replaced = (struct replaced){.entries = calloc((size_t)count, sizeof *replaced->entries),
                                  .count = count};
    if (!replaced->entries)
        return false;
    for (int i = 0; i < count; i++) {
        replaced->entries[i] = &fresh[i];
        replaced->filter |= filter_bit(fresh[i].id_hash);
    }
    qsort(replaced->entries, (size_t)count, sizeof *replaced->entries, hash_compare);
    return true;
}

// The number of entries with lower hashes.
static int replaced_before(const struct replaced *replaced, uint64_t hash)
{
    int low = 0;

    for (int count = replaced->count; count > 0;) {
        int half = count / 2;
        if (replaced->entries[low + half]->id_hash < hash) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return low;
}

static bool is_replaced(const struct sidebar_rows *rows, const struct replaced *replaced,
                        const struct sidebar_entry *entry)
{
    if ((replaced->filter & filter_bit(entry->id_hash)) == 0)
        return false;
    for (int i = replaced_before(replaced, entry->id_hash);
         i < replaced->count && replaced->entries[i]->id_hash == entry->id_hash; i++)
        if (replaced->entries[i]->id_length == entry->id_length &&
            memcmp(entry_id(rows, replaced->entries[i]), entry_id(rows, entry), entry->id_length) ==
                0)
            return true;
    return false;
}

static void entries_drop(struct sidebar_rows *rows, const struct replaced *replaced)
{
    int kept = 0;

    for (int i = 0; i < rows->state.count; i++) {
        const struct sidebar_entry *entry = &rows->entries[i];
        if (is_replaced(rows, replaced, entry))
            rows->wasted += entry->json_length + entry->id_length;
        else if (kept++ < i)
            rows->entries[kept - 1] = *entry;
    }
    rows->state.count = kept;
}

// How many of the first `count` entries come before `entry`.
static int entries_before(const struct sidebar_rows *rows, int count,
                          const struct sidebar_entry *entry)
{
    int low = 0;

    while (count > 0) {
        int half = count / 2;
        if (entry_compare(rows, &rows->entries[low + half], entry) < 0) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return low;
}

// Inserts sorted entries. Each entry that is there moves once.
static void entries_insert(struct sidebar_rows *rows, const struct sidebar_entry *fresh, int count)
{
    int end = rows->state.count; // of those that have not moved yet

    ASSERT(end + count <= rows->capacity);
    rows->state.count += count;
    for (int i = count - 1; i >= 0; i--) {
        int at = entries_before(rows, end, &fresh[i]);
        memmove(&rows->entries[at + i + 1], &rows->entries[at],
                (size_t)(end - at) * sizeof *rows->entries);
        rows->entries[at + i] = fresh[i];
        end = at;
    }
    rows->state.entries = rows->entries;
}

// Reads the entries of `result`; returns their number.
static int entries_read(struct sidebar_rows *rows, const struct result *result, int column,
                        struct sidebar_entry *ret_entries)
{
    int count = 0;

    for (int row = 0; row < result_rows(result); row++)
        if (!result_is_null(result, row, column))
            entry_read(rows, result, row, column, &ret_entries[count++]);
    return count;
}

static void entries_replace(struct sidebar_rows *rows, struct sidebar_entry *fresh, int count)
{
    struct replaced replaced;

    if (count == 0 || rows->failed)
        return;
    rows->failed = !replaced_begin(&replaced, fresh, count);
    if (!rows->failed) {
        entries_drop(rows, &replaced);
        entries_sort(rows, fresh, count);
        entries_insert(rows, fresh, count);
    }
    free(replaced.entries);
}

void sidebar_rows_apply(struct sidebar_rows *rows, const struct result *result, int column)
{
    struct sidebar_entry *fresh = calloc((size_t)result_rows(result) + 1, sizeof *fresh);

    if (!fresh)
        rows->failed = true;
    else if (entries_reserve(rows, result_rows(result)))
        entries_replace(rows, fresh, entries_read(rows, result, column, fresh));
    free(fresh);
}

const char *sidebar_entry_json(const struct sidebar_state *state, const struct sidebar_entry *entry)
{
    return ((const struct sidebar_rows *)(const void *)state)->bytes.data + entry->json_at;
}

const char *sidebar_entry_id(const struct sidebar_state *state, const struct sidebar_entry *entry)
{
    return entry_id((const struct sidebar_rows *)(const void *)state, entry);
}

struct sidebar_totals sidebar_totals_of(const struct sidebar_state *state)
{
    struct sidebar_totals totals = {0};

    for (int i = 0; i < state->count; i++) {
        const struct sidebar_entry *entry = &state->entries[i];
        if (entry->json_length == 0)
            continue;
        bool direct = channel_type_is_direct((enum channel_type)entry->type);
        totals.unread_channels += entry->is_unread;
        totals.unread_directs += direct && entry->is_unread;
        totals.mention_count += entry->mentions;
        if (entry->is_muted)
            totals.muted_unread_count += entry->unread;
        else
            totals.unread_count += entry->unread;
    }
    totals.badge = totals.mention_count + state->thread_mentions - state->shared_mentions;
    return totals;
}

void sidebar_totals_write(struct json_writer *w, const struct sidebar_totals *totals)
{
    json_key(w, "totals");
    json_open_object(w);
    json_key_int(w, "unread_channels", totals->unread_channels);
    json_key_int(w, "unread_count", totals->unread_count);
    json_key_int(w, "mention_count", totals->mention_count);
    json_key_int(w, "muted_unread_count", totals->muted_unread_count);
    json_key_int(w, "badge", totals->badge);
    json_close_object(w);
}
