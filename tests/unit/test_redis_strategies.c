// SPDX-License-Identifier: Apache-2.0
// What zset, counter and bitmap keep for a member, on a real Redis: late, doubled, replayed, of
// another generation, beside an install or a delete, it is the truth or unknown.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "redis_library.h"

#define WALK "channel-walk:{C0000000001}"
#define MEMBERS "channel:members:{C0000000001}"
#define UNREAD "unread:{U0000000001}:C0000000001"
#define OTHER "unread:{U0000000002}:C0000000001"
#define READ "channel:{C0000000001}:read"
#define USER "U0000000001", "7"
#define UNKNOWN "-1"

enum { BUILD_SIZE = 32, EVENTS = 20, RUNS = 30, STEPS = 60 };

static unsigned seed;

static unsigned random_below(unsigned bound)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 16) % bound;
}

// Whether a walk was begun, and with it its build.
static bool begin(const char *gen, const char *first, const char *last, const char *walker,
                  char *ret_build)
{
    (void)ASK("FCALL", "walk_begin", "2", WALK, READ, gen, first, last, walker, "1", "1");
    (void)snprintf(ret_build, BUILD_SIZE, "%.31s", answer);
    return strlen(ret_build) > 1;
}

static const char *end(const char *build, const char *last, const char *walker, const char *chunks)
{
    return ASK("FCALL", "walk_end", "1", WALK, build, last, walker, chunks);
}

static const char *forget(const char *seq)
{
    return ASK("FCALL", "walk_forget", "1", WALK, "0", seq);
}

static const char *counter_walk(const char *build, const char *last, const char *walker,
                                const char *chunk, const char *posts)
{
    return ASK("FCALL", "counter_walk", "2", WALK, UNREAD, build, last, walker, chunk, posts);
}

static const char *counter_install(const char *gen, const char *seq, const char *n)
{
    return ASK("FCALL", "counter_install", "3", WALK, MEMBERS, UNREAD, gen, seq, USER, n, "0", "0",
               "50");
}

static const char *counter_read(const char *gen, const char *seq)
{
    return ASK("FCALL", "counter_read", "3", WALK, MEMBERS, UNREAD, gen, seq, USER, "0", "0", "50");
}

static void a_counter_is_known_before_and_after_a_walk(void **state)
{
    (void)state;
    char build[BUILD_SIZE];
    assert_string_equal(counter_install("0", "5", "3"), "1");
    assert_string_equal(counter_read("0", "5"), "3");
    assert_true(begin("0", "6", "7", "w", build));
    assert_string_equal(counter_read("0", "5"), UNKNOWN);
    assert_string_equal(counter_read("0", "7"), UNKNOWN);
    assert_string_equal(counter_install("0", "7", "5"), "0");
    assert_string_equal(counter_walk(build, "7", "w", "0", "2"), "1");
    assert_string_equal(counter_read("0", "7"), UNKNOWN);
    assert_string_equal(end(build, "7", "w", "1"), "1");
    assert_string_equal(counter_read("0", "7"), "5");
    assert_string_equal(counter_read("0", "5"), UNKNOWN);
}

static void what_comes_twice_or_late_counts_once(void **state)
{
    (void)state;
    char build[BUILD_SIZE], other[BUILD_SIZE];
    (void)counter_install("0", "5", "3");
    assert_true(begin("0", "6", "7", "w", build));
    assert_string_equal(counter_walk(build, "7", "w", "0", "2"), "1");
    assert_string_equal(counter_walk(build, "7", "w", "0", "2"), "0");
    assert_string_equal(end(build, "7", "w", "2"), "0");
    assert_string_equal(end(build, "7", "w", "1"), "1");
    assert_string_equal(end(build, "7", "w", "1"), "0");
    assert_string_equal(counter_walk(build, "7", "w", "1", "2"), "0");
    assert_false(begin("0", "6", "7", "w", other));
    assert_false(begin("0", "4", "5", "w", other));
    assert_string_equal(counter_read("0", "7"), "5");
}

