// SPDX-License-Identifier: Apache-2.0
// Sets up libcurl for one request: whom it may connect to, and how much it may read.
#include "transfer.h"

#include "base/address.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/version.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

void outbound_header(struct outbound_request *request, const char *format, ...)
{
    char line[OUTBOUND_HEADER_MAX + 1];
    struct buffer *headers = &request->headers;
    va_list values;

    va_start(values, format);
    int length = vsnprintf(line, sizeof line, format, values);
    va_end(values);
    if (length < 0 || length > OUTBOUND_HEADER_MAX || strpbrk(line, "\r\n"))
        headers->failed = true;
    else
        buffer_append(headers, line, (size_t)length + 1);
}

void outbound_request_done(struct outbound_request *request)
{
    buffer_done(&request->headers);
    buffer_done(&request->body);
}

// Reports all bytes as taken, because curl would treat fewer as an error.
static size_t on_answer(char *data, size_t size, size_t count, void *arg)
{
    struct transfer *transfer = CAST(transfer, arg);
    size_t length = size * count;
    size_t room = transfer->answer.length_max - transfer->answer.length;

    buffer_append(&transfer->answer, data, length < room ? length : room);
    return length > room || buffer_failed(&transfer->answer) ? 0 : length;
}

static size_t on_header(char *data, size_t size, size_t count, void *arg)
{
    struct transfer *transfer = CAST(transfer, arg);

    (void)data;
    transfer->head_length += size * count;
    return transfer->head_length > OUTBOUND_ANSWER_HEAD_MAX ? 0 : size * count;
}

// Checks the address actually connected to, not its name.
static curl_socket_t on_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct transfer *transfer = CAST(transfer, arg);

    (void)purpose;
    if (!transfer->private_allowed && !address_is_public(&address->addr)) {
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
    if (transfer->private_allowed || text_is_public(ip))
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
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connection);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer);
}

static void easy_set_body(struct transfer *transfer, const char *method)
{
    CURL *easy = transfer->easy;

    if (transfer->body.length > 0 || strcmp(method, "POST") == 0) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)transfer->body.length);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS,
                         transfer->body.length > 0 ? transfer->body.data : "");
    }
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers);
}

static int easy_make(struct transfer *transfer, const struct outbound_request *request)
{
    CURL *easy = curl_easy_init();

    transfer->easy = easy;
    if (!easy)
        return -ERROR_MEMORY;
    easy_set_callbacks(transfer);
    easy_set_body(transfer, request->method);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); // else a slow name server blocks everything
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_PROXY, ""); // the environment's would connect unchecked
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L); // prefer a stream to a new connection
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "Tidings/" TIDINGS_VERSION);
    if (request->ca_file && request->ca_file[0] != '\0')
        curl_easy_setopt(easy, CURLOPT_CAINFO, request->ca_file);
    return curl_easy_setopt(easy, CURLOPT_URL, request->url) == CURLE_OK ? 0 : -ERROR_MEMORY;
}

static bool line_add(struct transfer *transfer, const char *line)
{
    struct curl_slist *longer = curl_slist_append(transfer->headers, line);

    if (longer)
        transfer->headers = longer;
    return longer != NULL;
}

// "Expect:" lets curl send a large body without asking first.
static int headers_make(struct transfer *transfer, const struct buffer *headers)
{
    bool done = line_add(transfer, "Expect:");

    for (size_t at = 0; done && at < headers->length; at += strlen(headers->data + at) + 1)
        done = line_add(transfer, headers->data + at);
    return done ? 0 : -ERROR_MEMORY;
}

int transfer_new(struct outbound_request *request, outbound_fn *fn, void *arg,
                 struct transfer **ret_transfer)
{
    if (buffer_failed(&request->headers) || buffer_failed(&request->body))
        return -ERROR_MEMORY;
    struct transfer *transfer = TAGGED_NEW(transfer);
    if (!transfer)
        return -ERROR_MEMORY;
    transfer->fn = fn;
    transfer->arg = arg;
    transfer->begun_us = clock_monotonic_us();
    transfer->private_allowed = request->private_allowed;
    transfer->size =
        (int64_t)(strlen(request->url) + request->headers.length + request->body.length);
    transfer->body = request->body;
    buffer_init(&request->body, request->body.length_max);
    buffer_init(&transfer->answer, request->answer_max);
    int r = headers_make(transfer, &request->headers);
    if (r >= 0)
        r = easy_make(transfer, request);
    if (r < 0) {
        transfer_free(transfer);
        return r;
    }
    *ret_transfer = transfer;
    return 0;
}

