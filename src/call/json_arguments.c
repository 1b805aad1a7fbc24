// SPDX-License-Identifier: Apache-2.0
// Parses arguments from a JSON object. jansson decides on validity. What it would lose (digits of
// numbers, text of nested values) comes from the text itself, which a scan has split into its
// top-level values. Depth and number of values are checked before jansson sees the text.
#include "call/request_arguments.h"

#include "base/error.h"
#include "base/json.h"
#include "base/metrics.h"

#include <inttypes.h>
#include <string.h>

struct slice {
    const char *start;
    size_t length;
};

struct json_scan {
    struct slice values[ARGUMENTS_MAX]; // the top-level values, in order
    size_t count;
    const char *value;   // start of the current value, or NULL
    struct slice string; // the last top-level string; before a colon it is a name
    struct slice token;  // the value of the member "token", with its quotes
};

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';
}

// The closing quote of the string that begins at `quote`, or the last byte.
static const char *string_end(const char *quote, const char *end)
{
    const char *at = quote;
    while ((at = memchr(at + 1, '"', (size_t)(end - at - 1)))) {
        const char *before = at;
        while (before[-1] == '\\')
            before--;
        if ((at - before) % 2 == 0)
            return at;
    }
    return end - 1;
}

static int scan_value_ends(struct json_scan *scan, const char *end)
{
    const char *start = scan->value;
    if (!start)
        return 0;
    if (scan->count == ARGUMENTS_MAX)
        return -ERROR_INVALID_ARGUMENTS;
    while (start < end && is_blank(*start))
        start++;
    while (start < end && is_blank(end[-1]))
        end--;
    scan->values[scan->count++] = (struct slice){start, (size_t)(end - start)};
    if (scan->string.start && scan->string.length == 5 &&
        memcmp(scan->string.start, "token", 5) == 0)
        scan->token = scan->values[scan->count - 1];
    scan->value = NULL;
    return 0;
}

// Splits `text` into values. For invalid JSON the result is arbitrary; jansson rejects it
// afterwards.
static int scan_text(struct json_scan *scan, const char *text, size_t length)
{
    const char *end = text + length;
    int depth = 0;
    int r = 0;
    for (const char *at = text; at < end && r == 0; at++) {
        switch (*at) {
        case '"':
            if (depth == 1 && !scan->value)
                scan->string = (struct slice){at + 1, (size_t)(string_end(at, end) - at - 1)};
            at = string_end(at, end);
            break;
        case '{':
        case '[':
            depth++;
            break;
        case '}':
        case ']':
            if (depth == 1)
                r = scan_value_ends(scan, at);
            depth--;
            break;
        case ':':
            if (depth == 1)
                scan->value = at + 1;
            break;
        case ',':
            if (depth == 1)
                r = scan_value_ends(scan, at);
            break;
        default:
            break;
        }
    }
    return r;
}

static size_t digits_at(const char *text, size_t length)
{
    size_t count = 0;
    while (count < length && text[count] >= '0' && text[count] <= '9')
        count++;
    return count;
}

// Copies a number as written. One that looks like a ts is padded to six decimals: a client's JSON
// writer may have shortened 1717200000.123400 to 1717200000.1234.
static int number_text(struct arguments *arguments, struct slice value, struct argument *argument)
{
    size_t whole = digits_at(value.start, value.length);
    size_t length = value.length;
    if (whole == 10 && length > 11 && length < 17 && value.start[10] == '.' &&
        11 + digits_at(value.start + 11, length - 11) == length)
        length = 17;
    char *text = arena_alloc(arguments->arena, length + 1);
    if (!text)
        return -ERROR_MEMORY;
    memset(text, '0', length);
    memcpy(text, value.start, value.length);
    text[length] = '\0';
    argument->text = text;
    argument->length = length;
    return 0;
}

