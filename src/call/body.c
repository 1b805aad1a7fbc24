// SPDX-License-Identifier: Apache-2.0
// Turns a body into UTF-8 text, then into arguments. Finds the token first; the rest is parsed on
// request.
#include "call/body.h"

#include "charset.h"
#include "json_plain.h"

#include "base/error.h"
#include "base/json.h"

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

// Of a webhook's body. Many tools and scripts send JSON as another type: its first character tells.
static enum body_type webhook_body_type(const struct body *body)
{
    const char *text = body->bytes.data;
    size_t length = body->bytes.length;
    while (length > 0 && strchr(" \t\r\n", *text)) {
        text++;
        length--;
    }
    if (length > 0 && *text == '{')
        return BODY_JSON;
    enum body_type type = body_type(body->content_type);
    return type == BODY_MULTIPART ? BODY_MULTIPART : BODY_FORM;
}

// Converts the body to UTF-8.
static int body_widen(struct body *body)
{
    struct buffer wide;
    buffer_init(&wide, 2 * body->bytes.length + 1);
    charset_widen(body->bytes.data, body->bytes.length, body->type == BODY_FORM, &wide);
    buffer_done(&body->bytes);
    body->bytes = wide;
    return buffer_failed(&wide) ? -ERROR_MEMORY : 0;
}

static int body_decode(struct body *body, struct request *request)
{
    enum charset charset = charset_of(body->content_type);
    if (charset == CHARSET_UNKNOWN)
        return arguments_fail(&request->arguments, -ERROR_INVALID_CHARSET,
                              "the charset must be utf-8 or iso-8859-1");
    return charset == CHARSET_LATIN_1 ? body_widen(body) : 0;
}

// Converts the body to NUL-terminated UTF-8. Once.
static int body_prepare(struct body *body, struct request *request)
{
    if (body->is_text)
        return 0;
    body->type = request->is_webhook ? webhook_body_type(body) : body_type(body->content_type);
    int r = body_decode(body, request);
    if (r < 0)
        return r;
    body->is_text = true;
    body->length = body->bytes.length;
    buffer_append_byte(&body->bytes, '\0'); // there is room for one more byte
    return buffer_failed(&body->bytes) ? -ERROR_MEMORY : 0;
}

static int body_parse_type(struct body *body, struct arguments *arguments)
{
    char *text = body->bytes.data;
    size_t length = body->length;
    switch (body->type) {
    case BODY_FORM:
        return arguments_add_form(arguments, text, length);
    case BODY_JSON:
        return arguments_add_json(arguments, text, length);
    case BODY_MULTIPART:
        return arguments_add_multipart(arguments, body->content_type, text, length);
    case BODY_UNTYPED:
        return arguments_fail(arguments, -ERROR_MISSING_POST_TYPE, "no content type");
    case BODY_UNKNOWN:
        break;
    }
    return arguments_fail(arguments, -ERROR_INVALID_POST_TYPE, "unknown content type");
}

// A webhook's form has the message as JSON in the field `payload`.
static int payload_parse(struct arguments *arguments)
{
    const struct argument *payload = arguments_find(arguments, "payload");
    if (!payload)
        return arguments_fail(arguments, -ERROR_INVALID_FORM_DATA,
                              "payload: must be there, in a body that is no JSON");
    return arguments_add_json(arguments, payload->text, payload->length);
}

static int body_parse(struct body *body, struct request *request)
{
    struct arguments *arguments = &request->arguments;
    body->is_read = true;
    int r = body_parse_type(body, arguments);
    if (r >= 0 && request->is_webhook && body->type != BODY_JSON)
        r = payload_parse(arguments);
    return r;
}

// Parses the body if it is a JSON object of plain strings.
static int body_parse_plain(struct body *body, struct request *request)
{
    if (body->type != BODY_JSON)
        return 0;
    int r = json_plain_add(&request->arguments, body->bytes.data, body->length);
    body->is_read = r != 0;
    return r < 0 ? r : 0;
}

int body_find_token(struct body *body, struct request *request, char *query)
{
    struct arguments *arguments = &request->arguments;
    body->is_read = body->bytes.length == 0;
    int r = query ? arguments_add_form(arguments, query, strlen(query)) : 0;
    if (r < 0 || body->is_read || request->token[0] != '\0')
        return r;
    r = body_prepare(body, request);
    if (r < 0)
        return r;
    r = body_parse_plain(body, request);
    if (r < 0 || body->is_read)
        return r;
    if (body->type != BODY_JSON)
        return body_parse(body, request);
    const char *token = arguments_json_token(arguments, body->bytes.data, body->length);
    if (token)
        request->token = token;
    return 0;
}

static bool body_is_light(const struct body *body)
{
    if (body->length > TREE_BYTES_MAX)
        return false;
    return body->type != BODY_JSON ||
           json_measure(body->bytes.data, body->length).values <= TREE_VALUES_MAX;
}

static int body_parse_light(struct body *body, struct request *request)
{
    if (body->is_read || body->bytes.length > FLAT_BYTES_MAX)
        return 0;
    int r = body_prepare(body, request);
    if (r < 0)
        return r;
    r = body_parse_plain(body, request);
    if (r < 0 || body->is_read)
        return r;
    return body_is_light(body) ? body_parse(body, request) : 0;
}

int body_read_light(struct body *body, struct request *request, bool *ret_done)
{
    int r = body_parse_light(body, request);
    *ret_done = body->is_read && !arguments_are_heavy(&request->arguments);
    return r;
}

int body_read(struct body *body, struct request *request)
{
    int r = body->is_read ? 0 : body_prepare(body, request);
    if (r >= 0 && !body->is_read)
        r = body_parse(body, request);
    if (r >= 0)
        arguments_parse_ahead(&request->arguments);
    return r;
}
