// SPDX-License-Identifier: Apache-2.0
// Writes the JSON frames of channel events.
#include "chat/frame.h"

#include "base/json.h"
#include "events/event_type.h"

#include <string.h>

static void common_write(struct json_writer *w, const struct frame_context *context)
{
    json_key_string(w, "channel", context->channel_id);
    json_key_string(w, "channel_type", channel_type_name(context->type));
    json_key_ts(w, "event_ts", context->event_ts);
    json_key_int(w, "seq", context->seq);
}

static void post_write(struct json_writer *w, const struct frame_context *context,
                       const struct message *message)
{
    message_write_members(w, message, context->workspace_id);
    common_write(w, context);
}

// An edit or delete: the message as it is now, and its previous content as far as known.
static void change_write(struct json_writer *w, const struct frame_context *context,
                         const struct message *message, bool is_delete)
{
    struct message previous = *message;

    json_key_string(w, "type", "message");
    json_key_string(w, "subtype", is_delete ? "message_deleted" : "message_changed");
    json_key_bool(w, "hidden", true);
    json_key_ts(w, "ts", context->event_ts);
    common_write(w, context);
    if (is_delete) {
        json_key_ts(w, "deleted_ts", message->ts);
    } else {
        json_key(w, "message");
        message_write(w, message, context->workspace_id);
    }
    if (!context->previous_text)
        return;
    previous.text = context->previous_text;
    previous.text_length = context->previous_length;
    previous.extra = context->previous_extra;
    previous.extra_length = context->previous_extra_length;
    previous.deleted = false;
    previous.edited_ts = 0;
    json_key(w, "previous_message");
    message_write(w, &previous, context->workspace_id);
}

static void membership_write(struct json_writer *w, enum event_kind kind,
                             const struct frame_context *context, const struct message *message)
{
    static const char *const letters[CHANNEL_TYPE_MAX] = {"C", "G", "G", "D"};

    json_key_string(w, "type", event_type(kind, context->type));
    json_key_string(w, "user", context->actor);
    json_key_string(w, "channel", context->channel_id);
    json_key_string(w, "channel_type", letters[context->type]);
    json_key_string(w, "team", context->workspace_id);
    json_key_ts(w, "event_ts", context->event_ts);
    json_key_int(w, "seq", context->seq);
    if (message->extra_length > 2) { // {"inviter":"U…"}
        buffer_append_byte(w->out, ',');
        buffer_append(w->out, message->extra + 1, message->extra_length - 2);
    }
}

static void archive_write(struct json_writer *w, enum event_kind kind,
                          const struct frame_context *context)
{
    json_key_string(w, "type", event_type(kind, context->type));
    json_key_string(w, "user", context->actor);
    common_write(w, context);
}

// {"name":"…","old_name":"…"}
static void names_write(struct json_writer *w, const struct message *message)
{
    CLEANUP_JSON json_t *names = NULL;

    if (json_read(message->extra, message->extra_length, JSON_DEPTH_ANY, JSON_VALUES_ANY, &names) <
        0)
        return;
    const char *name = json_string_value(json_object_get(names, "name"));
    const char *old_name = json_string_value(json_object_get(names, "old_name"));
    json_key_string(w, "name", name ? name : "");
    json_key_string(w, "name_normalized", name ? name : "");
    json_key_string(w, "old_name", old_name ? old_name : "");
}

// Slack sends `channel` as an object here. Groups get no `created`: Slack's Go client expects a
// string there, other clients a number.
static void rename_write(struct json_writer *w, const struct frame_context *context,
                         const struct message *message)
{
    bool is_public = context->type == CHANNEL_PUBLIC;

    json_key_string(w, "type", event_type(EVENT_RENAME, context->type));
    json_key(w, "channel");
    json_open_object(w);
    json_key_string(w, "id", context->channel_id);
    names_write(w, message);
    json_key_bool(w, "is_channel", is_public);
    json_key_bool(w, "is_group", !is_public);
    if (is_public)
        json_key_int(w, "created", context->created);
    json_close_object(w);
    json_key_string(w, "user", context->actor);
    json_key_ts(w, "event_ts", context->event_ts);
    json_key_int(w, "seq", context->seq);
}

