// SPDX-License-Identifier: Apache-2.0
// Builds one HTTP request to an app's events_url, an event or a challenge, and evaluates the
// response.
#include "events_api_delivery.h"

#include "base/address.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/version.h"
#include "chat/callback.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { BODY_MAX = 8 << 20, ANSWER_MAX = 4096, HEAD_MAX = 65536, LINE_SIZE = 256 };

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
    struct json_writer w = json_writer_to(&delivery->body);
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

static bool header_add(struct delivery *delivery, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool header_add(struct delivery *delivery, const char *format, ...)
{
    char line[LINE_SIZE];
    va_list values;
    va_start(values, format);
    (void)vsnprintf(line, sizeof line, format, values);
    va_end(values);
    struct curl_slist *longer = curl_slist_append(delivery->headers, line);
    if (longer)
        delivery->headers = longer;
    return longer != NULL;
}

// v0=HMAC-SHA256(secret, "v0:" time ":" body)
static bool sign(struct delivery *delivery, const char *secret)
{
    CLEANUP(buffer_done) struct buffer text = BUFFER(BODY_MAX + LINE_SIZE);
    char hex[DIGEST_HEX_SIZE];
    int64_t now_s = clock_wall_us() / 1000000;
    buffer_append_format(&text, "v0:%" PRId64 ":", now_s);
    buffer_append(&text, delivery->body.data, delivery->body.length);
    if (buffer_failed(&text))
        return false;
    digest_hmac_hex(secret, text.data, text.length, hex);
    return header_add(delivery, "X-Slack-Request-Timestamp: %" PRId64, now_s) &&
           header_add(delivery, "X-Slack-Signature: v0=%s", hex);
}

static bool headers_make(struct delivery *delivery, const struct delivery_source *source)
{
    bool done = header_add(delivery, "Content-Type: application/json") &&
                header_add(delivery, "Expect:") && sign(delivery, source->to.secret);
    if (is_challenge(delivery) || delivery->tries == 1)
        return done;
    return done && header_add(delivery, "X-Slack-Retry-Num: %" PRId64, delivery->tries - 1) &&
           header_add(delivery, "X-Slack-Retry-Reason: %s", source->reason);
}

// Truncates a long response. Reports all bytes as taken, because curl would treat fewer as an
// error.
static size_t on_answer(char *data, size_t size, size_t count, void *arg)
{
    struct delivery *delivery = CAST(delivery, arg);
    buffer_append(&delivery->answer, data, size * count);
    return buffer_failed(&delivery->answer) ? 0 : size * count;
}

static size_t on_header(char *data, size_t size, size_t count, void *arg)
{
    static const char no_retry[] = "X-Slack-No-Retry: 1";
    struct delivery *delivery = CAST(delivery, arg);
    size_t length = size * count;
    delivery->head_length += length;
    if (delivery->head_length > HEAD_MAX)
        return 0;
    if (length >= strlen(no_retry) && strncasecmp(data, no_retry, strlen(no_retry)) == 0)
        delivery->no_retry = true;
    return length;
}

// Checks the address actually connected to, not its name.
static curl_socket_t on_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct delivery *delivery = CAST(delivery, arg);
    (void)purpose;
    if (!delivery->private_allowed && !address_is_public(&address->addr)) {
        delivery->address_refused = true;
        metric_add(METRIC_PUSH_ADDRESSES, 1);
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static bool easy_make(struct delivery *delivery, const char *url, int64_t timeout_ms)
{
    CURL *easy = curl_easy_init();
    delivery->easy = easy;
    if (!easy)
        return false;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, delivery);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); // else a slow name server blocks everything
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_PROXY, ""); // the environment's would connect unchecked
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "Tidings/" TIDINGS_VERSION);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, delivery->headers);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)delivery->body.length);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, delivery->body.data);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_answer);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, delivery);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, delivery);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, delivery);
    return curl_easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK;
}

