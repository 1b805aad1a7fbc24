// SPDX-License-Identifier: Apache-2.0
// Determines from a provider's status and body whether a push was delivered, can be retried, or
// failed permanently.
#include "answer.h"

#include "base/json.h"

#include <stdio.h>
#include <string.h>

enum { VALUES_MAX = 1000, MS_PER_S = 1000 };

const char *notify_outcome_name(enum notify_outcome outcome)
{
    static const char *const names[] = {"delivered", "gone", "retry", "refused"};

    return names[outcome];
}

// The reason is shown to admins, so unprintable characters are replaced.
struct notify_answer answer_make(enum notify_outcome outcome, const char *reason)
{
    struct notify_answer answer = {.outcome = outcome};

    snprintf(answer.reason, sizeof answer.reason, "%s", reason ? reason : "");
    for (char *at = answer.reason; *at != '\0'; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
    return answer;
}

static const char *member(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static bool is_one_of(const char *text, const char *const *texts, size_t count)
{
    for (size_t i = 0; text && i < count; i++)
        if (strcmp(text, texts[i]) == 0)
            return true;
    return false;
}
#define IS_ONE_OF(text, texts) is_one_of(text, texts, sizeof(texts) / sizeof *(texts))

static bool may_pass(int status)
{
    return status == 0 || status == 408 || status == 425 || status == 429 || status >= 500;
}

// By HTTP status, if the body does not say more.
static enum notify_outcome outcome_of(int status)
{
    if (status >= 200 && status <= 299)
        return NOTIFY_DELIVERED;
    return may_pass(status) ? NOTIFY_RETRY : NOTIFY_REFUSED;
}

// A token registered again after Apple's time of expiry is valid.
static bool was_registered_since(const json_t *body, const struct notify_push *push)
{
    const json_t *since_ms = json_object_get(body, "timestamp");

    return json_is_integer(since_ms) &&
           json_integer_value(since_ms) / MS_PER_S < push->registered_s;
}

static struct notify_answer read_apns(const struct notify_push *push, int status,
                                      const json_t *body)
{
    static const char *const again[] = {"ExpiredProviderToken", "TooManyProviderTokenUpdates"};
    const char *reason = member(body, "reason");
    enum notify_outcome outcome = outcome_of(status);

    if (status == 410)
        outcome = was_registered_since(body, push) ? NOTIFY_RETRY : NOTIFY_GONE;
    else if (reason && strcmp(reason, "BadDeviceToken") == 0)
        outcome = NOTIFY_GONE;
    else if (IS_ONE_OF(reason, again))
        outcome = NOTIFY_RETRY;
    return answer_make(outcome, reason);
}

// FCM's own code from `details`, otherwise Google's status ("UNAVAILABLE").
static const char *fcm_code(const json_t *error)
{
    size_t index;
    json_t *detail;

    json_array_foreach(json_object_get(error, "details"), index, detail)
    {
        const char *code = member(detail, "errorCode");
        if (code)
            return code;
    }
    return member(error, "status");
}

static struct notify_answer read_fcm(int status, const json_t *body)
{
    const char *code = fcm_code(json_object_get(body, "error"));
    enum notify_outcome outcome = outcome_of(status);

    if (code && status == 404 && strcmp(code, "UNREGISTERED") == 0)
        outcome = NOTIFY_GONE;
    else if (status == 401) // the access token, which is renewed
        outcome = NOTIFY_RETRY;
    return answer_make(outcome, code);
}

static struct notify_answer read_webpush(int status, const struct outbound_answer *source)
{
    char reason[NOTIFY_REASON_SIZE];
    bool is_gone = status == 404 || status == 410;

    snprintf(reason, sizeof reason, "%.*s",
             (int)(source->length < sizeof reason ? source->length : sizeof reason - 1),
             status >= 400 && source->body ? source->body : "");
    return answer_make(is_gone ? NOTIFY_GONE : outcome_of(status), reason);
}

static bool is_rejected(const json_t *body, const char *pushkey)
{
    size_t index;
    json_t *rejected;

    json_array_foreach(json_object_get(body, "rejected"), index, rejected)
    {
        const char *key = json_string_value(rejected);
        if (key && pushkey && strcmp(key, pushkey) == 0)
            return true;
    }
    return false;
}

static struct notify_answer read_matrix(const struct notify_push *push, int status,
                                        const json_t *body)
{
    enum notify_outcome outcome = outcome_of(status);

    if (outcome == NOTIFY_DELIVERED && is_rejected(body, member(push->address, "pushkey")))
        return answer_make(NOTIFY_GONE, "rejected");
    return answer_make(outcome, member(body, "errcode"));
}

static struct notify_answer finish(struct notify_answer answer,
                                   const struct outbound_answer *source)
{
    answer.status = source->status;
    if (answer.outcome == NOTIFY_RETRY && source->retry_after_s > 0)
        answer.wait_ms = source->retry_after_s * MS_PER_S;
    return answer;
}

static json_t *body_read(const struct outbound_answer *source)
{
    json_t *body = NULL;

    if (source->length > 0 &&
        json_read(source->body, source->length, JSON_DEPTH_MAX, VALUES_MAX, &body) < 0)
        return NULL;
    return body;
}

struct notify_answer answer_read(const struct notify_push *push,
                                 const struct outbound_answer *source)
{
    CLEANUP_JSON json_t *body = body_read(source);
    int status = source->status;

    if (status == 0)
        return answer_make(NOTIFY_RETRY, source->error);
    switch (push->platform) {
    case PUSH_APNS:
        return finish(read_apns(push, status, body), source);
    case PUSH_FCM:
        return finish(read_fcm(status, body), source);
    case PUSH_WEBPUSH:
        return finish(read_webpush(status, source), source);
    default:
        return finish(read_matrix(push, status, body), source);
    }
}

struct notify_answer answer_read_google(const struct outbound_answer *source)
{
    CLEANUP_JSON json_t *body = body_read(source);

    if (source->status == 0)
        return answer_make(NOTIFY_RETRY, source->error);
    // A 200 without a token may be temporary or not: retry.
    enum notify_outcome outcome = source->status == 200 ? NOTIFY_RETRY : outcome_of(source->status);
    return finish(answer_make(outcome, member(body, "error")), source);
}