// Copies an array or object without the blanks between its tokens.
static int nested_text(struct arguments *arguments, struct slice value, struct argument *argument)
{
    char *text = arena_alloc(arguments->arena, value.length + 1);
    if (!text)
        return -ERROR_MEMORY;
    char *out = text;
    const char *end = value.start + value.length;
    for (const char *at = value.start; at < end; at++) {
        const char *last = *at == '"' ? string_end(at, end) : at;
        if (is_blank(*at))
            continue;
        memcpy(out, at, (size_t)(last - at) + 1);
        out += last - at + 1;
        at = last;
    }
    *out = '\0';
    argument->text = text;
    argument->length = (size_t)(out - text);
    argument->is_text = false;
    return 0;
}

static int member_add(struct arguments *arguments, const char *name, const json_t *json,
                      struct slice value)
{
    struct argument argument = {.name = name, .is_text = true};
    int r = 0;
    switch (json_typeof(json)) {
    case JSON_NULL:
        return 0;
    case JSON_STRING:
        argument.text = json_string_value(json);
        argument.length = json_string_length(json);
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        argument.text = json_is_true(json) ? "true" : "false";
        argument.length = strlen(argument.text);
        break;
    case JSON_INTEGER:
    case JSON_REAL:
        r = number_text(arguments, value, &argument);
        break;
    case JSON_OBJECT:
    case JSON_ARRAY:
        r = nested_text(arguments, value, &argument);
        break;
    }
    return r < 0 ? r : arguments_add(arguments, &argument);
}

static int json_parse(struct arguments *arguments, const char *text, size_t length)
{
    json_error_t error;
    arguments->json = json_loadb(
        text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &error);
    if (arguments->json)
        return 0;
    if (json_error_code(&error) == json_error_out_of_memory)
        return -ERROR_MEMORY;
    return arguments_fail(arguments, -ERROR_INVALID_JSON, "not valid JSON at line %d, column %d",
                          error.line, error.column);
}

// Runs before anything that recurses or takes time per value.
static int json_check_size(struct arguments *arguments, const char *text, size_t length)
{
    struct json_size size = json_measure(text, length);
    if (size.depth > JSON_DEPTH_MAX)
        return arguments_fail(arguments, -ERROR_INVALID_JSON, "nested more than %d deep",
                              JSON_DEPTH_MAX);
    if (size.values <= arguments->values_max)
        return 0;
    metric_add(METRIC_BODIES_VALUES, 1);
    return arguments_fail(arguments, -ERROR_INVALID_JSON, "more than %" PRId64 " JSON values",
                          arguments->values_max);
}

const char *arguments_json_token(struct arguments *arguments, const char *text, size_t length)
{
    struct json_scan scan = {0};
    if (scan_text(&scan, text, length) < 0 || scan.token.length < 2 || scan.token.start[0] != '"' ||
        memchr(scan.token.start, '\\', scan.token.length))
        return NULL;
    return arena_copy(arguments->arena, scan.token.start + 1, scan.token.length - 2);
}

// Adds the members of arguments->json, which was parsed from `text`.
static int members_add(struct arguments *arguments, const char *text, size_t length)
{
    struct json_scan scan;
    scan.count = 0;
    scan.value = NULL;
    scan.string = scan.token = (struct slice){0};
    int r = scan_text(&scan, text, length);
    if (r < 0)
        return arguments_fail(arguments, r, "more than %d arguments", ARGUMENTS_MAX);
    if (json_object_size(arguments->json) != scan.count)
        return -ERROR_INTERNAL;

    // jansson iterates over an object in the order of its text, like the scan.
    const char *name;
    json_t *value;
    size_t i = 0;
    json_object_foreach(arguments->json, name, value)
    {
        r = member_add(arguments, name, value, scan.values[i++]);
        if (r < 0)
            return r;
    }
    return 0;
}

int arguments_add_json(struct arguments *arguments, const char *text, size_t length)
{
    int r = json_check_size(arguments, text, length);
    if (r < 0)
        return r;
    r = json_parse(arguments, text, length);
    if (r < 0)
        return r;
    if (!json_is_object(arguments->json))
        return arguments_fail(arguments, -ERROR_JSON_NOT_OBJECT, "the body must be an object");
    return members_add(arguments, text, length);
}

int arguments_add_parsed(struct arguments *arguments, json_t *object, const char *text,
                         size_t length)
{
    arguments->json = json_incref(object);
    return members_add(arguments, text, length);
}
