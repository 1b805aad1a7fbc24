// SPDX-License-Identifier: Apache-2.0
// Decodes events written by another release: fields in any order, unknown fields ignored.
#include "event_tolerant.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/id.h"
#include "base/json.h"
#include "base/text.h"
#include "event_fields.h"
#include "event_frame.h"

enum { HEADER_MAX = 1 << 20, NAME_LENGTH_MAX = 40 };

static const char frame_key[] = "\"frame\"";

struct json_span {
    size_t start;
    size_t length; // 0: not found
};

__attribute__((format(printf, 2, 3))) static int refuse(char *ret_reason, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(ret_reason, EVENT_REASON_SIZE, format, arguments);
    va_end(arguments);
    return -ERROR_INVALID_ARGUMENTS;
}

static int refuse_form(char *ret_reason, const char *part, const char *key)
{
    return refuse(ret_reason, "not in the form of an event: %s%s", part, key);
}

static size_t blanks_skip(const char *text, size_t length, size_t at)
{
    while (at < length && strchr(" \t\r\n", text[at]) && text[at] != '\0')
        at++;
    return at;
}

// The object that is the value of the key ending at `at`.
static struct json_span value_find(const char *text, size_t length, size_t at)
{
    at = blanks_skip(text, length, at);
    if (at == length || text[at] != ':')
        return (struct json_span){0};
    at = blanks_skip(text, length, at + 1);
    return (struct json_span){at, frame_object_span(text + at, length - at)};
}

// Finds the frame, a member of the top-level object. Other syntax errors are found when the rest is
// parsed.
static struct json_span frame_find(const char *text, size_t length)
{
    int depth = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '{' || text[i] == '[') {
            depth++;
        } else if (text[i] == '}' || text[i] == ']') {
            depth--;
        } else if (text[i] == '"') {
            size_t string = frame_string_span(text + i, length - i);
            if (string == 0)
                break;
            struct json_span value = {0};
            if (depth == 1 && string == strlen(frame_key) &&
                memcmp(text + i, frame_key, string) == 0)
                value = value_find(text, length, i + string);
            if (value.length > 0)
                return value;
            i += string - 1;
        }
    }
    return (struct json_span){0};
}

// Parses everything but the frame, whose bytes stay as they are.
static json_t *header_read(const char *data, size_t length, const struct json_span *frame)
{
    CLEANUP(buffer_done) struct buffer text = BUFFER(HEADER_MAX);
    json_t *header = NULL;
    size_t end = frame->start + frame->length;
    if (frame->length > 0) {
        buffer_append(&text, data, frame->start);
        buffer_append_text(&text, "{}");
    }
    buffer_append(&text, data + end, length - end);
    if (buffer_failed(&text) ||
        json_read(text.data, text.length, JSON_DEPTH_MAX, JSON_VALUES_ANY, &header) < 0)
        return NULL;
    if (json_is_object(header))
        return header;
    json_decref(header);
    return NULL;
}

static bool id_take(const json_t *value, const struct field *field, char *ret_id)
{
    const char *text = json_string_value(value);
    if (!text || strlen(text) >= EVENT_ID_SIZE)
        return false;
    memcpy(ret_id, text, strlen(text) + 1);
    return id_is_valid(ret_id, field->prefixes) ||
           (field->type == FIELD_ID_OR_EMPTY && ret_id[0] == '\0');
}

static bool note_take(const json_t *value, char *ret_name)
{
    const char *text = json_string_value(value);

    if (!text || strlen(text) >= EVENT_NOTE_SIZE)
        return false;
    memcpy(ret_name, text, strlen(text) + 1);
    return event_note_is_valid(ret_name);
}

static bool value_take(const json_t *value, const struct field *field, struct event *event)
{
    char *place = (char *)event + field->offset;
    switch (field->type) {
    case FIELD_ID:
    case FIELD_ID_OR_EMPTY:
        return id_take(value, field, place);
    case FIELD_INT:
        *(int64_t *)(void *)place = json_integer_value(value);
        return json_is_integer(value) && json_integer_value(value) >= 0 &&
               json_integer_value(value) <= WIRE_NUMBER_MAX;
    case FIELD_TS:
        return json_is_string(value) &&
               ts_parse(json_string_value(value), json_string_length(value),
                        (int64_t *)(void *)place) == 0;
    case FIELD_BOOL:
        *(bool *)place = json_is_true(value);
        return json_is_boolean(value);
    case FIELD_NOTE:
        return note_take(value, place);
    }
    return false;
}

static int fields_take(const json_t *object, const char *part, const struct field *fields,
                       struct event *event, char *ret_reason)
{
    for (const struct field *field = fields; field->key; field++) {
        const json_t *value = json_object_get(object, field->key);
        bool is_needed = (field->needed_by >> event->kind & 1) != 0;
        if (value ? !value_take(value, field, event) : is_needed)
            return refuse_form(ret_reason, part, field->key);
    }
    return 0;
}

