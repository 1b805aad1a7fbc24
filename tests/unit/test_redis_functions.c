// SPDX-License-Identifier: Apache-2.0
// The function library on a real Redis: whatever comes twice, late, out of order or after
// everything was wiped, what is known there is the truth.
#include "base/error.h"
#include "unread/effects.h"
#include "unread/keys.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "redis_library.h"

enum { EVENTS = 60, RUNS = 150, DELETED_MAX = 256 };

static const char channel[] = "C0000000001";
static const char user[] = "U0000000001";
static const char channel_key_text[] = "channel-latest:{C0000000001}";
static const char cursor_key_text[] = "read_cursor:{U0000000001}";

static unsigned seed;

// A generator of our own: the same run for the same seed everywhere.
static unsigned random_below(unsigned bound)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 16) % bound;
}

static const char *field(const char *name)
{
    return ASK("HGET", channel_key_text, name);
}

static void install(const char *seq, const char *ord, const char *floor, const char *deleted)
{
    (void)ASK("FCALL", "channel_install", "1", channel_key_text, seq, ord, floor, deleted);
}

static const char *apply(const char *first, const char *last, const char *ord)
{
    return ASK("FCALL", "channel_apply", "1", channel_key_text, first, last, ord);
}

static const char *apply_delete(const char *seq, const char *ord)
{
    return ASK("FCALL", "channel_apply", "1", channel_key_text, seq, seq, "9", ord, "U0000000007");
}

static void an_unknown_head_stays_unknown(void **state)
{
    (void)state;
    assert_string_equal(apply("1", "1", "1"), "0");
    assert_string_equal(field("seq"), "nil");
}

static void what_is_older_than_what_was_heard_of_is_not_installed(void **state)
{
    (void)state;
    (void)apply("6", "7", "5");
    (void)apply("3", "3", "2");
    install("6", "4", "0", "");
    assert_string_equal(field("seq"), "nil");
    install("7", "5", "0", "");
    assert_string_equal(field("seq"), "7");
    (void)apply("9", "9", "6"); // a hole
    install("8", "5", "0", "");
    assert_string_equal(field("seq"), "nil");
}

static void a_head_follows_its_events_and_never_goes_back(void **state)
{
    (void)state;
    install("5", "4", "0", "");
    assert_string_equal(apply("6", "8", "7"), "1");
    assert_string_equal(apply("6", "6", "5"), "0");
    assert_string_equal(apply("7", "8", "6"), "0");
    assert_string_equal(field("seq"), "8");
    assert_string_equal(field("ord"), "7");
    assert_string_equal(apply("8", "9", "8"), "1");
    assert_string_equal(field("seq"), "9");
    install("8", "7", "0", "");
    assert_string_equal(field("seq"), "9");
}

static void a_hole_makes_a_head_unknown(void **state)
{
    (void)state;
    install("5", "4", "0", "");
    assert_string_equal(apply("7", "7", "6"), "-1");
    assert_string_equal(field("seq"), "nil");
}

static void deletes_are_a_bounded_set(void **state)
{
    (void)state;
    char seq[24], ord[24];
    install("0", "0", "2", "4:U0000000002 3:U0000000001");
    assert_string_equal(field("deleted"), "3:U0000000001 4:U0000000002");
    (void)apply_delete("1", "4");
    (void)apply_delete("2", "2");
    assert_string_equal(field("deleted"), "3:U0000000001 4:U0000000002");
    for (int i = 3; i <= DELETED_MAX; i++) {
        (void)snprintf(seq, sizeof seq, "%d", i);
        (void)snprintf(ord, sizeof ord, "%d", 2 + i);
        (void)apply_delete(seq, ord);
    }
    assert_string_equal(field("deleted_floor"), "2");
    (void)apply_delete("257", "1000");
    assert_string_equal(field("deleted_floor"), "3");
    (void)apply_delete("258", "900");
    assert_string_equal(field("deleted_floor"), "4");
    assert_true(strncmp(field("deleted"), "5:U0000000007 6:U0000000007", 27) == 0);
    assert_non_null(strstr(field("deleted"), "900:U0000000007 1000:U0000000007"));
}

