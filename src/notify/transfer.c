// SPDX-License-Identifier: Apache-2.0
// Builds the requests for each provider, with libcurl.
#include "transfer.h"

#include "aes128gcm.h"
#include "base/address.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/version.h"
#include "payload.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    BODY_MAX = 65536,
    ANSWER_MAX = 16384,
    HEADER_MAX = 16384,
    URL_MAX = 8192,
    TOPIC_LENGTH = 32, // RFC 8030, 5.4
    ACCOUNT_VALUES_MAX = 64
};

static const char *field_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

static bool header_add(struct transfer *transfer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool header_add(struct transfer *transfer, const char *format, ...)
{
    char line[HEADER_MAX];
    va_list values;

    va_start(values, format);
    int length = vsnprintf(line, sizeof line, format, values);
    va_end(values);
    struct curl_slist *longer =
        length < (int)sizeof line ? curl_slist_append(transfer->headers, line) : NULL;
    if (longer)
        transfer->headers = longer;
    return longer != NULL;
}

// Truncates a long response. Reports all bytes as taken, because curl would treat fewer as an
// error.
static size_t on_answer(char *data, size_t size, size_t count, void *arg)
{
    struct transfer *transfer = CAST(transfer, arg);

    buffer_append(&transfer->answer, data, size * count);
    return buffer_failed(&transfer->answer) ? 0 : size * count;
}

// Checks the address actually connected to, not its name.
static curl_socket_t on_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct transfer *transfer = CAST(transfer, arg);

    (void)purpose;
    if (transfer->public_only && !address_is_public(&address->addr)) {
        transfer->address_refused = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static bool text_is_public(const char *text)
{
    struct sockaddr_in ipv4 = {.sin_family = AF_INET};
    struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6};

    if (inet_pton(AF_INET, text, &ipv4.sin_addr) == 1)
        return address_is_public((const struct sockaddr *)&ipv4);
    return inet_pton(AF_INET6, text, &ipv6.sin6_addr) == 1 &&
           address_is_public((const struct sockaddr *)&ipv6);
}

// The connection may have been opened by another request, which may use addresses that this one
// must not.
static int on_connection(void *arg, char *ip, char *local_ip, int port, int local_port)
{
    struct transfer *transfer = CAST(transfer, arg);

    (void)local_ip;
    (void)port;
    (void)local_port;
    if (!transfer->public_only || text_is_public(ip))
        return CURL_PREREQFUNC_OK;
    transfer->address_refused = true;
    return CURL_PREREQFUNC_ABORT;
}

static void easy_set_callbacks(struct transfer *transfer)
{
    CURL *easy = transfer->easy;

    curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_answer);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connection);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer);
}

static bool easy_make(struct transfer *transfer, const char *url,
                      const struct notify_options *options)
{
    CURL *easy = curl_easy_init();

    transfer->easy = easy;
    if (!easy)
        return false;
    easy_set_callbacks(transfer);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); // else a slow name server blocks everything
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_PROXY, ""); // the environment's would connect unchecked
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L); // prefer a stream to a new connection
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)options->settings.push_timeout_ms);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "Tidings/" TIDINGS_VERSION);
    if (options->settings.push_ca_file[0] != '\0')
        curl_easy_setopt(easy, CURLOPT_CAINFO, options->settings.push_ca_file);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)transfer->body.length);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, transfer->body.data);
    return curl_easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK;
}

static struct transfer *transfer_new(void *owner)
{
    struct transfer *transfer = TAGGED_NEW(transfer);

    if (!transfer)
        return NULL;
    ASSERT(owner);
    transfer->owner = owner;
    transfer->begun_us = clock_monotonic_us();
    buffer_init(&transfer->body, BODY_MAX);
    buffer_init(&transfer->answer, ANSWER_MAX);
    return transfer;
}

void transfer_free(struct transfer *transfer)
{
    if (!transfer)
        return;
    curl_easy_cleanup(transfer->easy);
    curl_slist_free_all(transfer->headers);
    buffer_done(&transfer->body);
    buffer_done(&transfer->answer);
    TAGGED_FREE(transfer);
}

static const char *base_or(const char *url, const char *otherwise)
{
    return url[0] != '\0' ? url : otherwise;
}

static int apns_make(struct transfer *transfer, const struct notify_options *options,
                     struct provider_tokens *tokens, const struct notify_push *push, char *ret_url)
{
    const struct notify_message *message = &push->message;
    bool is_sandbox = strcmp(field_of(push->app, "environment"), "sandbox") == 0;
    const char *token;
    int64_t now_s = clock_wall_us() / 1000000;

