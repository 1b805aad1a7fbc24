// SPDX-License-Identifier: Apache-2.0
// Requests made in process: arguments of JSON text, and what each kind of reply looks like.
#include "base/error.h"
#include "call/internal_request.h"
#include "chat/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char last_reply[4096];
static int reply_count;

static char last_error[64];
static char last_message[256];

static void on_done(void *arg, const struct request_outcome *outcome)
{
    (void)arg;
    assert_null(outcome->posted);
    snprintf(last_reply, sizeof last_reply, "%.*s", (int)outcome->length, outcome->reply);
    snprintf(last_error, sizeof last_error, "%s", outcome->error);
    snprintf(last_message, sizeof last_message, "%s", outcome->message ? outcome->message : "");
    reply_count++;
}

static struct request *request_of(const char *json)
{
    struct request *request = NULL;
    reply_count = 0;
    assert_int_equal(request_new("api.test", "xoxp-1", on_done, NULL, &request), 0);
    assert_int_equal(request_add_json(request, json, strlen(json)), 0);
    return request;
}

static void finish(struct request *request)
{
    request_reply_error(request, -ERROR_INTERNAL);
    assert_int_equal(reply_count, 1);
}

static int error_of(const char *json, size_t length)
{
    struct request *request = NULL;
    reply_count = 0;
    assert_int_equal(request_new("api.test", NULL, on_done, NULL, &request), 0);
    int r = request_add_json(request, json, length);
    if (r >= 0)
        finish(request);
    else
        request_drop(request);
    return r;
}

static void arguments_read_as_text(void **state)
{
    (void)state;
    struct request *request = request_of(
        "{\"s\":\"h\\u00e9 \\ud83d\\ude00\",\"i\":12345678901234567,\"f\":1.50,"
        "\"t\":true,\"n\":null,\"e\":\"\",\"a\" : [ 1, \"a b\\\" c\" , {\"x\" : 1.10}]}");
    assert_string_equal(request_arg(request, "s"), "hé 😀");
    assert_int_equal(request_arg_length(request, "s"), strlen("hé 😀"));
    assert_string_equal(request_arg(request, "i"), "12345678901234567");
    assert_string_equal(request_arg(request, "f"), "1.50");
    assert_string_equal(request_arg(request, "t"), "true");
    assert_null(request_arg(request, "n"));
    assert_string_equal(request_arg(request, "e"), "");
    assert_string_equal(request_arg(request, "a"), "[1,\"a b\\\" c\",{\"x\":1.10}]");
    assert_false(request_arg_is_text(request, "a"));
    assert_true(request_arg_is_text(request, "i"));
    assert_null(request_arg(request, "missing"));
    assert_string_equal(request_method(request), "api.test");
    assert_string_equal(request_token(request), "xoxp-1");
    finish(request);
}

static void a_numeric_ts_keeps_its_digits(void **state)
{
    (void)state;
    struct request *request = request_of("{\"a\":1717200000.123456,\"b\":1717200000.1234,"
                                         "\"c\":1717200000.1,\"d\":17.1,\"e\":1717200000.1e1}");
    assert_string_equal(request_arg(request, "a"), "1717200000.123456");
    assert_string_equal(request_arg(request, "b"), "1717200000.123400");
    assert_string_equal(request_arg(request, "c"), "1717200000.100000");
    assert_string_equal(request_arg(request, "d"), "17.1");
    assert_string_equal(request_arg(request, "e"), "1717200000.1e1");
    finish(request);
}

static void numbers_beyond_64_bits_are_kept(void **state)
{
    (void)state;
    struct request *request = request_of("{\"limit\":100000000000000000000,"
                                         "\"least\":-9223372036854775809,"
                                         "\"most\":9223372036854775807,"
                                         "\"list\":[ 18446744073709551616 ]}");
    assert_string_equal(request_arg(request, "limit"), "100000000000000000000");
    assert_string_equal(request_arg(request, "least"), "-9223372036854775809");
    assert_string_equal(request_arg(request, "most"), "9223372036854775807");
    assert_string_equal(request_arg(request, "list"), "[18446744073709551616]");
    finish(request);
}

// The tree that a caller has already gives the same arguments as the text that it was read from.
static void a_parsed_object_gives_the_same_arguments(void **state)
{
    (void)state;
    static const char json[] =
        "{\"s\":\"h\\u00e9\",\"ts\":1717200000.1,\"a\":[ 1.50, {} ],\"n\":null}";
    struct request *request = NULL;
    json_t *object = json_loads(json, 0, NULL);

    reply_count = 0;
    assert_int_equal(request_new("api.test", NULL, on_done, NULL, &request), 0);
    assert_int_equal(request_add_parsed(request, object, json, strlen(json)), 0);
    json_decref(object); // the request has its own reference
    assert_string_equal(request_arg(request, "s"), "hé");
    assert_string_equal(request_arg(request, "ts"), "1717200000.100000");
    assert_string_equal(request_arg(request, "a"), "[1.50,{}]");
    assert_null(request_arg(request, "n"));
    finish(request);
}

