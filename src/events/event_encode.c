// SPDX-License-Identifier: Apache-2.0
// Encodes events for the log and for pub/sub.
#include "base/json_writer.h"
#include "event_fields.h"

static void field_encode(struct json_writer *w, const struct field *field,
                         const struct event *event)
{
    const void *value = (const char *)event + field->offset;
    switch (field->type) {
    case FIELD_ID:
    case FIELD_ID_OR_EMPTY:
    case FIELD_NOTE:
        json_key_string(w, field->key, value);
        return;
    case FIELD_INT:
        json_key_int(w, field->key, *(const int64_t *)value);
        return;
    case FIELD_TS:
        json_key_ts(w, field->key, *(const int64_t *)value);
        return;
    case FIELD_BOOL:
        json_key_bool(w, field->key, *(const bool *)value);
        return;
    }
}

static void fields_encode(struct json_writer *w, const struct field *fields,
                          const struct event *event)
{
    for (const struct field *field = fields; field->key; field++)
        field_encode(w, field, event);
}

static void part_encode(struct json_writer *w, const char *key, const struct field *fields,
                        const struct event *event)
{
    json_key(w, key);
    json_open_object(w);
    fields_encode(w, fields, event);
    json_close_object(w);
}

void event_encode(const struct event *event, struct buffer *out)
{
    struct json_writer w = json_writer_to(out);
    json_open_object(&w);
    json_key_int(&w, "v", WIRE_VERSION);
    json_key_string(&w, "kind", event_kind_name(event->kind));
    fields_encode(&w, event_fields, event);
    if (event_kind_has_head(event->kind))
        part_encode(&w, "head", event_head_fields, event);
    if (event_kind_has_member(event->kind))
        part_encode(&w, "member", event_member_fields, event);
    if (event_kind_has_note(event->kind))
        part_encode(&w, "note", event_note_fields, event);
    json_key(&w, "frame");
    json_raw(&w, event->frame, event->frame_length);
    json_close_object(&w);
}
