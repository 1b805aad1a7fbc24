// SPDX-License-Identifier: Apache-2.0
// Publishes what changed in a workspace.
#include "workspace_frames.h"

#include "user_frame.h"

enum { COLUMN_CHANGED = 2, COLUMN_USER };

void workspace_publish(const struct invocation *invocation, const char *type, const char *json,
                       size_t length)
{
    user_frame_publish(invocation->api, invocation->actor->workspace_id, type, json, length);
}

void workspace_session_changed(const struct invocation *invocation, const char *id)
{
    const struct api_options *options = &invocation->api->options;

    options->on_session_changed(options->arg, id);
}

void workspace_user_created(struct invocation *invocation, const struct result *result)
{
    workspace_publish(invocation, "team_join", result_text(result, 0, COLUMN_CHANGED),
                      result_length(result, 0, COLUMN_CHANGED));
}

void workspace_user_changed(struct invocation *invocation, const struct result *result)
{
    workspace_session_changed(invocation, result_text(result, 0, COLUMN_USER));
    workspace_publish(invocation, "user_change", result_text(result, 0, COLUMN_CHANGED),
                      result_length(result, 0, COLUMN_CHANGED));
}
