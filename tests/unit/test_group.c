// SPDX-License-Identifier: Apache-2.0
// Group commit: what gathers in a turn goes as one batch; what comes meanwhile forms the next.
#include "store/group.h"

#include "base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { BATCH_MAX = 4, QUEUE_MAX = 6, ITEMS = 8, SENT_MAX = 16 };
enum { BATCH_BYTES = 100, QUEUE_BYTES = 250 };

struct fixture {
    struct loop *loop;
    struct group *group;
    struct group_item items[ITEMS];
    int sizes[SENT_MAX]; // of the batches sent
    int first[SENT_MAX]; // number of the first item of each
    int sent;
    int batch[BATCH_MAX]; // numbers of the items sent last
    int stop_after;       // batches
    int retry_item;       // given back once, -1: none
    bool alone;
    bool holds; // batches stay in work
};

static int number_of(const struct fixture *fixture, const struct group_item *item)
{
    return (int)(item - fixture->items);
}

static void batch_end(void *arg)
{
    struct fixture *fixture = arg;

    group_done(fixture->group, fixture->sizes[fixture->sent - 1]);
    if (fixture->sent >= fixture->stop_after)
        loop_stop(fixture->loop);
}

static void give_back(struct fixture *fixture, struct group_item *item)
{
    fixture->retry_item = -1;
    if (fixture->alone)
        group_retry_alone(fixture->group, item);
    else
        group_retry(fixture->group, item);
}

static int on_send(void *arg, struct group_item *const *items, int count)
{
    struct fixture *fixture = arg;

    assert_in_range(fixture->sent, 0, SENT_MAX - 1);
    fixture->sizes[fixture->sent] = count;
    fixture->first[fixture->sent++] = number_of(fixture, items[0]);
    for (int i = 0; i < count; i++)
        fixture->batch[i] = number_of(fixture, items[i]);
    for (int i = 0; i < count; i++)
        if (number_of(fixture, items[i]) == fixture->retry_item)
            give_back(fixture, items[i]);
    if (!fixture->holds)
        assert_int_equal(loop_post(fixture->loop, batch_end, fixture), 0);
    return count;
}

static int setup_depth(void **state, int depth)
{
    static struct fixture fixture;

    fixture = (struct fixture){.retry_item = -1};
    for (int i = 0; i < ITEMS; i++)
        fixture.items[i].user_id = "U1";
    assert_int_equal(loop_new(&fixture.loop), 0);
    assert_int_equal(group_new(fixture.loop,
                               &(struct group_limits){.depth = depth,
                                                      .batch_max = BATCH_MAX,
                                                      .batch_bytes = BATCH_BYTES,
                                                      .queue_max = QUEUE_MAX,
                                                      .queue_bytes = QUEUE_BYTES},
                               on_send, &fixture, &fixture.group),
                     0);
    *state = &fixture;
    return 0;
}

static int setup(void **state)
{
    return setup_depth(state, 1);
}

static int setup_two(void **state)
{
    return setup_depth(state, 2);
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    group_free(fixture->group);
    loop_free(fixture->loop);
    return 0;
}

static void items_add(struct fixture *fixture, int count)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(group_add(fixture->group, &fixture->items[i]), 0);
    loop_again(fixture->loop); // items come in a turn, as they do in a server
}

static void what_gathered_goes_as_one_batch(void **state)
{
    struct fixture *fixture = *state;

    fixture->stop_after = 1;
    items_add(fixture, 3);
    loop_run(fixture->loop);
    assert_int_equal(fixture->sizes[0], 3);
    assert_int_equal(group_waiting(fixture->group), 0);
}

static void a_batch_has_at_most_its_maximum(void **state)
{
    struct fixture *fixture = *state;

    fixture->stop_after = 2;
    items_add(fixture, BATCH_MAX + 1);
    loop_run(fixture->loop);
    assert_int_equal(fixture->sizes[0], BATCH_MAX);
    assert_int_equal(fixture->sizes[1], 1);
}

