// SPDX-License-Identifier: Apache-2.0
// One HTTP request within libmicrohttpd, which calls exchange_line() for the request line,
// exchange_step() when the head is complete, for each piece of the body, when all is there, and
// again after a resume; and exchange_end() when the reply is out or all is lost.
#include "exchange.h"
#include "head.h"

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
    buffer_done(&exchange->body);
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

// `target` may be gone afterwards.
static struct exchange *exchange_new(struct connection *connection, const char *target)
{
    struct server *server = connection->server;
    struct exchange *exchange = exchange_alloc(server);
    if (!exchange)
        return NULL;
    size_t length = strlen(target);
    request_init(&exchange->request, server->options.reply_max_bytes, exchange_send);
    list_init(&exchange->link);
    exchange->server = server;
    exchange->mhd = connection->mhd;
    exchange->connection = connection;
    exchange->line = (struct gate_line){.target_end = target + length};
    exchange->head = (struct gate_head){0};
    exchange->target = arena_copy(&exchange->request.arena, target, length);
    exchange->query = NULL;
    exchange->content_type = "application/json; charset=utf-8";
    exchange->allow = NULL;
    exchange->origin = NULL;
    exchange->is_preflight = false;
    exchange->page = NULL;
    buffer_init(&exchange->body, (size_t)server->options.body_max_bytes + 1);
    exchange->state = EXCHANGE_LINE;
    exchange->is_call = false;
    exchange->started = false;
    exchange->is_chunked = false;
    exchange->is_text = false;
    exchange->is_read = false;
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
        return arena_copy(&exchange->request.arena, given, strlen(given));
    hex_print(server->id_base, made);
    hex_print(++server->id_count, made + HEX_LENGTH);
    return arena_copy(&exchange->request.arena, made, sizeof made);
}

// Past libmicrohttpd, which has not read all of the head.
static void exchange_refuse_early(struct exchange *exchange, int status, const char *reason)
{
    exchange->request.id = exchange_id(exchange);
    metric_add(METRIC_HTTP_BAD_REQUESTS, 1);
    exchange_plain_error(exchange, status, "bad_request", reason);
    exchange_last_word(exchange);
}

void exchange_refuse_head(struct connection *connection, int status, const char *reason)
{
    struct exchange *exchange = exchange_new(connection, "");
    if (!exchange) {
        connection_free(connection);
        return;
    }
    exchange_refuse_early(exchange, status, reason);
    exchange_free(exchange);
}

// What is wrong with the headers of a request that the door has not seen, one of the later ones of
// its connection; `target` is followed by the version and what has come of the headers.
// libmicrohttpd's buffer begins with the request at hand each time and is zero behind what was
// received; half of its memory is enough to look at.
static const char *headers_scan(const struct connection *connection, const char *target)
{
    const char *end = connection->memory + SERVER_MEMORY_BYTES / 2;
    const char *version = target + strlen(target) + 1;
    const char *fields = version + strlen("HTTP/1.1") + 2;
    bool is_complete;
    // Each NUL was a blank, a CR or a LF. What is otherwise is the gate's to refuse.
    if (fields >= end || memcmp(version, "HTTP/1.", 7) != 0 || fields[-2] != '\0' ||
        fields[-1] != '\0')
        return NULL;
    return head_scan_fields(fields, strnlen(fields, (size_t)(end - fields)), &is_complete);
}

