// SPDX-License-Identifier: Apache-2.0
// What each provider is sent, and what its answers mean.
#include "../../src/notify/answer.h"
#include "../../src/notify/payload.h"
#include "base/error.h"
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PLACE                                                                                      \
    "\"workspace\":\"T1\",\"channel\":\"C1\",\"ts\":\"1717200000.123456\",\"seq\":7,"              \
    "\"position\":\"p1\""
#define PLACE_TEXTS                                                                                \
    "\"workspace\":\"T1\",\"channel\":\"C1\",\"ts\":\"1717200000.123456\",\"seq\":\"7\","          \
    "\"position\":\"p1\""

static struct notify_push push_of(enum push_platform platform)
{
    return (struct notify_push){
        .platform = platform,
        .app_id = "T1/an-app",
        .address = json_pack("{ss ss}", "push_token", "abc", "pushkey", "k\"1"),
        .registered_s = 1000,
        .message = {.title = "Ann",
                    .subtitle = "#general",
                    .body = "hello",
                    .workspace_id = "T1",
                    .channel_id = "C1",
                    .ts = "1717200000.123456",
                    .position = "p1",
                    .collapse_id = "C1",
                    .seq = 7,
                    .badge = 3,
                    .ttl_s = 60},
    };
}

enum how { LOUD, QUIET, SILENT };

static void assert_payload(enum push_platform platform, enum how how, const char *expected)
{
    struct notify_push push = push_of(platform);
    struct buffer out = BUFFER(65536);

    if (how == SILENT)
        push.message.title = push.message.subtitle = push.message.body = NULL;
    push.message.is_quiet = how == QUIET;
    assert_int_equal(payload_write(&push, PAYLOAD_MAX, &out), 0);
    char *text = buffer_take_text(&out);
    assert_string_equal(text, expected);
    free(text);
    json_decref(push.address);
}

static void apns(void **state)
{
    (void)state;
    assert_payload(PUSH_APNS, LOUD,
                   "{\"aps\":{\"alert\":{\"title\":\"Ann\",\"subtitle\":\"#general\",\"body\":"
                   "\"hello\"},\"badge\":3,\"sound\":\"default\",\"thread-id\":\"C1\","
                   "\"mutable-content\":1},\"tidings\":{" PLACE "}}");
    assert_payload(PUSH_APNS, QUIET,
                   "{\"aps\":{\"alert\":{\"title\":\"Ann\",\"subtitle\":\"#general\",\"body\":"
                   "\"hello\"},\"badge\":3,\"interruption-level\":\"passive\",\"thread-id\":"
                   "\"C1\",\"mutable-content\":1},\"tidings\":{" PLACE "}}");
    assert_payload(PUSH_APNS, SILENT, "{\"aps\":{\"badge\":3},\"tidings\":{" PLACE "}}");
}

static void browsers_get_that_of_apns(void **state)
{
    (void)state;
    assert_payload(PUSH_WEBPUSH, SILENT, "{\"aps\":{\"badge\":3},\"tidings\":{" PLACE "}}");
}

