// SPDX-License-Identifier: Apache-2.0
#include "unread/keys.h"

#include <inttypes.h>
#include <stdio.h>

void key_channel(char *ret_key, const char *channel_id)
{
    snprintf(ret_key, KEY_SIZE, "channel-latest:{%s}", channel_id);
}

void key_cursor(char *ret_key, const char *user_id)
{
    snprintf(ret_key, KEY_SIZE, "read_cursor:{%s}", user_id);
}

void key_channel_topic(char *ret_key, const char *channel_id)
{
    snprintf(ret_key, KEY_SIZE, "channel-events:{%s}", channel_id);
}

void key_user_topic(char *ret_key, const char *user_id)
{
    snprintf(ret_key, KEY_SIZE, "user-events:{%s}", user_id);
}

void key_workspace_topic(char *ret_key, const char *workspace_id)
{
    snprintf(ret_key, KEY_SIZE, "workspace-events:{%s}", workspace_id);
}

void member_call_make(struct member_call *call, const char *user_id, const char *channel_id,
                      const struct event_member *member)
{
    const int64_t numbers[] = {member->epoch, member->ts,  member->seq,
                               member->ord,   member->own, member->member_seq};
    int count = 0;

    key_cursor(call->key, user_id);
    call->texts[count++] = "FCALL";
    call->texts[count++] = "member_apply";
    call->texts[count++] = "1";
    call->texts[count++] = call->key;
    call->texts[count++] = channel_id;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        snprintf(call->numbers[i], KEY_NUMBER_SIZE, "%" PRId64, numbers[i]);
        call->texts[count++] = call->numbers[i];
    }
    call->texts[count] = member->active ? "1" : "0";
}
