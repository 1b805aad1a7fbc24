// SPDX-License-Identifier: Apache-2.0
// Values that a later release may have written (docs/compatibility.md), on a real Redis: what is
// appended stays, what is in no known form is as if it were not there, and no function fails.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "redis_library.h"
#include "unread/keys.h"
#include "unread/member_lists.h"
#include "unread/strategy.h"

#define HEAD "channel-latest:{C0000000001}"
#define CURSOR "read_cursor:{U0000000001}"
#define CHANNEL "C0000000001"
#define WALK "channel-walk:{C0000000001}"
#define MEMBERS "channel:members:{C0000000001}"
#define UNREAD "unread:{U0000000001}:C0000000001"
#define READ "channel:{C0000000001}:read"
#define THREAD "thread-read:{U0000000001}:C0000000001:1717200000.123456"
#define SESSION "session:{U0000000001}:device"
#define PRESENCE "presence:{U0000000001}"
#define USER "U0000000001", "7"
#define UNKNOWN "-1"

enum { BUILD_SIZE = 32 };

static const char *head_apply(const char *first, const char *last, const char *ord)
{
    return ASK("FCALL", "heads_apply", "1", HEAD, first, last, ord);
}

static const char *head_delete(const char *seq, const char *deleted_ord)
{
    return ASK("FCALL", "channel_apply", "1", HEAD, seq, seq, "9", deleted_ord, "U0000000007");
}

static const char *head_install(const char *seq, const char *ord)
{
    return ASK("FCALL", "channel_install", "1", HEAD, seq, ord, "0", "3:U0000000007");
}

static const char *head_field(const char *name)
{
    return ASK("HGET", HEAD, name);
}

static void fields_of_a_head_that_are_unknown_stay(void **state)
{
    (void)state;
    (void)head_install("5", "4");
    (void)ASK("HSET", HEAD, "state2", "v2 5/4");
    (void)head_apply("6", "6", "5");
    assert_string_equal(head_delete("7", "4"), "1");
    assert_string_equal(head_field("seq"), "7");
    assert_string_equal(head_field("deleted"), "3:U0000000007 4:U0000000007");
    assert_string_equal(head_field("state2"), "v2 5/4");
}

static void a_head_in_another_form_is_unknown(void **state)
{
    (void)state;
    (void)head_install("5", "4");
    (void)ASK("HSET", HEAD, "seq", "v2 5");
    assert_string_equal(head_apply("6", "6", "5"), "1"); // so many keys
    assert_string_equal(head_field("seq"), "v2 5");
    assert_string_equal(head_field("least"), "6");
    assert_string_equal(head_install("5", "4"), "0"); // it is older than what was heard of
    assert_string_equal(head_install("6", "5"), "1");
    assert_string_equal(head_field("seq"), "6");

    (void)ASK("DEL", HEAD);
    (void)ASK("HSET", HEAD, "least", "v2 9");
    (void)head_apply("8", "8", "6");
    assert_string_equal(head_field("least"), "8");
}

static void deletes_in_another_form_make_a_head_unknown(void **state)
{
    static const char *const forms[][2] = {{"deleted", "v2 3-4:U0000000007"},
                                           {"deleted", "3:U0000000007:own"},
                                           {"deleted_floor", "v2 2"}};
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        (void)ASK("DEL", HEAD);
        (void)head_install("5", "4");
        (void)ASK("HSET", HEAD, forms[i][0], forms[i][1]);
        assert_string_equal(head_delete("6", "4"), "-1");
        assert_string_equal(head_field("seq"), "nil");
        assert_string_equal(head_install("5", "4"), "0");
        assert_string_equal(head_install("6", "4"), "1");
    }
}

// What a reader takes from HMGET HEAD seq deleted_floor deleted.
static void on_head(void *arg, int r, const struct cache_value *value)
{
    const struct unread_view view = {.user_id = "U0000000001",
                                     .head = {.seq = 5, .ord = 4},
                                     .member = {.ord = 2, .own = 0, .posts = 0, .active = true}};
    *(int64_t *)arg = strategy_sequence_count(&view, r, value);
}

static int64_t head_count(void)
{
    int64_t count = -2;
    pipeline_add(pipeline, 5, (const char *[]){"HMGET", HEAD, "seq", "deleted_floor", "deleted"},
                 NULL);
    assert_int_equal(pipeline_run(pipeline, on_head, &count), 0);
    return count;
}

static void readers_believe_the_known_form_alone(void **state)
{
    static const char *const forms[][2] = {
        {"seq", "v2 5"},          {"seq", "5 v2"},
        {"deleted_floor", "v2"},  {"deleted_floor", "0 2"},
        {"deleted", "v2"},        {"deleted", "3:U0000000007:own 4:U0000000007"},
        {"deleted", "3-4:U0000"}, {"deleted", "3:U0000000007,4:U0000000007"}};
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        (void)ASK("DEL", HEAD);
        (void)head_install("5", "4");
        assert_int_equal(head_count(), 1);
        (void)ASK("HSET", HEAD, forms[i][0], forms[i][1]);
        assert_int_equal(head_count(), STRATEGY_UNKNOWN);
        (void)head_install("5", "4");
        (void)ASK("HDEL", HEAD, forms[i][0]);
        assert_int_equal(head_count(), STRATEGY_UNKNOWN);
    }
}

