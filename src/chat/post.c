// SPDX-License-Identifier: Apache-2.0
// Converts a post to a message; the only place that does.
#include "chat/writer.h"

#include <string.h>

bool post_is_counted(const struct post *post)
{
    return post->thread_ts == 0 || post->broadcast;
}

struct message post_message(const struct post *post, int64_t ts, int64_t seq,
                            const char *parent_user)
{
    bool shown = post->thread_ts != 0 && post->broadcast;

    return (struct message){
        .ts = ts,
        .seq = seq,
        .user_id = post->actor->user_id,
        .bot_id = post->actor->bot_id,
        .bot_app_id = post->actor->bot.app_id,
        .bot_name = post->actor->bot.name,
        .bot_updated = post->actor->bot.updated,
        .subtype = shown ? "thread_broadcast" : "",
        .text = post->text,
        .text_length = post->text_length,
        .extra = post->extra ? post->extra : "",
        .extra_length = post->extra ? strlen(post->extra) : 0,
        .thread_ts = post->thread_ts,
        .parent_user = parent_user,
        .client_msg_id = post->client_msg_id ? post->client_msg_id : "",
        .edited_by = "",
        .reply_users = "",
    };
}
