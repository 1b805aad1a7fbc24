// SPDX-License-Identifier: Apache-2.0
// Which posts of a batch share a channel or an author, by hand and against a count of all pairs.
#include "../../src/chat/batch_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { POSTS_MAX = 40 };

static struct actor actors[POSTS_MAX];
static struct post posts[POSTS_MAX];
static struct post *batch[POSTS_MAX];
static struct batch_plan plan;
static int count;

static int plan_set_up(void **state)
{
    (void)state;
    memset(posts, 0, sizeof posts);
    memset(actors, 0, sizeof actors);
    count = 0;
    int r = batch_plan_init(&plan, POSTS_MAX);
    if (r < 0) {
        batch_plan_done(&plan);
        plan = (struct batch_plan){0};
    }
    return r;
}

static int plan_tear_down(void **state)
{
    (void)state;
    batch_plan_done(&plan);
    return 0;
}

static struct post *post_add(const char *workspace_id, const char *channel_id, const char *user_id)
{
    struct post *post = &posts[count];
    struct actor *actor = &actors[count];

    snprintf(actor->workspace_id, sizeof actor->workspace_id, "%s", workspace_id);
    snprintf(actor->user_id, sizeof actor->user_id, "%s", user_id);
    post->actor = actor;
    post->channel_id = channel_id;
    batch[count++] = post;
    return post;
}

static void place_is(int index, int channel, int rank, int ord, int author, int own)
{
    const struct batch_place *place = &plan.places[index];

    assert_int_equal(place->channel, channel);
    assert_int_equal(place->rank, rank);
    assert_int_equal(place->ord, ord);
    assert_int_equal(place->author, author);
    assert_int_equal(place->own, own);
}

static void one_post(void **state)
{
    (void)state;
    post_add("T1", "C1", "U1");
    batch_plan_make(&plan, batch, count);
    assert_int_equal(plan.channel_count, 1);
    assert_int_equal(plan.author_count, 1);
    place_is(0, 1, 0, 1, 1, 1);
    assert_ptr_equal(plan.channels[0].last_counted, &posts[0]);
    assert_int_equal(plan.channels[0].last, 1);
    assert_false(plan.has_keys || plan.has_replies || plan.has_mentions);
}

static void channels_are_numbered_by_name_and_posts_as_they_came(void **state)
{
    (void)state;
    post_add("T1", "C2", "U1");
    post_add("T1", "C1", "U2");
    post_add("T1", "C2", "U2");
    post_add("T1", "C2", "U1");
    batch_plan_make(&plan, batch, count);
    place_is(0, 2, 0, 1, 2, 1);
    place_is(1, 1, 0, 1, 1, 1);
    place_is(2, 2, 1, 2, 3, 1);
    place_is(3, 2, 2, 3, 2, 2);
    assert_int_equal(plan.channel_count, 2);
    assert_int_equal(plan.channels[0].events, 1);
    assert_int_equal(plan.channels[1].events, 3);
    assert_ptr_equal(plan.channels[1].last_counted, &posts[3]);
    assert_int_equal(plan.author_count, 3);
    assert_int_equal(plan.authors[1].channel, 2);
    assert_int_equal(plan.authors[1].posts, 2);
    assert_string_equal(plan.authors[2].post->actor->user_id, "U2");
}

// A channel that is named by somebody of another workspace is a channel of its own, which
// post_batch() does not find.
static void workspaces_are_kept_apart(void **state)
{
    (void)state;
    post_add("T2", "C1", "U1");
    post_add("T1", "C1", "U1");
    batch_plan_make(&plan, batch, count);
    assert_int_equal(plan.channel_count, 2);
    place_is(0, 2, 0, 1, 2, 1);
    place_is(1, 1, 0, 1, 1, 1);
}

static void replies_count_when_they_are_shown_to_the_channel(void **state)
{
    (void)state;
    post_add("T1", "C1", "U1")->thread_ts = 5;
    post_add("T1", "C1", "U1");
    post_add("T1", "C1", "U1")->thread_ts = 5;
    posts[2].broadcast = true;
    post_add("T1", "C1", "U2")->thread_ts = 5;
    batch_plan_make(&plan, batch, count);
    place_is(0, 1, 0, 0, 1, 0);
    place_is(1, 1, 1, 1, 1, 1);
    place_is(2, 1, 2, 2, 1, 2);
    place_is(3, 1, 3, 2, 2, 0);
    assert_int_equal(plan.channels[0].events, 4);
    assert_int_equal(plan.channels[0].counted, 2);
    assert_int_equal(plan.channels[0].last, 3);
    assert_ptr_equal(plan.channels[0].last_counted, &posts[2]);
    assert_int_equal(plan.authors[1].posts, 0);
    assert_true(plan.has_replies);
}

