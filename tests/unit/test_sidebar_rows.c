// SPDX-License-Identifier: Apache-2.0
// The channels of a sidebar in memory: their order, what replaces them, their totals. The rows come
// from results that no Postgres made.
#include "../../src/store/postgres_internal.h"
#include "../../src/unread/sidebar_rows.h"

#include "store/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COLUMNS = 10, COLUMN_UPDATED = 3, COLUMN_UNREAD = 7, COLUMN_REST = 9 };

static struct sidebar_rows rows;

static int rows_set_up(void **state)
{
    (void)state;
    sidebar_rows_init(&rows, "U1");
    return 0;
}

static int rows_tear_down(void **state)
{
    (void)state;
    sidebar_rows_done(&rows);
    return 0;
}

static PGresult *result_new(void)
{
    static char names[COLUMNS][2] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
    PGresult *pg = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    PGresAttDesc columns[COLUMNS] = {0};

    for (int i = 0; i < COLUMNS; i++)
        columns[i].name = names[i];
    assert_non_null(pg);
    assert_true(PQsetResultAttrs(pg, COLUMNS, columns));
    return pg;
}

static void value_set(PGresult *pg, int row, int column, const char *text)
{
    char value[128];

    snprintf(value, sizeof value, "%s", text ? text : "");
    assert_true(PQsetvalue(pg, row, column, value, text ? (int)strlen(text) : -1));
}

// A public channel; `rest` is NULL, or the array of sidebar_rows.h.
static void row_add(PGresult *pg, const char *id, const char *updated, const char *unread,
                    const char *rest)
{
    const char *const values[COLUMNS] = {id, "name",    "7",    updated, NULL,
                                         "", "preview", unread, "3",     rest};
    int row = PQntuples(pg);

    for (int column = 0; column < COLUMNS; column++)
        value_set(pg, row, column, values[column]);
}

// Adds the rows as a chunk.
static void chunk_add(PGresult *pg)
{
    sidebar_rows_add(&rows, postgres_result(pg), 0, PQntuples(pg));
    PQclear(pg);
}

static void rows_change(PGresult *pg)
{
    sidebar_rows_apply(&rows, postgres_result(pg), 0);
    PQclear(pg);
}

static void rows_sort(void)
{
    int turns = 0;

    while (!sidebar_rows_sort(&rows))
        assert_true(++turns < 1000);
    assert_false(rows.failed);
}

// The ids in their order are `expected`, with blanks between; those that are gone in parentheses.
static void order_is(const char *expected)
{
    char found[256] = "";

    for (int i = 0; i < rows.state.count; i++) {
        const struct sidebar_entry *entry = &rows.state.entries[i];
        snprintf(found + strlen(found), sizeof found - strlen(found),
                 entry->json_length > 0 ? "%s%.*s" : "%s(%.*s)", i == 0 ? "" : " ",
                 entry->id_length, sidebar_entry_id(&rows.state, entry));
    }
    assert_string_equal(found, expected);
}

static void the_order(void **state)
{
    PGresult *pg = result_new();

    (void)state;
    row_add(pg, "C1", "10", NULL, NULL);
    row_add(pg, "C2", "20", NULL, NULL);
    row_add(pg, "C3", "5", "2", NULL);
    row_add(pg, "C10", "10", NULL, NULL);
    row_add(pg, "C4", "30", "9", "{0,0,0,30,1,0,0}"); // muted
    chunk_add(pg);
    rows_sort();
    order_is("C3 C4 C2 C1 C10");
}

static void chunks_are_merged(void **state)
{
    char expected[256] = "";

    (void)state;
    for (int i = 0; i < 30; i++) {
        PGresult *pg = result_new();
        char id[8];
        char updated[8];
        snprintf(id, sizeof id, "C%d", i);
        snprintf(updated, sizeof updated, "%d", 1 + i * 7 % 30);
        row_add(pg, id, updated, NULL, NULL);
        chunk_add(pg);
    }
    rows_sort();
    for (int age = 29; age >= 0; age--)
        for (int i = 0; i < 30; i++)
            if (i * 7 % 30 == age)
                snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%sC%d",
                         expected[0] == '\0' ? "" : " ", i);
    order_is(expected);
}