static void after_a_hole_nothing_is_known(void **state)
{
    (void)state;
    char build[BUILD_SIZE];
    (void)counter_install("0", "5", "3");
    assert_false(begin("0", "8", "8", "w", build));
    assert_string_equal(counter_read("0", "5"), UNKNOWN);
    assert_string_equal(counter_read("0", "8"), UNKNOWN);
    assert_string_equal(counter_install("0", "5", "3"), "0");
    assert_string_equal(counter_install("0", "8", "6"), "1");
    assert_string_equal(counter_read("0", "8"), "6");
}

static void two_walkers_make_it_unknown(void **state)
{
    (void)state;
    char build[BUILD_SIZE], other[BUILD_SIZE];
    (void)counter_install("0", "5", "3");
    assert_true(begin("0", "6", "6", "one", build));
    assert_string_equal(counter_walk(build, "6", "two", "0", "1"), "0");
    assert_false(begin("0", "6", "6", "two", other));
    assert_string_equal(counter_walk(build, "6", "one", "0", "1"), "0");
    assert_string_equal(end(build, "6", "one", "0"), "0");
    assert_string_equal(counter_read("0", "6"), UNKNOWN);
}

static void another_generation_is_another_channel(void **state)
{
    (void)state;
    char build[BUILD_SIZE];
    (void)counter_install("0", "5", "3");
    assert_string_equal(counter_read("1", "5"), UNKNOWN);
    assert_false(begin("1", "6", "6", "w", build));
    assert_string_equal(counter_read("0", "5"), UNKNOWN);
    assert_string_equal(counter_read("1", "6"), UNKNOWN);
    assert_string_equal(counter_install("0", "6", "4"), "0");
    assert_string_equal(counter_install("1", "6", "4"), "1");
    assert_string_equal(counter_read("1", "6"), "4");
    assert_string_equal(forget("9"), "0"); // of generation 0
    assert_false(begin("0", "7", "7", "w", build));
    assert_string_equal(counter_read("0", "7"), UNKNOWN);
}

static void a_row_read_before_a_delete_is_not_installed_after_it(void **state)
{
    (void)state;
    (void)counter_install("0", "5", "3");
    (void)forget("6");
    assert_string_equal(counter_install("0", "5", "3"), "0");
    assert_string_equal(counter_read("0", "6"), UNKNOWN);
    assert_string_equal(counter_install("0", "6", "2"), "1");
    (void)forget("6");
    (void)forget("4");
    assert_string_equal(counter_read("0", "6"), "2");
}

static void who_left_is_counted_no_longer_whatever_comes_late(void **state)
{
    (void)state;
    char build[BUILD_SIZE];
    (void)ASK("SADD", MEMBERS, "U0000000009");
    (void)counter_install("0", "5", "3");
    assert_string_equal(ASK("SISMEMBER", MEMBERS, "U0000000001"), "1");
    assert_true(begin("0", "6", "6", "w", build));
    (void)ASK("FCALL", "members_change", "2", MEMBERS, UNREAD, USER, "0");
    assert_string_equal(ASK("SISMEMBER", MEMBERS, "U0000000001"), "0");
    (void)counter_walk(build, "6", "w", "0", "1");
    (void)end(build, "6", "w", "1");
    assert_string_equal(counter_read("0", "6"), UNKNOWN);
}

static void a_list_that_is_not_there_stays_so(void **state)
{
    (void)state;
    (void)counter_install("0", "5", "3");
    assert_string_equal(ASK("EXISTS", MEMBERS), "0");
    (void)ASK("FCALL", "members_change", "2", MEMBERS, UNREAD, USER, "1");
    assert_string_equal(ASK("EXISTS", MEMBERS), "0"); // it would look as if they were all
}

static void members_fill(const char *member)
{
    (void)ASK("FCALL", "members_open", "1", MEMBERS, "0");
    (void)ASK("SADD", MEMBERS, member);
}

static void members_close(const char *count)
{
    (void)ASK("FCALL", "members_close", "1", MEMBERS, count);
}

static void a_list_that_two_fill_at_once_is_whole(void **state)
{
    (void)state;
    members_fill("U0000000001");
    members_fill("U0000000001");
    (void)ASK("SADD", MEMBERS, "U0000000002");
    members_close("2");
    assert_string_equal(ASK("SCARD", MEMBERS), "2");
    members_close("2");
    assert_string_equal(ASK("SCARD", MEMBERS), "2");
}

