// SPDX-License-Identifier: Apache-2.0
// Reads messages from rows and writes them as JSON.
#include "chat/message.h"

#include <string.h>

void message_read(const struct result *result, int row, int column, struct message *ret_message)
{
    int c = column;

    *ret_message = (struct message){
        .ts = result_int(result, row, c),
        .seq = result_int(result, row, c + 1),
        .ord = result_int(result, row, c + 2),
        .user_id = result_text(result, row, c + 3),
        .bot_id = result_text(result, row, c + 4),
        .subtype = result_text(result, row, c + 5),
        .text = result_text(result, row, c + 6),
        .text_length = result_length(result, row, c + 6),
        .extra = result_text(result, row, c + 7),
        .extra_length = result_length(result, row, c + 7),
        .thread_ts = result_int(result, row, c + 8),
        .parent_user = result_text(result, row, c + 9),
        .broadcast = result_bool(result, row, c + 10),
        .client_msg_id = result_text(result, row, c + 11),
        .edited_ts = result_int(result, row, c + 12),
        .edited_by = result_text(result, row, c + 13),
        .deleted = result_bool(result, row, c + 14),
        .counted = result_bool(result, row, c + 15),
        .reply_count = result_int(result, row, c + 16),
        .latest_reply = result_int(result, row, c + 17),
        .reply_users = result_text(result, row, c + 18),
        .root_text = result_text(result, row, c + 19),
        .reply_users_count = result_int(result, row, c + 20),
        .bot_app_id = result_text(result, row, c + 21),
        .bot_name = result_text(result, row, c + 22),
        .bot_updated = result_int(result, row, c + 23),
        .notes = result_text(result, row, c + 24),
        .notes_length = result_length(result, row, c + 24),
    };
}

void message_read_reader(const struct result *result, int row, int column, struct message *message)
{
    message->has_reader = true;
    message->subscribed = result_bool(result, row, column);
    message->last_read = result_int(result, row, column + 1);
    message->unread_count = result_int(result, row, column + 2);
}

// "U1,U2" as an array.
static void users_write(struct json_writer *w, const char *users)
{
    json_open_array(w);
    while (*users != '\0') {
        size_t length = strcspn(users, ",");
        json_string_n(w, users, length);
        users += length + (users[length] == ',');
    }
    json_close_array(w);
}

static void reader_write(struct json_writer *w, const struct message *message)
{
    json_key_bool(w, "subscribed", message->subscribed);
    if (!message->subscribed)
        return;
    json_key_ts(w, "last_read", message->last_read);
    json_key_int(w, "unread_count", message->unread_count);
}

static void thread_write(struct json_writer *w, const struct message *message)
{
    if (message->thread_ts != 0) {
        json_key_ts(w, "thread_ts", message->thread_ts);
        if (message->parent_user[0] != '\0')
            json_key_string(w, "parent_user_id", message->parent_user);
        return;
    }
    if (message->reply_count == 0)
        return;
    json_key_ts(w, "thread_ts", message->ts);
    json_key_int(w, "reply_count", message->reply_count);
    json_key(w, "reply_users");
    users_write(w, message->reply_users);
    json_key_int(w, "reply_users_count", message->reply_users_count);
    json_key_ts(w, "latest_reply", message->latest_reply);
    if (message->has_reader)
        reader_write(w, message);
}

// The message that a broadcast reply answers, for readers who see the reply in the channel.
static void root_write(struct json_writer *w, const struct message *message)
{
    if (!message->broadcast || message->deleted || !message->root_text ||
        message->root_text[0] == '\0')
        return;
    json_key(w, "root");
    json_open_object(w);
    json_key_string(w, "type", "message");
    json_key_string(w, "user", message->parent_user);
    json_key_string(w, "text", message->root_text);
    json_key_ts(w, "ts", message->thread_ts);
    json_key_ts(w, "thread_ts", message->thread_ts);
    json_key_int(w, "reply_count", message->reply_count);
    json_key_ts(w, "latest_reply", message->latest_reply);
    json_close_object(w);
}

static void edited_write(struct json_writer *w, const struct message *message)
{
    if (message->edited_ts == 0 || message->deleted)
        return;
    json_key(w, "edited");
    json_open_object(w);
    json_key_string(w, "user", message->edited_by);
    json_key_ts(w, "ts", message->edited_ts);
    json_close_object(w);
}

// Who reads the history often knows of a bot only what stands here.
static void bot_write(struct json_writer *w, const struct message *message,
                      const char *workspace_id)
{
    if (message->bot_id[0] == '\0')
        return;
    json_key_string(w, "bot_id", message->bot_id);
    json_key_string(w, "app_id", message->bot_app_id);
    json_key(w, "bot_profile");
    json_open_object(w);
    json_key_string(w, "id", message->bot_id);
    json_key_string(w, "app_id", message->bot_app_id);
    json_key_string(w, "user_id", message->user_id);
    json_key_string(w, "name", message->bot_name);
    json_key(w, "icons");
    json_open_object(w);
    json_close_object(w);
    json_key_bool(w, "deleted", false);
    json_key_int(w, "updated", message->bot_updated);
    json_key_string(w, "team_id", workspace_id);
    json_close_object(w);
}

void message_write_members(struct json_writer *w, const struct message *message,
                           const char *workspace_id)
{
    json_key_string(w, "type", "message");
    if (message->deleted)
        json_key_string(w, "subtype", "tombstone");
    else if (message->subtype[0] != '\0')
        json_key_string(w, "subtype", message->subtype);
    json_key_string(w, "user", message->user_id);
    json_key(w, "text");
    json_string_n(w, message->text, message->text_length);
    json_key_ts(w, "ts", message->ts);
    json_key_string(w, "team", workspace_id);
    bot_write(w, message, workspace_id);
    if (message->client_msg_id[0] != '\0')
        json_key_string(w, "client_msg_id", message->client_msg_id);
    thread_write(w, message);
    edited_write(w, message);
    root_write(w, message);
    if (message->extra_length > 2) { // more than {}: write its members without the braces
        buffer_append_byte(w->out, ',');
        buffer_append(w->out, message->extra + 1, message->extra_length - 2);
    }
    if (message->notes_length > 0) {
        buffer_append_byte(w->out, ',');
        buffer_append(w->out, message->notes, message->notes_length);
    }
}

void message_write(struct json_writer *w, const struct message *message, const char *workspace_id)
{
    json_open_object(w);
    message_write_members(w, message, workspace_id);
    json_key_int(w, "seq", message->seq);
    json_close_object(w);
}