// As an event brings it, or, `whole`, as it was read from Postgres.
static const char *member(const char *ts, const char *member_seq, bool whole)
{
    const char *texts[] = {"FCALL", "member_apply", "1", CURSOR, CHANNEL, "0", ts, "5", "4",
                           "1",     member_seq,     "1", "0"};
    assert_int_equal(run(whole ? 12 : 13, texts), 0);
    return answer;
}

static void words_after_a_cursor_stay(void **state)
{
    (void)state;
    (void)ASK("HSET", CURSOR, CHANNEL, "0 100 10 9 2 3 1 v2 more");
    assert_string_equal(member("50", "2", false), "0 100 10 9 2 3 1 v2 more");
    assert_string_equal(member("200", "4", false), "0 200 5 4 1 4 1 v2 more");
    (void)ASK("HSET", CURSOR, CHANNEL, "0 100 10 9 2 3 ?1 more");
    assert_string_equal(member("50", "2", false), "0 100 10 9 2 3 ?1 more");
    assert_string_equal(member("50", "2", true), "0 100 10 9 2 3 1 more");
}

static void a_cursor_in_another_form_is_unknown(void **state)
{
    static const char *const forms[] = {"v2 0 100 10 9 2 3 1",
                                        "",
                                        "0 100 10",
                                        "0 100 10 9 2 3 yes",
                                        "0 100 10 9 2 3 10",
                                        "0 100 10 9 2 3 ?",
                                        "{\"v\":2}",
                                        "0 1e9 10 9 2 3 1"};
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        (void)ASK("HSET", CURSOR, CHANNEL, forms[i]);
        assert_string_equal(member("50", "2", false), "0 50 5 4 1 2 ?1");
        (void)ASK("HSET", CURSOR, CHANNEL, forms[i]);
        assert_string_equal(member("60", "2", true), "0 60 5 4 1 2 1");
    }
}

static void a_cursor_of_a_thread_in_another_form_is_unknown(void **state)
{
    (void)state;
    (void)ASK("SET", THREAD, "v2 1717200009999999");
    assert_string_equal(ASK("FCALL", "thread_apply", "1", THREAD, "1717200000999998", "2000"), "1");
    assert_string_equal(ASK("GET", THREAD), "1717200000999998");
}

// active, manually away and connections, which a function answers.
static char presence[32];

static void on_presence(void *arg, int r, const struct cache_value *value)
{
    (void)arg;
    (void)r;
    (void)snprintf(presence, sizeof presence, "%" PRId64 " %" PRId64 " %" PRId64,
                   cache_value_int(cache_value_at(value, 0)),
                   cache_value_int(cache_value_at(value, 1)),
                   cache_value_int(cache_value_at(value, 2)));
}

static const char *presence_of(const char *op, const char *connections, const char *manual)
{
    const char *texts[] = {"FCALL", "presence_apply", "2",   SESSION, PRESENCE, op,
                           "G1",    connections,      "100", manual};
    pipeline_add(pipeline, 10, texts, NULL);
    assert_int_equal(pipeline_run(pipeline, on_presence, NULL), 0);
    return presence;
}

static void devices_of_later_releases_are_connected(void **state)
{
    (void)state;
    (void)ASK("HSET", SESSION, "G2", "9999999999:2:more", "G3", "v2 9999999999", "G4", "1:7:more");
    assert_string_equal(presence_of("look", "0", "0"), "1 0 3");
    assert_string_equal(presence_of("on", "1", "0"), "1 0 4");
    assert_string_equal(ASK("HGET", SESSION, "G2"), "9999999999:2:more");
    assert_string_equal(ASK("HGET", SESSION, "G3"), "v2 9999999999");
    assert_string_equal(ASK("HGET", SESSION, "G4"), "nil");
}

static void a_choice_of_presence_in_another_form_is_unknown(void **state)
{
    (void)state;
    (void)ASK("HSET", PRESENCE, "manual", "v2 away", "shown", "v2 idle", "more", "x");
    assert_string_equal(presence_of("on", "1", "1"), "0 1 1");
    (void)ASK("HSET", PRESENCE, "manual", "v2 away", "more", "x");
    assert_string_equal(presence_of("on", "1", "0"), "1 0 1");
    assert_string_equal(ASK("HGET", PRESENCE, "more"), "x");
}

static const char *counter_install(const char *seq, const char *n)
{
    return ASK("FCALL", "counter_install", "3", WALK, MEMBERS, UNREAD, "0", seq, USER, n, "0", "0",
               "50");
}

static const char *counter_read(const char *seq)
{
    return ASK("FCALL", "counter_read", "3", WALK, MEMBERS, UNREAD, "0", seq, USER, "0", "0", "50");
}

static bool walk_begin(const char *seq, char *ret_build)
{
    (void)ASK("FCALL", "walk_begin", "2", WALK, READ, "0", seq, seq, "w", "1", "1");
    (void)snprintf(ret_build, BUILD_SIZE, "%.31s", answer);
    return strlen(ret_build) > 1;
}