static void a_batch_has_at_most_its_bytes(void **state)
{
    struct fixture *fixture = *state;
    static const size_t bytes[] = {60, 40, 1, BATCH_BYTES + 1, 1};

    for (int i = 0; i < 5; i++)
        fixture->items[i].bytes = bytes[i];
    fixture->stop_after = 4;
    items_add(fixture, 5);
    loop_run(fixture->loop);
    assert_int_equal(fixture->sizes[0], 2);
    assert_int_equal(fixture->sizes[1], 1);
    assert_int_equal(fixture->sizes[2], 1); // more than a batch may have, and alone
    assert_int_equal(fixture->first[2], 3);
    assert_int_equal(fixture->sizes[3], 1);
}

static void queue_empty(struct fixture *fixture)
{
    group_flush(fixture->group);
    group_done(fixture->group, 1);
    assert_int_equal(group_waiting(fixture->group), 0);
}

static void a_queue_full_of_bytes_refuses(void **state)
{
    struct fixture *fixture = *state;

    fixture->holds = true;
    fixture->items[0].bytes = QUEUE_BYTES;
    fixture->items[1].bytes = 1;
    fixture->items[2].bytes = QUEUE_BYTES + 1;
    assert_int_equal(group_add(fixture->group, &fixture->items[0]), 0);
    assert_int_equal(group_add(fixture->group, &fixture->items[1]), -ERROR_BUSY);
    queue_empty(fixture);
    assert_int_equal(group_add(fixture->group, &fixture->items[1]), 0);
    assert_int_equal(group_add(fixture->group, &fixture->items[2]), -ERROR_BUSY);
    queue_empty(fixture);
    assert_int_equal(group_add(fixture->group, &fixture->items[2]), 0); // nobody before it
    queue_empty(fixture);
}

static void a_full_queue_refuses(void **state)
{
    struct fixture *fixture = *state;

    fixture->stop_after = 2;
    items_add(fixture, QUEUE_MAX);
    assert_int_equal(group_add(fixture->group, &fixture->items[QUEUE_MAX]), -ERROR_BUSY);
    loop_run(fixture->loop);
    assert_int_equal(fixture->sizes[0] + fixture->sizes[1], QUEUE_MAX);
}

static void an_item_given_back_goes_first(void **state)
{
    struct fixture *fixture = *state;

    fixture->stop_after = 2;
    fixture->retry_item = 2;
    items_add(fixture, BATCH_MAX + 1);
    loop_run(fixture->loop);
    assert_int_equal(fixture->first[1], 2);
    assert_int_equal(fixture->sizes[1], 2);
}

static void an_item_given_back_alone_is_a_batch_of_one(void **state)
{
    struct fixture *fixture = *state;

    fixture->stop_after = 3;
    fixture->retry_item = 0;
    fixture->alone = true;
    items_add(fixture, BATCH_MAX + 1);
    loop_run(fixture->loop);
    assert_int_equal(fixture->first[1], 0);
    assert_int_equal(fixture->sizes[1], 1);
    assert_int_equal(fixture->sizes[2], 1);
}

static void group_is_flushed_with(struct fixture *fixture, int first, int count)
{
    for (int i = first; i < first + count; i++)
        assert_int_equal(group_add(fixture->group, &fixture->items[i]), 0);
    group_flush(fixture->group);
}

static void a_second_batch_goes_when_it_is_as_large_as_the_first(void **state)
{
    struct fixture *fixture = *state;

    fixture->holds = true;
    group_is_flushed_with(fixture, 0, 2);
    group_is_flushed_with(fixture, 2, 1);
    assert_int_equal(fixture->sent, 1);
    group_is_flushed_with(fixture, 3, 1);
    assert_int_equal(fixture->sent, 2);
    assert_int_equal(fixture->sizes[1], 2);
    group_is_flushed_with(fixture, 4, 3); // two are in work
    assert_int_equal(fixture->sent, 2);
    assert_int_equal(group_waiting(fixture->group), 7);
    group_done(fixture->group, 2);
    group_flush(fixture->group);
    assert_int_equal(fixture->sizes[2], 3);
    group_done(fixture->group, 2);
    group_done(fixture->group, 3);
    assert_int_equal(group_waiting(fixture->group), 0);
}

