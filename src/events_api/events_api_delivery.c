// SPDX-License-Identifier: Apache-2.0
// Builds one HTTP request to an app's events_url, an event or a challenge, and evaluates the
// response.
#include "events_api_delivery.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "base/metrics.h"
#include "chat/callback.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BODY_MAX = 8 << 20, ANSWER_MAX = 4096, TIME_SIZE = 32 };

static bool is_challenge(const struct delivery *delivery)
{
    return delivery->challenge[0] != '\0';
}

static void challenge_write(struct json_writer *w, const struct delivery *delivery)
{
    json_open_object(w);
    json_key_string(w, "token", "");
    json_key_string(w, "challenge", delivery->challenge);
    json_key_string(w, "type", "url_verification");
    json_close_object(w);
}

static void body_write(struct delivery *delivery, const struct delivery_source *source)
{
    struct json_writer w = json_writer_to(&delivery->request.body);
    if (is_challenge(delivery)) {
        challenge_write(&w, delivery);
        return;
    }
    const struct callback callback = {
        .app_id = source->to.app_id,
        .workspace_id = source->to.workspace_id,
        .bot_user_id = source->to.bot_user_id,
        .channel_id = source->to.channel_id,
        .seq = source->seq,
        .happened_us = source->happened_us,
        .frame = source->frame,
        .frame_length = source->frame_length,
    };
    callback_write(&w, &callback);
}

// v0=HMAC-SHA256(secret, "v0:" time ":" body)
static void sign(struct outbound_request *request, const char *secret)
{
    CLEANUP(buffer_done) struct buffer text = BUFFER(BODY_MAX + TIME_SIZE);
    char hex[DIGEST_HEX_SIZE];
    int64_t now_s = clock_wall_us() / 1000000;
    buffer_append_format(&text, "v0:%" PRId64 ":", now_s);
    buffer_append(&text, request->body.data, request->body.length);
    request->body.failed |= buffer_failed(&text);
    digest_hmac_hex(secret, text.data, text.length, hex);
    outbound_header(request, "X-Slack-Request-Timestamp: %" PRId64, now_s);
    outbound_header(request, "X-Slack-Signature: v0=%s", hex);
}

static void headers_make(struct delivery *delivery, const struct delivery_source *source)
{
    struct outbound_request *request = &delivery->request;
    outbound_header(request, "Content-Type: application/json");
    sign(request, source->to.secret);
    if (is_challenge(delivery) || delivery->tries == 1)
        return;
    outbound_header(request, "X-Slack-Retry-Num: %" PRId64, delivery->tries - 1);
    outbound_header(request, "X-Slack-Retry-Reason: %s", source->reason);
}

int delivery_new(const struct delivery_source *source, const struct events_api_options *options,
                 struct delivery **ret_delivery)
{
    struct delivery *delivery = TAGGED_NEW(delivery);
    if (!delivery)
        return -ERROR_MEMORY;
    list_init(&delivery->link);
    snprintf(delivery->app_id, sizeof delivery->app_id, "%s", source->to.app_id);
    snprintf(delivery->channel_id, sizeof delivery->channel_id, "%s", source->to.channel_id);
    delivery->seq = source->seq;
    delivery->tries = source->tries;
    delivery->request = (struct outbound_request)OUTBOUND_REQUEST(BODY_MAX);
    delivery->request.method = "POST";
    delivery->request.url = delivery->url = strdup(source->to.url);
    delivery->request.answer_max = ANSWER_MAX;
    delivery->request.timeout_ms = options->settings.events_api_timeout_ms;
    delivery->request.private_allowed = options->settings.events_api_private;
    if (source->seq == 0)
        token_make("c", delivery->challenge);
    body_write(delivery, source);
    headers_make(delivery, source);
    delivery->is_built = delivery->url && !buffer_failed(&delivery->request.body) &&
                         !buffer_failed(&delivery->request.headers);
    *ret_delivery = delivery;
    return 0;
}

void delivery_free(struct delivery *delivery)
{
    outbound_request_done(&delivery->request);
    free(delivery->url);
    TAGGED_FREE(delivery);
}

// The challenge must be returned as plain text or in an object.
static bool challenge_is_answered(const struct delivery *delivery,
                                  const struct outbound_answer *answer)
{
    CLEANUP_JSON json_t *value = NULL;
    const char *text = answer->body;
    size_t length = answer->length;
    if (length > 0 && json_read(text, length, JSON_DEPTH_MAX, JSON_VALUES_ANY, &value) == 0) {
        const char *challenge = json_string_value(json_object_get(value, "challenge"));
        return challenge && strcmp(challenge, delivery->challenge) == 0;
    }
    while (length > 0 && strchr(" \r\n", text[length - 1]))
        length--;
    return length == strlen(delivery->challenge) && memcmp(text, delivery->challenge, length) == 0;
}

// The reason of a failure, as in X-Slack-Retry-Reason; "": none.
static const char *reason_of(const struct outbound_answer *answer)
{
    switch (answer->failure) {
    case OUTBOUND_ANSWERED:
        return answer->status < 200 || answer->status > 299 ? "http_error" : "";
    case OUTBOUND_TIMEOUT:
        return "http_timeout";
    case OUTBOUND_UNREACHABLE:
    case OUTBOUND_PRIVATE:
        return "connection_failed";
    case OUTBOUND_TLS:
        return "ssl_error";
    default:
        return "unknown_error";
    }
}

// The first retry is immediate.
static int64_t retry_wait(const struct delivery *delivery, const struct outbound_answer *answer,
                          int64_t retry_ms)
{
    const char *no_retry = outbound_answer_header(answer, "X-Slack-No-Retry");
    if ((no_retry && no_retry[0] == '1') || delivery->tries >= DELIVERY_TRIES_MAX)
        return DELIVERY_ENDED;
    return delivery->tries == 1 ? 0 : delivery->tries == 2 ? retry_ms : 5 * retry_ms;
}

static void challenge_settle(struct delivery *delivery, const struct outbound_answer *answer)
{
    bool answered = delivery->reason[0] == '\0' && challenge_is_answered(delivery, answer);
    delivery->wait_ms = answered ? DELIVERY_ENDED : 0;
    if (answered)
        return;
    metric_add(METRIC_EVENTS_API_UNVERIFIED, 1);
    log_write(LOG_WARN, "events_api", "the events_url of app %s failed the challenge: %s",
              delivery->app_id,
              answer->failure == OUTBOUND_PRIVATE ? "its address is private"
              : delivery->reason[0]               ? delivery->reason
                                                  : "another answer");
}

void delivery_settle(struct delivery *delivery, const struct outbound_answer *answer,
                     const struct events_api_options *options)
{
    delivery->reason = reason_of(answer);
    metric_add(METRIC_EVENTS_API_ADDRESSES, answer->failure == OUTBOUND_PRIVATE);
    if (is_challenge(delivery)) {
        challenge_settle(delivery, answer);
        return;
    }
    bool taken = delivery->reason[0] == '\0';
    delivery->wait_ms = taken ? DELIVERY_ENDED
                              : retry_wait(delivery, answer, options->settings.events_api_retry_ms);
    metric_add(METRIC_EVENTS_API_SENT, 1);
    metric_add(METRIC_EVENTS_API_AGAIN, delivery->tries > 1);
    metric_add(METRIC_EVENTS_API_TAKEN, taken);
    metric_add(METRIC_EVENTS_API_FAILED_TRIES, !taken && delivery->wait_ms == DELIVERY_ENDED);
}
