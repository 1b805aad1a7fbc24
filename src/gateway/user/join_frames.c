// SPDX-License-Identifier: Apache-2.0
// Frames that only the user who joined or left a channel receives: the whole channel object, or
// that the channel was left. They are not events of the channel, and have no seq.
#include "join_frames.h"

#include "../channel/feed.h"
#include "../connection/packet.h"
#include "../core.h"
#include "users.h"

#include "base/buffer.h"
#include "base/channel.h"
#include "base/check.h"
#include "base/json_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAME_MAX = 65536 };

static const struct statement joined = {
    "gateway_joined",
    "SELECT c.type, conversation_object(c, $2, true, m.closed_ord),"
    " coalesce(direct_peer(c.people, $2), '') FROM channels c"
    " JOIN channel_members m ON m.channel_id = c.id AND m.user_id = $2 AND m.active"
    " WHERE c.id = $1"};

struct joining {
    uint32_t tag;
    struct gateway *gateway;
    char user_id[EVENT_ID_SIZE];
};

static void frame_send(const struct user *user, const char *type, const struct buffer *frame)
{
    CLEANUP(packets_done) struct packets packets = packets_of(type, frame->data, frame->length);
    user_send_packets(user, &packets);
}

static const char *join_frame_type(enum channel_type type)
{
    return type == CHANNEL_PUBLIC ? "channel_joined"
           : type == CHANNEL_IM   ? "im_created"
                                  : "group_joined";
}

static void join_frame_write(struct buffer *out, enum channel_type type,
                             const struct result *result)
{
    struct json_writer w = json_writer_to(out);
    json_open_object(&w);
    json_key_string(&w, "type", join_frame_type(type));
    if (type == CHANNEL_IM)
        json_key_string(&w, "user", result_text(result, 0, 2));
    json_key(&w, "channel");
    json_raw(&w, result_text(result, 0, 1), result_length(result, 0, 1));
    json_close_object(&w);
}

static void on_joined(void *arg, const struct store_outcome *outcome)
{
    struct joining *joining = CAST(joining, arg);
    bool alive = gateway_answer(joining->gateway);
    struct user *user = alive ? user_find(joining->gateway, joining->user_id) : NULL;
    TAGGED_FREE(joining);
    if (!user || outcome->r < 0 || result_rows(outcome->result) == 0)
        return; // a channel's client still receives member_joined_channel
    CLEANUP(buffer_done) struct buffer frame = BUFFER(FRAME_MAX);
    enum channel_type type = channel_type_of(result_int(outcome->result, 0, 0));
    join_frame_write(&frame, type, outcome->result);
    if (!buffer_failed(&frame))
        frame_send(user, join_frame_type(type), &frame);
}

void join_frames_send(const struct feed *feed, const struct user *user)
{
    CLEANUP_PARAMS struct params params = {0};
    struct joining *joining = TAGGED_NEW(joining);
    if (!joining)
        return;
    joining->gateway = feed->gateway;
    memcpy(joining->user_id, user->id, sizeof joining->user_id);
    params_text(&params, feed->channel_id);
    params_text(&params, user->id);
    gateway_ask(feed->gateway);
    store_call(feed->gateway->store, STORE_SYNC, &joined, &params, on_joined, joining);
}

void join_frames_send_left(const struct feed *feed, const struct user *user, int64_t ts)
{
    const char *type = feed->channel_id[0] == 'C' ? "channel_left" : "group_left";
    CLEANUP(buffer_done) struct buffer frame = BUFFER(FRAME_MAX);
    struct json_writer w = json_writer_to(&frame);
    json_open_object(&w);
    json_key_string(&w, "type", type);
    json_key_string(&w, "channel", feed->channel_id);
    json_key_ts(&w, "event_ts", ts);
    json_close_object(&w);
    if (!buffer_failed(&frame))
        frame_send(user, type, &frame);
}
