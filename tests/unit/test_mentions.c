// SPDX-License-Identifier: Apache-2.0
#include "chat/app_mention.h"
#include "chat/mentions.h"
#include "chat/names.h"

#include "base/error.h"
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { USERS_MAX = 4 };

// Asserts that the ids found in `text`, by id and with blanks between, are `expected`; "*" is
// everybody.
static void finds(const char *text, size_t length, const char *expected)
{
    struct mentions mentions = {0};
    char found[256] = "";

    // A copy without a NUL behind it: reading past the end is seen by the sanitizers.
    char *copy = malloc(length == 0 ? 1 : length);
    memcpy(copy, text, length);
    assert_int_equal(mentions_find(&mentions, copy, length, MENTION_IN_TEXT, USERS_MAX), 0);
    for (int i = 0; i < mentions.count; i++) {
        const char *id = mentions.items[i].user_id;
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s", i == 0 ? "" : " ",
                 id[0] == '\0' ? "*" : id);
        assert_int_equal(mentions.items[i].sources, MENTION_IN_TEXT);
    }
    assert_string_equal(found, expected);
    mentions_done(&mentions);
    free(copy);
}

static void test_text(void **state)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"nobody", ""},
        {"<@U123>", "U123"},
        {"<@W123> <@U123|label with spaces> <@U123>", "U123 W123"},
        {"<@U123|>", "U123"},
        {"<@U123||x|y>", "U123"},
        {"<!channel> <!here|here> <!everyone> <!group>", "*"},
        {"<!here><@U1A><@U1B>", "* U1A U1B"},
        {"`<@U123>`", "U123"},
        {"<<@U123>>", "U123"},
        {"<a <@U123>", "U123"},
        {"<@U123", ""},
        {"@U123>", ""},
        {"<@U12 3>", ""},
        {"< @U123>", ""},
        {"<@u123>", ""},
        {"<@C123>", ""},
        {"<@U1>", ""},
        {"<@U>", ""},
        {"<@>", ""},
        {"<!>", ""},
        {"<>", ""},
        {"<|>", ""},
        {"<@|U123>", ""},
        {"<!Channel> <!channels> <!chan> <! here> <!subteam^S123|@here>", ""},
        {"&lt;@U123&gt; <#C123> <https://x/@U123>", ""},
        {"<@U1234567890123456789>", "U1234567890123456789"},
        {"<@U12345678901234567890>", ""},
        {"<@U123456789012345678901234567890123456789012345678901234567890>", ""},
        {"<@U123\xff>", ""},
        {"\xf0\x9f<@U123>\x80", "U123"},
        {"<@U123\n>", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        finds(cases[i][0], strlen(cases[i][0]), cases[i][1]);
    finds("<@U12\0>", 7, "");
    finds("\0<@U123>\0<!here>", 16, "* U123");
    finds("<@U123>", 6, "");
}

static void test_no_more_than_the_most(void **state)
{
    struct mentions mentions = {0};
    const char most[] = "<@U10><@U11><@U12><@U13><!here><@U10>";
    const char more[] = "<@U14>";

    (void)state;
    assert_int_equal(mentions_find(&mentions, most, strlen(most), MENTION_IN_TEXT, USERS_MAX), 0);
    assert_int_equal(mentions.count, 5);
    assert_int_equal(mentions.users, 4);
    assert_int_equal(mentions_find(&mentions, most, strlen(most), MENTION_IN_BLOCKS, USERS_MAX), 0);
    assert_int_equal(mentions.count, 5);
    assert_int_equal(mentions.items[0].sources, MENTION_IN_TEXT | MENTION_IN_BLOCKS);
    assert_int_equal(mentions_find(&mentions, more, strlen(more), MENTION_IN_BLOCKS, USERS_MAX),
                     -ERROR_INVALID_ARGUMENTS);
    assert_int_equal(mentions.count, 5);
    mentions_done(&mentions);
    assert_int_equal(mentions.count, 0);
}