static void a_broken_key_is_an_error_and_can_be_forgotten(void **state)
{
    (void)state;
    struct event event = {.kind = EVENT_JOIN, .seq = 1};
    (void)snprintf(event.channel_id, sizeof event.channel_id, "%s", channel);
    (void)snprintf(event.user_id, sizeof event.user_id, "%s", user);
    (void)ASK("SET", channel_key_text, "garbage");
    effects_add(pipeline, (struct event *[]){&event}, 1);
    assert_int_equal(pipeline_run(pipeline, NULL, NULL), -ERROR_INTERNAL);
    effects_forget(pipeline, (struct event *[]){&event}, 1);
    assert_int_equal(pipeline_run(pipeline, NULL, NULL), 0);
    assert_string_equal(ASK("EXISTS", channel_key_text), "0");
    assert_string_equal(ASK("HEXISTS", cursor_key_text, channel), "0");
}

static const char *member(const char *numbers, bool whole)
{
    char words[7][24];
    (void)sscanf(numbers, "%23s %23s %23s %23s %23s %23s %23s", words[0], words[1], words[2],
                 words[3], words[4], words[5], words[6]);
    const char *texts[] = {"FCALL",  "member_apply", "1",      cursor_key_text, channel,
                           words[0], words[1],       words[2], words[3],        words[4],
                           words[5], words[6],       "0"};
    assert_int_equal(run(whole ? 12 : 13, texts), 0);
    return answer;
}

static void each_part_of_a_member_is_merged_by_what_orders_it(void **state)
{
    (void)state;
    assert_string_equal(member("0 100 10 9 2 3 1", true), "0 100 10 9 2 3 1");
    assert_string_equal(member("0 50 5 4 1 2 0", false), "0 100 10 9 2 3 1");
    assert_string_equal(member("1 20 2 2 0 3 1", false), "1 20 2 2 0 3 1");
    assert_string_equal(member("0 900 90 80 7 3 1", true), "1 20 2 2 0 3 1");
    assert_string_equal(member("1 20 2 2 0 8 0", false), "1 20 2 2 0 8 0");
    assert_string_equal(member("1 1717200000123456 4 4 0 3 1", true),
                        "1 1717200000123456 4 4 0 8 0");
    assert_string_equal(ASK("HGET", cursor_key_text, channel), "1 1717200000123456 4 4 0 8 0");
}

static void an_event_alone_makes_no_member_known(void **state)
{
    (void)state;
    assert_string_equal(member("0 70 7 6 1 5 0", false), "0 70 7 6 1 5 ?0");
    assert_string_equal(member("0 70 7 6 1 6 1", false), "0 70 7 6 1 6 ?1");
    // A state read before both of them comes last.
    assert_string_equal(member("0 60 6 5 1 4 1", true), "0 70 7 6 1 6 1");
}

static void several_members_are_merged_in_one_call(void **state)
{
    const struct event_member states[] = {
        {.active = true, .ts = 50, .seq = 5, .ord = 4, .member_seq = 3},
        {.active = true, .ts = 70, .seq = 7, .ord = 6, .own = 1, .member_seq = 3},
    };
    struct member_call calls[2];
    int count;

    (void)state;
    (void)member("0 100 10 9 2 3 1", true);
    member_call_make(&calls[0], user, channel, &states[0]);
    member_call_make(&calls[1], "U0000000002", channel, &states[1]);
    const char **texts = members_call_new(calls, 2, &count);
    assert_non_null(texts);
    assert_int_equal(run(count, texts), 0);
    free(texts);
    assert_string_equal(answer, "2");
    assert_string_equal(ASK("HGET", cursor_key_text, channel), "0 100 10 9 2 3 1");
    assert_string_equal(ASK("HGET", "read_cursor:{U0000000002}", channel), "0 70 7 6 1 3 1");
}