void transfer_free(struct transfer *transfer)
{
    curl_easy_cleanup(transfer->easy);
    curl_slist_free_all(transfer->headers);
    buffer_done(&transfer->body);
    buffer_done(&transfer->answer);
    TAGGED_FREE(transfer);
}

struct transfer *transfer_of(CURL *easy)
{
    void *transfer = NULL;

    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &transfer);
    return CAST(transfer, transfer);
}

static enum outbound_failure failure_of(const struct transfer *transfer, CURLcode code)
{
    if (transfer->address_refused)
        return OUTBOUND_PRIVATE;
    switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
        return OUTBOUND_TIMEOUT;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
        return OUTBOUND_UNREACHABLE;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
        return OUTBOUND_TLS;
    default:
        return OUTBOUND_OTHER;
    }
}

// An answer that is too long, which curl calls an error, still has its status.
struct outbound_answer transfer_answer(struct transfer *transfer, CURLcode code)
{
    struct outbound_answer answer = {.easy = transfer->easy, .retry_after_s = -1};
    curl_off_t retry_after_s = 0;
    long status = 0;

    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(transfer->easy, CURLINFO_RETRY_AFTER, &retry_after_s);
    if (code == CURLE_OK || (code == CURLE_WRITE_ERROR && status >= 200)) {
        answer.status = (int)status;
        answer.retry_after_s = retry_after_s > 0 ? (int64_t)retry_after_s : -1;
        answer.body = transfer->answer.data;
        answer.length = transfer->answer.length;
        answer.is_cut = code != CURLE_OK;
        return answer;
    }
    answer.failure = failure_of(transfer, code);
    answer.error = answer.failure == OUTBOUND_PRIVATE   ? "the address is private"
                   : answer.failure == OUTBOUND_TIMEOUT ? "timeout"
                   : transfer->error[0] != '\0'         ? transfer->error
                                                        : curl_easy_strerror(code);
    return answer;
}

const char *outbound_answer_header(const struct outbound_answer *answer, const char *name)
{
    struct curl_header *header;

    if (!answer->easy ||
        curl_easy_header(answer->easy, name, 0, CURLH_HEADER, -1, &header) != CURLHE_OK)
        return NULL;
    return header->value;
}

int transfer_socket(const struct transfer *transfer)
{
    curl_socket_t fd = CURL_SOCKET_BAD;

    curl_easy_getinfo(transfer->easy, CURLINFO_ACTIVESOCKET, &fd);
    return fd == CURL_SOCKET_BAD ? -1 : fd;
}

void transfer_disconnect(const struct transfer *transfer)
{
    (void)shutdown(transfer_socket(transfer), SHUT_RDWR);
}

static void url_done(CURLU **url)
{
    curl_url_cleanup(*url);
}

static void text_done(char **text)
{
    curl_free(*text);
}

int outbound_origin_of(const char *url, char *ret_origin, size_t size)
{
    CLEANUP(url_done) CURLU *parts = curl_url();
    CLEANUP(text_done) char *scheme = NULL;
    CLEANUP(text_done) char *host = NULL;
    CLEANUP(text_done) char *port = NULL;

    if (!parts)
        return -ERROR_MEMORY;
    if (curl_url_set(parts, CURLUPART_URL, url, 0) != CURLUE_OK ||
        curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
        curl_url_get(parts, CURLUPART_HOST, &host, 0) != CURLUE_OK)
        return -ERROR_INVALID_ARGUMENTS;
    (void)curl_url_get(parts, CURLUPART_PORT, &port, CURLU_NO_DEFAULT_PORT);
    int length =
        snprintf(ret_origin, size, "%s://%s%s%s", scheme, host, port ? ":" : "", port ? port : "");
    return length < (int)size ? 0 : -ERROR_INVALID_ARGUMENTS;
}
