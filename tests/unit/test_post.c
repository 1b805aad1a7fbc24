// SPDX-License-Identifier: Apache-2.0
// The message that a post becomes.
#include "chat/writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct actor ann = {.workspace_id = "T1", .user_id = "U1", .bot_id = ""};

static void is_written(const struct post *post, const char *parent_user, const char *expected)
{
    struct message message = post_message(post, 1500000000000001, 7, parent_user);
    static struct buffer out;

    buffer_done(&out); // of the one before
    buffer_init(&out, 4096);
    struct json_writer w = json_writer_to(&out);
    message_write(&w, &message, "T1");
    buffer_append_byte(&out, '\0');
    assert_false(buffer_failed(&out));
    assert_string_equal(out.data, expected);
}

static void a_plain_post(void **state)
{
    const struct post post = {.actor = &ann, .text = "hello!", .text_length = 5};

    (void)state;
    assert_true(post_is_counted(&post));
    is_written(&post, "",
               "{\"type\":\"message\",\"user\":\"U1\",\"text\":\"hello\","
               "\"ts\":\"1500000000.000001\",\"team\":\"T1\",\"seq\":7}");
}

static void a_post_with_all_there_is(void **state)
{
    const struct actor bot = {.workspace_id = "T1",
                              .user_id = "U1",
                              .bot_id = "B1",
                              .bot = {.app_id = "A1", .name = "Bob", .updated = 9}};
    const struct post post = {
        .actor = &bot, .text = "", .extra = "{\"blocks\":[]}", .client_msg_id = "k"};

    (void)state;
    is_written(&post, "",
               "{\"type\":\"message\",\"user\":\"U1\",\"text\":\"\",\"ts\":\"1500000000.000001\","
               "\"team\":\"T1\",\"bot_id\":\"B1\",\"app_id\":\"A1\",\"bot_profile\":{\"id\":\"B1\","
               "\"app_id\":\"A1\","
               "\"user_id\":\"U1\",\"name\":\"Bob\",\"icons\":{},\"deleted\":false,\"updated\":9,"
               "\"team_id\":\"T1\"},"
               "\"client_msg_id\":\"k\",\"blocks\":[],\"seq\":7}");
}

static void a_reply(void **state)
{
    struct post post = {.actor = &ann, .text = "", .thread_ts = 1400000000000000};

    (void)state;
    assert_false(post_is_counted(&post));
    is_written(&post, "U2",
               "{\"type\":\"message\",\"user\":\"U1\",\"text\":\"\",\"ts\":\"1500000000.000001\","
               "\"team\":\"T1\",\"thread_ts\":\"1400000000.000000\",\"parent_user_id\":\"U2\","
               "\"seq\":7}");
    post.broadcast = true;
    assert_true(post_is_counted(&post));
    is_written(&post, "U2",
               "{\"type\":\"message\",\"subtype\":\"thread_broadcast\",\"user\":\"U1\","
               "\"text\":\"\",\"ts\":\"1500000000.000001\",\"team\":\"T1\","
               "\"thread_ts\":\"1400000000.000000\",\"parent_user_id\":\"U2\",\"seq\":7}");
}

// Only of a reply it says that the channel is shown it.
static void broadcast_of_no_reply(void **state)
{
    const struct post post = {.actor = &ann, .text = "", .broadcast = true};

    (void)state;
    assert_string_equal(post_message(&post, 1, 1, "").subtype, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_post),
        cmocka_unit_test(a_post_with_all_there_is),
        cmocka_unit_test(a_reply),
        cmocka_unit_test(broadcast_of_no_reply),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