void frame_write_created(struct buffer *out, const struct frame_channel *channel)
{
    struct json_writer w = json_writer_to(out);

    json_open_object(&w);
    json_key_string(
        &w, "type",
        event_type(EVENT_CREATED, channel->is_private ? CHANNEL_PRIVATE : CHANNEL_PUBLIC));
    json_key(&w, "channel");
    json_open_object(&w);
    json_key_string(&w, "id", channel->id);
    json_key_string(&w, "name", channel->name);
    json_key_string(&w, "name_normalized", channel->name);
    json_key_bool(&w, "is_channel", !channel->is_private);
    json_key_bool(&w, "is_private", channel->is_private);
    json_key_int(&w, "created", channel->created);
    json_key_string(&w, "creator", channel->creator);
    json_close_object(&w);
    json_key_ts(&w, "event_ts", channel->created * 1000000);
    json_close_object(&w);
}

void frame_write_ephemeral(struct buffer *out, const struct frame_context *context,
                           const struct message *message)
{
    struct json_writer w = json_writer_to(out);

    json_open_object(&w);
    message_write_members(&w, message, context->workspace_id);
    json_key_bool(&w, "is_ephemeral", true);
    json_key_string(&w, "channel", context->channel_id);
    json_key_string(&w, "channel_type", channel_type_name(context->type));
    json_key_ts(&w, "event_ts", context->event_ts);
    json_close_object(&w);
}

const char *frame_write_thread(struct buffer *out, enum event_kind kind,
                               const struct result *result, int row, int column)
{
    const char *type = event_type_of_thread(kind, result_bool(result, row, column));
    struct json_writer w = json_writer_to(out);

    json_open_object(&w);
    json_key_string(&w, "type", type);
    buffer_append_byte(out, ',');
    buffer_append(out, result_text(result, row, column + 1),
                  result_length(result, row, column + 1));
    json_close_object(&w);
    return type;
}

// The members of the object `data`, which is Tidings' own; nothing of what is no object. A pin's
// end with its item, which gets the message as it is now.
static void note_members_write(struct json_writer *w, const struct frame_context *context,
                               const struct message *message)
{
    CLEANUP_JSON json_t *object = NULL;
    const char *data = context->note_data;
    size_t length = context->note_data_length;

    if (json_read(data, length, JSON_DEPTH_MAX, JSON_VALUES_ANY, &object) < 0 ||
        !json_is_object(object) || json_object_size(object) == 0)
        return;
    bool is_pin = strncmp(context->note, "pin_", 4) == 0 && data[length - 2] == '}';
    bool has_message = is_pin && message->user_id[0] != '\0' && !message->deleted;
    buffer_append_byte(w->out, ',');
    buffer_append(w->out, data + 1, length - 2 - has_message);
    if (!has_message)
        return;
    buffer_append_text(w->out, ",\"message\":");
    struct json_writer of_message = json_writer_to(w->out);
    message_write(&of_message, message, context->workspace_id);
    buffer_append_byte(w->out, '}');
}

static void note_write(struct json_writer *w, const struct frame_context *context,
                       const struct message *message)
{
    json_key_string(w, "type", context->note);
    note_members_write(w, context, message);
    common_write(w, context);
}

void frame_write(struct buffer *out, enum event_kind kind, const struct frame_context *context,
                 const struct message *message)
{
    struct json_writer w = json_writer_to(out);

    json_open_object(&w);
    switch (kind) {
    case EVENT_EDIT:
        change_write(&w, context, message, false);
        break;
    case EVENT_DELETE:
        change_write(&w, context, message, true);
        break;
    case EVENT_JOIN:
    case EVENT_LEAVE:
        membership_write(&w, kind, context, message);
        break;
    case EVENT_ARCHIVE:
    case EVENT_UNARCHIVE:
        archive_write(&w, kind, context);
        break;
    case EVENT_RENAME:
        rename_write(&w, context, message);
        break;
    case EVENT_NOTE:
        note_write(&w, context, message);
        break;
    default:
        post_write(&w, context, message);
        break;
    }
    json_close_object(&w);
}
