// SPDX-License-Identifier: Apache-2.0
// The frame is never parsed: it is taken over byte by byte once it is known to be one JSON object.
#include <jansson.h>
#include <string.h>

#include "base/error.h"
#include "base/id.h"
#include "base/json.h"
#include "base/text.h"
#include "event_fields.h"

enum { HEADER_MAX = 4096, FRAME_DEPTH_MAX = 80 };

// Numbers go through Redis' Lua, where they are doubles: above it they would lose digits.
static const int64_t number_max = ((int64_t)1 << 53) - 1;

static bool text_decode(const struct field *field, const json_t *json, char *ret_text)
{
    if (!json_is_string(json))
        return false;
    size_t length = json_string_length(json);
    const char *text = json_string_value(json);
    bool valid =
        field->type == FIELD_TEXT ? length < field->size : id_is_valid(text, field->prefixes);
    if (!valid && !(field->type == FIELD_ID_OR_EMPTY && length == 0))
        return false;
    memcpy(ret_text, text, length + 1);
    return true;
}

static bool int_decode(const json_t *json, int64_t *ret_number)
{
    if (!json_is_integer(json))
        return false;
    *ret_number = json_integer_value(json);
    return *ret_number >= 0 && *ret_number <= number_max;
}

static bool field_decode(const struct field *field, const json_t *object, struct event *event)
{
    const json_t *json = json_object_get(object, field->key);
    void *value = (char *)event + field->offset;
    switch (field->type) {
    case FIELD_ID:
    case FIELD_ID_OR_EMPTY:
    case FIELD_TEXT:
        return text_decode(field, json, value);
    case FIELD_INT:
        return int_decode(json, value);
    case FIELD_TS:
        return json_is_string(json) &&
               ts_parse(json_string_value(json), json_string_length(json), value) == 0;
    case FIELD_BOOL:
        *(bool *)value = json_is_true(json);
        return json_is_boolean(json);
    }
    return false;
}

static bool fields_decode(const struct field *fields, const json_t *object, struct event *event)
{
    for (const struct field *field = fields; field->key; field++)
        if (!field_decode(field, object, event))
            return false;
    return true;
}

static bool header_decode(const json_t *header, struct event *event)
{
    const char *kind = json_string_value(json_object_get(header, "kind"));
    int64_t version;
    if (!int_decode(json_object_get(header, "v"), &version) || version != WIRE_VERSION || !kind ||
        event_kind_parse(kind, &event->kind) < 0 || !fields_decode(event_fields, header, event))
        return false;
    if (event_kind_has_seq(event->kind) != (event->seq > 0))
        return false;
    if (event_kind_has_head(event->kind) &&
        !fields_decode(event_head_fields, json_object_get(header, "head"), event))
        return false;
    return !event_kind_has_member(event->kind) ||
           fields_decode(event_member_fields, json_object_get(header, "member"), event);
}

// Parses the header: `length` bytes, and the brace that closes it.
static int header_load(const char *data, size_t length, json_t **ret_header)
{
    char text[HEADER_MAX];
    if (length >= sizeof text)
        return -ERROR_INVALID_ARGUMENTS;
    memcpy(text, data, length);
    text[length] = '}';
    *ret_header = json_loadb(text, length + 1, JSON_REJECT_DUPLICATES, NULL);
    return json_is_object(*ret_header) ? 0 : -ERROR_INVALID_ARGUMENTS;
}

// The length of the string at the start of `text`, both quotes included; 0 when it does not end or
// holds a control byte.
static size_t string_length(const char *text, size_t length)
{
    for (size_t i = 1; i < length; i++) {
        if (text[i] == '"')
            return i + 1;
        if ((unsigned char)text[i] < 0x20)
            return 0;
        if (text[i] == '\\')
            i++;
    }
    return 0;
}

// Whether the bytes are one object whose brackets and strings all close, and nothing after it: then
// a frame can neither end early nor run on, whatever it says.
static bool frame_is_object(const char *text, size_t length)
{
    char open[FRAME_DEPTH_MAX];
    size_t depth = 0;
    if (length < 2 || text[0] != '{' || !text_is_utf8(text, length))
        return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"') {
            size_t string = string_length(text + i, length - i);
            if (string == 0)
                return false;
            i += string - 1;
        } else if (text[i] == '{' || text[i] == '[') {
            if (depth == sizeof open)
                return false;
            open[depth++] = text[i] == '{' ? '}' : ']';
        } else if (text[i] == '}' || text[i] == ']') {
            if (open[--depth] != text[i])
                return false;
            if (depth == 0)
                return i == length - 1;
        }
    }
    return false;
}

static void event_unrefp(struct event **event)
{
    event_unref(*event);
}

int event_decode(const char *data, size_t length, struct event **ret_event)
{
    const char *mark = memmem(data, length, WIRE_FRAME_MARK, strlen(WIRE_FRAME_MARK));
    if (!mark || data[length - 1] != '}')
        return -ERROR_INVALID_ARGUMENTS;
    const char *frame = mark + strlen(WIRE_FRAME_MARK);
    size_t frame_length = length - (size_t)(frame - data);
    if (frame_length-- == 0 || !frame_is_object(frame, frame_length))
        return -ERROR_INVALID_ARGUMENTS;

    CLEANUP_JSON json_t *header = NULL;
    int r = header_load(data, (size_t)(mark - data), &header);
    if (r < 0)
        return r;
    char *copy = malloc(frame_length);
    if (!copy)
        return -ERROR_MEMORY;
    memcpy(copy, frame, frame_length);
    CLEANUP(event_unrefp) struct event *event = event_new(EVENT_POST, copy, frame_length);
    if (!event)
        return -ERROR_MEMORY;
    if (!header_decode(header, event))
        return -ERROR_INVALID_ARGUMENTS;
    *ret_event = TAKE(event);
    return 0;
}
