// SPDX-License-Identifier: Apache-2.0
// Finds users' recent activity in Redis.
#include "activity.h"

#include "base/check.h"
#include "base/clock.h"
#include "chat/presence.h"

#include <stdio.h>
#include <stdlib.h>

struct activity_answer {
    uint32_t tag;
    int64_t now_s;
    int64_t *active_s; // the next user's
};

// Each value begins with the second its entry expires: of a socket, or of a gateway's connections.
static void on_values(void *arg, int r, const struct cache_value *value)
{
    struct activity_answer *answer = CAST(activity_answer, arg);
    int64_t *active_s = answer->active_s++;

    for (size_t i = 0; r == 0 && i < cache_value_count(value); i++) {
        int64_t ends_s = strtoll(cache_value_text(cache_value_at(value, i)), NULL, 10);
        if (ends_s > answer->now_s && ends_s - answer->now_s > *active_s)
            *active_s = ends_s - answer->now_s;
    }
    if (*active_s > ACTIVITY_MAX_S)
        *active_s = ACTIVITY_MAX_S;
}

int activity_ask(struct pipeline *pipeline, bool by_word, const char *const *users, size_t count,
                 int64_t *ret_active_s)
{
    struct activity_answer answer = {
        .tag = TAG(activity_answer), .now_s = clock_wall_us() / 1000000, .active_s = ret_active_s};

    for (size_t i = 0; i < count; i++) {
        char key[PRESENCE_KEY_SIZE];
        ret_active_s[i] = 0;
        (by_word ? presence_active_key : presence_session_key)(key, users[i]);
        pipeline_add(pipeline, 2, (const char *[]){"HVALS", key}, NULL);
    }
    return pipeline_run(pipeline, on_values, &answer);
}
