// SPDX-License-Identifier: Apache-2.0
// The posts of a round that stand for all of them.
#include "../../src/notify/post_stretches.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { EVENTS_MAX = 64 };

// `text`: of each event the letters of kind (p, e, d), channel and author, and a digit for its ts.
static void assert_kept(const char *text, const char *expected)
{
    struct event events[EVENTS_MAX] = {0};
    struct event *pointers[EVENTS_MAX];
    char kept[4 * EVENTS_MAX + 1] = "";
    size_t count = 0;
    for (const char *at = text; *at != '\0'; at += 4 + (at[4] == ' '), count++) {
        struct event *event = pointers[count] = &events[count];
        event->kind = at[0] == 'p' ? EVENT_POST : at[0] == 'e' ? EVENT_EDIT : EVENT_DELETE;
        event->channel_id[0] = at[1];
        event->user_id[0] = at[2];
        event->ts = at[3] - '0';
    }
    size_t left = post_stretches_reduce(pointers, count);
    for (size_t i = 0; i < left; i++)
        snprintf(kept + strlen(kept), sizeof kept - strlen(kept), "%c%c%c%c ",
                 pointers[i]->kind == EVENT_POST   ? 'p'
                 : pointers[i]->kind == EVENT_EDIT ? 'e'
                                                   : 'd',
                 pointers[i]->channel_id[0], pointers[i]->user_id[0],
                 (char)('0' + pointers[i]->ts));
    assert_string_equal(kept, expected);
}

static void a_stretch_is_its_ends(void **state)
{
    (void)state;
    assert_kept("", "");
    assert_kept("pCa1", "pCa1 ");
    assert_kept("pCa1 pCa2", "pCa1 pCa2 ");
    assert_kept("pCa3 pCa1 pCa4 pCa2", "pCa1 pCa4 ");
}

static void another_author_is_seen(void **state)
{
    (void)state;
    assert_kept("pCa1 pCb2", "pCa1 pCb2 ");
    assert_kept("pCa1 pCa2 pCb3", "pCa1 pCb3 ");
    assert_kept("pCa1 pCb2 pCa3", "pCa1 pCb2 pCa3 ");
    assert_kept("pCa1 pCa2 pCb3 pCc4 pCa5 pCa6", "pCa1 pCb3 pCa6 ");
}

static void channels_and_other_events_stay_apart(void **state)
{
    (void)state;
    assert_kept("pDa1 pCa2 pDa3 pCa4 pDa5 pCb6", "pCa2 pCb6 pDa1 pDa5 ");
    assert_kept("eCa1 pCa2 eCa3 pCa4 dCa5 eCa6 pCa7", "pCa2 pCa7 eCa1 eCa3 dCa5 eCa6 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stretch_is_its_ends),
        cmocka_unit_test(another_author_is_seen),
        cmocka_unit_test(channels_and_other_events_stay_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
