// SPDX-License-Identifier: Apache-2.0
// chat.update and chat.delete.
#include "methods.h"

#include "base/check.h"
#include "chat/message.h"
#include "content.h"

#include <stdlib.h>
#include <string.h>

static const struct statement MESSAGE_UPDATE = {
    "message_update",
    "SELECT u.error, u.seq, u.event_ts, r.ts, r.seq, r.ord, r.user_id, r.bot_id, "
    "CASE WHEN $11 THEN 'thread_broadcast' ELSE r.subtype END, coalesce($6, r.body),"
    " extra_shown(extra_merge(r.extra, $7), $11), r.thread_ts, r.parent_user, "
    "r.broadcast OR $11, r.client_msg_id, CASE WHEN $12 THEN u.event_ts ELSE r.edited_ts END,"
    " CASE WHEN $12 THEN $3 ELSE r.edited_by END, r.deleted, r.counted, r.reply_count, "
    "r.latest_reply, r.reply_users, "
    "CASE WHEN $11 THEN message_body($4, r.thread_ts) ELSE r.root_body END, r.reply_users_count, "
    "r.bot_app_id, r.bot_name, r.bot_updated, CASE WHEN r.noted THEN message_notes($4, r.ts, $3) "
    "END"
    " FROM message_update($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) u LEFT JOIN message_rows r "
    "ON r.channel_id = $4 AND r.ts = $5",
};
static const struct statement MESSAGE_DELETE = {
    "message_delete",
    "SELECT error, seq FROM message_delete($1, $2, $3, $4, $5, $6)",
};
enum { COLUMN_ERROR, COLUMN_SEQ, COLUMN_EVENT_TS, COLUMN_MESSAGE };

// Whether the change succeeded; submits its outbox row. False: the error was replied.
static bool change_done(struct invocation *invocation, const struct result *result)
{
    if (!invocation_succeeded(invocation, result))
        return false;
    invocation->api->options.on_committed(invocation->api->options.arg, invocation->outbox_id);
    return true;
}

static void update_answer(struct invocation *invocation, const struct result *result)
{
    struct message message;

    if (!change_done(invocation, result))
        return;
    if (invocation->done_fn)
        invocation->done_fn(invocation, result);
    message_read(result, 0, COLUMN_MESSAGE, &message);
    struct json_writer *w = invocation_open(invocation);
    json_key_string(w, "channel", request_arg(invocation->request, "channel"));
    json_key_ts(w, "ts", message.ts);
    json_key_int(w, "seq", result_int(result, 0, COLUMN_SEQ));
    json_key(w, "text");
    json_string_n(w, message.text, message.text_length);
    json_key(w, "message");
    message_write(w, &message, invocation->actor->workspace_id);
    invocation_close(invocation);
}

static void mentions_params(struct params *params, const struct mentions *mentions)
{
    params_open_text_array(params);
    for (int i = 0; i < mentions->count; i++)
        params_element_text(params, mentions->items[i].user_id);
    params_close_array(params);
    params_open_int_array(params);
    for (int i = 0; i < mentions->count; i++)
        params_element_int(params, mentions->items[i].sources);
    params_close_array(params);
}

// One edit in progress.
struct updating {
    uint32_t tag;
    struct invocation *invocation;
    const char *channel_id;
    int64_t ts;
    bool is_shown; // in the channel: reply_broadcast
    struct content content;
};

static bool is_edit(const struct content *content)
{
    return content->text || content->extra;
}

static void updating_end(struct updating *updating)
{
    content_done(&updating->content);
    TAGGED_FREE(updating);
}

static void update_linked(void *arg, bool good)
{
    struct updating *updating = CAST(updating, arg);
    struct content *content = &updating->content;
    struct params params = {0};

    if (good && content_complete(updating->invocation, content)) {
        invocation_change_params(updating->invocation, &params);
        params_text(&params, updating->channel_id);
        params_int(&params, updating->ts);
        params_text_n(&params, content->text, content->text_length);
        params_text(&params, content->extra);
        mentions_params(&params, &content->mentions);
        params_bool(&params, content->has_blocks);
        params_bool(&params, updating->is_shown);
        params_bool(&params, is_edit(content));
        invocation_query(updating->invocation, STORE_WRITE, &MESSAGE_UPDATE, &params,
                         update_answer);
    }
    updating_end(updating);
}

static bool take_update(struct updating *updating)
{
    struct invocation *invocation = updating->invocation;

    if (!take_channel(invocation, &updating->channel_id) ||
        !take_ts(invocation, "ts", -ERROR_INVALID_TIMESTAMP, &updating->ts) ||
        !take_optional_bool(invocation, "reply_broadcast", &updating->is_shown) ||
        !take_content(invocation, &updating->content))
        return false;
    if (is_edit(&updating->content) || updating->is_shown)
        return true;
    invocation_fail_message(invocation, -ERROR_NO_TEXT,
                            "text: must be given, or blocks, attachments or metadata");
    return false;
}

void chat_update(struct invocation *invocation)
{
    struct updating *updating = TAGGED_NEW(updating);

    if (!updating) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return;
    }
    updating->invocation = invocation;
    updating->content.is_edit = true;
    updating->content.is_stream_end = strcmp(invocation->method->name, "chat.stopStream") == 0;
    if (take_update(updating))
        content_link(invocation, &updating->content, update_linked, updating);
    else
        updating_end(updating);
}

static void delete_answer(struct invocation *invocation, const struct result *result)
{
    if (!change_done(invocation, result))
        return;
    struct json_writer *w = invocation_open(invocation);
    json_key_string(w, "channel", request_arg(invocation->request, "channel"));
    json_key_string(w, "ts", request_arg(invocation->request, "ts"));
    json_key_int(w, "seq", result_int(result, 0, COLUMN_SEQ));
    invocation_close(invocation);
}

void chat_delete(struct invocation *invocation)
{
    struct params params = {0};
    const char *channel_id;
    int64_t ts;

    if (!take_channel(invocation, &channel_id) ||
        !take_ts(invocation, "ts", -ERROR_INVALID_TIMESTAMP, &ts))
        return;
    invocation_change_params(invocation, &params);
    params_bool(&params, invocation->actor->is_admin);
    params_text(&params, channel_id);
    params_int(&params, ts);
    invocation_query(invocation, STORE_WRITE, &MESSAGE_DELETE, &params, delete_answer);
}