// The truth of one channel after each of its events, with posts, edits and deletes in a random
// order.
struct truth {
    struct event *events[EVENTS];
    int64_t deleted_ord[EVENTS];
};

static struct event *truth_event(struct truth *truth, int i, int64_t *ord)
{
    bool is_delete = *ord > 0 && random_below(3) == 0;
    struct event *event = event_new(is_delete ? EVENT_DELETE : EVENT_POST, strdup("{}"), 2);
    (void)snprintf(event->channel_id, sizeof event->channel_id, "%s", channel);
    (void)snprintf(event->user_id, sizeof event->user_id, "U000000000%u", 1 + random_below(2));
    if (is_delete) {
        event->deleted_ord = 1 + random_below((unsigned)*ord);
        (void)snprintf(event->deleted_user, sizeof event->deleted_user, "U0000000001");
    } else {
        ++*ord;
    }
    truth->deleted_ord[i] = event->deleted_ord;
    event->seq = i + 1;
    event->head.seq = i + 1;
    event->head.ord = *ord;
    return event;
}

static void truth_make(struct truth *truth)
{
    int64_t ord = 0;
    for (int i = 0; i < EVENTS; i++)
        truth->events[i] = truth_event(truth, i, &ord);
}

static void truth_free(struct truth *truth)
{
    for (int i = 0; i < EVENTS; i++)
        event_unref(truth->events[i]);
}

// The deletes of the first `seq` events, packed as Redis keeps them.
static void truth_deleted(const struct truth *truth, int seq, char *ret_packed, size_t size)
{
    bool deleted[EVENTS + 1] = {false};
    size_t length = 0;
    for (int i = 0; i < seq; i++)
        deleted[truth->deleted_ord[i]] = true;
    ret_packed[0] = '\0';
    for (int ord = 1; ord <= EVENTS; ord++)
        if (deleted[ord])
            length += (size_t)snprintf(ret_packed + length, size - length, "%s%d:U0000000001",
                                       length > 0 ? " " : "", ord);
}

static void truth_install(const struct truth *truth, int seq)
{
    char packed[ANSWER_SIZE], seq_text[24], ord[24];
    truth_deleted(truth, seq, packed, sizeof packed);
    (void)snprintf(seq_text, sizeof seq_text, "%d", seq);
    (void)snprintf(ord, sizeof ord, "%" PRId64, seq > 0 ? truth->events[seq - 1]->head.ord : 0);
    install(seq_text, ord, "0", packed);
}

static void assert_head_is_true(const struct truth *truth)
{
    char packed[ANSWER_SIZE];
    if (strcmp(field("seq"), "nil") == 0)
        return;
    int seq = (int)strtol(answer, NULL, 10);
    truth_deleted(truth, seq, packed, sizeof packed);
    assert_int_equal(strtol(field("ord"), NULL, 10),
                     seq > 0 ? truth->events[seq - 1]->head.ord : 0);
    assert_string_equal(packed[0] ? field("deleted") : "", packed);
}

static void step(const struct truth *truth)
{
    unsigned first = random_below(EVENTS);
    unsigned count = 1 + random_below(6);
    switch (random_below(8)) {
    case 0:
        (void)ASK("FLUSHALL");
        break;
    case 1:
        truth_install(truth, (int)random_below(EVENTS + 1));
        break;
    default:
        effects_add(pipeline, truth->events + first,
                    count > EVENTS - first ? EVENTS - first : count);
        assert_int_equal(pipeline_run(pipeline, NULL, NULL), 0);
    }
}