static void fcm(void **state)
{
    (void)state;
    assert_payload(
        PUSH_FCM, LOUD,
        "{\"message\":{\"token\":\"abc\",\"notification\":{\"title\":\"Ann\",\"body\":"
        "\"#general: hello\"},\"data\":{" PLACE_TEXTS ",\"badge\":\"3\"},\"android\":{"
        "\"collapse_key\":\"C1\",\"priority\":\"high\",\"ttl\":\"60s\",\"notification\":{"
        "\"tag\":\"C1\"}},\"apns\":{\"headers\":{\"apns-priority\":\"10\","
        "\"apns-collapse-id\":\"C1\"},\"payload\":{\"aps\":{\"badge\":3,\"sound\":\"default\","
        "\"thread-id\":\"C1\",\"mutable-content\":1}}}}}");
    assert_payload(
        PUSH_FCM, QUIET,
        "{\"message\":{\"token\":\"abc\",\"notification\":{\"title\":\"Ann\",\"body\":"
        "\"#general: hello\"},\"data\":{" PLACE_TEXTS ",\"badge\":\"3\"},\"android\":{"
        "\"collapse_key\":\"C1\",\"priority\":\"normal\",\"ttl\":\"60s\",\"notification\":{"
        "\"tag\":\"C1\",\"channel_id\":\"quiet\",\"notification_priority\":\"PRIORITY_LOW\"}},"
        "\"apns\":{\"headers\":{\"apns-priority\":\"5\",\"apns-collapse-id\":\"C1\"},"
        "\"payload\":{\"aps\":{\"badge\":3,\"interruption-level\":\"passive\",\"thread-id\":"
        "\"C1\",\"mutable-content\":1}}}}}");
    assert_payload(PUSH_FCM, SILENT,
                   "{\"message\":{\"token\":\"abc\",\"data\":{" PLACE_TEXTS ",\"badge\":\"3\"},"
                   "\"android\":{\"collapse_key\":\"C1\",\"priority\":\"normal\",\"ttl\":\"60s\"},"
                   "\"apns\":{\"headers\":{\"apns-priority\":\"5\",\"apns-collapse-id\":\"C1\"},"
                   "\"payload\":{\"aps\":{\"badge\":3}}}}}");
}

static void matrix(void **state)
{
    (void)state;
    assert_payload(
        PUSH_MATRIX, LOUD,
        "{\"notification\":{\"room_id\":\"C1\",\"event_id\":\"1717200000.123456\",\"type\":"
        "\"m.room.message\",\"sender_display_name\":\"Ann\",\"room_name\":\"#general\",\"content\":"
        "{\"msgtype\":\"m.text\",\"body\":\"hello\"},\"prio\":\"high\",\"counts\":{\"unread\":3},"
        "\"devices\":[{\"app_id\":\"an-app\",\"pushkey\":\"k\\\"1\",\"pushkey_ts\":1000,"
        "\"tweaks\":{\"sound\":\"default\"}}]}}");
    assert_payload(PUSH_MATRIX, QUIET,
                   "{\"notification\":{\"room_id\":\"C1\",\"event_id\":\"1717200000.123456\","
                   "\"type\":\"m.room.message\",\"sender_display_name\":\"Ann\",\"room_name\":"
                   "\"#general\",\"content\":{\"msgtype\":\"m.text\",\"body\":\"hello\"},\"prio\":"
                   "\"low\",\"counts\":{\"unread\":3},\"devices\":[{\"app_id\":\"an-app\","
                   "\"pushkey\":\"k\\\"1\",\"pushkey_ts\":1000}]}}");
    assert_payload(PUSH_MATRIX, SILENT,
                   "{\"notification\":{\"room_id\":\"C1\",\"event_id\":\"1717200000.123456\","
                   "\"prio\":\"low\",\"counts\":{\"unread\":3},\"devices\":[{"
                   "\"app_id\":\"an-app\",\"pushkey\":\"k\\\"1\",\"pushkey_ts\":1000}]}}");
}

// The body that goes out of `text` repeated, and how long all is.
static char *cut_body(const char *text, size_t times, size_t max, size_t *ret_length)
{
    struct notify_push push = push_of(PUSH_APNS);
    struct buffer body = BUFFER(1 << 20);
    struct buffer out = BUFFER(1 << 20);
    json_t *value = NULL;

    while (times-- > 0)
        buffer_append_text(&body, text);
    push.message.body = buffer_take_text(&body);
    assert_int_equal(payload_write(&push, max, &out), 0);
    *ret_length = out.length;
    assert_int_equal(json_read(out.data, out.length, 8, 100, &value), 0);
    const json_t *alert = json_object_get(json_object_get(value, "aps"), "alert");
    char *got = strdup(json_string_value(json_object_get(alert, "body")));
    assert_memory_equal(got, push.message.body, strlen(got));
    json_decref(value);
    json_decref(push.address);
    free(push.message.body);
    buffer_done(&out);
    return got;
}

