// SPDX-License-Identifier: Apache-2.0
// Links to messages, and messages that are shown with theirs.
#include "permalink.h"

#include "base/id.h"

#include <inttypes.h>
#include <stdio.h>

void permalink_write(struct json_writer *w, const struct invocation *invocation,
                     const char *channel_id, int64_t ts, int64_t thread_ts)
{
    char base[512];
    char thread[TS_SIZE];
    char query[96] = "";
    char link[800];

    invocation_base_url(invocation, base, sizeof base);
    ts_print(thread_ts, thread);
    if (thread_ts != 0)
        snprintf(query, sizeof query, "?thread_ts=%s&cid=%.40s", thread, channel_id);
    snprintf(link, sizeof link, "%sarchives/%.40s/p%016" PRId64 "%s", base, channel_id, ts, query);
    json_key_string(w, "permalink", link);
}

void permalink_write_message(struct json_writer *w, const struct invocation *invocation,
                             const char *channel_id, const struct message *message)
{
    json_open_object(w);
    message_write_members(w, message, invocation->actor->workspace_id);
    permalink_write(w, invocation, channel_id, message->ts, message->thread_ts);
    json_key_int(w, "seq", message->seq);
    json_close_object(w);
}