static void finds_in_blocks(const char *json, const char *expected)
{
    CLEANUP_JSON json_t *blocks = NULL;
    struct mentions mentions = {0};
    char found[256] = "";

    assert_int_equal(json_read(json, strlen(json), JSON_DEPTH_MAX, JSON_VALUES_ANY, &blocks), 0);
    assert_int_equal(mentions_find_in_blocks(&mentions, blocks, USERS_MAX), 0);
    for (int i = 0; i < mentions.count; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s", i == 0 ? "" : " ",
                 mentions.items[i].user_id[0] == '\0' ? "*" : mentions.items[i].user_id);
    assert_string_equal(found, expected);
    mentions_done(&mentions);
}

static void test_blocks(void **state)
{
    (void)state;
    finds_in_blocks("[]", "");
    finds_in_blocks(
        "[{\"type\":\"rich_text\",\"elements\":[{\"type\":\"rich_text_list\",\"elements\":["
        "{\"type\":\"user\",\"user_id\":\"U123\"},{\"type\":\"broadcast\",\"range\":"
        "\"channel\"},{\"type\":\"text\",\"text\":\"<@U999>\"}]}]}]",
        "* U123");
    finds_in_blocks("[{\"type\":\"section\",\"text\":{\"type\":\"mrkdwn\",\"text\":\"<@U123>\"},"
                    "\"fields\":[{\"type\":\"mrkdwn\",\"text\":\"<!here>\"},"
                    "{\"type\":\"plain_text\",\"text\":\"<@U999>\"}]}]",
                    "* U123");
    finds_in_blocks(
        "[{\"type\":\"user\",\"user_id\":7},{\"type\":\"user\",\"user_id\":\"U\"},"
        "{\"type\":\"user\"},{\"type\":\"user\",\"user_id\":\"C123\"},"
        "{\"type\":\"broadcast\",\"range\":\"all\"},{\"type\":\"broadcast\",\"range\":null},"
        "{\"type\":\"mrkdwn\",\"text\":{}},{\"type\":5},{\"user_id\":\"U123\"},"
        "null,7,\"<@U123>\",[[{\"type\":\"mrkdwn\"}]]]",
        "");
}

static const char *ann_and_bob(const void *arg, const char *name, size_t length)
{
    (void)arg;
    if (length == 3 && memcmp(name, "ann", 3) == 0)
        return "UANN";
    return length == 5 && memcmp(name, "b.o_b", 5) == 0 ? "UBOB" : NULL;
}

static void links(const char *text, size_t length, const char *expected)
{
    struct buffer out;

    buffer_init(&out, SIZE_MAX);
    char *copy = malloc(length == 0 ? 1 : length);
    memcpy(copy, text, length);
    names_link(copy, length, ann_and_bob, NULL, &out);
    assert_false(buffer_failed(&out));
    assert_int_equal(out.length, strlen(expected));
    if (out.length > 0)
        assert_memory_equal(out.data, expected, out.length);
    buffer_done(&out);
    free(copy);
}

static void test_names(void **state)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"@ann", "<@UANN>"},
        {"@ann @cid @b.o_b!", "<@UANN> @cid <@UBOB>!"},
        {"hello @ann.", "hello <@UANN>."},
        {"(@ann--) @b.o_b...", "(<@UANN>--) <@UBOB>..."},
        {"@here, @channel; @everyone @group", "<!here>, <!channel>; <!everyone> @group"},
        {"x@ann 1@ann .@ann +@ann @@ann", "x@ann 1@ann .@ann +@ann @@ann"},
        {"\xc3\xa9@ann", "\xc3\xa9<@UANN>"},
        {"@anne @Ann @ann\xc3\xa9", "@anne @Ann @ann\xc3\xa9"},
        {"<@UX> <https://@ann> <x|@ann>@ann", "<@UX> <https://@ann> <x|@ann><@UANN>"},
        {"< @ann", "< <@UANN>"},
        {"<<<@ann>", "<<<@ann>"},
        {"@ @. @- @ann@ann @", "@ @. @- <@UANN>@ann @"},
        {"\xff@ann\xff", "\xff<@UANN>\xff"},
        {"@ann， @ann。 （@ann） 「@ann」", "<@UANN>， <@UANN>。 （<@UANN>） 「<@UANN>」"},
        {"@ann’s @ann's ‘@ann’ “@ann” «@ann»", "<@UANN>’s <@UANN>'s ‘<@UANN>’ “<@UANN>” «<@UANN>»"},
        {"@ann… @ann– @ann—x @ann！ @ann？ @ann：",
         "<@UANN>… <@UANN>– <@UANN>—x <@UANN>！ <@UANN>？ <@UANN>："},
        {"@ann، @ann؟ @ann। @ann、 @ann·", "<@UANN>، <@UANN>؟ <@UANN>। <@UANN>、 <@UANN>·"},
        {"@ann\u00a0x @ann\u3000x @ann\u200bx @ann🎉",
         "<@UANN>\u00a0x <@UANN>\u3000x <@UANN>\u200bx <@UANN>🎉"},
        {"@b.o_b.… @ann._-’", "<@UBOB>.… <@UANN>._-’"},
        {"@here， @channel。 （@everyone） @hereé",
         "<!here>， <!channel>。 （<!everyone>） @hereé"},
        {"@ann你 @annа @ann\u0301 @ann٣ @ann²", "@ann你 @annа @ann\u0301 @ann٣ @ann²"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        links(cases[i][0], strlen(cases[i][0]), cases[i][1]);
    links("@ann", 3, "@an");
}

