// SPDX-License-Identifier: Apache-2.0
// One HTTP request within libmicrohttpd, which calls exchange_line() for the request line,
// exchange_step() when the head is complete, for each piece of the body, when all is there, and
// again after a resume; and exchange_end() when the reply is out or all is lost.
#include "exchange.h"

#include "base/error.h"
#include "base/id.h"
#include "base/metrics.h"
#include "http/cors.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    METHOD_LENGTH_MAX = 64,
    REQUEST_ID_LENGTH_MAX = 128,
    HEX_LENGTH = 16,
    EXCHANGE_SPARES_MAX = 256,
    BODY_RETRY_S = 1 // after which a body may be let in that was not
};

// An exchange takes 3 KiB, which malloc does not hand out quickly: some are kept.
static struct exchange *exchange_alloc(struct server *server)
{
    if (list_is_empty(&server->spares))
        return malloc(sizeof(struct exchange));
    struct exchange *exchange = LIST_ITEM(server->spares.next, struct exchange, link);
    list_remove(&exchange->link);
    server->spares_count--;
    return exchange;
}

void exchange_free(struct exchange *exchange)
{
    struct server *server = exchange->server;
    list_remove(&exchange->link);
    if (exchange->gzip)
        exchange_gzip_drop(exchange);
    buffer_done(&exchange->body);
    buffer_done(&exchange->rest);
    buffer_done(&exchange->text);
    mhd_takeover_done(&exchange->takeover);
    request_done(&exchange->request);
    if (server && exchange->started)
        server->calls_count--;
    if (!server || server->spares_count >= EXCHANGE_SPARES_MAX) {
        free(exchange);
        return;
    }
    list_append(&server->spares, &exchange->link);
    server->spares_count++;
}

void exchanges_free_spares(struct server *server)
{
    LIST_FOREACH(link, &server->spares)
    {
        list_remove(link);
        free(LIST_ITEM(link, struct exchange, link));
    }
}

struct exchange *exchange_new(struct http_connection *connection)
{
    struct server *server = connection->server;
    struct exchange *exchange = exchange_alloc(server);
    if (!exchange)
        return NULL;
    request_init(&exchange->request, server->options.reply_max_bytes, exchange_send);
    list_init(&exchange->link);
    exchange->server = server;
    exchange->mhd = connection->mhd;
    exchange->connection = connection;
    exchange->head = (struct http_head){0};
    exchange->query = NULL;
    exchange->content_type = "application/json; charset=utf-8";
    exchange->allow = NULL;
    exchange->origin = NULL;
    exchange->is_preflight = false;
    exchange->page = NULL;
    buffer_init(&exchange->body, (size_t)server->options.body_max_bytes + 1);
    mhd_takeover_init(&exchange->takeover);
    buffer_init(&exchange->rest, MHD_MEMORY_BYTES);
    buffer_init(&exchange->text, 0);
    exchange->state = EXCHANGE_LINE;
    exchange->is_call = false;
    exchange->started = false;
    exchange->is_chunked = false;
    exchange->is_text = false;
    exchange->is_read = false;
    exchange->gzip = NULL;
    list_init(&exchange->gzip_link);
    exchange->is_gzip = false;
    list_init(&exchange->job.link);
    exchange->request.load = exchange_load;
    exchange->request.intake = &server->intake;
    exchange->request.outgo = &server->outgo;
    exchange->request.arguments.values_max = server->options.json_values_max;
    return exchange;
}

static bool is_plain(const char *text, size_t length_max)
{
    size_t length = 0;
    for (; text[length] != '\0'; length++) {
        char byte = text[length];
        bool alnum = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                     (byte >= '0' && byte <= '9');
        if (length >= length_max || (!alnum && !strchr("._-", byte)))
            return false;
    }
    return length > 0;
}

static void hex_print(uint64_t number, char *ret_text)
{
    for (int i = HEX_LENGTH - 1; i >= 0; i--, number >>= 4)
        ret_text[i] = "0123456789abcdef"[number & 15];
}