static void a_list_that_was_dropped_while_it_was_filled_goes(void **state)
{
    (void)state;
    members_fill("U0000000001");
    (void)ASK("DEL", MEMBERS);
    (void)ASK("SADD", MEMBERS, "U0000000002");
    members_close("2");
    assert_string_equal(ASK("EXISTS", MEMBERS), "0");
}

static void another_cursor_or_version_is_unknown(void **state)
{
    (void)state;
    static const char *const others[][3] = {{"1", "0", "50"}, {"0", "1", "50"}, {"0", "0", "51"}};
    (void)counter_install("0", "5", "3");
    for (int i = 0; i < 3; i++)
        assert_string_equal(ASK("FCALL", "counter_read", "3", WALK, MEMBERS, UNREAD, "0", "5", USER,
                                others[i][0], others[i][1], others[i][2]),
                            UNKNOWN);
}

static const char *zset_install(const char *seq, const char *version, const char *floor)
{
    return ASK("FCALL", "zset_install", "3", WALK, MEMBERS, UNREAD, "0", seq, USER, version, floor,
               "60", "1", "70", "2", "80", "3");
}

static const char *zset_read(const char *seq, const char *version, const char *cursor)
{
    return ASK("FCALL", "zset_read", "3", WALK, MEMBERS, UNREAD, "0", seq, USER, version, cursor,
               "4");
}

static void markers_of_a_zset_are_no_messages(void **state)
{
    (void)state;
    assert_string_equal(zset_install("3", "0", "50"), "1");
    assert_string_equal(ASK("ZCARD", UNREAD), "6");
    assert_string_equal(zset_read("3", "0", "50"), "3");
    assert_string_equal(zset_read("3", "0", "70"), "1");
    assert_string_equal(zset_read("3", "0", "49"), UNKNOWN); // before what is kept
    assert_string_equal(zset_read("3", "1", "50"), UNKNOWN);
    (void)ASK("ZREM", UNREAD, "f");
    assert_string_equal(zset_read("3", "0", "50"), UNKNOWN);
    (void)zset_install("3", "0", "50");
    (void)ASK("ZREM", UNREAD, "b");
    assert_string_equal(zset_read("3", "0", "50"), UNKNOWN);
}

static void a_walk_of_a_zset_adds_deletes_and_trims(void **state)
{
    (void)state;
    char build[BUILD_SIZE];
    (void)zset_install("3", "0", "50");
    assert_true(begin("0", "4", "6", "w", build));
    for (int i = 0; i < 2; i++) // the second time it is not the chunk that comes next
        assert_string_equal(ASK("FCALL", "zset_walk", "2", WALK, UNREAD, build, "6", "w", "0", "2",
                                "2", "90", "4", "95", "5", "1", "70", "2", "95"),
                            i == 0 ? "1" : "0");
    assert_string_equal(end(build, "6", "w", "1"), "1");
    // 60 was trimmed, 70 deleted, 95 is one's own: 80 and 90 are left.
    assert_string_equal(zset_read("6", "0", "50"), UNKNOWN);
    assert_string_equal(zset_read("6", "0", "60"), "2");
    assert_string_equal(ASK("ZCOUNT", UNREAD, "0", "+inf"), "2");
}

static void marks_of_a_zset_come_in_any_order(void **state)
{
    (void)state;
    (void)zset_install("3", "0", "50");
    (void)ASK("FCALL", "zset_mark", "3", WALK, MEMBERS, UNREAD, "0", "3", USER, "0", "60");
    assert_string_equal(zset_read("3", "0", "60"), "2");
    assert_string_equal(zset_read("3", "0", "50"), UNKNOWN); // a cursor that went back
    for (int i = 0; i < 2; i++)
        (void)ASK("FCALL", "zset_mark", "3", WALK, MEMBERS, UNREAD, "0", "3", USER, "1", "60",
                  "70");
    assert_string_equal(zset_read("3", "1", "60"), "1");
    // One of the versions between was missed: unknown until it is installed anew.
    (void)ASK("FCALL", "zset_mark", "3", WALK, MEMBERS, UNREAD, "0", "3", USER, "3", "60", "80");
    assert_string_equal(zset_read("3", "3", "60"), UNKNOWN);
}

