// SPDX-License-Identifier: Apache-2.0
// channels.setNotifications: stores a member's notification settings for a channel.
#include "methods.h"

#include <string.h>

static const struct statement SET_NOTIFICATIONS = {
    "channels_set_notifications",
    "SELECT * FROM channels_set_notifications($1, $2, $3, $4, $5::boolean, $6)"};

// As stored (see notify_level() in sql/04_reading.sql); NULL: unchanged.
static bool take_notify(struct invocation *invocation, const char **ret_notify)
{
    static const struct {
        const char *value;
        const char *stored;
    } values[] = {{"default", "all"}, {"all", "every"}, {"mentions", "mentions"}, {"none", "none"}};
    const char *notify = NULL;

    if (!take_optional_word(invocation, "notify", &notify))
        return false;
    *ret_notify = NULL;
    if (!notify)
        return true;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        if (strcmp(values[i].value, notify) == 0)
            *ret_notify = values[i].stored;
    if (*ret_notify)
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                            "notify: must be default, all, mentions or none");
    return false;
}

// "true", "false", or NULL: unchanged.
static bool take_muted(struct invocation *invocation, const char **ret_muted)
{
    bool muted = false;

    if (!take_optional_bool(invocation, "muted", &muted))
        return false;
    *ret_muted = !invocation_has(invocation, "muted") ? NULL : muted ? "true" : "false";
    return true;
}

void channels_set_notifications(struct invocation *invocation)
{
    struct params params = {0};
    const char *channel_id;
    const char *muted;
    const char *notify;

    if (!take_channel(invocation, &channel_id) || !take_muted(invocation, &muted) ||
        !take_notify(invocation, &notify))
        return;
    invocation_change_params(invocation, &params);
    params_text(&params, channel_id);
    params_text(&params, muted);
    params_text(&params, notify);
    invocation_change(invocation, &SET_NOTIFICATIONS, &params, true);
}
