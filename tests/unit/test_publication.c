// SPDX-License-Identifier: Apache-2.0
// Commits come at any point of a turn, several in one or with pauses: each is offered to the
// sockets once, then handed to the log once, with its own events and in order.
#include "../../src/chat/publication.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { COMMITS = 4, EVENTS_MAX = 3, PAUSES = 3 };

// Points of a turn: as its first work, when the loop is about to wait, and as the first or the last
// of its deferred calls.
enum point { POINT_FIRST, POINT_IDLE, POINT_DEFERRED, POINT_DEFERRED_LAST, POINTS };

struct scene {
    struct loop *loop;
    struct publication publication;
    enum point points[COMMITS];
    int turns[COMMITS]; // when each commit comes
    int turn;
    int committed;
    int offered;
    int handed_over;
    bool is_offered; // the last commit is offered, and not handed over
};

static size_t events_of(int commit)
{
    return (size_t)(commit % EVENTS_MAX) + 1;
}

static void events_check(int commit, struct event *const *events, size_t count)
{
    assert_int_equal(count, events_of(commit));
    for (size_t i = 0; i < count; i++) {
        assert_non_null(events[i]);
        assert_int_equal(events[i]->seq, 100 * commit + (int)i);
    }
}

static void on_local(void *arg, struct event *const *events, size_t count)
{
    struct scene *scene = arg;

    assert_false(scene->is_offered);
    scene->is_offered = true;
    events_check(scene->offered++, events, count);
}

static void on_committed(void *arg, const char *outbox_id, struct event *const *events,
                         size_t count)
{
    struct scene *scene = arg;
    char expected[OUTBOX_ID_SIZE] = {0};

    assert_true(scene->is_offered);
    scene->is_offered = false;
    snprintf(expected, sizeof expected, "row-%d", scene->handed_over);
    assert_string_equal(outbox_id, expected);
    events_check(scene->handed_over++, events, count);
}

static void commit(struct scene *scene, int number)
{
    struct event **events = publication_next(&scene->publication);
    char outbox_id[OUTBOX_ID_SIZE] = {0};

    assert_int_equal(scene->handed_over, number); // the previous one has left
    for (size_t i = 0; i < events_of(number); i++) {
        events[i] = event_new(EVENT_POST, strdup("{}"), 2);
        assert_non_null(events[i]);
        events[i]->seq = 100 * number + (int)i;
    }
    snprintf(outbox_id, sizeof outbox_id, "row-%d", number);
    publication_commit(&scene->publication, outbox_id, events_of(number));
}

static void commit_those_due(struct scene *scene, enum point point)
{
    while (scene->committed < COMMITS && scene->turns[scene->committed] <= scene->turn &&
           scene->points[scene->committed] == point)
        commit(scene, scene->committed++);
}

static void at_deferred(void *arg)
{
    commit_those_due(arg, POINT_DEFERRED);
}

static void at_deferred_last(void *arg)
{
    commit_those_due(arg, POINT_DEFERRED_LAST);
}

static void at_first(void *arg)
{
    struct scene *scene = arg;

    scene->turn++;
    loop_again(scene->loop);
    if (scene->handed_over == COMMITS)
        loop_stop(scene->loop);
    commit_those_due(scene, POINT_FIRST);
    loop_defer(scene->loop, at_deferred, scene);
}

static void at_gather(void *arg)
{
    struct scene *scene = arg;

    publication_turn(&scene->publication);
}

static void at_idle(void *arg)
{
    struct scene *scene = arg;

    commit_those_due(scene, POINT_IDLE);
    loop_defer(scene->loop, at_deferred_last, scene);
}

// Each commit comes at the point and after the pause that its part of `variant` says.
static void scene_run(int variant)
{
    struct scene scene = {0};
    int turn = 1;

    for (int i = 0; i < COMMITS; i++) {
        scene.points[i] = (enum point)(variant % POINTS);
        variant /= POINTS;
        turn += variant % PAUSES;
        variant /= PAUSES;
        scene.turns[i] = turn;
    }
    struct writer_options options = {
        .on_local = on_local, .on_committed = on_committed, .arg = &scene};
    assert_int_equal(loop_new(&scene.loop), 0);
    assert_int_equal(publication_init(&scene.publication, scene.loop, &options, EVENTS_MAX), 0);
    assert_int_equal(loop_gather_add(scene.loop, at_first, &scene), 0);
    assert_int_equal(loop_gather_add(scene.loop, at_gather, &scene), 0);
    assert_int_equal(loop_idle_add(scene.loop, at_idle, &scene), 0);
    loop_again(scene.loop); // nothing else wakes it
    loop_run(scene.loop);
    assert_int_equal(scene.offered, COMMITS);
    publication_done(&scene.publication);
    loop_free(scene.loop);
}

static void each_commit_leaves_once_wherever_it_comes(void **state)
{
    int variants = 1;

    (void)state;
    for (int i = 0; i < COMMITS; i++)
        variants *= POINTS * PAUSES;
    for (int variant = 0; variant < variants; variant++)
        scene_run(variant);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_commit_leaves_once_wherever_it_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
