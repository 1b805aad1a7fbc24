// SPDX-License-Identifier: Apache-2.0
// Reads the message that a reaction or a pin is about.
#include "noted.h"

bool take_noted(struct invocation *invocation, struct noted *ret_noted)
{
    if (!take_channel(invocation, &ret_noted->channel_id))
        return false;
    if (!invocation_has(invocation, "timestamp")) {
        invocation_fail_message(invocation, -ERROR_NO_ITEM_SPECIFIED, "timestamp: must be given");
        return false;
    }
    return take_ts(invocation, "timestamp", -ERROR_BAD_TIMESTAMP, &ret_noted->ts);
}

void noted_change_params(struct invocation *invocation, const struct noted *noted,
                         struct params *params)
{
    invocation_change_params(invocation, params);
    params_text(params, noted->channel_id);
    params_int(params, noted->ts);
}
