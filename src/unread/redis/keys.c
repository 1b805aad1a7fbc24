// SPDX-License-Identifier: Apache-2.0
// Builds the names of Redis keys and topics.
#include "unread/keys.h"

#include "base/id.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void key_make(char *ret_key, const char *start, const char *id)
{
    size_t start_length = strlen(start);
    size_t id_length = strnlen(id, EVENT_ID_SIZE);

    memcpy(ret_key, start, start_length);
    memcpy(ret_key + start_length, id, id_length);
    memcpy(ret_key + start_length + id_length, "}", 2);
}

void key_channel(char *ret_key, const char *channel_id)
{
    key_make(ret_key, "channel-latest:{", channel_id);
}

void key_walk(char *ret_key, const char *channel_id)
{
    key_make(ret_key, "channel-walk:{", channel_id);
}

void key_members(char *ret_key, const char *channel_id)
{
    key_make(ret_key, "channel:members:{", channel_id);
}

void key_bitmap(char *ret_key, const char *channel_id)
{
    key_make(ret_key, "channel:{", channel_id);
    memcpy(ret_key + strlen(ret_key), ":read", sizeof ":read");
}

void key_unread(char *ret_key, const char *user_id, const char *channel_id)
{
    key_make(ret_key, "unread:{", user_id);
    size_t length = strlen(ret_key);
    size_t id_length = strnlen(channel_id, EVENT_ID_SIZE);

    ret_key[length] = ':';
    memcpy(ret_key + length + 1, channel_id, id_length);
    ret_key[length + 1 + id_length] = '\0';
}

void key_cursor(char *ret_key, const char *user_id)
{
    key_make(ret_key, "read_cursor:{", user_id);
}

void key_thread(char *ret_key, const char *user_id, const char *channel_id, int64_t thread_ts)
{
    char ts[TS_SIZE];

    ts_print(thread_ts, ts);
    snprintf(ret_key, KEY_THREAD_SIZE, "thread-read:{%s}:%s:%s", user_id, channel_id, ts);
}

void key_channel_topic(char *ret_key, const char *channel_id)
{
    key_make(ret_key, "channel-events:{", channel_id);
}

void key_user_topic(char *ret_key, const char *user_id)
{
    key_make(ret_key, "user-events:{", user_id);
}

void key_workspace_topic(char *ret_key, const char *workspace_id)
{
    key_make(ret_key, "workspace-events:{", workspace_id);
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

const char **members_call_new(const struct member_call *calls, int count, int *ret_texts)
{
    enum { HEAD = 3, KEY_PLACE = HEAD, FIRST_VALUE };
    size_t texts_max = HEAD + (size_t)count * (MEMBER_CALL_ARGUMENTS - HEAD);
    const char **texts = malloc(texts_max * sizeof *texts + KEY_NUMBER_SIZE);
    int used = 0;

    if (!texts)
        return NULL;
    char *count_text = (char *)(texts + texts_max);
    snprintf(count_text, KEY_NUMBER_SIZE, "%d", count);
    texts[used++] = "FCALL";
    texts[used++] = "members_apply";
    texts[used++] = count_text;
    for (int i = 0; i < count; i++)
        texts[used++] = calls[i].texts[KEY_PLACE];
    for (int i = 0; i < count; i++)
        for (int place = FIRST_VALUE; place < MEMBER_CALL_ARGUMENTS; place++)
            texts[used++] = calls[i].texts[place];
    *ret_texts = used;
    return texts;
}
