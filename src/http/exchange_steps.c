// SPDX-License-Identifier: Apache-2.0
// The steps of every request: head, route, body, call.
#include "exchange_steps.h"

#include "exchange_admission.h"
#include "exchange_reply.h"

#include "base/error.h"
#include "base/metrics.h"
#include "http/cors.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    METHOD_LENGTH_MAX = 64,
    BODY_RETRY_S = 1 // Retry-After for a body refused for lack of room
};

static const char *bearer_token(const char *authorization)
{
    static const char scheme[] = "Bearer ";
    if (!authorization || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
        return "";
    const char *token = authorization + sizeof scheme - 1;
    return token + strspn(token, " ");
}

int exchange_store_head(struct exchange *exchange)
{
    struct request *request = &exchange->request;
    const struct http_head *head = &exchange->head;
    if (exchange_name(exchange) < 0)
        return -ERROR_MEMORY;
    request->token = bearer_token(head->authorization);
    request->idempotency_key = head->idempotency_key ? head->idempotency_key : "";
    request->host = head->host ? head->host : "";
    exchange->body.content_type = head->content_type;
    request->http_errors = head->errors && strcasecmp(head->errors, "http") == 0;
    if (head->origin &&
        cors_is_listed(exchange->server->options.settings.cors_origins, head->origin))
        exchange->origin = head->origin;
    return 0;
}

static const char *verb_static(const char *verb)
{
    static const char *const verbs[] = {"GET", "POST", "HEAD"};
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verb, verbs[i]) == 0)
            return verbs[i];
    }
    return NULL;
}

static bool page_is_at(const struct server_page *page, const char *path)
{
    size_t length = strlen(page->path);
    if (page->path[length - 1] == '*')
        return strncmp(page->path, path, length - 1) == 0;
    return strcmp(page->path, path) == 0;
}

static const struct server_page *page_find(const struct server *server, const char *path)
{
    for (const struct server_page *page = server->pages; page; page = page->next) {
        if (page_is_at(page, path))
            return page;
    }
    return NULL;
}

// The path of an incoming webhook, after which comes its secret.
#define WEBHOOK_PREFIX "/services/"

// Paths of files, and the methods that serve them.
static const struct file_path {
    const char *prefix;
    const char *method;
    bool is_upload;
    bool is_secret;
} file_paths[] = {
    {"/upload/v1/", SERVER_UPLOAD, true, true},
    {"/files-pri/", SERVER_FILE, false, false},
    {"/files-signed/", SERVER_FILE_SIGNED, false, true},
};

// An incoming webhook is a call without a name that others could call it by. What follows in the
// path is its token: the whole of it is secret.
static void webhook_route(struct exchange *exchange, const char *path)
{
    struct request *request = &exchange->request;
    exchange->content_type = "text/plain; charset=utf-8";
    request->is_webhook = true;
    request->http_errors = false;
    request->token = path + sizeof WEBHOOK_PREFIX - 1;
    request->method = SERVER_WEBHOOK;
    request->verb = "POST";
    exchange->is_call = strcmp(exchange->head.verb, "POST") == 0;
    if (exchange->is_call)
        return;
    exchange->allow = "POST";
    exchange_plain_error(exchange, 405, error_code(-ERROR_METHOD_NOT_ALLOWED), NULL);
}

static bool verb_is(const struct exchange *exchange, const char *a, const char *b)
{
    return strcmp(exchange->head.verb, a) == 0 || strcmp(exchange->head.verb, b) == 0;
}

// A path of files. What follows its prefix is the argument `path`, or, where that is secret, the
// token. No token is taken from a query: that ends in logs.
static void file_route(struct exchange *exchange, const struct file_path *found, const char *path)
{
    struct request *request = &exchange->request;
    const char *rest = path + strlen(found->prefix);
    bool is_read = verb_is(exchange, "GET", "HEAD");
    exchange->query = NULL;
    exchange->is_last = true;
    request->http_errors = true;
    request->method = found->method;
    if (found->is_upload ? !verb_is(exchange, "POST", "PUT") : !is_read) {
        exchange->allow = found->is_upload ? "POST, PUT" : "GET, HEAD";
        exchange_plain_error(exchange, 405, error_code(-ERROR_METHOD_NOT_ALLOWED), NULL);
        return;
    }
    if (found->is_secret)
        request->token = rest;
    if (!found->is_secret && request_arg_set(request, "path", rest) < 0)
        return;
    request->verb = found->is_upload ? "POST" : "GET";
    exchange->is_call = true;
    exchange->is_streamed = found->is_upload;
}

static const struct file_path *file_path_find(const char *path)
{
    for (size_t i = 0; i < sizeof file_paths / sizeof file_paths[0]; i++) {
        if (strncmp(path, file_paths[i].prefix, strlen(file_paths[i].prefix)) == 0)
            return &file_paths[i];
    }
    return NULL;
}