static void an_outcome_has_error_and_message(void **state)
{
    (void)state;
    request_reply_error_message(request_of("{}"), -ERROR_INVALID_ARGUMENTS, "limit: must be %d", 5);
    assert_string_equal(last_error, "invalid_arguments");
    assert_string_equal(last_message, "limit: must be 5");
    request_reply_error(request_of("{}"), -ERROR_BUSY);
    assert_string_equal(last_error, error_code(ERROR_BUSY));
    assert_string_equal(last_message, "");
    struct request *request = request_of("{}");
    request_reply_open(request);
    request_reply_close(request);
    assert_string_equal(last_error, "");
    assert_string_equal(last_reply, "{\"ok\":true}");
}

static void on_posted(void *arg, const struct request_outcome *outcome)
{
    assert_string_equal(outcome->error, "");
    assert_string_equal(outcome->reply, "");
    *(const struct posted **)arg = outcome->posted;
    reply_count++;
}

static void a_posted_message_is_handed_over_as_it_is(void **state)
{
    (void)state;
    struct request *request = NULL;
    const struct posted *seen_posted = NULL;
    const struct posted posted = {.seq = 7, .text = "hi", .text_length = 2};

    reply_count = 0;
    assert_int_equal(request_new("chat.postMessage", NULL, on_posted, &seen_posted, &request), 0);
    assert_true(request_reply_posted(request, &posted));
    assert_int_equal(reply_count, 1);
    assert_ptr_equal(seen_posted, &posted);
}

static void what_is_no_json_object_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        int error;
    } cases[] = {
        {"[1]", ERROR_JSON_NOT_OBJECT},
        {"\"a\"", ERROR_JSON_NOT_OBJECT},
        {"5", ERROR_JSON_NOT_OBJECT},
        {"null", ERROR_JSON_NOT_OBJECT},
        {"{", ERROR_INVALID_JSON},
        {"}", ERROR_INVALID_JSON},
        {"", ERROR_INVALID_JSON},
        {" ", ERROR_INVALID_JSON},
        {"\"", ERROR_INVALID_JSON},
        {"{\"a\":\"\\", ERROR_INVALID_JSON},
        {"{}x", ERROR_INVALID_JSON},
        {"{}{}", ERROR_INVALID_JSON},
        {"{\"a\":1,}", ERROR_INVALID_JSON},
        {"{\"a\":1,\"a\":1}", ERROR_INVALID_JSON},
        {"{\"x\":{\"a\":1,\"a\":1}}", ERROR_INVALID_JSON},
        {"{\"a\":01}", ERROR_INVALID_JSON},
        {"{\"a\":1e400}", ERROR_INVALID_JSON},
        {"{\"a\":NaN}", ERROR_INVALID_JSON},
        {"{\"a\":'x'}", ERROR_INVALID_JSON},
        {"{/**/}", ERROR_INVALID_JSON},
        {"\xEF\xBB\xBF{}", ERROR_INVALID_JSON},
        {"{\"a\":\"\\ud800\"}", ERROR_INVALID_JSON},
        {"{\"a\":\"\\udc00\\ud800\"}", ERROR_INVALID_JSON},
        {"{\"a\":\"\\u0000\"}", ERROR_INVALID_JSON},
        {"{\"a\":\"\xff\"}", ERROR_INVALID_JSON},
        {"{\"a\":\"\xc0\xaf\"}", ERROR_INVALID_JSON},
        {"{\"a\":\"\n\"}", ERROR_INVALID_JSON},
        {"{\"a\\u0000\":1}", ERROR_INVALID_JSON},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int r = error_of(cases[i].json, strlen(cases[i].json));
        if (r != -cases[i].error)
            fail_msg("%s: %s", cases[i].json, r < 0 ? error_code(r) : "accepted");
    }
    assert_int_equal(error_of("{}\0", 3), -ERROR_INVALID_JSON);
}

// {"a":[[…]]} with `depth` levels in all.
static int error_of_depth(int depth)
{
    char json[512] = "{\"a\":";
    size_t length = strlen(json);
    memset(json + length, '[', (size_t)depth - 1);
    memset(json + length + depth - 1, ']', (size_t)depth - 1);
    json[length + 2 * ((size_t)depth - 1)] = '}';
    return error_of(json, length + 2 * ((size_t)depth - 1) + 1);
}

static void depth_is_bounded(void **state)
{
    (void)state;
    assert_int_equal(error_of_depth(64), 0);
    assert_int_equal(error_of_depth(65), -ERROR_INVALID_JSON);
    // Brackets in a string are no depth.
    char json[128];
    int length = snprintf(json, sizeof json, "{\"a\":\"\\\"%080d\"}", 0);
    for (char *at = json; *at != '\0'; at++)
        *at = *at == '0' ? '[' : *at;
    assert_int_equal(error_of(json, (size_t)length), 0);
}