static void of_replies_alone_none_is_the_last_counted(void **state)
{
    (void)state;
    post_add("T1", "C1", "U1")->thread_ts = 5;
    batch_plan_make(&plan, batch, count);
    assert_null(plan.channels[0].last_counted);
    assert_int_equal(plan.channels[0].last, 0);
    assert_int_equal(plan.channels[0].counted, 0);
}

static void a_plan_is_made_anew(void **state)
{
    struct mention mention = {.user_id = "U9", .sources = MENTION_IN_TEXT};

    (void)state;
    post_add("T1", "C1", "U1")->key = "k";
    post_add("T1", "C2", "U1")->mentions = (struct mentions){.items = &mention, .count = 1};
    batch_plan_make(&plan, batch, count);
    assert_true(plan.has_keys && plan.has_mentions && !plan.has_replies);
    posts[0].key = NULL;
    batch_plan_make(&plan, batch, 1);
    assert_false(plan.has_keys || plan.has_mentions);
    assert_int_equal(plan.channel_count, 1);
    place_is(0, 1, 0, 1, 1, 1);
}

static void who_waits_for_whom(void **state)
{
    (void)state;
    const struct post *post = post_add("T1", "C1", "U1");
    assert_true(batch_plan_same_author(post, post_add("T1", "C1", "U1")));
    assert_false(batch_plan_same_author(post, post_add("T1", "C2", "U1")));
    assert_false(batch_plan_same_author(post, post_add("T1", "C1", "U2")));
    assert_false(batch_plan_same_key(post, &posts[1]));
    posts[0].key = posts[1].key = posts[2].key = posts[3].key = "k";
    assert_true(batch_plan_same_key(post, &posts[1]));
    assert_true(batch_plan_same_key(post, &posts[2])); // whatever the channel
    assert_false(batch_plan_same_key(post, &posts[3]));
    posts[1].key = "l";
    assert_false(batch_plan_same_key(post, &posts[1]));
}

static int counted(int index)
{
    return posts[index].thread_ts == 0 || posts[index].broadcast;
}

static bool same_channel(int a, int b)
{
    return strcmp(posts[a].channel_id, posts[b].channel_id) == 0 &&
           strcmp(actors[a].workspace_id, actors[b].workspace_id) == 0;
}

// Compares the place of one post with what counting all others gives.
static void place_check(int index)
{
    const struct batch_place *place = &plan.places[index];
    const struct batch_channel *channel = &plan.channels[place->channel - 1];
    int rank = 0;
    int events = 0;
    int ord = 0;
    int own = 0;

    for (int other = 0; other < count; other++) {
        bool same = same_channel(index, other);
        bool same_author = same && batch_plan_same_author(&posts[index], &posts[other]);
        events += same;
        rank += same && other < index;
        ord += same && other <= index && counted(other);
        own += same_author && other <= index && counted(other);
        assert_int_equal(same, plan.places[other].channel == place->channel);
        assert_int_equal(same_author, plan.places[other].author == place->author);
    }
    assert_int_equal(place->rank, rank);
    assert_int_equal(place->ord, ord);
    assert_int_equal(place->own, own);
    assert_int_equal(channel->events, events);
    assert_int_equal(plan.authors[place->author - 1].channel, place->channel);
}

static void any_batch(void **state)
{
    static const char *const channels[] = {"C1", "C2", "C10", "D1"};
    static const char *const users[] = {"U1", "U2", "U10"};

    (void)state;
    srandom(1);
    for (int round = 0; round < 300; round++) {
        count = 0;
        int size = 1 + (int)(random() % POSTS_MAX);
        while (count < size) {
            struct post *post = post_add(random() % 8 == 0 ? "T2" : "T1", channels[random() % 4],
                                         users[random() % 3]);
            post->thread_ts = random() % 3 == 0;
            post->broadcast = random() % 2 == 0;
        }
        batch_plan_make(&plan, batch, count);
        for (int i = 0; i < count; i++)
            place_check(i);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, plan_set_up, plan_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_post),
        TEST(channels_are_numbered_by_name_and_posts_as_they_came),
        TEST(workspaces_are_kept_apart),
        TEST(replies_count_when_they_are_shown_to_the_channel),
        TEST(of_replies_alone_none_is_the_last_counted),
        TEST(a_plan_is_made_anew),
        TEST(who_waits_for_whom),
        TEST(any_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
