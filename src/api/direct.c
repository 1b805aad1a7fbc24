// SPDX-License-Identifier: Apache-2.0
// Direct conversations: of two people, or of a group of at most nine.
#include "methods.h"

enum { NAMED_MAX = 1000 };

static const struct statement OPEN = {
    "direct_open", "SELECT error, reply, told FROM direct_open($1, $2, $3, $4, $5, $6, $7)"};
static const struct statement OPEN_CHANNEL = {"direct_open_channel",
                                              "SELECT * FROM direct_open_channel($1, $2, $3, $4)"};
static const struct statement CLOSE = {"direct_close", "SELECT * FROM direct_close($1, $2, $3)"};

static bool is_given(const struct invocation *invocation, const char *name)
{
    const char *text = request_arg(invocation->request, name);

    return text != NULL && text[0] != '\0';
}

static void open_channel(struct invocation *invocation, bool with_object)
{
    struct params params = {0};
    const char *channel_id;

    if (!take_channel(invocation, &channel_id))
        return;
    params_text(&params, invocation->actor->workspace_id);
    params_text(&params, invocation->actor->user_id);
    params_text(&params, channel_id);
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
    bool by_channel = is_given(invocation, "channel");
    bool by_people = is_given(invocation, "users");

    if (!take_optional_bool(invocation, "return_im", &with_object) ||
        !take_optional_bool(invocation, "prevent_creation", &may_not_make))
        return;
    if (by_channel && by_people)
        invocation_complain(invocation, -ERROR_INVALID_ARGUMENTS,
                            "users: must not be given together with channel");
    else if (by_channel)
        open_channel(invocation, with_object);
    else if (by_people)
        open_people(invocation, !may_not_make, with_object);
    else
        invocation_complain(invocation, -ERROR_USERS_LIST_NOT_SUPPLIED,
                            "missing required field: users or channel");
}

void channels_close(struct invocation *invocation)
{
    struct params params = {0};
    const char *channel_id;

    if (!take_channel(invocation, &channel_id))
        return;
    params_text(&params, invocation->actor->workspace_id);
    params_text(&params, invocation->actor->user_id);
    params_text(&params, channel_id);
    invocation_change(invocation, &CLOSE, &params, false);
}