// What can name a channel, and a user: 0 or the channel's error, and whether a user.
static void test_what_can_be_a_name(void **state)
{
    static const struct {
        const char *name;
        int refusal;
        bool of_user;
    } cases[] = {
        {"general", 0, true},
        {"a-b_c", 0, true},
        {"café", 0, true},
        {"cafe\u0301", 0, true},
        {"日本語", 0, true},
        {"한국어", 0, true},
        {"हिन्दी", 0, true},
        {"٣", 0, true},
        {"²", 0, true},
        {"-1", 0, true},
        {"", -ERROR_INVALID_NAME_SPECIALS, false},
        {"-_", -ERROR_INVALID_NAME_PUNCTUATION, false},
        {"\u0301", -ERROR_INVALID_NAME_PUNCTUATION, false},
        {"a.b", -ERROR_INVALID_NAME_SPECIALS, true},
        {"General", -ERROR_INVALID_NAME_SPECIALS, true},
        {"École", -ERROR_INVALID_NAME_SPECIALS, true},
        {"ǅ", -ERROR_INVALID_NAME_SPECIALS, true},
        {"a b", -ERROR_INVALID_NAME_SPECIALS, false},
        {"a\u00a0b", -ERROR_INVALID_NAME_SPECIALS, false},
        {"a\u3000b", -ERROR_INVALID_NAME_SPECIALS, false},
        {"a\u200bb", -ERROR_INVALID_NAME_SPECIALS, false},
        {"a\u200db", -ERROR_INVALID_NAME_SPECIALS, false},
        {"a\u202eb", -ERROR_INVALID_NAME_SPECIALS, false},
        {"\ufeffa", -ERROR_INVALID_NAME_SPECIALS, false},
        {"a\u00ad", -ERROR_INVALID_NAME_SPECIALS, false},
        {"a\ufe0f", -ERROR_INVALID_NAME_SPECIALS, false},
        {"a\u3164", -ERROR_INVALID_NAME_SPECIALS, false},
        {"a\nb", -ERROR_INVALID_NAME_SPECIALS, false},
        {"a，b", -ERROR_INVALID_NAME_SPECIALS, false},
        {"a😀", -ERROR_INVALID_NAME_SPECIALS, false},
        {"a@b", -ERROR_INVALID_NAME_SPECIALS, false},
        {"#a", -ERROR_INVALID_NAME_SPECIALS, false},
        {"<!channel>", -ERROR_INVALID_NAME_SPECIALS, false},
        {"here", 0, false},
        {"channel", 0, false},
        {"everyone", 0, false},
        {"group", 0, false},
        {"Here", -ERROR_INVALID_NAME_SPECIALS, false},
        {"ｈｅｒｅ", 0, false},
        {"heres", 0, true},
    };
    static const char letter[] = "字";
    char most[(sizeof letter - 1) * (NAMES_MAX_CODE_POINTS + 1)];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t length = strlen(cases[i].name);
        assert_int_equal(names_refuse_channel(cases[i].name, length), cases[i].refusal);
        assert_int_equal(names_can_be_user(cases[i].name, length), cases[i].of_user);
    }
    for (size_t i = 0; i < sizeof most; i++)
        most[i] = letter[i % (sizeof letter - 1)];
    assert_int_equal(names_refuse_channel(most, sizeof most - (sizeof letter - 1)), 0);
    assert_true(names_can_be_user(most, sizeof most - (sizeof letter - 1)));
    assert_int_equal(names_refuse_channel(most, sizeof most), -ERROR_INVALID_NAME_MAXLENGTH);
    assert_false(names_can_be_user(most, sizeof most));
}