static void a_counter_with_more_fields_is_counted(void **state)
{
    char build[BUILD_SIZE];
    (void)state;
    assert_string_equal(counter_install("5", "3"), "1");
    (void)ASK("HSET", UNREAD, "n2", "v2");
    (void)ASK("HSET", WALK, "more", "v2");
    assert_string_equal(counter_read("5"), "3");
    assert_true(walk_begin("6", build));
    (void)ASK("FCALL", "counter_walk", "2", WALK, UNREAD, build, "6", "w", "0", "1");
    assert_string_equal(ASK("FCALL", "walk_end", "1", WALK, build, "6", "w", "1"), "1");
    assert_string_equal(counter_read("6"), "4");
    assert_string_equal(ASK("HGET", WALK, "more"), "v2");
}

static void a_counter_in_another_form_is_unknown(void **state)
{
    static const char *const fields[] = {"n", "b", "v", "e", "ts"};
    char build[BUILD_SIZE];
    (void)state;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        (void)counter_install("5", "3");
        (void)ASK("HSET", UNREAD, fields[i], "v2 3");
        assert_string_equal(counter_read("5"), UNKNOWN);
        (void)counter_install("5", "3");
        (void)ASK("HDEL", UNREAD, fields[i]);
        assert_string_equal(counter_read("5"), UNKNOWN);
    }
    (void)counter_install("5", "3");
    (void)ASK("HSET", UNREAD, "n", "v2 3");
    assert_true(walk_begin("6", build));
    (void)ASK("FCALL", "counter_walk", "2", WALK, UNREAD, build, "6", "w", "0", "1");
    (void)ASK("FCALL", "walk_end", "1", WALK, build, "6", "w", "1");
    assert_string_equal(counter_read("6"), UNKNOWN);
}

static void a_walk_in_another_form_begins_anew(void **state)
{
    static const char *const fields[] = {"gen", "seq", "walking", "build"};
    char build[BUILD_SIZE];
    (void)state;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        (void)ASK("DEL", WALK);
        (void)counter_install("5", "3");
        (void)ASK("HSET", WALK, fields[i], "v2 5");
        assert_string_equal(counter_read("5"), UNKNOWN);
        (void)walk_begin("6", build);
        (void)ASK("FCALL", "walk_forget", "1", WALK, "0", "7");
        assert_string_equal(counter_install("7", "5"), "1");
        assert_string_equal(counter_read("7"), "5");
    }
    (void)ASK("HSET", WALK, "gen", "v2");
    assert_string_equal(counter_install("7", "6"), "1");
    assert_string_equal(counter_read("7"), "6");
}

static void markers_of_a_zset_that_are_unknown_are_no_messages(void **state)
{
    (void)state;
    (void)ASK("FCALL", "zset_install", "3", WALK, MEMBERS, UNREAD, "0", "3", USER, "0", "50", "60",
              "1", "70", "2");
    (void)ASK("ZADD", UNREAD, "-8", "x2");
    assert_string_equal(
        ASK("FCALL", "zset_read", "3", WALK, MEMBERS, UNREAD, "0", "3", USER, "0", "50", "100"),
        "2");
}

static void a_list_of_members_in_another_form_is_not_complete(void **state)
{
    (void)state;
    struct member_list list = MEMBER_LIST;
    (void)ASK("SADD", MEMBERS, "U0000000001", "W0000000002");
    assert_int_equal(members_read_shard(pipeline, CHANNEL, -1, &list), 0);
    assert_true(list.complete && list.ids.count == 2);
    member_list_done(&list);
    (void)ASK("SADD", MEMBERS, "v2:U0000000003");
    assert_int_equal(members_read_shard(pipeline, CHANNEL, -1, &list), 0);
    assert_false(list.complete);
    member_list_done(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(fields_of_a_head_that_are_unknown_stay, wipe),
        cmocka_unit_test_setup(a_head_in_another_form_is_unknown, wipe),
        cmocka_unit_test_setup(deletes_in_another_form_make_a_head_unknown, wipe),
        cmocka_unit_test_setup(readers_believe_the_known_form_alone, wipe),
        cmocka_unit_test_setup(words_after_a_cursor_stay, wipe),
        cmocka_unit_test_setup(a_cursor_in_another_form_is_unknown, wipe),
        cmocka_unit_test_setup(a_cursor_of_a_thread_in_another_form_is_unknown, wipe),
        cmocka_unit_test_setup(devices_of_later_releases_are_connected, wipe),
        cmocka_unit_test_setup(a_choice_of_presence_in_another_form_is_unknown, wipe),
        cmocka_unit_test_setup(a_counter_with_more_fields_is_counted, wipe),
        cmocka_unit_test_setup(a_counter_in_another_form_is_unknown, wipe),
        cmocka_unit_test_setup(a_walk_in_another_form_begins_anew, wipe),
        cmocka_unit_test_setup(markers_of_a_zset_that_are_unknown_are_no_messages, wipe),
        cmocka_unit_test_setup(a_list_of_members_in_another_form_is_not_complete, wipe),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
