// SPDX-License-Identifier: Apache-2.0
// Changes a channel's settings: name, topic and purpose. Each change is one function of
// sql/11_conversations.sql.
#include "channel_settings.h"

#include "base/text.h"
#include "chat/names.h"
#include "methods.h"

#include <string.h>

enum { SETTING_MAX_CODE_POINTS = 250 };

static const struct statement SET = {"channels_set",
                                     "SELECT * FROM channels_set($1, $2, $3, $4, $5, $6)"};
static const struct statement RENAME = {
    "channels_rename", "SELECT * FROM channels_rename($1, $2, $3, $4, $5, $6, $7)"};

bool take_channel_name(struct invocation *invocation, const char **ret_name)
{
    const char *name = NULL;

    if (!take_optional_text(invocation, "name", &name))
        return false;
    if (!name || name[0] == '\0') {
        invocation_fail_message(invocation, -ERROR_INVALID_NAME_REQUIRED,
                                "missing required field: name");
        return false;
    }
    int r = names_refuse_channel(name, strlen(name));
    if (r < 0) {
        invocation_fail_message(invocation, r,
                                "name: must be at most %d small letters, digits, '-' and '_', "
                                "with a letter or digit among them",
                                NAMES_MAX_CODE_POINTS);
        return false;
    }
    *ret_name = name;
    return true;
}

static void channel_set(struct invocation *invocation, const char *what)
{
    struct params params = {0};
    const char *channel_id;
    const char *value = NULL;

    if (!take_channel(invocation, &channel_id) || !take_optional_text(invocation, what, &value))
        return;
    if (!value) { // "" removes it
        invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS, "missing required field: %s",
                                what);
        return;
    }
    if (text_code_points(value, strlen(value)) > SETTING_MAX_CODE_POINTS) {
        invocation_fail_message(invocation, -ERROR_TOO_LONG, "%s: must have at most %d characters",
                                what, SETTING_MAX_CODE_POINTS);
        return;
    }
    invocation_change_params(invocation, &params);
    params_text(&params, channel_id);
    params_text(&params, what);
    params_text(&params, value);
    invocation_change(invocation, &SET, &params, true);
}

void channels_set_topic(struct invocation *invocation)
{
    channel_set(invocation, "topic");
}

void channels_set_purpose(struct invocation *invocation)
{
    channel_set(invocation, "purpose");
}

void channels_rename(struct invocation *invocation)
{
    struct params params = {0};
    const char *channel_id;
    const char *name;

    if (!take_channel(invocation, &channel_id) || !take_channel_name(invocation, &name))
        return;
    invocation_change_params(invocation, &params);
    params_bool(&params, invocation->actor->is_admin);
    params_text(&params, channel_id);
    params_name(&params, name);
    invocation_change(invocation, &RENAME, &params, true);
}