static void a_known_head_is_always_the_truth(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RUNS; i++) {
        struct truth truth;
        seed = i;
        truth_make(&truth);
        for (int j = 0; j < 20; j++) {
            step(&truth);
            assert_head_is_true(&truth);
        }
        (void)ASK("FLUSHALL");
        truth_install(&truth, 1);
        effects_add(pipeline, truth.events, EVENTS);
        assert_int_equal(pipeline_run(pipeline, NULL, NULL), 0);
        assert_head_is_true(&truth);
        assert_int_equal(strtol(field("seq"), NULL, 10), EVENTS);
        truth_free(&truth);
        (void)ASK("FLUSHALL");
    }
}

// One member in time: each commit changes a part (a post, none that Redis knows of), its event
// comes late or twice, and readers install what they read a while ago. Only what is read before
// Redis is wiped is not installed after it.
struct history {
    struct event_member states[EVENTS];
    bool posted[EVENTS]; // the change was a post, else a mark, join or leave
    bool delivered[EVENTS];
    int count;
    int reading; // the state that a reader read and has not installed yet, -1 when none
};

static void history_commit(struct history *history)
{
    struct event_member state = {0};
    if (history->count == EVENTS)
        return;
    if (history->count > 0)
        state = history->states[history->count - 1];
    unsigned what = random_below(6);
    history->posted[history->count] = what < 3;
    if (what < 3) {
        state.posts++;
    } else if (what < 5) {
        state.epoch += what == 4;
        state.ts = what == 4 ? state.ts / 2 : state.ts + 10;
        state.seq = state.ord = state.ts;
        state.own = state.posts;
    } else {
        state.member_seq++;
        state.active = !state.active;
    }
    history->states[history->count] = state;
    history->delivered[history->count++] = false;
}

static void history_deliver(struct history *history, int i)
{
    struct event event = {.kind = history->posted[i] ? EVENT_POST : EVENT_MARK,
                          .member = history->states[i]};
    (void)snprintf(event.channel_id, sizeof event.channel_id, "%s", channel);
    (void)snprintf(event.user_id, sizeof event.user_id, "%s", user);
    effects_add(pipeline, (struct event *[]){&event}, 1);
    assert_int_equal(pipeline_run(pipeline, NULL, NULL), 0);
    history->delivered[i] = true;
}

static void history_install(struct history *history)
{
    struct member_call call;
    if (history->reading < 0)
        return;
    member_call_make(&call, user, channel, &history->states[history->reading]);
    assert_int_equal(run(MEMBER_CALL_ARGUMENTS, call.texts), 0);
    history->reading = -1;
}

static void history_step(struct history *history)
{
    switch (random_below(9)) {
    case 0:
        (void)ASK("FLUSHALL");
        history->reading = -1;
        break;
    case 1:
    case 2:
        history_install(history);
        break;
    case 3:
        history->reading = history->count - 1;
        break;
    case 4:
    case 5:
        history_commit(history);
        break;
    default:
        history_deliver(history, (int)random_below((unsigned)history->count));
    }
}

// That all of the truth's events are there and the member is known means that it is true.
static void assert_member_is_true(const struct history *history)
{
    struct member_call call;
    char packed[ANSWER_SIZE] = "";
    for (int i = 0; i < history->count; i++)
        if (!history->delivered[i])
            return;
    if (strcmp(ASK("HGET", cursor_key_text, channel), "nil") == 0 || strchr(answer, '?'))
        return;
    member_call_make(&call, user, channel, &history->states[history->count - 1]);
    for (int i = 5; i < MEMBER_CALL_ARGUMENTS; i++) {
        strncat(packed, call.texts[i], 30);
        strncat(packed, i < MEMBER_CALL_ARGUMENTS - 1 ? " " : "", 2);
    }
    assert_string_equal(answer, packed);
}