static const char *bitmap(const char *function, const char *gen, const char *seq)
{
    return ASK("FCALL", function, "3", WALK, MEMBERS, READ, gen, seq, USER);
}

static void a_bit_holds_until_something_is_unread(void **state)
{
    (void)state;
    assert_string_equal(bitmap("bitmap_install", "0", "5"), "1");
    assert_string_equal(bitmap("bitmap_read", "0", "5"), "0");
    (void)ASK("FCALL", "walk_begin", "2", WALK, READ, "0", "6", "6", "w", "0", "0"); // an edit
    assert_string_equal(bitmap("bitmap_read", "0", "6"), "0");
    assert_string_equal(bitmap("bitmap_read", "0", "5"), UNKNOWN);
    (void)ASK("FCALL", "walk_begin", "2", WALK, READ, "0", "7", "7", "w", "0", "1"); // a post
    assert_string_equal(bitmap("bitmap_read", "0", "7"), UNKNOWN);
    assert_string_equal(bitmap("bitmap_install", "0", "6"), "0");
    assert_string_equal(bitmap("bitmap_install", "0", "7"), "1");
    (void)ASK("FCALL", "bitmap_install", "3", WALK, MEMBERS, READ, "0", "7", "U0000000002", "8");
    assert_string_equal(ASK("BITCOUNT", READ), "2");
    assert_string_equal(bitmap("bitmap_install", "1", "7"), "1"); // a markUnread of that other
    assert_string_equal(bitmap("bitmap_read", "0", "7"), UNKNOWN);
    assert_string_equal(ASK("BITCOUNT", READ), "1");
}

static void leavings_of_another_strategy_are_unknown(void **state)
{
    (void)state;
    char build[BUILD_SIZE];
    (void)zset_install("3", "0", "50");
    assert_string_equal(counter_read("0", "3"), UNKNOWN);
    assert_true(begin("0", "4", "4", "w", build));
    assert_string_equal(counter_walk(build, "4", "w", "0", "1"), "1");
    assert_string_equal(end(build, "4", "w", "1"), "1");
    assert_string_equal(zset_read("4", "0", "50"), UNKNOWN);
    assert_string_equal(counter_install("0", "4", "4"), "1");
    assert_string_equal(zset_read("4", "0", "50"), UNKNOWN);
    assert_string_equal(counter_read("0", "4"), "4");
}

static void what_an_author_left_of_another_strategy_holds_up_no_other_author(void **state)
{
    (void)state;
    char build[BUILD_SIZE];
    (void)zset_install("3", "0", "50");
    (void)ASK("HSET", OTHER, "n", "1");
    assert_true(begin("0", "4", "4", "w", build));
    assert_string_equal(ASK("FCALL", "zset_walk", "3", WALK, OTHER, UNREAD, build, "4", "w", "0",
                            "0", "0", "0", "2", "70", "3", "80"),
                        "1");
    assert_string_equal(end(build, "4", "w", "1"), "1");
    assert_string_equal(zset_read("4", "0", "50"), "2");
}

// A channel of one generation: what was unread after each of its events, who walks which of them,
// and how far they are.
struct walker {
    char name[2], build[BUILD_SIZE], last[12], posts[12];
    bool walks;
};

struct history {
    int unread[EVENTS + 1];
    bool deletes[EVENTS + 1];
    struct walker walkers[2];
};

static void history_make(struct history *history)
{
    *history = (struct history){.walkers = {{.name = "a"}, {.name = "b"}}};
    for (int i = 1; i <= EVENTS; i++) {
        history->deletes[i] = history->unread[i - 1] > 0 && random_below(6) == 0;
        history->unread[i] = history->unread[i - 1] + (history->deletes[i] ? -1 : 1);
    }
}

