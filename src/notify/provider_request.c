// SPDX-License-Identifier: Apache-2.0
// Builds the requests for each provider.
#include "provider_request.h"

#include "aes128gcm.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "payload.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    ANSWER_MAX = 16384,
    TOPIC_LENGTH = 32, // RFC 8030, 5.4
    ACCOUNT_VALUES_MAX = 64
};

static const char *field_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

static const char *base_or(const char *url, const char *otherwise)
{
    return url[0] != '\0' ? url : otherwise;
}

static int apns_make(struct provider_request *request, const struct notify_options *options,
                     struct provider_tokens *tokens, const struct notify_push *push)
{
    const struct notify_message *message = &push->message;
    struct outbound_request *http = &request->http;
    bool is_sandbox = strcmp(field_of(push->app, "environment"), "sandbox") == 0;
    const char *token;
    int64_t now_s = clock_wall_us() / 1000000;

    int r = provider_tokens_apns(tokens, push, now_s, &token);
    if (r >= 0)
        r = payload_write(push, PAYLOAD_MAX, &http->body);
    if (r < 0)
        return r;
    snprintf(request->url, sizeof request->url, "%s/3/device/%s",
             base_or(options->settings.push_apns_url, is_sandbox
                                                          ? "https://api.sandbox.push.apple.com"
                                                          : "https://api.push.apple.com"),
             field_of(push->address, "push_token"));
    outbound_header(http, "authorization: bearer %s", token);
    outbound_header(http, "apns-topic: %s", field_of(push->app, "topic"));
    outbound_header(http, "apns-push-type: alert");
    outbound_header(http, "apns-priority: %d", notify_message_rings(message) ? 10 : 5);
    outbound_header(http, "apns-expiration: %" PRId64, now_s + message->ttl_s);
    outbound_header(http, "content-type: application/json");
    if (message->collapse_id)
        outbound_header(http, "apns-collapse-id: %s", message->collapse_id);
    return 0;
}

static int fcm_make(struct provider_request *request, const struct notify_options *options,
                    struct provider_tokens *tokens, const struct notify_push *push)
{
    const char *token = provider_tokens_google(tokens, push, clock_wall_us() / 1000000);

    int r = token ? payload_write(push, PAYLOAD_MAX, &request->http.body) : -ERROR_MEMORY;
    if (r < 0)
        return r;
    snprintf(request->url, sizeof request->url, "%s/v1/projects/%s/messages:send",
             base_or(options->settings.push_fcm_url, "https://fcm.googleapis.com"),
             field_of(push->app, "project_id"));
    outbound_header(&request->http, "authorization: Bearer %s", token);
    outbound_header(&request->http, "content-type: application/json");
    return 0;
}

static int webpush_body(struct buffer *body, const struct notify_push *push)
{
    CLEANUP(buffer_done) struct buffer text = BUFFER(PROVIDER_BODY_MAX);
    struct aes128gcm_receiver receiver;

    int r = aes128gcm_receiver_read(field_of(push->address, "p256dh"),
                                    field_of(push->address, "auth"), &receiver);
    if (r >= 0)
        r = payload_write(push, AES128GCM_TEXT_MAX, &text);
    return r < 0 ? r : aes128gcm_encrypt(&receiver, text.data, text.length, body);
}

// A topic has at most 32 characters, so it is a prefix of the id's digest.
static void topic_add(struct outbound_request *http, const char *collapse_id)
{
    char hex[DIGEST_HEX_SIZE];

    digest_sha256_hex(collapse_id, strlen(collapse_id), hex);
    outbound_header(http, "topic: %.*s", TOPIC_LENGTH, hex);
}

static int webpush_make(struct provider_request *request, struct provider_tokens *tokens,
                        const struct notify_push *push)
{
    const struct notify_message *message = &push->message;
    const char *endpoint = field_of(push->address, "endpoint");
    struct outbound_request *http = &request->http;
    char origin[PROVIDER_URL_SIZE]; // the audience of the token (RFC 8292, 2)
    const char *token;

    int r = outbound_origin_of(endpoint, origin, sizeof origin);
    if (r >= 0)
        r = provider_tokens_vapid(tokens, push, origin, clock_wall_us() / 1000000, &token);
    if (r >= 0)
        r = webpush_body(&http->body, push);
    if (r < 0)
        return r;
    snprintf(request->url, sizeof request->url, "%s", endpoint);
    outbound_header(http, "authorization: vapid t=%s, k=%s", token,
                    field_of(push->app, "public_key"));
    outbound_header(http, "ttl: %" PRId64, message->ttl_s);
    outbound_header(http, "urgency: %s", notify_message_rings(message) ? "high" : "low");
    outbound_header(http, "content-encoding: aes128gcm");
    outbound_header(http, "content-type: application/octet-stream");
    if (message->collapse_id)
        topic_add(http, message->collapse_id);
    return 0;
}

static int matrix_make(struct provider_request *request, const struct notify_push *push)
{
    snprintf(request->url, sizeof request->url, "%s", field_of(push->address, "url"));
    outbound_header(&request->http, "content-type: application/json");
    return payload_write(push, PAYLOAD_MAX, &request->http.body);
}

static void http_start(struct provider_request *request, const struct notify_options *options)
{
    request->http.method = "POST";
    request->http.url = request->url;
    request->http.ca_file = options->settings.push_ca_file;
    request->http.timeout_ms = options->settings.push_timeout_ms;
    request->http.answer_max = ANSWER_MAX;
}

int provider_request_push(const struct notify_options *options, struct provider_tokens *tokens,
                          const struct notify_push *push, struct provider_request *ret_request)
{
    http_start(ret_request, options);
    switch (push->platform) {
    case PUSH_APNS:
    case PUSH_FCM: // the operator chose where these go
        ret_request->http.private_allowed = true;
        return push->platform == PUSH_APNS ? apns_make(ret_request, options, tokens, push)
                                           : fcm_make(ret_request, options, tokens, push);
    case PUSH_WEBPUSH:
        ret_request->http.private_allowed = options->private_allowed;
        return webpush_make(ret_request, tokens, push);
    default:
        ret_request->http.private_allowed = options->private_allowed;
        return matrix_make(ret_request, push);
    }
}

int provider_request_token(const struct notify_options *options, const struct notify_push *push,
                           struct provider_request *ret_request)
{
    static const char grant[] =
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";
    CLEANUP_JSON json_t *account = NULL;
    const char *secret = push->secret ? push->secret : "";
    struct outbound_request *http = &ret_request->http;

    if (json_read(secret, strlen(secret), JSON_DEPTH_MAX, ACCOUNT_VALUES_MAX, &account) < 0)
        return -ERROR_INVALID_KEY;
    http_start(ret_request, options);
    // The account's URL was chosen by whoever created the app, the setting by the operator.
    http->private_allowed =
        options->settings.push_google_token_url[0] != '\0' || options->private_allowed;
    snprintf(ret_request->url, sizeof ret_request->url, "%s",
             base_or(options->settings.push_google_token_url, field_of(account, "token_uri")));
    outbound_header(http, "content-type: application/x-www-form-urlencoded");
    buffer_append_text(&http->body, grant);
    return provider_tokens_google_assertion(account, clock_wall_us() / 1000000, &http->body);
}
