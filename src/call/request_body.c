// SPDX-License-Identifier: Apache-2.0
// Charges the bytes of a request's body and reply to its caller.
#include "call/transport.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

// Smaller replies are not charged: there are at most as many as connections.
enum { REPLY_SMALL_BYTES = 65536 };

int request_hold(struct request *request, int64_t bytes)
{
    int r = request->intake ? intake_take(request->intake, request->owner, bytes) : 0;
    if (r >= 0)
        request->held_bytes += bytes;
    return r;
}

void request_release(struct request *request)
{
    if (request->intake && request->held_bytes > 0)
        intake_give(request->intake, request->owner, request->held_bytes);
    request->held_bytes = 0;
    if (request->outgo && request->reply_bytes > 0)
        intake_give(request->outgo, request->actor.user_id, request->reply_bytes);
    request->reply_bytes = 0;
}

int request_hold_reply(struct request *request)
{
    int64_t bytes = (int64_t)request->reply.length;
    if (!request->outgo || bytes <= REPLY_SMALL_BYTES)
        return 0;
    int r = intake_take(request->outgo, request->actor.user_id, bytes);
    if (r >= 0)
        request->reply_bytes = bytes;
    return r;
}

// Transfers the charge to `owner`.
static int owner_change(struct request *request, const char *owner)
{
    if (strcmp(request->owner, owner) == 0)
        return 0;
    int r = request->held_bytes > 0
                ? intake_move(request->intake, request->owner, owner, request->held_bytes)
                : 0;
    if (r >= 0)
        snprintf(request->owner, sizeof request->owner, "%s", owner);
    return r;
}

int request_charge(struct request *request, const char *owner)
{
    if (!request->intake || request->body_bytes == 0)
        return 0;
    int64_t missing = request->body_bytes - request->held_bytes;
    int r = owner_change(request, owner);
    if (r < 0 || missing <= 0)
        return r;
    r = intake_take_small(request->intake, owner, missing);
    if (r >= 0)
        request->held_bytes += missing;
    return r;
}

int64_t request_body_bytes(const struct request *request)
{
    return request->body_bytes;
}

void request_admit(struct request *request, const char *owner)
{
    snprintf(request->owner, sizeof request->owner, "%s", owner);
    request->admit(request);
}