static void changes_replace_and_keep_the_order(void **state)
{
    PGresult *pg = result_new();

    (void)state;
    row_add(pg, "C1", "10", NULL, NULL);
    row_add(pg, "C2", "20", NULL, NULL);
    row_add(pg, "C3", "30", NULL, NULL);
    chunk_add(pg);
    rows_sort();
    pg = result_new();
    row_add(pg, "C1", "40", "1", NULL);                // is unread now
    row_add(pg, NULL, NULL, NULL, NULL);               // nothing
    row_add(pg, "C3", "30", NULL, "{0,0,0,30,0,1,0}"); // gone
    row_add(pg, "C4", "25", NULL, NULL);               // new
    rows_change(pg);
    order_is("C1 (C3) C4 C2");
    assert_true(rows.wasted > 0);
    assert_false(rows.failed);
}

enum { CHANNELS = 60, ROUNDS = 500, CHANGED_MAX = 12 };

static struct {
    bool exists;
    int updated;
    bool is_unread;
} channels[CHANNELS];

// Changes some channels, each once.
static PGresult *random_change(void)
{
    PGresult *pg = result_new();
    int first = (int)(random() % CHANNELS);
    int count = (int)(random() % CHANGED_MAX);

    for (int i = 0; i < count; i++) {
        int channel = (first + 7 * i) % CHANNELS;
        char id[8], updated[8];
        channels[channel].exists = true;
        channels[channel].updated = 1 + (int)(random() % 20);
        channels[channel].is_unread = random() % 4 == 0;
        snprintf(id, sizeof id, "C%d", channel);
        snprintf(updated, sizeof updated, "%d", channels[channel].updated);
        row_add(pg, id, updated, channels[channel].is_unread ? "1" : NULL, NULL);
    }
    return pg;
}

static int channel_of(const struct sidebar_entry *entry)
{
    return (int)strtol(sidebar_entry_id(&rows.state, entry) + 1, NULL, 10);
}

static void entry_is_current(const struct sidebar_entry *entry)
{
    int channel = channel_of(entry);

    assert_true(channels[channel].exists);
    assert_int_equal(entry->updated, channels[channel].updated);
    assert_int_equal(entry->is_unread, channels[channel].is_unread);
}

static void entries_are_in_order(const struct sidebar_entry *a, const struct sidebar_entry *b)
{
    char one[8], other[8];

    snprintf(one, sizeof one, "C%d", channel_of(a));
    snprintf(other, sizeof other, "C%d", channel_of(b));
    if (a->is_unread != b->is_unread)
        assert_true(a->is_unread);
    else if (a->updated != b->updated)
        assert_true(a->updated > b->updated);
    else
        assert_true(strcmp(one, other) < 0);
}

static void random_changes_keep_each_channel_once_and_in_order(void **state)
{
    (void)state;
    srandom(1);
    memset(channels, 0, sizeof channels);
    for (int round = 0; round < ROUNDS; round++) {
        int expected = 0;
        rows_change(random_change());
        for (int i = 0; i < CHANNELS; i++)
            expected += channels[i].exists;
        assert_int_equal(rows.state.count, expected);
        for (int i = 0; i < rows.state.count; i++) {
            entry_is_current(&rows.state.entries[i]);
            if (i > 0)
                entries_are_in_order(&rows.state.entries[i - 1], &rows.state.entries[i]);
        }
    }
}

static void a_change_of_nothing(void **state)
{
    PGresult *pg = result_new();

    (void)state;
    row_add(pg, "C1", "10", NULL, NULL);
    chunk_add(pg);
    rows_sort();
    rows_change(result_new());
    order_is("C1");
    assert_int_equal(rows.wasted, 0);
}

static void json_is(int index, const char *expected)
{
    const struct sidebar_entry *entry = &rows.state.entries[index];

    assert_int_equal(entry->json_length, strlen(expected));
    assert_memory_equal(sidebar_entry_json(&rows.state, entry), expected, entry->json_length);
}

