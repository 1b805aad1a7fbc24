// SPDX-License-Identifier: Apache-2.0
// Work put aside for a locked row: the first of a key is tried, the others wait behind it.
#include "store/aside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { ITEMS = 8, TRIES_MAX = 32 };

struct fixture {
    struct loop *loop;
    struct aside *aside;
    struct list items[ITEMS];
    int tried[TRIES_MAX];
    int tries;
    int back[TRIES_MAX];
    int backs;
    int locked_tries; // so many times the row is found locked
    int late;         // the item that is answered without being tried; -1: none
};

static int number_of(const struct fixture *fixture, const struct list *item)
{
    return (int)(item - fixture->items);
}

static void on_try(void *arg, const char *key, struct list *item)
{
    struct fixture *fixture = arg;

    assert_in_range(fixture->tries, 0, TRIES_MAX - 1);
    if (number_of(fixture, item) == fixture->late) {
        aside_next(fixture->aside, key);
        return;
    }
    fixture->tried[fixture->tries++] = number_of(fixture, item);
    if (fixture->tries <= fixture->locked_tries) {
        aside_again(fixture->aside, key, item);
        return;
    }
    aside_done(fixture->aside, key);
    if (aside_is_empty(fixture->aside))
        loop_stop(fixture->loop);
}

static void on_back(void *arg, struct list *item)
{
    struct fixture *fixture = arg;

    assert_in_range(fixture->backs, 0, TRIES_MAX - 1);
    fixture->back[fixture->backs++] = number_of(fixture, item);
}

static int setup(void **state)
{
    static struct fixture fixture;

    fixture = (struct fixture){.late = -1};
    assert_int_equal(loop_new(&fixture.loop), 0);
    assert_int_equal(aside_new(fixture.loop, on_try, on_back, &fixture, &fixture.aside), 0);
    for (int i = 0; i < ITEMS; i++)
        list_init(&fixture.items[i]);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    aside_free(fixture->aside);
    loop_free(fixture->loop);
    return 0;
}

static void the_first_is_tried_and_the_others_return_in_order(void **state)
{
    struct fixture *fixture = *state;

    fixture->locked_tries = 3;
    for (int i = 0; i < 4; i++)
        aside_add(fixture->aside, "C1", &fixture->items[i]);
    assert_int_equal(aside_waiting(fixture->aside), 4);
    assert_true(aside_holds(fixture->aside, "C1"));
    assert_false(aside_holds(fixture->aside, "C2"));
    loop_run(fixture->loop);
    assert_int_equal(fixture->tries, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(fixture->tried[i], 0);
    assert_int_equal(fixture->backs, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fixture->back[i], i + 1);
    assert_int_equal(aside_waiting(fixture->aside), 0);
}

static void keys_do_not_wait_for_each_other(void **state)
{
    struct fixture *fixture = *state;

    fixture->locked_tries = 1;
    aside_add(fixture->aside, "C1", &fixture->items[0]);
    aside_add(fixture->aside, "C2", &fixture->items[1]);
    loop_run(fixture->loop);
    assert_int_equal(fixture->tries, 3);
    assert_int_equal(fixture->tried[0], 0);
    assert_int_equal(fixture->tried[1], 1);
    assert_int_equal(fixture->tried[2], 0);
}

static void one_that_is_too_late_makes_room_for_the_next(void **state)
{
    struct fixture *fixture = *state;

    fixture->late = 0;
    for (int i = 0; i < 3; i++)
        aside_add(fixture->aside, "C1", &fixture->items[i]);
    loop_run(fixture->loop);
    assert_int_equal(fixture->tries, 1);
    assert_int_equal(fixture->tried[0], 1);
    assert_int_equal(fixture->backs, 1);
    assert_int_equal(fixture->back[0], 2);
}

static void add_next(void *arg)
{
    struct fixture *fixture = arg;

    assert_true(aside_holds(fixture->aside, "C1")); // nobody waits, and the row may still be locked
    assert_int_equal(aside_waiting(fixture->aside), 0);
    aside_add(fixture->aside, "C1", &fixture->items[1]);
}

static void the_row_is_remembered_when_the_last_one_is_too_late(void **state)
{
    struct fixture *fixture = *state;
    struct loop_timer *timer;

    fixture->late = 0;
    assert_int_equal(loop_timer_new(fixture->loop, add_next, fixture, &timer), 0);
    loop_timer_set(timer, 50);
    aside_add(fixture->aside, "C1", &fixture->items[0]);
    loop_run(fixture->loop);
    assert_int_equal(fixture->tries, 1);
    assert_int_equal(fixture->tried[0], 1);
    assert_false(aside_holds(fixture->aside, "C1"));
    loop_timer_free(timer);
}

static void what_is_on_its_way_keeps_others_waiting(void **state)
{
    struct fixture *fixture = *state;

    aside_begin(fixture->aside, "C1");
    aside_add(fixture->aside, "C1", &fixture->items[0]);
    aside_add(fixture->aside, "C1", &fixture->items[1]);
    assert_int_equal(aside_waiting(fixture->aside), 2);
    aside_done(fixture->aside, "C1");
    assert_int_equal(fixture->tries, 0);
    assert_int_equal(fixture->backs, 2);
    assert_true(aside_is_empty(fixture->aside));
}

static void what_waits_is_returned_at_the_end(void **state)
{
    struct fixture *fixture = *state;

    aside_add(fixture->aside, "C1", &fixture->items[0]);
    aside_add(fixture->aside, "C2", &fixture->items[1]);
    aside_free(fixture->aside);
    fixture->aside = NULL;
    assert_int_equal(fixture->backs, 2);
}

static void keys_are_cut_off(void **state)
{
    struct fixture *fixture = *state;
    char key[ASIDE_KEY_SIZE + 16];

    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    aside_add(fixture->aside, key, &fixture->items[0]);
    assert_true(aside_holds(fixture->aside, key));
    key[ASIDE_KEY_SIZE - 1] = '\0';
    assert_true(aside_holds(fixture->aside, key));
    loop_run(fixture->loop);
    assert_int_equal(fixture->tries, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_first_is_tried_and_the_others_return_in_order, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(keys_do_not_wait_for_each_other, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_is_too_late_makes_room_for_the_next, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_row_is_remembered_when_the_last_one_is_too_late, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_on_its_way_keeps_others_waiting, setup, teardown),
        cmocka_unit_test_setup_teardown(what_waits_is_returned_at_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(keys_are_cut_off, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
