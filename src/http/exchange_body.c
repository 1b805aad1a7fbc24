// SPDX-License-Identifier: Apache-2.0
// Parses the arguments of a call from its query and body. Finds the token first. The rest is parsed
// on request: on the loop if that is quick, else on the server's parser thread.
#include "exchange_body.h"

#include "base/check.h"
#include "base/error.h"
#include "base/json.h"
#include "base/metrics.h"
#include "charset.h"
#include "json_plain.h"

#include <string.h>
#include <strings.h>

// Limits for parsing on the loop: larger for bodies parsed without building a tree.
enum { FLAT_BYTES_MAX = 65536, TREE_BYTES_MAX = 4096, TREE_VALUES_MAX = 256 };

static bool type_is(const char *content_type, size_t length, const char *name)
{
    return strlen(name) == length && strncasecmp(content_type, name, length) == 0;
}

static enum body_type body_type(const char *content_type)
{
    if (!content_type || content_type[0] == '\0')
        return BODY_UNTYPED;
    size_t length = strcspn(content_type, "; \t");
    if (type_is(content_type, length, "application/json"))
        return BODY_JSON;
    if (type_is(content_type, length, "application/x-www-form-urlencoded") ||
        type_is(content_type, length, "text/plain"))
        return BODY_FORM;
    if (type_is(content_type, length, "multipart/form-data"))
        return BODY_MULTIPART;
    return BODY_UNKNOWN;
}

// Converts the body to UTF-8.
static int body_widen(struct exchange *exchange, enum body_type type)
{
    struct buffer wide;
    buffer_init(&wide, 2 * exchange->body.length + 1);
    charset_widen(exchange->body.data, exchange->body.length, type == BODY_FORM, &wide);
    buffer_done(&exchange->body);
    exchange->body = wide;
    return buffer_failed(&wide) ? -ERROR_MEMORY : 0;
}

static int body_decode(struct exchange *exchange)
{
    enum charset charset = charset_of(exchange->head.content_type);
    if (charset == CHARSET_UNKNOWN)
        return arguments_fail(&exchange->request.arguments, -ERROR_INVALID_CHARSET,
                              "the charset must be utf-8 or iso-8859-1");
    return charset == CHARSET_LATIN_1 ? body_widen(exchange, exchange->type) : 0;
}

// Converts the body to NUL-terminated UTF-8. Once.
static int body_prepare(struct exchange *exchange)
{
    if (exchange->is_text)
        return 0;
    exchange->type = body_type(exchange->head.content_type);
    int r = body_decode(exchange);
    if (r < 0)
        return r;
    exchange->is_text = true;
    exchange->text_length = exchange->body.length;
    buffer_append_byte(&exchange->body, '\0'); // there is room for one more byte
    return buffer_failed(&exchange->body) ? -ERROR_MEMORY : 0;
}

static int body_parse(struct exchange *exchange)
{
    struct arguments *arguments = &exchange->request.arguments;
    char *text = exchange->body.data;
    size_t length = exchange->text_length;
    exchange->is_read = true;
    switch (exchange->type) {
    case BODY_FORM:
        return arguments_add_form(arguments, text, length);
    case BODY_JSON:
        return arguments_add_json(arguments, text, length);
    case BODY_MULTIPART:
        return arguments_add_multipart(arguments, exchange->head.content_type, text, length);
    case BODY_UNTYPED:
        return arguments_fail(arguments, -ERROR_MISSING_POST_TYPE, "no content type");
    case BODY_UNKNOWN:
        break;
    }
    return arguments_fail(arguments, -ERROR_INVALID_POST_TYPE, "unknown content type");
}

// Parses the body if it is a JSON object of plain strings.
static int body_parse_plain(struct exchange *exchange)
{
    if (exchange->type != BODY_JSON)
        return 0;
    int r =
        json_plain_add(&exchange->request.arguments, exchange->body.data, exchange->text_length);
    exchange->is_read = r != 0;
    return r < 0 ? r : 0;
}

int exchange_find_token(struct exchange *exchange)
{
    struct request *request = &exchange->request;
    exchange->is_read = exchange->body.length == 0;
    int r = exchange->query
                ? arguments_add_form(&request->arguments, exchange->query, strlen(exchange->query))
                : 0;
    if (r < 0 || exchange->is_read || request->token[0] != '\0')
        return r;
    r = body_prepare(exchange);
    if (r < 0)
        return r;
    r = body_parse_plain(exchange);
    if (r < 0 || exchange->is_read)
        return r;
    if (exchange->type != BODY_JSON)
        return body_parse(exchange);
    const char *token =
        arguments_json_token(&request->arguments, exchange->body.data, exchange->text_length);
    if (token)
        request->token = token;
    return 0;
}

static bool body_is_light(const struct exchange *exchange)
{
    if (exchange->text_length > TREE_BYTES_MAX)
        return false;
    return exchange->type != BODY_JSON ||
           json_measure(exchange->body.data, exchange->text_length).values <= TREE_VALUES_MAX;
}

// Parses the body if that is quick.
static int body_read_light(struct exchange *exchange)
{
    if (exchange->is_read || exchange->body.length > FLAT_BYTES_MAX)
        return 0;
    int r = body_prepare(exchange);
    if (r < 0)
        return r;
    r = body_parse_plain(exchange);
    if (r < 0 || exchange->is_read)
        return r;
    return body_is_light(exchange) ? body_parse(exchange) : 0;
}

static void job_run(struct thread_job *job)
{
    struct exchange *exchange = LIST_ITEM(job, struct exchange, job);
    int r = exchange->is_read ? 0 : body_prepare(exchange);
    if (r >= 0 && !exchange->is_read)
        r = body_parse(exchange);
    if (r >= 0)
        arguments_parse_ahead(&exchange->request.arguments);
    exchange->read_r = r;
}

static void job_done(struct thread_job *job, int r)
{
    struct exchange *exchange = LIST_ITEM(job, struct exchange, job);
    struct request *request = &exchange->request;
    request->read_fn(request->read_arg, r < 0 ? r : exchange->read_r);
}

void exchange_load(struct request *request)
{
    struct exchange *exchange = CAST(exchange, request);
    int r = body_read_light(exchange);
    bool is_done = exchange->is_read && !arguments_are_heavy(&request->arguments);
    if (r < 0 || is_done) {
        request->read_fn(request->read_arg, r);
        return;
    }
    exchange->job.run = job_run;
    exchange->job.done = job_done;
    metric_add(METRIC_BODIES_PARSED_ASIDE, 1);
    job_thread_add(exchange->server->parser, &exchange->job);
}
