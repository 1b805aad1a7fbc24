// SPDX-License-Identifier: Apache-2.0
// The body of a request, and the arguments that query and body make together.
#include "exchange.h"

#include "base/error.h"
#include "charset.h"
#include "json_plain.h"

#include <string.h>
#include <strings.h>

enum body_type { BODY_UNTOLD, BODY_UNKNOWN, BODY_FORM, BODY_JSON, BODY_MULTIPART };

int exchange_body_add(struct exchange *exchange, const char *data, size_t size)
{
    if (exchange->body.length + size > (size_t)exchange->server->options.body_max_bytes)
        return -ERROR_REQUEST_TOO_LARGE;
    buffer_append(&exchange->body, data, size);
    return 0;
}

bool exchange_body_is_too_large(const struct exchange *exchange)
{
    // Digits and no more than fit into 64 bits: libmicrohttpd has seen to that.
    const char *digits = exchange->head.content_length;
    if (!digits)
        return false;
    uint64_t length = 0;
    for (; *digits != '\0'; digits++) {
        length = length * 10 + (uint64_t)(*digits - '0');
        if (length > (uint64_t)exchange->server->options.body_max_bytes)
            return true;
    }
    return false;
}

static bool type_is(const char *content_type, size_t length, const char *name)
{
    return strlen(name) == length && strncasecmp(content_type, name, length) == 0;
}

static enum body_type body_type(const char *content_type)
{
    if (!content_type || content_type[0] == '\0')
        return BODY_UNTOLD;
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

static int json_arguments(struct arguments *arguments, char *body, size_t length)
{
    int r = arguments_add_plain_json(arguments, body, length);
    if (r != 0)
        return r < 0 ? r : 0;
    return arguments_add_json(arguments, body, length);
}

// Makes the body UTF-8.
static int body_widen(struct exchange *exchange, enum body_type type)
{
    struct buffer wide;
    buffer_init(&wide, 2 * exchange->body.length + 1);
    charset_widen(exchange->body.data, exchange->body.length, type == BODY_FORM, &wide);
    buffer_done(&exchange->body);
    exchange->body = wide;
    return buffer_failed(&wide) ? -ERROR_MEMORY : 0;
}

static int body_decode(struct exchange *exchange, enum body_type type)
{
    enum charset charset = charset_of(exchange->head.content_type);
    if (charset == CHARSET_UNKNOWN)
        return arguments_fail(&exchange->request.arguments, -ERROR_INVALID_CHARSET,
                              "the charset must be utf-8 or iso-8859-1");
    return charset == CHARSET_LATIN_1 ? body_widen(exchange, type) : 0;
}

static int body_arguments(struct exchange *exchange)
{
    struct arguments *arguments = &exchange->request.arguments;
    enum body_type type = body_type(exchange->head.content_type);
    int r = body_decode(exchange, type);
    if (r < 0)
        return r;
    size_t length = exchange->body.length;
    buffer_append_byte(&exchange->body, '\0'); // one byte is kept free for it
    if (buffer_failed(&exchange->body))
        return -ERROR_MEMORY;
    char *body = exchange->body.data;
    switch (type) {
    case BODY_FORM:
        return arguments_add_form(arguments, body, length);
    case BODY_JSON:
        return json_arguments(arguments, body, length);
    case BODY_MULTIPART:
        return arguments_add_multipart(arguments, exchange->head.content_type, body, length);
    case BODY_UNTOLD:
        return arguments_fail(arguments, -ERROR_MISSING_POST_TYPE, "no content type");
    case BODY_UNKNOWN:
        break;
    }
    return arguments_fail(arguments, -ERROR_INVALID_POST_TYPE, "unknown content type");
}

int exchange_arguments(struct exchange *exchange)
{
    char *query = exchange->query;
    if (query) {
        int r = arguments_add_form(&exchange->request.arguments, query, strlen(query));
        if (r < 0)
            return r;
    }
    return exchange->body.length == 0 ? 0 : body_arguments(exchange);
}