// The peer's request id when it may go into headers and logs, else a new one.
static const char *exchange_id(struct exchange *exchange)
{
    struct server *server = exchange->server;
    const char *given = exchange->head.request_id;
    char made[2 * HEX_LENGTH];
    if (given && is_plain(given, REQUEST_ID_LENGTH_MAX))
        return given;
    hex_print(server->id_base, made);
    hex_print(++server->id_count, made + HEX_LENGTH);
    return arena_copy(&exchange->request.arena, made, sizeof made);
}

void exchange_refuse_early(struct exchange *exchange, int status, const char *reason)
{
    if (exchange->request.id[0] == '\0')
        exchange->request.id = exchange_id(exchange);
    metric_add(METRIC_HTTP_BAD_REQUESTS, 1);
    exchange_plain_error(exchange, status, "bad_request", reason);
    exchange_last_word(exchange);
}

void exchange_refuse_head(struct http_connection *connection, int status, const char *reason)
{
    struct exchange *exchange = exchange_new(connection);
    if (!exchange) {
        connection_free(connection);
        return;
    }
    exchange_refuse_early(exchange, status, reason);
    exchange_free(exchange);
}

// What is wrong with the headers of a request that the door has not seen, one of the later ones of
// its connection, as far as they have come. A malformed request line is head_parse()'s to refuse.
static const char *headers_scan(const struct http_connection *connection, const char *target)
{
    size_t length;
    bool is_complete;
    const char *fields = mhd_fields_peek(connection->memory, target, &length);
    return fields ? head_scan_fields(fields, length, &is_complete) : NULL;
}

void *exchange_line(void *arg, const char *target, struct MHD_Connection *mhd)
{
    struct http_connection *connection = connection_of(mhd);
    struct exchange *exchange = exchange_new(connection);
    (void)arg;
    if (!exchange)
        return NULL;
    exchange->target = arena_copy(&exchange->request.arena, target, strlen(target));
    if (connection->state == CONNECTION_IDLE)
        connection_move(connection, CONNECTION_HEADERS);
    if (!connection->memory) {
        connection->memory = target;
        return exchange;
    }
    const char *reason = headers_scan(connection, target);
    if (reason)
        exchange_refuse_early(exchange, 400, reason);
    return exchange;
}