static void long_texts_are_cut_between_code_points(void **state)
{
    // With their lengths in JSON: what has to be escaped is longer there.
    static const struct {
        const char *text;
        size_t length;
    } texts[] = {
        {"x", 1}, {"\xc3\xa9", 2}, {"\xe2\x82\xac", 3}, {"\xf0\x9f\x98\x80", 4}, {"\"", 2}};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        size_t length;
        char *got = cut_body(texts[i].text, 5000, PAYLOAD_MAX, &length);
        assert_true(text_is_utf8(got, strlen(got)));
        assert_in_range(length, PAYLOAD_MAX - texts[i].length + 1, PAYLOAD_MAX);
        free(got);
    }
}

static void long_texts_are_cut_between_characters_of_a_reader(void **state)
{
    static const char family[] = "👩\u200d👩\u200d👧";
    size_t length;

    (void)state;
    char *got = cut_body(family, 500, PAYLOAD_MAX, &length);
    assert_int_equal(strlen(got) % (sizeof family - 1), 0);
    assert_in_range(length, PAYLOAD_MAX - (sizeof family - 1) + 1, PAYLOAD_MAX);
    free(got);
}

static void what_does_not_fit_without_a_text_is_too_long(void **state)
{
    struct notify_push push = push_of(PUSH_APNS);
    struct buffer out = BUFFER(65536);

    (void)state;
    assert_int_equal(payload_write(&push, 100, &out), -ERROR_TOO_LONG);
    buffer_done(&out);
    json_decref(push.address);
}

struct answer_case {
    enum push_platform platform;
    int status;
    const char *body;
    enum notify_outcome outcome;
    const char *reason;
};

static struct notify_answer answer_to(enum push_platform platform, int status, const char *body,
                                      int64_t retry_after_s)
{
    struct notify_push push = push_of(platform);
    const struct outbound_answer source = {.status = status,
                                           .retry_after_s = retry_after_s,
                                           .body = body,
                                           .length = strlen(body),
                                           .error = "timeout"};
    struct notify_answer answer = answer_read(&push, &source);
    json_decref(push.address);
    return answer;
}