static void a_known_member_is_the_truth_once_all_is_told(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RUNS; i++) {
        struct history history = {.reading = -1};
        seed = 1000 + i;
        history_commit(&history);
        for (int j = 0; j < 60; j++) {
            history_step(&history);
            assert_member_is_true(&history);
        }
        for (int j = 0; j < history.count; j++)
            history_deliver(&history, j);
        history_install(&history);
        assert_member_is_true(&history);
        (void)ASK("FLUSHALL");
    }
}

static void a_cursor_in_a_thread_never_goes_back_and_does_not_stay_for_ever(void **state)
{
    (void)state;
    static const char key[] = "thread-read:{U0000000001}:C0000000001:1717200000.123456";
    struct event event = {
        .kind = EVENT_THREAD_MARK, .ts = 1717200000123456, .member = {.ts = 1717200000999999}};
    (void)snprintf(event.channel_id, sizeof event.channel_id, channel);
    (void)snprintf(event.user_id, sizeof event.user_id, user);
    struct event *events[] = {&event};
    effects_add_thread(pipeline, &event, 1000);
    assert_int_equal(pipeline_run(pipeline, NULL, NULL), 0);
    assert_string_equal(ASK("GET", key), "1717200000999999");
    assert_string_equal(ASK("TTL", key), "1000");
    assert_string_equal(ASK("FCALL", "thread_apply", "1", key, "1717200000999998", "2000"), "0");
    assert_string_equal(ASK("FCALL", "thread_apply", "1", key, "1717200001000000", "2000"), "1");
    assert_string_equal(ASK("GET", key), "1717200001000000");
    effects_forget(pipeline, events, 1);
    assert_int_equal(pipeline_run(pipeline, NULL, NULL), 0);
    assert_string_equal(ASK("GET", key), "nil");
}

static void calls_are_added_up_and_go_when_they_are_over(void **state)
{
    (void)state;
    static const char key[] = "rate:{T0000000001}:auth.test";
    assert_string_equal(ASK("FCALL", "limit_take", "1", key, "1500000"), "1500000");
    int64_t lasts = strtoll(ASK("FCALL", "limit_take", "1", key, "20000000"), NULL, 10);
    assert_in_range(lasts, 20000000, 21500000);
    int64_t left_ms = strtoll(ASK("PTTL", key), NULL, 10);
    assert_in_range(left_ms, 15000, lasts / 1000 + 1);
    // A debt is not endless, whoever made it.
    assert_string_equal(ASK("FCALL", "limit_take", "1", key, "99000000000"), "600000000");
    (void)ASK("SET", key, "9000000000000000");
    assert_string_equal(ASK("FCALL", "limit_take", "1", key, "1"), "600000000");
    (void)ASK("SET", key, "garbage");
    assert_string_equal(ASK("FCALL", "limit_take", "1", key, "1"), "1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_unknown_head_stays_unknown, wipe),
        cmocka_unit_test_setup(what_is_older_than_what_was_heard_of_is_not_installed, wipe),
        cmocka_unit_test_setup(a_head_follows_its_events_and_never_goes_back, wipe),
        cmocka_unit_test_setup(a_hole_makes_a_head_unknown, wipe),
        cmocka_unit_test_setup(deletes_are_a_bounded_set, wipe),
        cmocka_unit_test_setup(a_broken_key_is_an_error_and_can_be_forgotten, wipe),
        cmocka_unit_test_setup(each_part_of_a_member_is_merged_by_what_orders_it, wipe),
        cmocka_unit_test_setup(an_event_alone_makes_no_member_known, wipe),
        cmocka_unit_test_setup(several_members_are_merged_in_one_call, wipe),
        cmocka_unit_test_setup(a_known_head_is_always_the_truth, wipe),
        cmocka_unit_test_setup(a_known_member_is_the_truth_once_all_is_told, wipe),
        cmocka_unit_test_setup(a_cursor_in_a_thread_never_goes_back_and_does_not_stay_for_ever,
                               wipe),
        cmocka_unit_test_setup(calls_are_added_up_and_go_when_they_are_over, wipe),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
