// SPDX-License-Identifier: Apache-2.0
// Names of Redis keys and topics, and the calls that write members' state. The id in braces is the
// hash tag of Redis Cluster.
#pragma once

#include "events/event.h"

enum { KEY_SIZE = 64, KEY_THREAD_SIZE = 112, KEY_NUMBER_SIZE = 24 };

void key_channel(char *ret_key, const char *channel_id);                     // channel-latest:{C}
void key_cursor(char *ret_key, const char *user_id);                         // read_cursor:{U}
void key_walk(char *ret_key, const char *channel_id);                        // channel-walk:{C}
void key_members(char *ret_key, const char *channel_id);                     // channel:members:{C}
void key_bitmap(char *ret_key, const char *channel_id);                      // channel:{C}:read
void key_unread(char *ret_key, const char *user_id, const char *channel_id); // unread:{U}:C
void key_thread(char *ret_key, const char *user_id, const char *channel_id,
                int64_t thread_ts); // thread-read:{U}:C:ts, KEY_THREAD_SIZE
void key_channel_topic(char *ret_key, const char *channel_id);     // channel-events:{C}
void key_user_topic(char *ret_key, const char *user_id);           // user-events:{U}
void key_workspace_topic(char *ret_key, const char *workspace_id); // workspace-events:{T}
// Announces changed tokens, users and apps, by id, to all instances.
#define KEY_SESSION_TOPIC "session-events:{all}"

// The argument vector of FCALL member_apply, which writes a member's complete state. Its strings
// point into the struct itself and to the arguments of member_call_make().
enum { MEMBER_CALL_ARGUMENTS = 12 };
struct member_call {
    const char *texts[MEMBER_CALL_ARGUMENTS];
    char key[KEY_SIZE];
    char numbers[6][KEY_NUMBER_SIZE];
};
void member_call_make(struct member_call *call, const char *user_id, const char *channel_id,
                      const struct event_member *member);

// Combines several calls (at least one) into one FCALL members_apply. The result points to the
// strings of `calls`; free it with free(). NULL: out of memory.
const char **members_call_new(const struct member_call *calls, int count, int *ret_texts);