static void answers_mean_what_providers_say(void **state)
{
#define FCM(status, code)                                                                          \
    "{\"error\":{\"code\":1,\"status\":\"" status                                                  \
    "\",\"details\":[{\"@type\":\"x\"},{\"errorCode\":\"" code "\"}]}}"
    static const struct answer_case cases[] = {
        {PUSH_APNS, 200, "", NOTIFY_DELIVERED, ""},
        {PUSH_APNS, 410, "{\"reason\":\"Unregistered\",\"timestamp\":1000000}", NOTIFY_GONE,
         "Unregistered"},
        {PUSH_APNS, 410, "{\"reason\":\"Unregistered\",\"timestamp\":999000}", NOTIFY_RETRY,
         "Unregistered"},
        {PUSH_APNS, 400, "{\"reason\":\"BadDeviceToken\"}", NOTIFY_GONE, "BadDeviceToken"},
        {PUSH_APNS, 400, "{\"reason\":\"BadTopic\"}", NOTIFY_REFUSED, "BadTopic"},
        {PUSH_APNS, 403, "{\"reason\":\"InvalidProviderToken\"}", NOTIFY_REFUSED,
         "InvalidProviderToken"},
        {PUSH_APNS, 403, "{\"reason\":\"ExpiredProviderToken\"}", NOTIFY_RETRY,
         "ExpiredProviderToken"},
        {PUSH_APNS, 429, "{\"reason\":\"TooManyRequests\"}", NOTIFY_RETRY, "TooManyRequests"},
        {PUSH_APNS, 503, "no JSON", NOTIFY_RETRY, ""},
        {PUSH_FCM, 200, "{\"name\":\"projects/x/messages/1\"}", NOTIFY_DELIVERED, ""},
        {PUSH_FCM, 404, FCM("NOT_FOUND", "UNREGISTERED"), NOTIFY_GONE, "UNREGISTERED"},
        {PUSH_FCM, 404, "{\"error\":{\"status\":\"NOT_FOUND\"}}", NOTIFY_REFUSED, "NOT_FOUND"},
        {PUSH_FCM, 400, FCM("INVALID_ARGUMENT", "INVALID_ARGUMENT"), NOTIFY_REFUSED,
         "INVALID_ARGUMENT"},
        {PUSH_FCM, 403, FCM("PERMISSION_DENIED", "SENDER_ID_MISMATCH"), NOTIFY_REFUSED,
         "SENDER_ID_MISMATCH"},
        {PUSH_FCM, 401, "{\"error\":{\"status\":\"UNAUTHENTICATED\"}}", NOTIFY_RETRY,
         "UNAUTHENTICATED"},
        {PUSH_FCM, 429, FCM("RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED"), NOTIFY_RETRY,
         "QUOTA_EXCEEDED"},
        {PUSH_FCM, 503, "<html>", NOTIFY_RETRY, ""},
        {PUSH_WEBPUSH, 201, "", NOTIFY_DELIVERED, ""},
        {PUSH_WEBPUSH, 404, "gone\nfor good", NOTIFY_GONE, "gone?for good"},
        {PUSH_WEBPUSH, 410, "", NOTIFY_GONE, ""},
        {PUSH_WEBPUSH, 413, "", NOTIFY_REFUSED, ""},
        {PUSH_WEBPUSH, 429, "", NOTIFY_RETRY, ""},
        {PUSH_MATRIX, 200, "{\"rejected\":[]}", NOTIFY_DELIVERED, ""},
        {PUSH_MATRIX, 200, "{\"rejected\":[\"other\",\"k\\\"1\"]}", NOTIFY_GONE, "rejected"},
        {PUSH_MATRIX, 200, "{\"rejected\":[\"other\"]}", NOTIFY_DELIVERED, ""},
        {PUSH_MATRIX, 400, "{\"errcode\":\"M_BAD_JSON\"}", NOTIFY_REFUSED, "M_BAD_JSON"},
        {PUSH_MATRIX, 502, "", NOTIFY_RETRY, ""},
        {PUSH_MATRIX, 301, "", NOTIFY_REFUSED, ""},
        {PUSH_MATRIX, 0, "", NOTIFY_RETRY, "timeout"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct answer_case *it = &cases[i];
        struct notify_answer answer = answer_to(it->platform, it->status, it->body, -1);
        assert_int_equal(answer.outcome, it->outcome);
        assert_int_equal(answer.status, it->status);
        assert_string_equal(answer.reason, it->reason);
        assert_int_equal(answer.wait_ms, 0);
    }
}

static void retry_after_is_kept(void **state)
{
    (void)state;
    assert_int_equal(answer_to(PUSH_FCM, 503, "", 30).wait_ms, 30000);
    assert_int_equal(answer_to(PUSH_FCM, 429, "", 5).wait_ms, 5000);
    assert_int_equal(answer_to(PUSH_FCM, 200, "", 5).wait_ms, 0);
}

static void google_may_refuse_an_account(void **state)
{
    static const char refused[] = "{\"error\":\"invalid_grant\"}";
    struct outbound_answer source = {
        .status = 400, .retry_after_s = -1, .body = refused, .length = sizeof refused - 1};

    (void)state;
    struct notify_answer answer = answer_read_google(&source);
    assert_int_equal(answer.outcome, NOTIFY_REFUSED);
    assert_string_equal(answer.reason, "invalid_grant");
    source.status = 503;
    assert_int_equal(answer_read_google(&source).outcome, NOTIFY_RETRY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(apns),
        cmocka_unit_test(browsers_get_that_of_apns),
        cmocka_unit_test(fcm),
        cmocka_unit_test(matrix),
        cmocka_unit_test(long_texts_are_cut_between_code_points),
        cmocka_unit_test(long_texts_are_cut_between_characters_of_a_reader),
        cmocka_unit_test(what_does_not_fit_without_a_text_is_too_long),
        cmocka_unit_test(answers_mean_what_providers_say),
        cmocka_unit_test(retry_after_is_kept),
        cmocka_unit_test(google_may_refuse_an_account),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
