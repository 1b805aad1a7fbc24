// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "invocation.h"

// Sends a user to all connections of the workspace, in a frame of `type`: `json` is {"user":{…}}.
void user_frame_publish(struct api *api, const char *workspace_id, const char *type,
                        const char *json, size_t length);