    int r = provider_tokens_apns(tokens, push, now_s, &token);
    if (r >= 0)
        r = payload_write(push, PAYLOAD_MAX, &transfer->body);
    if (r < 0)
        return r;
    snprintf(ret_url, URL_MAX, "%s/3/device/%s",
             base_or(options->settings.push_apns_url, is_sandbox
                                                          ? "https://api.sandbox.push.apple.com"
                                                          : "https://api.push.apple.com"),
             field_of(push->address, "push_token"));
    bool done = header_add(transfer, "authorization: bearer %s", token) &&
                header_add(transfer, "apns-topic: %s", field_of(push->app, "topic")) &&
                header_add(transfer, "apns-push-type: alert") &&
                header_add(transfer, "apns-priority: %d", notify_message_rings(message) ? 10 : 5) &&
                header_add(transfer, "apns-expiration: %" PRId64, now_s + message->ttl_s) &&
                header_add(transfer, "content-type: application/json");
    if (message->collapse_id)
        done = done && header_add(transfer, "apns-collapse-id: %s", message->collapse_id);
    return done ? 0 : -ERROR_MEMORY;
}

static int fcm_make(struct transfer *transfer, const struct notify_options *options,
                    struct provider_tokens *tokens, const struct notify_push *push, char *ret_url)
{
    const char *token = provider_tokens_google(tokens, push, clock_wall_us() / 1000000);

    int r = token ? payload_write(push, PAYLOAD_MAX, &transfer->body) : -ERROR_MEMORY;
    if (r < 0)
        return r;
    snprintf(ret_url, URL_MAX, "%s/v1/projects/%s/messages:send",
             base_or(options->settings.push_fcm_url, "https://fcm.googleapis.com"),
             field_of(push->app, "project_id"));
    bool done = header_add(transfer, "authorization: Bearer %s", token) &&
                header_add(transfer, "content-type: application/json");
    return done ? 0 : -ERROR_MEMORY;
}

static void url_done(CURLU **url)
{
    curl_url_cleanup(*url);
}

static void text_done(char **text)
{
    curl_free(*text);
}

