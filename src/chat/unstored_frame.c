// SPDX-License-Identifier: Apache-2.0
// Publishes frames that are not stored.
#include "chat/unstored_frame.h"

#include "base/buffer.h"

#include <string.h>

void unstored_frame_publish(struct cache *cache, const char *topic, const char *json, size_t length)
{
    CLEANUP(buffer_done) struct buffer message = BUFFER(length + 2);

    buffer_append_byte(&message, UNSTORED_FRAME_MARK);
    buffer_append(&message, json, length);
    if (!cache || buffer_failed(&message))
        return;
    const char *texts[] = {"SPUBLISH", topic, message.data};
    const size_t lengths[] = {strlen(texts[0]), strlen(topic), message.length};
    cache_call(cache, 3, texts, lengths, NULL, NULL);
}
