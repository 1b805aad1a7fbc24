// SPDX-License-Identifier: Apache-2.0
// Assertions and checked casts: what is right costs nothing, what is wrong ends the process.
#include "base/check.h"
#include "base/list.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct apple {
    char colour;
    uint32_t tag;
};

struct apples {
    uint32_t tag;
};

static struct apple apple;
static struct apples apples;
static struct list basket, item;

static int set_up(void **state)
{
    (void)state;
    apple.tag = TAG(apple);
    apples.tag = TAG(apples);
    list_init(&basket);
    list_init(&item);
    return 0;
}

// Runs `fn` in a process of its own, and asserts that it ends by abort(), which AddressSanitizer
// may turn into an exit with a status of its own (handle_abort).
static void aborts(void (*fn)(void))
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        close(STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        fn();
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        assert_int_equal(WTERMSIG(status), SIGABRT);
    else
        assert_int_not_equal(WEXITSTATUS(status), 0);
}

static void what_is_true(void **state)
{
    int times = 0;

    (void)state;
    ASSERT(++times == 1);
    assert_int_equal(times, 1);
    assert_ptr_equal(CAST(apple, (void *)&apple), &apple);
}

static void assert_false_condition(void)
{
    ASSERT(apple.tag == apples.tag);
}

static void cast_another(void)
{
    (void)CAST(apples, (void *)&apple);
}

static void cast_null(void)
{
    (void)CAST(apple, NULL);
}

static void cast_cleared(void)
{
    tag_clear(&apple.tag);
    (void)CAST(apple, (void *)&apple);
}

static void append_twice(void)
{
    list_append(&basket, &item);
    list_append(&basket, &item);
}

static void remove_a_copy(void)
{
    list_append(&basket, &item);
    struct list copy = item;
    list_remove(&copy);
}

static void what_is_wrong(void **state)
{
    (void)state;
    aborts(assert_false_condition);
    aborts(cast_another);
    aborts(cast_null);
    aborts(cast_cleared);
    aborts(append_twice);
    aborts(remove_a_copy);
}

static void a_tag_ends_with_its_object(void **state)
{
    struct apple *mine = malloc(sizeof *mine);

    (void)state;
    assert_non_null(mine);
    mine->tag = TAG(apple);
    TAGGED_FREE(mine);
    mine = NULL;
    TAGGED_FREE(mine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_true, set_up),
        cmocka_unit_test_setup(what_is_wrong, set_up),
        cmocka_unit_test_setup(a_tag_ends_with_its_object, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