static void what_is_shown(void **state)
{
    PGresult *pg = result_new();

    (void)state;
    row_add(pg, "C1", "1500000000000001", "2", NULL);
    chunk_add(pg);
    rows_sort();
    json_is(0, "{\"id\":\"C1\",\"name\":\"name\",\"is_private\":false,"
               "\"last_read\":\"0000000000.000000\",\"updated\":\"1500000000.000001\","
               "\"latest\":\"1500000000.000001\","
               "\"latest_user\":\"\",\"latest_preview\":\"preview\",\"seq\":7,"
               "\"read_epoch\":0,\"has_unreads\":true,"
               "\"unread_count\":2,\"unread_count_display\":2,\"unread_capped\":false,"
               "\"mention_count\":0,\"is_muted\":false,\"notify\":\"default\"}");
}

// A direct conversation: type 3. The other one is named, whoever comes first.
static void the_other_one_of_two(void **state)
{
    static const char *const people[][2] = {{"U1,U2", "U2"}, {"U0,U1", "U0"}, {"U1", "U1"}};

    (void)state;
    for (size_t i = 0; i < sizeof people / sizeof *people; i++) {
        char expected[64];
        PGresult *pg = result_new();
        sidebar_rows_done(&rows);
        sidebar_rows_init(&rows, "U1");
        row_add(pg, "D1", "10", "2", "{3,0,0,10,0,0,0}");
        value_set(pg, 0, 1, people[i][0]);
        chunk_add(pg);
        snprintf(expected, sizeof expected, "{\"id\":\"D1\",\"user\":\"%s\",\"is_private\":true,",
                 people[i][1]);
        assert_non_null(rows.state.entries);
        assert_memory_equal(sidebar_entry_json(&rows.state, &rows.state.entries[0]), expected,
                            strlen(expected));
        assert_int_equal(rows.state.entries[0].mentions, 2); // all that is unread
    }
}

static void totals(void **state)
{
    PGresult *pg = result_new();

    (void)state;
    row_add(pg, "C1", "10", "2", "{0,0,0,10,0,0,1}");
    row_add(pg, "C2", "10", "4", "{0,0,0,10,1,0,3}"); // muted
    row_add(pg, "C3", "10", "8", "{0,0,0,10,0,1,5}"); // gone
    row_add(pg, "D1", "10", "16", "{3,0,0,10,0,0,0}");
    row_add(pg, "D2", "10", "32", "{3,0,0,10,1,0,0}"); // muted: no mentions
    chunk_add(pg);
    rows_sort();
    rows.state.thread_mentions = 5;
    rows.state.shared_mentions = 2;
    struct sidebar_totals sums = sidebar_totals_of(&rows.state);
    assert_int_equal(sums.unread_channels, 2);
    assert_int_equal(sums.unread_directs, 1);
    assert_int_equal(sums.unread_count, 2 + 16);
    assert_int_equal(sums.muted_unread_count, 4 + 32);
    assert_int_equal(sums.mention_count, 1 + 3 + 16);
    assert_int_equal(sums.badge, 1 + 3 + 16 + 5 - 2);
}

static void cleared_rows_leave_nothing_but_memory(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        const char *bytes = rows.bytes.data;
        PGresult *pg = result_new();
        row_add(pg, "C1", "10", NULL, NULL);
        row_add(pg, round == 1 ? "C3" : "C2", "20", "1", NULL);
        chunk_add(pg);
        if (round > 0)
            assert_ptr_equal(rows.bytes.data, bytes);
        if (round == 1) { // given up before it is sorted
            sidebar_rows_clear(&rows);
            continue;
        }
        rows_sort();
        order_is("C2 C1");
        assert_int_equal(sidebar_totals_of(&rows.state).unread_count, 1);
        sidebar_rows_clear(&rows);
        order_is("");
        assert_int_equal(sidebar_rows_size(&rows), 0);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rows_set_up, rows_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_order),
        TEST(chunks_are_merged),
        TEST(changes_replace_and_keep_the_order),
        TEST(random_changes_keep_each_channel_once_and_in_order),
        TEST(a_change_of_nothing),
        TEST(what_is_shown),
        TEST(the_other_one_of_two),
        TEST(totals),
        TEST(cleared_rows_leave_nothing_but_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