static void nothing_overtakes_an_item_that_goes_alone(void **state)
{
    struct fixture *fixture = *state;

    fixture->holds = true;
    fixture->alone = true;
    fixture->retry_item = 0;
    group_is_flushed_with(fixture, 0, 1);
    group_is_flushed_with(fixture, 1, 2);
    assert_int_equal(fixture->sent, 1);
    group_done(fixture->group, 1);
    group_flush(fixture->group);
    assert_int_equal(fixture->first[1], 0);
    assert_int_equal(fixture->sizes[1], 1);
    group_done(fixture->group, 1);
    group_flush(fixture->group);
    assert_int_equal(fixture->first[2], 1);
    assert_int_equal(fixture->sizes[2], 2);
    group_done(fixture->group, 2);
}

static void users_have_a_turn_after_the_other(void **state)
{
    struct fixture *fixture = *state;
    static const char *const users[] = {"U1", "U1", "U1", "U2", "U3"};

    for (int i = 0; i < 5; i++)
        fixture->items[i].user_id = users[i];
    fixture->holds = true;
    group_is_flushed_with(fixture, 0, 5);
    const int turns[] = {0, 3, 4, 1};
    for (int i = 0; i < BATCH_MAX; i++)
        assert_int_equal(fixture->batch[i], turns[i]);
    for (int i = BATCH_MAX; i-- > 0;)
        group_retry(fixture->group, &fixture->items[turns[i]]);
    group_done(fixture->group, BATCH_MAX);
    group_flush(fixture->group);
    const int again[] = {0, 3, 4, 1};
    for (int i = 0; i < BATCH_MAX; i++)
        assert_int_equal(fixture->batch[i], again[i]);
    group_done(fixture->group, BATCH_MAX);
    group_flush(fixture->group);
    assert_int_equal(fixture->first[2], 2);
    group_done(fixture->group, 1);
}

// Two batches in work are given back one after the other, each from its last item to its first.
static void two_batches_are_given_back(struct fixture *fixture,
                                       void (*give_item)(struct group *, struct group_item *))
{
    fixture->holds = true;
    group_is_flushed_with(fixture, 0, 2);
    group_is_flushed_with(fixture, 2, 2);
    assert_int_equal(fixture->sent, 2);
    for (int first = 0; first < 4; first += 2) {
        give_item(fixture->group, &fixture->items[first + 1]);
        give_item(fixture->group, &fixture->items[first]);
        group_done(fixture->group, 2);
    }
}

static void items_given_back_alone_keep_their_order(void **state)
{
    struct fixture *fixture = *state;

    two_batches_are_given_back(fixture, group_retry_alone);
    for (int i = 0; i < 4; i++) {
        group_flush(fixture->group);
        assert_int_equal(fixture->sizes[2 + i], 1);
        assert_int_equal(fixture->first[2 + i], i);
        group_done(fixture->group, 1);
    }
    assert_int_equal(group_waiting(fixture->group), 0);
}

static void items_given_back_keep_their_order(void **state)
{
    struct fixture *fixture = *state;

    two_batches_are_given_back(fixture, group_retry);
    for (int i = 4; i < 6; i++)
        assert_int_equal(group_add(fixture->group, &fixture->items[i]), 0);
    group_flush(fixture->group);
    assert_int_equal(fixture->sizes[2], BATCH_MAX);
    assert_int_equal(fixture->first[2], 0);
    group_done(fixture->group, BATCH_MAX);
    group_flush(fixture->group);
    assert_int_equal(fixture->sizes[3], 2);
    assert_int_equal(fixture->first[3], 4);
    group_done(fixture->group, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_gathered_goes_as_one_batch, setup, teardown),
        cmocka_unit_test_setup_teardown(a_batch_has_at_most_its_maximum, setup, teardown),
        cmocka_unit_test_setup_teardown(a_batch_has_at_most_its_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_queue_full_of_bytes_refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_queue_refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(an_item_given_back_goes_first, setup, teardown),
        cmocka_unit_test_setup_teardown(an_item_given_back_alone_is_a_batch_of_one, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_second_batch_goes_when_it_is_as_large_as_the_first,
                                        setup_two, teardown),
        cmocka_unit_test_setup_teardown(nothing_overtakes_an_item_that_goes_alone, setup_two,
                                        teardown),
        cmocka_unit_test_setup_teardown(users_have_a_turn_after_the_other, setup, teardown),
        cmocka_unit_test_setup_teardown(items_given_back_alone_keep_their_order, setup_two,
                                        teardown),
        cmocka_unit_test_setup_teardown(items_given_back_keep_their_order, setup_two, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