static void history_begin(const struct history *history, struct walker *walker, int first)
{
    char first_text[12];
    int last = first + (int)random_below(3);
    bool deletes = false;
    if (last > EVENTS)
        return;
    for (int i = first; i <= last; i++)
        deletes |= history->deletes[i];
    (void)snprintf(first_text, sizeof first_text, "%d", first);
    (void)snprintf(walker->last, sizeof walker->last, "%d", last);
    (void)snprintf(walker->posts, sizeof walker->posts, "%d", last - first + 1);
    walker->walks = false;
    if (deletes)
        (void)forget(walker->last);
    else
        walker->walks = begin("0", first_text, walker->last, walker->name, walker->build);
}

static void history_step(struct history *history)
{
    struct walker *walker = &history->walkers[random_below(8) == 0];
    char seq[12], unread[12];
    int known = (int)strtol(ASK("HGET", WALK, "seq"), NULL, 10);
    int any = (int)random_below(EVENTS + 1);
    switch (random_below(16)) {
    case 0:
        (void)ASK("FLUSHALL");
        break;
    case 1:
        history_begin(history, walker, 1 + (int)random_below(EVENTS));
        break;
    case 2:
    case 3:
    case 4:
        any = random_below(4) > 0 && known <= EVENTS ? known : any;
        (void)snprintf(seq, sizeof seq, "%d", any);
        (void)snprintf(unread, sizeof unread, "%d", history->unread[any]);
        (void)counter_install("0", seq, unread);
        break;
    case 5:
    case 6:
    case 7:
    case 8:
        history_begin(history, walker, known + 1);
        break;
    case 9:
    case 10:
    case 11:
    case 12:
        if (walker->walks)
            (void)counter_walk(walker->build, walker->last, walker->name, "0", walker->posts);
        break;
    default:
        if (walker->walks)
            (void)end(walker->build, walker->last, walker->name, "1");
    }
}

// How many of the channel's states the member's count is known for: the count is theirs.
static int known_and_true(const struct history *history)
{
    int known = 0;
    for (int i = 0; i <= EVENTS; i++) {
        char seq[12];
        (void)snprintf(seq, sizeof seq, "%d", i);
        if (strcmp(counter_read("0", seq), UNKNOWN) == 0)
            continue;
        assert_int_equal(strtol(answer, NULL, 10), history->unread[i]);
        known++;
    }
    return known;
}

static void a_known_count_is_always_the_truth(void **state)
{
    (void)state;
    int known = 0;
    for (unsigned i = 0; i < RUNS; i++) {
        struct history history;
        seed = i;
        history_make(&history);
        for (int j = 0; j < STEPS; j++) {
            history_step(&history);
            known += known_and_true(&history);
        }
        (void)ASK("FLUSHALL");
    }
    assert_true(known > RUNS * STEPS / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_counter_is_known_before_and_after_a_walk, wipe),
        cmocka_unit_test_setup(what_comes_twice_or_late_counts_once, wipe),
        cmocka_unit_test_setup(after_a_hole_nothing_is_known, wipe),
        cmocka_unit_test_setup(two_walkers_make_it_unknown, wipe),
        cmocka_unit_test_setup(another_generation_is_another_channel, wipe),
        cmocka_unit_test_setup(a_row_read_before_a_delete_is_not_installed_after_it, wipe),
        cmocka_unit_test_setup(who_left_is_counted_no_longer_whatever_comes_late, wipe),
        cmocka_unit_test_setup(a_list_that_is_not_there_stays_so, wipe),
        cmocka_unit_test_setup(a_list_that_two_fill_at_once_is_whole, wipe),
        cmocka_unit_test_setup(a_list_that_was_dropped_while_it_was_filled_goes, wipe),
        cmocka_unit_test_setup(another_cursor_or_version_is_unknown, wipe),
        cmocka_unit_test_setup(markers_of_a_zset_are_no_messages, wipe),
        cmocka_unit_test_setup(a_walk_of_a_zset_adds_deletes_and_trims, wipe),
        cmocka_unit_test_setup(marks_of_a_zset_come_in_any_order, wipe),
        cmocka_unit_test_setup(a_bit_holds_until_something_is_unread, wipe),
        cmocka_unit_test_setup(leavings_of_another_strategy_are_unknown, wipe),
        cmocka_unit_test_setup(what_an_author_left_of_another_strategy_holds_up_no_other_author,
                               wipe),
        cmocka_unit_test_setup(a_known_count_is_always_the_truth, wipe),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
