// SPDX-License-Identifier: Apache-2.0
// Tells all connections of a workspace of a new or changed user.
#include "user_frame.h"

#include "base/clock.h"
#include "chat/unstored_frame.h"
#include "unread/keys.h"

enum { FRAME_MAX_BYTES = 65536 };

void user_frame_publish(struct api *api, const char *workspace_id, const char *type,
                        const char *json, size_t length)
{
    CLEANUP(buffer_done) struct buffer out = BUFFER(FRAME_MAX_BYTES);
    char topic[KEY_SIZE];
    struct json_writer w = json_writer_to(&out);
    json_open_object(&w);
    json_key_string(&w, "type", type);
    buffer_append_byte(&out, ',');
    buffer_append(&out, json + 1, length - 2);
    json_key_int(&w, "cache_ts", clock_wall_us() / 1000000);
    json_key_ts(&w, "event_ts", clock_wall_us());
    json_close_object(&w);
    if (buffer_failed(&out))
        return;
    key_workspace_topic(topic, workspace_id);
    unstored_frame_publish(api->options.cache, topic, out.data, out.length);
}