int delivery_new(const struct delivery_source *source, const struct events_api_options *options,
                 struct delivery **ret_delivery)
{
    struct delivery *delivery = TAGGED_NEW(delivery);
    if (!delivery)
        return -ERROR_MEMORY;
    list_init(&delivery->link);
    buffer_init(&delivery->body, BODY_MAX);
    buffer_init(&delivery->answer, ANSWER_MAX);
    snprintf(delivery->app_id, sizeof delivery->app_id, "%s", source->to.app_id);
    snprintf(delivery->channel_id, sizeof delivery->channel_id, "%s", source->to.channel_id);
    delivery->seq = source->seq;
    delivery->tries = source->tries;
    delivery->private_allowed = options->settings.events_api_private;
    if (source->seq == 0)
        token_make("c", delivery->challenge);
    body_write(delivery, source);
    if (buffer_failed(&delivery->body) || !headers_make(delivery, source) ||
        !easy_make(delivery, source->to.url, options->settings.events_api_timeout_ms)) {
        curl_easy_cleanup(TAKE(delivery->easy));
        log_row_aside("push", "cannot be built",
                      "request to app %s, event %" PRId64 " of channel %s", source->to.app_id,
                      source->seq, source->to.channel_id);
    }
    *ret_delivery = delivery;
    return 0;
}

void delivery_free(struct delivery *delivery)
{
    curl_easy_cleanup(delivery->easy);
    curl_slist_free_all(delivery->headers);
    buffer_done(&delivery->body);
    buffer_done(&delivery->answer);
    TAGGED_FREE(delivery);
}

// The challenge must be returned as plain text or in an object.
static bool challenge_is_answered(const struct delivery *delivery)
{
    CLEANUP_JSON json_t *value = NULL;
    const char *text = delivery->answer.data;
    size_t length = delivery->answer.length;
    if (length > 0 && json_read(text, length, JSON_DEPTH_MAX, JSON_VALUES_ANY, &value) == 0) {
        const char *answer = json_string_value(json_object_get(value, "challenge"));
        return answer && strcmp(answer, delivery->challenge) == 0;
    }
    while (length > 0 && strchr(" \r\n", text[length - 1]))
        length--;
    return length == strlen(delivery->challenge) && memcmp(text, delivery->challenge, length) == 0;
}

// The reason of a failure, as in X-Slack-Retry-Reason; "": none.
static const char *failure(const struct delivery *delivery, CURLcode code)
{
    long status = 0;
    curl_easy_getinfo(delivery->easy, CURLINFO_RESPONSE_CODE, &status);
    switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
        return "http_timeout";
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
        return "connection_failed";
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
        return "ssl_error";
    case CURLE_OK:
    case CURLE_WRITE_ERROR: // the response is longer than what is read
        if (status < 200 || status > 299)
            return "http_error";
        return "";
    default:
        return "unknown_error";
    }
}

// The first retry is immediate.
static int64_t retry_wait(const struct delivery *delivery, int64_t retry_ms)
{
    if (delivery->no_retry || delivery->tries >= DELIVERY_TRIES_MAX)
        return DELIVERY_ENDED;
    return delivery->tries == 1 ? 0 : delivery->tries == 2 ? retry_ms : 5 * retry_ms;
}

static void challenge_settle(struct delivery *delivery)
{
    bool answered = delivery->reason[0] == '\0' && challenge_is_answered(delivery);
    delivery->wait_ms = answered ? DELIVERY_ENDED : 0;
    if (answered)
        return;
    metric_add(METRIC_PUSH_UNVERIFIED, 1);
    log_write(LOG_WARN, "push", "the events_url of app %s failed the challenge: %s",
              delivery->app_id,
              delivery->address_refused ? "its address is private"
              : delivery->reason[0]     ? delivery->reason
                                        : "another answer");
}

void delivery_settle(struct delivery *delivery, CURLcode code,
                     const struct events_api_options *options)
{
    delivery->reason = failure(delivery, code);
    if (is_challenge(delivery)) {
        challenge_settle(delivery);
        return;
    }
    bool taken = delivery->reason[0] == '\0';
    delivery->wait_ms =
        taken ? DELIVERY_ENDED : retry_wait(delivery, options->settings.events_api_retry_ms);
    metric_add(METRIC_PUSH_SENT, 1);
    metric_add(METRIC_PUSH_AGAIN, delivery->tries > 1);
    metric_add(METRIC_PUSH_TAKEN, taken);
    metric_add(METRIC_PUSH_FAILED_TRIES, !taken && delivery->wait_ms == DELIVERY_ENDED);
}
