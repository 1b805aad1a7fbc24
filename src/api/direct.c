// SPDX-License-Identifier: Apache-2.0
// Direct conversations of two people, or of a group of at most nine: opens, shows and closes them.
#include "methods.h"

#include "base/check.h"
#include "chat/unstored_frame.h"
#include "unread/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMED_MAX = 1000, FRAME_MAX = 256 };

// The changes return the conversation if the caller's view of it changed, otherwise NULL.
static const struct statement OPEN = {
    "direct_open",
    "SELECT error, reply, told, CASE WHEN reply NOT LIKE '{\"no_op\"%' THEN channel_id END"
    " FROM direct_open($1, $2, $3, $4, $5, $6, $7)"};
static const struct statement OPEN_CHANNEL = {
    "direct_open_channel", "SELECT error, reply, false, CASE WHEN reply NOT LIKE "
                           "'{\"no_op\"%' THEN $3 END FROM "
                           "direct_open_channel($1, $2, $3, $4)"};
static const struct statement CLOSE = {
    "direct_close", "SELECT error, reply, false, CASE WHEN reply = '{}' THEN $3 END"
                    " FROM direct_close($1, $2, $3, nullif($4, -1))"};
static const struct statement PEER = {"direct_peer",
                                      "SELECT CASE WHEN c.type = 3 THEN direct_peer(c.people, $2) "
                                      "END FROM channels c WHERE c.id = $1"};

enum { COLUMN_SHOWN = 3 };

// A changed view on its way to the caller's own connections.
struct showing {
    uint32_t tag;
    struct cache *cache;
    char user_id[EVENT_ID_SIZE];
    char channel_id[ID_SIZE];
    bool is_open;
};

static void showing_publish(const struct showing *showing, const char *peer)
{
    char topic[KEY_SIZE];
    char frame[FRAME_MAX];

    key_user_topic(topic, showing->user_id);
    snprintf(frame, sizeof frame, "{\"type\":\"%s_%s\",\"user\":\"%s\",\"channel\":\"%s\"}",
             peer[0] == '\0' ? "group" : "im", showing->is_open ? "open" : "close",
             peer[0] == '\0' ? showing->user_id : peer, showing->channel_id);
    unstored_frame_publish(showing->cache, topic, frame, strlen(frame));
}

static void peer_answer(void *arg, const struct store_outcome *outcome)
{
    struct showing *showing = CAST(showing, arg);

    if (outcome->r == 0 && result_rows(outcome->result) > 0)
        showing_publish(showing, result_text(outcome->result, 0, 0));
    TAGGED_FREE(showing);
}

// Notifies the caller's connections on all instances that the conversation is shown or hidden:
// im_open, im_close, group_open, group_close.
static void view_changed(struct invocation *invocation, const struct result *result)
{
    struct params params = {0};
    struct showing *showing = result_is_null(result, 0, COLUMN_SHOWN) ? NULL : TAGGED_NEW(showing);

    if (!showing)
        return;
    showing->cache = invocation->api->options.cache;
    showing->is_open = invocation->method->fn == channels_open;
    snprintf(showing->user_id, sizeof showing->user_id, "%s", invocation->actor->user_id);
    snprintf(showing->channel_id, sizeof showing->channel_id, "%s",
             result_text(result, 0, COLUMN_SHOWN));
    params_text(&params, showing->channel_id);
    params_text(&params, showing->user_id);
    store_call(invocation->api->options.store, STORE_READ, &PEER, &params, peer_answer, showing);
}

// Adds workspace, caller and the channel argument. False: an error was replied.
static bool take_channel_params(struct invocation *invocation, struct params *params)
{
    const char *channel_id;

    if (!take_channel(invocation, &channel_id))
        return false;
    invocation_caller_params(invocation, params);
    params_text(params, channel_id);
    return true;
}

static void open_channel(struct invocation *invocation, bool with_object)
{
    struct params params = {0};

    if (!take_channel_params(invocation, &params))
        return;
    params_bool(&params, with_object);
    invocation_change(invocation, &OPEN_CHANNEL, &params, false);
}

static void open_people(struct invocation *invocation, bool may_make, bool with_object)
{
    CLEANUP_PARAMS struct params params = {0};
    char id[ID_SIZE];

    id_make('D', id);
    invocation_change_params(invocation, &params);
    params_text(&params, id);
    params_open_text_array(&params);
    if (!take_ids(invocation, "users", "UW", -ERROR_USER_NOT_FOUND, NAMED_MAX, &params))
        return;
    params_close_array(&params);
    params_bool(&params, may_make);
    params_bool(&params, with_object);
    invocation_change(invocation, &OPEN, &params, true);
}

void channels_open(struct invocation *invocation)
{
    bool with_object = false;
    bool may_not_make = false;
    bool by_channel = invocation_has(invocation, "channel");
    bool by_people = invocation_has(invocation, "users");

    invocation->done_fn = view_changed;
    if (!take_optional_bool(invocation, "return_im", &with_object) ||
        !take_optional_bool(invocation, "prevent_creation", &may_not_make))
        return;
    if (by_channel && by_people)
        invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                                "users: must not be given together with channel");
    else if (by_channel)
        open_channel(invocation, with_object);
    else if (by_people)
        open_people(invocation, !may_not_make, with_object);
    else
        invocation_fail_message(invocation, -ERROR_USERS_LIST_NOT_SUPPLIED,
                                "missing required field: users or channel");
}

void channels_close(struct invocation *invocation)
{
    struct params params = {0};
    int64_t seen_ts = -1;

    if (!take_optional_ts(invocation, "ts", -ERROR_INVALID_TIMESTAMP, &seen_ts) ||
        !take_channel_params(invocation, &params))
        return;
    params_int(&params, seen_ts);
    invocation->done_fn = view_changed;
    invocation_change(invocation, &CLOSE, &params, false);
}