static const char *bearer_token(const char *authorization)
{
    static const char scheme[] = "Bearer ";
    if (!authorization || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
        return "";
    const char *token = authorization + sizeof scheme - 1;
    return token + strspn(token, " ");
}

// What the head says, for the reply and for handlers.
static int exchange_keep(struct exchange *exchange)
{
    struct request *request = &exchange->request;
    const struct http_head *head = &exchange->head;
    request->id = exchange_id(exchange);
    if (!request->id)
        return -ERROR_MEMORY;
    request->token = bearer_token(head->authorization);
    request->idempotency_key = head->idempotency_key ? head->idempotency_key : "";
    request->host = head->host ? head->host : "";
    request->http_errors = head->errors && strcasecmp(head->errors, "http") == 0;
    if (head->origin && cors_is_listed(exchange->server->options.cors_origins, head->origin))
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

// Finds what answers: a method, a page, or the reply that there is none. Cuts the query off the
// target.
static void exchange_route(struct exchange *exchange)
{
    char *path = exchange->head.target;
    exchange->query = strchr(path, '?');
    if (exchange->query)
        *exchange->query++ = '\0';
    const char *verb = verb_static(exchange->head.verb);

    bool is_call = strncmp(path, "/api/", 5) == 0;
    exchange->page = is_call ? NULL : page_find(exchange->server, path);
    const char *method = is_call ? path + 4 + strspn(path + 4, "/") : "";
    exchange->request.method = is_plain(method, METHOD_LENGTH_MAX) ? method : "";
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

static enum MHD_Result exchange_refuse(struct exchange *exchange, const char *reason)
{
    metric_add(METRIC_HTTP_BAD_REQUESTS, 1);
    exchange_plain_error(exchange, 400, "bad_request", reason);
    return exchange_queue(exchange);
}

static enum MHD_Result exchange_too_large(struct exchange *exchange)
{
    metric_add(METRIC_HTTP_BODY_TOO_LARGE, 1);
    if (exchange->is_call)
        request_reply_error(&exchange->request, -ERROR_REQUEST_TOO_LARGE);
    else
        exchange_plain_error(exchange, 413, error_code(-ERROR_REQUEST_TOO_LARGE), NULL);
    exchange_last_word(exchange);
    return MHD_YES;
}

// The announced length of the body: -ERROR_REQUEST_TOO_LARGE when that is more than is taken.
static int exchange_read_length(struct exchange *exchange)
{
    const char *digits = exchange->head.content_length;
    int64_t length = 0;
    exchange->is_chunked = exchange->head.transfer_encoding != NULL;
    for (; digits && *digits != '\0'; digits++) {
        length = length * 10 + (*digits - '0');
        if (length > exchange->server->options.body_max_bytes)
            return -ERROR_REQUEST_TOO_LARGE;
    }
    exchange->request.body_bytes = length;
    return 0;
}

static enum MHD_Result exchange_refuse_body(struct exchange *exchange, int r)
{
    struct request *request = &exchange->request;
    if (r == -ERROR_REQUEST_TOO_LARGE && request->arguments.complaint[0] == '\0')
        return exchange_too_large(exchange);
    exchange->state = EXCHANGE_ANSWERING;
    if (!request->replied && r == -ERROR_RATELIMITED)
        request_reply_ratelimited(request, BODY_RETRY_S);
    else if (!request->replied)
        request_reply_unread(request, r);
    exchange_last_word(exchange);
    return MHD_YES;
}

static enum MHD_Result exchange_let_in(struct exchange *exchange)
{
    exchange->state = EXCHANGE_BODY;
    connection_move(exchange->connection, CONNECTION_BODY);
    return MHD_YES;
}

static enum MHD_Result exchange_admit(struct exchange *exchange)
{
    int r = exchange_ask(exchange);
    if (r < 0)
        return exchange_refuse_body(exchange, r);
    if (exchange->state != EXCHANGE_ASKED)
        return exchange_let_in(exchange);
    connection_move(exchange->connection, CONNECTION_WORK);
    exchange_suspend(exchange);
    return MHD_YES;
}

enum MHD_Result exchange_admit_end(struct exchange *exchange)
{
    if (exchange->mhd)
        mhd_resumed(exchange->mhd);
    int r = exchange_ask_end(exchange);
    return r < 0 ? exchange_refuse_body(exchange, r) : exchange_let_in(exchange);
}

// Whether libmicrohttpd hands a request over that it is not to read: one for a long-lived
// connection, or with a chunked body. *ret_result is what to tell it then.
static bool exchange_leaves_mhd(struct exchange *exchange, enum MHD_Result *ret_result)
{
    const char *target = exchange->head.target;
    *ret_result = MHD_YES;
    if (exchange->server->options.on_takeover && door_is_takeover(target, strlen(target)))
        exchange_hand_over(exchange);
    else if (exchange->head.transfer_encoding)
        *ret_result = exchange_take_over(exchange);
    else
        return false;
    return true;
}

enum MHD_Result exchange_begin(struct exchange *exchange, char *text, size_t length)
{
    enum MHD_Result result;
    const char *reason = head_parse(text, length, &exchange->head);
    if (!reason && exchange->mhd && exchange->head.fields != mhd_fields_count(exchange->mhd))
        reason = "a malformed header line";
    if (exchange_keep(exchange) < 0)
        return MHD_NO;
    if (reason)
        return exchange_refuse(exchange, reason);
    if (exchange->mhd && exchange_leaves_mhd(exchange, &result))
        return result;
    exchange_route(exchange);
    if (exchange_read_length(exchange) < 0)
        return exchange_too_large(exchange);
    return exchange_admit(exchange);
}

// libmicrohttpd has read the head.
static enum MHD_Result exchange_begin_mhd(struct exchange *exchange, const char *verb)
{
    size_t length;
    char *text = exchange->target ? mhd_head_copy(exchange->mhd, verb, exchange->target,
                                                  &exchange->request.arena, &length)
                                  : NULL;
    exchange->verb = verb;
    return text ? exchange_begin(exchange, text, length) : MHD_NO;
}

static void exchange_call(struct exchange *exchange)
{
    struct server *server = exchange->server;
    struct request *request = &exchange->request;
    exchange->started = true;
    server->calls_count++;
    list_append(&server->calls, &exchange->link);
    int r = exchange_find_token(exchange);
    if (r < 0)
        request_reply_unread(request, r);
    else
        server->options.on_call(server->options.arg, request);
}

enum MHD_Result exchange_answer(struct exchange *exchange)
{
    exchange->state = EXCHANGE_ANSWERING;
    connection_move(exchange->connection, CONNECTION_WORK);
    if (exchange->page && exchange->request.status == 0)
        exchange_fill_page(exchange);
    else if (exchange->is_call)
        exchange_call(exchange);
    if (!exchange->is_call || exchange->request.replied)
        return exchange_queue(exchange);
    exchange->state = EXCHANGE_SUSPENDED;
    exchange_suspend(exchange);
    return MHD_YES;
}

enum MHD_Result exchange_take(struct exchange *exchange, const char *data, size_t *size)
{
    int r = exchange_body_add(exchange, data, *size);
    if (r < 0)
        return exchange_refuse_body(exchange, r);
    *size = 0;
    return MHD_YES;
}

enum MHD_Result exchange_step(void *arg, struct MHD_Connection *mhd, const char *path,
                              const char *verb, const char *version, const char *data, size_t *size,
                              void **context)
{
    struct exchange *exchange = *context;
    (void)arg;
    (void)path;
    (void)version;
    if (!exchange)
        return MHD_NO;
    switch (exchange->state) {
    case EXCHANGE_LINE:
        return exchange_begin_mhd(exchange, verb);
    case EXCHANGE_ASKED:
        return exchange_admit_end(exchange);
    case EXCHANGE_BODY:
        return *size == 0 ? exchange_answer(exchange) : exchange_take(exchange, data, size);
    case EXCHANGE_SUSPENDED:
        mhd_resumed(mhd);
        return exchange_queue(exchange);
    default:
        return MHD_NO;
    }
}

void exchange_end(void *arg, struct MHD_Connection *mhd, void **context,
                  enum MHD_RequestTerminationCode code)
{
    struct exchange *exchange = *context;
    (void)arg;
    (void)mhd;
    (void)code;
    *context = NULL;
    if (!exchange)
        return;
    if (exchange->connection->state != CONNECTION_CLOSING)
        connection_move(exchange->connection, CONNECTION_IDLE);
    exchange_leave(exchange);
}

// A handler that has not replied yet still holds the request: its reply frees it.
void exchange_leave(struct exchange *exchange)
{
    exchange->mhd = NULL;
    exchange->connection = NULL;
    if (!exchange->started || exchange->request.replied)
        exchange_free(exchange);
}

void exchanges_abandon(struct server *server)
{
    LIST_FOREACH(link, &server->calls)
    {
        struct exchange *exchange = LIST_ITEM(link, struct exchange, link);
        if ((exchange->state != EXCHANGE_SUSPENDED && exchange->state != EXCHANGE_ASKED) ||
            exchange->request.replied || !exchange->mhd)
            continue;
        exchange->state = EXCHANGE_DETACHED;
        MHD_resume_connection(exchange->mhd);
    }
}

void exchanges_forget(struct server *server)
{
    LIST_FOREACH(link, &server->calls)
    {
        struct exchange *exchange = LIST_ITEM(link, struct exchange, link);
        list_remove(link);
        exchange->server = NULL;
        exchange->request.intake = NULL;
        exchange->request.outgo = NULL;
        if (exchange->gzip) // its handler has replied
            exchange_free(exchange);
    }
}