static bool is_text(const json_t *value, const char *text)
{
    return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

static void channel_type_read(const json_t *frame, struct event *event)
{
    if (event->channel_id[0] == 'D')
        event->channel_type = CHANNEL_IM;
    else if (is_text(json_object_get(frame, "channel_type"), "mpim") ||
             is_text(json_object_get(frame, "type"), "mpim_marked"))
        event->channel_type = CHANNEL_MPIM;
    else
        event->channel_type = event->is_private ? CHANNEL_PRIVATE : CHANNEL_PUBLIC;
}

// Release 0.2.0 does not write the channel's type, `unread_only`, or whether a thread is followed:
// all are only in the frame. Only the frame's top-level members count: nested data, such as a
// message's metadata, is the author's. A frame that is not JSON yields nothing.
static void frame_fields_read(const json_t *header, struct event *event)
{
    CLEANUP_JSON json_t *frame = NULL;
    bool has_type = json_object_get(header, "channel_type") != NULL;
    bool has_unread_only = json_object_get(header, "unread_only") != NULL;
    if (has_type && has_unread_only)
        return;
    if (json_read(event->frame, event->frame_length, JSON_DEPTH_ANY, JSON_VALUES_ANY, &frame) < 0)
        frame = NULL;
    if (!has_unread_only)
        event->unread_only =
            event->kind == EVENT_MARK && is_text(json_object_get(frame, "type"), "unread_changed");
    if (has_type)
        return;
    channel_type_read(frame, event);
    const json_t *subscribed = json_object_get(frame, "subscribed");
    if (event->kind == EVENT_THREAD_FOLLOW && subscribed)
        event->member.active = json_is_true(subscribed);
}

static int header_take(const json_t *header, struct event *event, char *ret_reason)
{
    event->is_private = true; // the safe default: not revealed to non-members
    int r = fields_take(header, "", event_fields, event, ret_reason);
    event_channel_type_bound(event);
    if (r == 0 && event_kind_has_seq(event->kind) != (event->seq > 0))
        r = refuse_form(ret_reason, "", "seq");
    if (r == 0 && event_kind_has_head(event->kind))
        r = fields_take(json_object_get(header, "head"), "head.", event_head_fields, event,
                        ret_reason);
    if (r == 0 && event_kind_has_member(event->kind))
        r = fields_take(json_object_get(header, "member"), "member.", event_member_fields, event,
                        ret_reason);
    if (r == 0 && event_kind_has_note(event->kind))
        r = fields_take(json_object_get(header, "note"), "note.", event_note_fields, event,
                        ret_reason);
    if (r == 0)
        frame_fields_read(header, event);
    return r;
}

static int version_check(const json_t *header, char *ret_reason)
{
    const json_t *version = json_object_get(header, "v");
    if (json_integer_value(version) > WIRE_VERSION)
        return refuse(ret_reason, "of a later version: v=%" JSON_INTEGER_FORMAT,
                      json_integer_value(version));
    return json_integer_value(version) == WIRE_VERSION ? 0 : refuse_form(ret_reason, "", "v");
}

// Copies only the printable beginning of an unknown name.
static int kind_take(const json_t *header, enum event_kind *ret_kind, char *ret_reason)
{
    const char *name = json_string_value(json_object_get(header, "kind"));
    if (!name)
        return refuse_form(ret_reason, "", "kind");
    if (event_kind_parse(name, ret_kind) == 0)
        return 0;
    int length = 0;
    while (length < NAME_LENGTH_MAX && name[length] > ' ' && name[length] <= '~')
        length++;
    return refuse(ret_reason, "of an unknown kind: %.*s", length, name);
}

static void event_unrefp(struct event **event)
{
    event_unref(*event);
}

static int event_read(const json_t *header, const char *frame, size_t length,
                      struct event **ret_event, char *ret_reason)
{
    enum event_kind kind;
    int r = version_check(header, ret_reason);
    if (r == 0)
        r = kind_take(header, &kind, ret_reason);
    if (r < 0)
        return r;
    if (length == 0 || !text_is_utf8(frame, length))
        return refuse_form(ret_reason, "", "frame");
    char *copy = malloc(length);
    if (!copy)
        return -ERROR_MEMORY;
    memcpy(copy, frame, length);
    CLEANUP(event_unrefp) struct event *event = event_new(kind, copy, length);
    if (!event)
        return -ERROR_MEMORY;
    r = header_take(header, event, ret_reason);
    if (r == 0)
        *ret_event = TAKE(event);
    return r;
}

int event_decode_tolerant(const char *data, size_t length, struct event **ret_event,
                          char *ret_reason)
{
    struct json_span frame = frame_find(data, length);
    CLEANUP_JSON json_t *header = header_read(data, length, &frame);
    if (!header)
        return refuse_form(ret_reason, "", "no JSON object");
    return event_read(header, data + frame.start, frame.length, ret_event, ret_reason);
}