// "https://push.example:8443": the audience of a Web Push token (RFC 8292, 2).
static int origin_of(const char *endpoint, char *ret_origin, size_t size)
{
    CLEANUP(url_done) CURLU *url = curl_url();
    CLEANUP(text_done) char *scheme = NULL;
    CLEANUP(text_done) char *host = NULL;
    CLEANUP(text_done) char *port = NULL;

    if (!url)
        return -ERROR_MEMORY;
    if (curl_url_set(url, CURLUPART_URL, endpoint, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK)
        return -ERROR_INVALID_ARGUMENTS;
    (void)curl_url_get(url, CURLUPART_PORT, &port, CURLU_NO_DEFAULT_PORT);
    int length =
        snprintf(ret_origin, size, "%s://%s%s%s", scheme, host, port ? ":" : "", port ? port : "");
    return length < (int)size ? 0 : -ERROR_INVALID_ARGUMENTS;
}

static int webpush_body(struct transfer *transfer, const struct notify_push *push)
{
    CLEANUP(buffer_done) struct buffer text = BUFFER(BODY_MAX);
    struct aes128gcm_receiver receiver;

    int r = aes128gcm_receiver_read(field_of(push->address, "p256dh"),
                                    field_of(push->address, "auth"), &receiver);
    if (r >= 0)
        r = payload_write(push, AES128GCM_TEXT_MAX, &text);
    return r < 0 ? r : aes128gcm_encrypt(&receiver, text.data, text.length, &transfer->body);
}

// A topic has at most 32 characters, so it is a prefix of the id's digest.
static bool topic_add(struct transfer *transfer, const char *collapse_id)
{
    char hex[DIGEST_HEX_SIZE];

    digest_sha256_hex(collapse_id, strlen(collapse_id), hex);
    return header_add(transfer, "topic: %.*s", TOPIC_LENGTH, hex);
}

static int webpush_make(struct transfer *transfer, struct provider_tokens *tokens,
                        const struct notify_push *push, char *ret_url)
{
    const struct notify_message *message = &push->message;
    const char *endpoint = field_of(push->address, "endpoint");
    char origin[URL_MAX];
    const char *token;

    int r = origin_of(endpoint, origin, sizeof origin);
    if (r >= 0)
        r = provider_tokens_vapid(tokens, push, origin, clock_wall_us() / 1000000, &token);
    if (r >= 0)
        r = webpush_body(transfer, push);
    if (r < 0)
        return r;
    snprintf(ret_url, URL_MAX, "%s", endpoint);
    bool done =
        header_add(transfer, "authorization: vapid t=%s, k=%s", token,
                   field_of(push->app, "public_key")) &&
        header_add(transfer, "ttl: %" PRId64, message->ttl_s) &&
        header_add(transfer, "urgency: %s", notify_message_rings(message) ? "high" : "low") &&
        header_add(transfer, "content-encoding: aes128gcm") &&
        header_add(transfer, "content-type: application/octet-stream");
    if (message->collapse_id)
        done = done && topic_add(transfer, message->collapse_id);
    return done ? 0 : -ERROR_MEMORY;
}

static int matrix_make(struct transfer *transfer, const struct notify_push *push, char *ret_url)
{
    snprintf(ret_url, URL_MAX, "%s", field_of(push->address, "url"));
    int r = payload_write(push, PAYLOAD_MAX, &transfer->body);
    if (r < 0)
        return r;
    return header_add(transfer, "content-type: application/json") ? 0 : -ERROR_MEMORY;
}

static int push_make(struct transfer *transfer, const struct notify_options *options,
                     struct provider_tokens *tokens, const struct notify_push *push, char *ret_url)
{
    switch (push->platform) {
    case PUSH_APNS:
        return apns_make(transfer, options, tokens, push, ret_url);
    case PUSH_FCM:
        return fcm_make(transfer, options, tokens, push, ret_url);
    case PUSH_WEBPUSH:
        transfer->public_only = !options->private_allowed;
        return webpush_make(transfer, tokens, push, ret_url);
    default:
        transfer->public_only = !options->private_allowed;
        return matrix_make(transfer, push, ret_url);
    }
}

// Adds the options common to all transfers, or frees the transfer.
static int transfer_finish(struct transfer *transfer, int r, const char *url,
                           const struct notify_options *options, struct transfer **ret_transfer)
{
    if (r >= 0 && (buffer_failed(&transfer->body) || !header_add(transfer, "Expect:") ||
                   !easy_make(transfer, url, options)))
        r = -ERROR_MEMORY;
    if (r < 0) {
        transfer_free(transfer);
        return r;
    }
    *ret_transfer = transfer;
    return 0;
}

int transfer_new_push(const struct notify_options *options, struct provider_tokens *tokens,
                      const struct notify_push *push, void *owner, struct transfer **ret_transfer)
{
    struct transfer *transfer = transfer_new(owner);
    char url[URL_MAX];

    if (!transfer)
        return -ERROR_MEMORY;
    int r = push_make(transfer, options, tokens, push, url);
    return transfer_finish(transfer, r, url, options, ret_transfer);
}

int transfer_new_token(const struct notify_options *options, const struct notify_push *push,
                       void *owner, struct transfer **ret_transfer)
{
    static const char grant[] =
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";
    CLEANUP_JSON json_t *account = NULL;
    const char *secret = push->secret ? push->secret : "";
    char url[URL_MAX];

    if (json_read(secret, strlen(secret), JSON_DEPTH_MAX, ACCOUNT_VALUES_MAX, &account) < 0)
        return -ERROR_INVALID_KEY;
    struct transfer *transfer = transfer_new(owner);
    if (!transfer)
        return -ERROR_MEMORY;
    transfer->is_token = true;
    // The account's URL was chosen by whoever created the app, the setting by the operator.
    transfer->public_only =
        options->settings.push_google_token_url[0] == '\0' && !options->private_allowed;
    buffer_append_text(&transfer->body, grant);
    snprintf(url, sizeof url, "%s",
             base_or(options->settings.push_google_token_url, field_of(account, "token_uri")));
    int r = provider_tokens_google_assertion(account, clock_wall_us() / 1000000, &transfer->body);
    if (r >= 0 && !header_add(transfer, "content-type: application/x-www-form-urlencoded"))
        r = -ERROR_MEMORY;
    return transfer_finish(transfer, r, url, options, ret_transfer);
}

// An oversized response still has its status.
struct answer_source transfer_answer(const struct transfer *transfer, CURLcode code)
{
    struct answer_source source = {.retry_after_s = -1};
    curl_off_t retry_after_s = 0;
    long status = 0;

    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(transfer->easy, CURLINFO_RETRY_AFTER, &retry_after_s);
    if (code == CURLE_OK || (code == CURLE_WRITE_ERROR && status >= 200)) {
        source.status = (int)status;
        source.retry_after_s = retry_after_s > 0 ? (int64_t)retry_after_s : -1;
        source.body = transfer->answer.data;
        source.length = transfer->answer.length;
        return source;
    }
    source.error = transfer->address_refused          ? "the address is private"
                   : code == CURLE_OPERATION_TIMEDOUT ? "timeout"
                   : transfer->error[0] != '\0'       ? transfer->error
                                                      : curl_easy_strerror(code);
    return source;
}

void transfer_disconnect(struct transfer *transfer)
{
    curl_socket_t fd = CURL_SOCKET_BAD;

    if (curl_easy_getinfo(transfer->easy, CURLINFO_ACTIVESOCKET, &fd) == CURLE_OK &&
        fd != CURL_SOCKET_BAD)
        (void)shutdown(fd, SHUT_RDWR);
}
