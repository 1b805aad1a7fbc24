// SPDX-License-Identifier: Apache-2.0
// The state of reading a backlog: its progress, and the request in flight.
#include "resume_state.h"

#include "../core.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

void resume_done(struct resume *resume)
{
    free(resume->behind);
    TAGGED_FREE(resume);
}

void resume_progress_set(struct resume *resume, const char *channel_id, enum progress_part part,
                         int64_t number)
{
    struct progress *progress = &resume->place->progress;
    snprintf(progress->channel_id, sizeof progress->channel_id, "%s", channel_id);
    progress->part = part;
    progress->number = number;
    place_print(resume->place);
}

void resume_send(struct resume *resume, const char *type, const struct buffer *frame)
{
    if (!buffer_failed(frame))
        resume->ops->send(resume->arg, type, frame);
}

void resume_send_own(struct resume *resume, const char *type, const struct buffer *frame)
{
    if (!buffer_failed(frame))
        resume->ops->send_own(resume->arg, type, frame);
}

void resume_ask(struct resume *resume)
{
    gateway_ask(resume->gateway);
    resume->is_asked = true;
}

bool resume_answer(struct resume *resume, const struct store_outcome *outcome)
{
    bool alive = gateway_answer(resume->gateway);
    resume->is_asked = false;
    if (!resume->arg) {
        resume_done(resume);
        return false;
    }
    if (alive && outcome->r >= 0)
        return true;
    resume->ops->fail(resume->arg);
    return false;
}