static int error_of_count(int count)
{
    char json[16384] = "{";
    size_t length = 1;
    for (int i = 0; i < count; i++)
        length += (size_t)snprintf(json + length, sizeof json - length, "%s\"k%d\":%d",
                                   i == 0 ? "" : ",", i, i);
    json[length++] = '}';
    return error_of(json, length);
}

static void the_number_of_arguments_is_bounded(void **state)
{
    (void)state;
    assert_int_equal(error_of_count(0), 0);
    assert_int_equal(error_of_count(17), 0);
    assert_int_equal(error_of_count(512), 0);
    assert_int_equal(error_of_count(513), -ERROR_INVALID_ARGUMENTS);
}

static void seen(void *arg, const char *name, const char *text)
{
    char *out = arg;
    size_t length = strlen(out);
    snprintf(out + length, 256 - length, "%s=%s;", name, text);
}

static void the_token_is_not_among_the_arguments_that_are_shown(void **state)
{
    (void)state;
    char text[256] = "";
    struct request *request = request_of("{\"a\":1,\"token\":\"xoxp-2\",\"b\":\"x\"}");
    request_args_each(request, seen, text);
    assert_string_equal(text, "a=1;b=x;");
    finish(request);
}

static void replies_are_one_json_object(void **state)
{
    (void)state;
    struct request *request = request_of("{}");
    json_key_string(request_reply_open(request), "text", "a\"b");
    request_reply_close(request);
    assert_string_equal(last_reply, "{\"ok\":true,\"text\":\"a\\\"b\"}");

    static const char *const empty[] = {"{}", " { } "};
    for (size_t i = 0; i < 2; i++) {
        request = request_of("{}");
        request_reply_object(request, empty[i], strlen(empty[i]));
        assert_string_equal(last_reply, "{\"ok\":true}");
    }
    request = request_of("{}");
    request_reply_object(request, "{\"a\":{}}", 8);
    assert_string_equal(last_reply, "{\"ok\":true,\"a\":{}}");
}

static void errors_say_what_was_wrong(void **state)
{
    (void)state;
    struct request *request = request_of("{}");
    request_reply_error(request, -ERROR_CHANNEL_NOT_FOUND);
    assert_string_equal(last_reply, "{\"ok\":false,\"error\":\"channel_not_found\"}");

    request = request_of("{}");
    request_reply_error_message(request, -ERROR_INVALID_LIMIT, "limit: %d is too \"much\"", 7);
    assert_string_equal(last_reply,
                        "{\"ok\":false,\"error\":\"invalid_limit\",\"response_metadata\":"
                        "{\"messages\":[\"[ERROR] limit: 7 is too \\\"much\\\"\"]}}");

    request = request_of("{}");
    request_reply_error_members(request, -ERROR_MISSING_SCOPE, "\"needed\":\"chat:write\"");
    assert_string_equal(last_reply,
                        "{\"ok\":false,\"error\":\"missing_scope\",\"needed\":\"chat:write\"}");
}

static void a_long_message_is_cut_between_code_points(void **state)
{
    (void)state;
    char text[1024];
    for (size_t shift = 0; shift < 4; shift++) {
        memset(text, 'x', shift);
        for (size_t at = shift; at + 4 < sizeof text; at += 4)
            memcpy(text + at, "😀\0", 5);
        struct request *request = request_of("{}");
        request_reply_error_message(request, -ERROR_INVALID_ARGUMENTS, "%s", text);
        // The reply itself must be valid JSON, or it could not be read back.
        assert_int_equal(error_of(last_reply, strlen(last_reply)), 0);
    }
}

static void a_reply_drops_what_was_written_before_an_error(void **state)
{
    (void)state;
    struct request *request = request_of("{}");
    json_key_string(request_reply_open(request), "half", "written");
    request_reply_error(request, -ERROR_UNAVAILABLE);
    assert_string_equal(last_reply, "{\"ok\":false,\"error\":\"service_unavailable\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_read_as_text),
        cmocka_unit_test(a_numeric_ts_keeps_its_digits),
        cmocka_unit_test(numbers_beyond_64_bits_are_kept),
        cmocka_unit_test(a_parsed_object_gives_the_same_arguments),
        cmocka_unit_test(an_outcome_has_error_and_message),
        cmocka_unit_test(a_posted_message_is_handed_over_as_it_is),
        cmocka_unit_test(what_is_no_json_object_is_refused),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(the_number_of_arguments_is_bounded),
        cmocka_unit_test(the_token_is_not_among_the_arguments_that_are_shown),
        cmocka_unit_test(replies_are_one_json_object),
        cmocka_unit_test(errors_say_what_was_wrong),
        cmocka_unit_test(a_long_message_is_cut_between_code_points),
        cmocka_unit_test(a_reply_drops_what_was_written_before_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