// Whether the path is none below /api/, and no page's. Then the request is routed.
static bool special_route(struct exchange *exchange, const char *path)
{
    const struct file_path *found = file_path_find(path);
    if (strncmp(path, WEBHOOK_PREFIX, sizeof WEBHOOK_PREFIX - 1) == 0)
        webhook_route(exchange, path);
    else if (found && exchange->head.verb && strcmp(exchange->head.verb, "OPTIONS") != 0)
        file_route(exchange, found, path);
    else
        return false;
    return true;
}

// Finds the handler: a method, a page, or an error reply. Cuts the query off the target.
static void exchange_route(struct exchange *exchange)
{
    char *path = exchange->head.target;
    exchange->query = strchr(path, '?');
    if (exchange->query)
        *exchange->query++ = '\0';
    const char *verb = verb_static(exchange->head.verb);

    if (special_route(exchange, path))
        return;
    bool is_call = strncmp(path, "/api/", 5) == 0;
    exchange->page = is_call ? NULL : page_find(exchange->server, path);
    const char *method = is_call ? path + 4 + strspn(path + 4, "/") : "";
    exchange->request.method = exchange_name_is_plain(method, METHOD_LENGTH_MAX) ? method : "";
    if (!exchange->page && !is_call) {
        exchange_plain_error(exchange, 404, "not_found", NULL);
    } else if (exchange->origin && strcmp(exchange->head.verb, "OPTIONS") == 0) {
        exchange->is_preflight = true;
        exchange->request.status = 204;
        exchange->request.replied = true;
    } else if (!verb || (!is_call && strcmp(verb, "POST") == 0)) {
        exchange->allow = is_call ? "GET, POST, HEAD" : "GET, HEAD";
        exchange_plain_error(exchange, 405, error_code(-ERROR_METHOD_NOT_ALLOWED), NULL);
    } else if (is_call) {
        exchange->is_call = true;
        exchange->request.verb = verb;
    }
}

// Called after a callback in which the handler may have replied. A long reply may still have to be
// compressed.
static void callback_end(struct exchange *exchange)
{
    exchange->state = exchange->request.replied ? EXCHANGE_REPLY : EXCHANGE_SUSPENDED;
}

// Refuses the body, which is not read any further.
static void body_refuse(struct exchange *exchange, int r)
{
    struct request *request = &exchange->request;
    exchange->state = EXCHANGE_ANSWERING;
    exchange->is_last = true;
    if (r == -ERROR_REQUEST_TOO_LARGE && request->arguments.error_text[0] == '\0') {
        metric_add(METRIC_HTTP_BODY_TOO_LARGE, 1);
        if (!exchange->is_call)
            exchange_plain_error(exchange, 413, error_code(r), NULL);
    }
    if (!request->replied && r == -ERROR_RATELIMITED)
        request_reply_ratelimited(request, BODY_RETRY_S);
    else if (!request->replied)
        request_reply_unread(request, r);
    callback_end(exchange);
}

// Reads the announced length of the body. -ERROR_REQUEST_TOO_LARGE if it exceeds the limit.
static int exchange_read_length(struct exchange *exchange)
{
    const char *digits = exchange->head.content_length;
    int64_t length = 0;
    for (; digits && *digits != '\0'; digits++) {
        length = length * 10 + (*digits - '0');
        if (length > exchange->server->options.settings.body_max_bytes)
            return -ERROR_REQUEST_TOO_LARGE;
    }
    exchange->request.body_bytes = length;
    framing_init(&exchange->framing, &exchange->head, (uint64_t)length);
    return 0;
}

// The body, whatever its length, is left for whoever handles the call.
static void exchange_begin_streamed(struct exchange *exchange)
{
    const char *digits = exchange->head.content_length;
    framing_init(&exchange->framing, &exchange->head, digits ? strtoull(digits, NULL, 10) : 0);
    exchange_answer(exchange);
}

void exchange_begin(struct exchange *exchange)
{
    exchange_route(exchange);
    if (exchange->is_streamed) {
        exchange_begin_streamed(exchange);
        return;
    }
    int r = exchange_read_length(exchange);
    if (r >= 0 && exchange->page && !exchange->request.replied) {
        exchange->is_last = true;
        exchange->state = EXCHANGE_PAGE;
        return;
    }
    if (r >= 0)
        r = exchange_ask(exchange);
    if (r < 0)
        body_refuse(exchange, r);
}

void exchange_admit_end(struct exchange *exchange)
{
    int r = exchange_ask_end(exchange);
    if (r < 0)
        body_refuse(exchange, r);
}

void exchange_take(struct exchange *exchange, const char *data, size_t size)
{
    int r = exchange_body_add(exchange, data, size);
    if (r < 0)
        body_refuse(exchange, r);
}

static void exchange_call(struct exchange *exchange)
{
    struct server *server = exchange->server;
    struct request *request = &exchange->request;
    exchange->started = true;
    server->calls_count++;
    list_append(&server->calls, &exchange->link);
    int r = body_find_token(&exchange->body, request, exchange->query);
    if (r < 0)
        request_reply_unread(request, r);
    else
        server->options.on_call(server->options.arg, request);
}

void exchange_answer(struct exchange *exchange)
{
    exchange->state = EXCHANGE_ANSWERING;
    if (exchange->is_call)
        exchange_call(exchange);
    callback_end(exchange);
}