// Whatever the bytes: what is found is an id or everybody, and a text without names stays itself.
static void test_any_bytes(void **state)
{
    static const char alphabet[] = "<>@!|UUW1A.-_ here channel ann\xc3\xa9\xff";
    uint64_t random = 88172645463325252;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        char text[64];
        struct mentions mentions = {0};
        struct buffer out;
        size_t length = (size_t)(random % sizeof text);

        for (size_t i = 0; i < length; i++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            text[i] = alphabet[random % sizeof alphabet];
        }
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        int r = mentions_find(&mentions, text, length, MENTION_IN_TEXT, USERS_MAX);
        assert_true(r == 0 || r == -ERROR_INVALID_ARGUMENTS);
        for (int i = 0; i < mentions.count; i++)
            assert_true(mentions.items[i].user_id[0] == '\0' ||
                        id_is_valid(mentions.items[i].user_id, "UW"));
        mentions_done(&mentions);
        buffer_init(&out, SIZE_MAX);
        names_link(text, length, ann_and_bob, NULL, &out);
        assert_true(out.length >= length);
        buffer_done(&out);
    }
}

// A frame, whom its app_mention names, and that event; NULL: there is none.
static void test_app_mention(void **state)
{
    static const char *const cases[][3] = {
        {"{\"type\":\"message\",\"user\":\"U1A\",\"text\":\"a <@U2AB> \\u00e9 "
         "<@U3A|x>\",\"channel_type\":\"channel\",\"seq\":7}",
         "U2AB U3A ",
         "{\"type\":\"app_mention\",\"user\":\"U1A\",\"text\":\"a <@U2AB> é <@U3A|x>\",\"seq\":7}"},
        {"{\"type\":\"message\",\"blocks\":[{\"type\":\"user\",\"user_id\":\"U2A\"}],\"user\":"
         "\"U1A\",\"text\":\"\"}",
         "U2A ",
         "{\"type\":\"app_mention\",\"blocks\":[{\"type\":\"user\",\"user_id\":\"U2A\"}],\"user\":"
         "\"U1A\",\"text\":\"\"}"},
        {"{\"type\":\"message\",\"user\":\"U1A\",\"text\":\"<@U1A> <!here>\"}", NULL, NULL},
        {"{\"type\":\"message\",\"user\":\"U1A\",\"text\":\"nobody\"}", NULL, NULL},
        {"{\"type\":\"message\",\"subtype\":\"channel_topic\",\"user\":\"U1A\",\"text\":\"<@U2A>"
         "\"}",
         NULL, NULL},
        {"no JSON <@U2A>", NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CLEANUP_APP_MENTION struct app_mention mention = {0};
        int r = app_mention_read(CHANNEL_PUBLIC, cases[i][0], strlen(cases[i][0]), &mention);
        assert_int_equal(r, cases[i][1] != NULL);
        if (r == 0)
            continue;
        assert_string_equal(mention.users, cases[i][1]);
        assert_string_equal(mention.frame, cases[i][2]);
        assert_int_equal(mention.frame_length, strlen(mention.frame));
        assert_true(app_mention_names(&mention, "U2A") == (cases[i][1][3] == ' '));
        assert_false(app_mention_names(&mention, "U1A"));
    }
}

static void test_no_app_mention_in_a_direct_conversation(void **state)
{
    static const char frame[] = "{\"type\":\"message\",\"user\":\"U1A\",\"text\":\"<@U2A>\"}";
    struct app_mention mention;

    (void)state;
    assert_int_equal(app_mention_read(CHANNEL_IM, frame, sizeof frame - 1, &mention), 0);
    assert_int_equal(app_mention_read(CHANNEL_MPIM, frame, sizeof frame - 1, &mention), 1);
    app_mention_done(&mention);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_no_more_than_the_most),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_what_can_be_a_name),
        cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_app_mention),
        cmocka_unit_test(test_no_app_mention_in_a_direct_conversation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