void *exchange_line(void *arg, const char *target, struct MHD_Connection *mhd)
{
    struct connection *connection = connection_of(mhd);
    struct exchange *exchange = exchange_new(connection, target);
    (void)arg;
    if (!exchange)
        return NULL;
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

// The origin of the page that calls, when it is one whose pages may.
static int exchange_keep_origin(struct exchange *exchange)
{
    const char *origin = exchange->head.origin;
    if (!origin || !cors_is_listed(exchange->server->options.cors_origins, origin))
        return 0;
    exchange->origin = arena_copy(&exchange->request.arena, origin, strlen(origin));
    return exchange->origin ? 0 : -ERROR_MEMORY;
}

// Copies from libmicrohttpd's memory what a handler may want when libmicrohttpd is gone.
static int exchange_keep(struct exchange *exchange)
{
    struct request *request = &exchange->request;
    const struct gate_head *head = &exchange->head;
    const char *token = bearer_token(head->authorization);
    const char *key = head->idempotency_key ? head->idempotency_key : "";
    const char *host = head->host ? head->host : "";
    const char *id = exchange_id(exchange);
    token = arena_copy(&request->arena, token, strlen(token));
    key = arena_copy(&request->arena, key, strlen(key));
    host = arena_copy(&request->arena, host, strlen(host));
    if (!id || !token || !key || !host)
        return -ERROR_MEMORY;
    request->id = id;
    request->token = token;
    request->idempotency_key = key;
    request->host = host;
    request->http_errors = head->errors && strcasecmp(head->errors, "http") == 0;
    return exchange_keep_origin(exchange);
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

static bool page_is_at(const struct page *page, const char *path)
{
    size_t length = strlen(page->path);
    if (page->path[length - 1] == '*')
        return strncmp(page->path, path, length - 1) == 0;
    return strcmp(page->path, path) == 0;
}

static const struct page *page_find(const struct server *server, const char *path)
{
    for (const struct page *page = server->pages; page; page = page->next) {
        if (page_is_at(page, path))
            return page;
    }
    return NULL;
}

// Finds what answers: a method, a page, or the reply that there is none. Cuts the query off the
// target.
static int exchange_route(struct exchange *exchange)
{
    char *path = arena_copy(&exchange->request.arena, exchange->target, strlen(exchange->target));
    if (!path)
        return -ERROR_MEMORY;
    exchange->query = strchr(path, '?');
    if (exchange->query)
        *exchange->query++ = '\0';
    const char *verb = verb_static(exchange->line.verb);

    bool is_call = strncmp(path, "/api/", 5) == 0;
    exchange->page = is_call ? NULL : page_find(exchange->server, path);
    const char *method = is_call ? path + 4 + strspn(path + 4, "/") : "";
    exchange->request.method = is_plain(method, METHOD_LENGTH_MAX) ? method : "";
    if (!exchange->page && !is_call) {
        exchange_plain_error(exchange, 404, "not_found", NULL);
    } else if (exchange->origin && strcmp(exchange->line.verb, "OPTIONS") == 0) {
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
    return 0;
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
    // Digits and no more than fit into 64 bits: libmicrohttpd has seen to that.
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
    exchange->connection->is_unread = false;
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
    MHD_suspend_connection(exchange->mhd);
    return MHD_YES;
}

static enum MHD_Result exchange_admit_end(struct exchange *exchange)
{
    exchange_set_timeout(exchange, 0);
    int r = exchange_ask_end(exchange);
    return r < 0 ? exchange_refuse_body(exchange, r) : exchange_let_in(exchange);
}

// The head is complete.
static enum MHD_Result exchange_begin(struct exchange *exchange)
{
    const char *reason = gate_target_is_fine(exchange->target)
                             ? gate_check(exchange->mhd, &exchange->line, &exchange->head)
                             : "a malformed target";
    if (exchange_keep(exchange) < 0)
        return MHD_NO;
    if (reason)
        return exchange_refuse(exchange, reason);
    if (exchange->server->options.on_takeover &&
        door_is_takeover(exchange->target, strlen(exchange->target))) {
        exchange_hand_over(exchange);
        return MHD_YES;
    }
    if (exchange_route(exchange) < 0)
        return MHD_NO;
    if (exchange_read_length(exchange) < 0)
        return exchange_too_large(exchange);
    return exchange_admit(exchange);
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

// All of the request is there.
static enum MHD_Result exchange_answer(struct exchange *exchange)
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
    MHD_suspend_connection(exchange->mhd);
    return MHD_YES;
}

// A piece of the body is there.
static enum MHD_Result exchange_take(struct exchange *exchange, const char *data, size_t *size)
{
    int r = exchange_body_add(exchange, data, *size);
    if (r < 0)
        return exchange_refuse_body(exchange, r);
    *size = 0;
    exchange->connection->is_unread = false;
    return MHD_YES;
}

enum MHD_Result exchange_step(void *arg, struct MHD_Connection *mhd, const char *path,
                              const char *verb, const char *version, const char *data, size_t *size,
                              void **context)
{
    struct exchange *exchange = *context;
    (void)arg;
    (void)mhd;
    (void)path;
    if (!exchange)
        return MHD_NO;
    switch (exchange->state) {
    case EXCHANGE_LINE:
        exchange->line.verb = verb;
        exchange->line.version = version;
        return exchange_begin(exchange);
    case EXCHANGE_ASKED:
        return exchange_admit_end(exchange);
    case EXCHANGE_BODY:
        return *size == 0 ? exchange_answer(exchange) : exchange_take(exchange, data, size);
    case EXCHANGE_SUSPENDED:
        exchange_set_timeout(exchange, 0); // those with one are looked at in each run
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
    exchange->mhd = NULL;
    exchange->connection = NULL;
    // A handler that has not replied yet still holds the request: its reply frees it.
    if (!exchange->started || exchange->request.replied)
        exchange_free(exchange);
}

void exchanges_abandon(struct server *server)
{
    LIST_FOREACH(link, &server->calls)
    {
        struct exchange *exchange = LIST_ITEM(link, struct exchange, link);
        if ((exchange->state != EXCHANGE_SUSPENDED && exchange->state != EXCHANGE_ASKED) ||
            exchange->request.replied)
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
    }
}
