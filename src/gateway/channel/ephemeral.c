// SPDX-License-Identifier: Apache-2.0
// Receives the frames that are not stored, and publishes user_typing.
#include "ephemeral.h"

#include "../connection/connection.h"
#include "../connection/packet.h"
#include "../core.h"
#include "../user/users.h"
#include "feed.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "base/metrics.h"
#include "chat/unstored_frame.h"
#include "events/event_type.h"
#include "unread/keys.h"

#include <string.h>

enum { FRAME_MAX = 4096 };

static void user_receive(struct gateway *gateway, const char *id, const json_t *frame,
                         struct packets *packets)
{
    struct user *user = user_find(gateway, id);
    const char *presence = json_string_value(json_object_get(frame, "presence"));
    if (!user)
        return;
    if (presence && strcmp(packets->type, "manual_presence_change") == 0)
        user->manual_away = strcmp(presence, "away") == 0;
    user_send_packets(user, packets);
}

static void channel_receive(struct gateway *gateway, const char *id, const json_t *frame,
                            struct packets *packets)
{
    struct feed *feed = feed_find(gateway, id);
    const char *user = json_string_value(json_object_get(frame, "user"));
    bool is_slacks = strcmp(packets->type, "user_typing") == 0;
    for (uint32_t i = 0; feed && user && i < feed->subscriber_count; i++) {
        struct connection *c = feed->subscribers[i].connection;
        if (strcmp(c->actor.user_id, user) != 0 && (is_slacks || c->native))
            connection_send(c, packets);
    }
}

static void workspace_receive(struct gateway *gateway, const char *id, struct packets *packets)
{
    const struct workspace *workspace = workspace_find(gateway, id);
    if (!workspace)
        return;
    LIST_FOREACH(link, &workspace->users)
    {
        user_send_packets(LIST_ITEM(link, struct user, workspace_link), packets);
    }
}

// As a type must be, since it becomes a line of an event stream.
static bool is_word(const char *text)
{
    size_t length = strlen(text);
    return length > 0 && length <= EVENT_TYPE_MAX &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz_") == length;
}

void ephemeral_receive(struct gateway *gateway, const char *topic, const char *data, size_t length)
{
    char id[EVENT_ID_SIZE];
    CLEANUP_JSON json_t *frame = NULL;
    if (json_read(data + 1, length - 1, JSON_DEPTH_MAX, JSON_VALUES_ANY, &frame) < 0)
        return;
    const char *type = json_string_value(json_object_get(frame, "type"));
    if (!type || !is_word(type))
        return;
    CLEANUP(packets_done) struct packets packets = packets_of(type, data + 1, length - 1);
    if (gateway_topic_id(topic, "user-events", id))
        user_receive(gateway, id, frame, &packets);
    else if (gateway_topic_id(topic, "channel-events", id))
        channel_receive(gateway, id, frame, &packets);
    else if (gateway_topic_id(topic, "workspace-events", id))
        workspace_receive(gateway, id, &packets);
}

static bool is_subscribed(const struct connection *c, const struct feed *feed)
{
    for (uint32_t i = 0; i < c->subscription_count; i++)
        if (c->subscriptions[i].feed == feed)
            return true;
    return false;
}

static void typing_publish(struct connection *c, const struct feed *feed)
{
    char topic[KEY_SIZE];
    CLEANUP(buffer_done) struct buffer out = BUFFER(FRAME_MAX);
    struct json_writer w = json_writer_to(&out);
    json_open_object(&w);
    json_key_string(&w, "type", "user_typing");
    json_key_string(&w, "channel", feed->channel_id);
    json_key_string(&w, "user", c->actor.user_id);
    json_close_object(&w);
    if (buffer_failed(&out))
        return;
    key_channel_topic(topic, feed->channel_id);
    unstored_frame_publish(c->gateway->cache, topic, out.data, out.length);
}

void ephemeral_typing(struct connection *c, int64_t *typed_ms, const char *channel_id)
{
    const struct gateway_options *options = &c->gateway->options;
    struct feed *feed = channel_id ? feed_find(c->gateway, channel_id) : NULL;
    int64_t now_ms = loop_now_ms(c->gateway->loop);
    if (!feed || !is_subscribed(c, feed))
        return;
    if (*typed_ms > 0 && now_ms - *typed_ms < options->settings.typing_interval_ms) {
        metric_add(METRIC_TYPING_DROPPED, 1);
        return;
    }
    *typed_ms = now_ms;
    typing_publish(c, feed);
}
