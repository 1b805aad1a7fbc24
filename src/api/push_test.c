// SPDX-License-Identifier: Apache-2.0
// admin.push.test: sends a push to a device and replies with the provider's response.
#include "methods.h"

#include "base/check.h"
#include "notify/sealed_push.h"
#include "push_apps.h"

#include <stdlib.h>
#include <string.h>

enum { TTL_S = 60 };

static const struct statement TARGET = {
    "push_target", "SELECT error, app, platform, fields, secret, address, digest, created"
                   " FROM push_target($1, $2, $3, $4)"};
enum {
    COLUMN_ERROR,
    COLUMN_APP,
    COLUMN_PLATFORM,
    COLUMN_FIELDS,
    COLUMN_SECRET,
    COLUMN_ADDRESS,
    COLUMN_DIGEST,
    COLUMN_CREATED
};

static const struct statement SETTLE = {"push_settle", "SELECT push_settle($1, $2, $3, $4, $5)"};

// A test in progress. Valid at its address until the provider has responded.
struct push_test {
    uint32_t tag;
    struct invocation *invocation;
    struct loop *loop;
    char *app;
    char *digest; // of the address being tested
    struct notify_answer answer;
};

static void test_free(struct push_test *test)
{
    free(test->app);
    free(test->digest);
    free(test);
}

static void test_reply(struct invocation *invocation, const struct result *result)
{
    struct push_test *test = CAST(push_test, invocation->state);
    struct json_writer *w = invocation_open(invocation);

    (void)result;
    json_key_string(w, "outcome", notify_outcome_name(test->answer.outcome));
    json_key_int(w, "status", test->answer.status);
    json_key_string(w, "reason", test->answer.reason);
    invocation_close(invocation);
}

// On the loop: stores what the test revealed about the device, and replies.
static void test_settle(void *arg)
{
    struct push_test *test = CAST(push_test, arg);
    struct invocation *invocation = test->invocation;
    struct params params = {0};

    params_text(&params, request_arg(invocation->request, "user_id"));
    params_text(&params, test->app);
    params_text(&params, request_arg(invocation->request, "device_id"));
    params_text(&params, test->digest);
    params_text(&params, notify_outcome_name(test->answer.outcome));
    free(TAKE(test->app));
    free(TAKE(test->digest));
    invocation->state = test; // freed with the invocation
    invocation_query(invocation, STORE_WRITE, &SETTLE, &params, test_reply);
}

// On notify's thread. A loop's inbox has room for a million calls.
static void test_done(void *arg, const struct notify_answer *answer)
{
    struct push_test *test = CAST(push_test, arg);

    test->answer = *answer;
    (void)!loop_post(test->loop, test_settle, test);
}

// Leaves the badge unchanged: a test is not a message.
static bool message_make(const struct invocation *invocation, struct notify_message *message)
{
    message->title = strdup("Tidings");
    message->body = strdup("This is a test.");
    message->workspace_id = strdup(invocation->actor->workspace_id);
    message->badge = -1;
    message->ttl_s = TTL_S;
    return message->title && message->body && message->workspace_id;
}

static int push_make(const struct invocation *invocation, const struct result *result,
                     struct notify_push **ret_push)
{
    const struct sealed_push sealed = {
        .workspace_id = invocation->actor->workspace_id,
        .user_id = request_arg(invocation->request, "user_id"),
        .app = result_text(result, 0, COLUMN_APP),
        .device_id = request_arg(invocation->request, "device_id"),
        .platform = result_text(result, 0, COLUMN_PLATFORM),
        .fields = result_text(result, 0, COLUMN_FIELDS),
        .secret =
            result_is_null(result, 0, COLUMN_SECRET) ? NULL : result_text(result, 0, COLUMN_SECRET),
        .address = result_text(result, 0, COLUMN_ADDRESS),
        .registered_s = result_int(result, 0, COLUMN_CREATED),
    };
    struct notify_push *push = NULL;

    int r = sealed_push_open(&sealed, invocation->api->options.secrets, &push);
    if (r >= 0 && !message_make(invocation, &push->message)) {
        notify_push_free(push);
        r = -ERROR_MEMORY;
    }
    if (r >= 0)
        *ret_push = push;
    return r;
}

static int test_send(struct invocation *invocation, const struct result *result)
{
    struct notify_push *push = NULL;
    struct push_test *test = TAGGED_NEW(push_test);

    int r = test ? push_make(invocation, result, &push) : -ERROR_MEMORY;
    if (r >= 0) {
        test->invocation = invocation;
        test->loop = invocation->api->loop;
        test->app = strdup(result_text(result, 0, COLUMN_APP));
        test->digest = strdup(result_text(result, 0, COLUMN_DIGEST));
        r = test->app && test->digest
                ? notify_send(invocation->api->options.notify, push, test_done, test)
                : -ERROR_MEMORY;
    }
    if (r < 0 && push)
        notify_push_free(push);
    if (r < 0 && test)
        test_free(test);
    return r;
}

static void target_found(struct invocation *invocation, const struct result *result)
{
    if (result_rows(result) == 0 || !result_is_null(result, 0, COLUMN_ERROR)) {
        invocation_fail(invocation, result_rows(result) == 0
                                        ? -ERROR_INTERNAL
                                        : error_from_code(result_text(result, 0, COLUMN_ERROR)));
        return;
    }
    int r = test_send(invocation, result);
    if (r == -ERROR_SECRET_KEY_MISSING)
        invocation_fail_message(
            invocation, r, "TIDINGS_SECRET_KEY does not open what the app and the device need");
    else if (r < 0)
        invocation_fail(invocation, r);
}

void admin_push_test(struct invocation *invocation)
{
    struct params params = {0};
    const char *user_id;
    const char *device_id;
    const char *app = NULL;

    if (!take_user(invocation, "user_id", &user_id) || !take_device_id(invocation, &device_id) ||
        !take_optional_word(invocation, "app", &app))
        return;
    if (!invocation->api->options.notify) {
        invocation_fail_message(invocation, -ERROR_UNAVAILABLE, "only a server that runs can send");
        return;
    }
    params_text(&params, invocation->actor->workspace_id);
    params_text(&params, user_id);
    params_text(&params, device_id);
    params_text(&params, app);
    invocation_query(invocation, STORE_READ, &TARGET, &params, target_found);
}
