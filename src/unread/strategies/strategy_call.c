// SPDX-License-Identifier: Apache-2.0
// The beginning that the strategies' calls of Redis functions share.
#include "unread/strategy.h"

#include "unread/keys.h"

void strategy_call_begin(struct fcall *call, const char *function, const struct unread_view *view)
{
    char key[KEY_SIZE];

    fcall_begin(call, function);
    key_walk(key, view->channel_id);
    fcall_key(call, key);
    key_members(key, view->channel_id);
    fcall_key(call, key);
    if (view->head.strategy == STRATEGY_BITMAP)
        key_bitmap(key, view->channel_id);
    else
        key_unread(key, view->user_id, view->channel_id);
    fcall_key(call, key);
    fcall_int(call, view->head.generation);
    fcall_int(call, view->head.seq);
    fcall_text(call, view->user_id);
    fcall_int(call, view->member.number < 0 ? 0 : view->member.number);
}
