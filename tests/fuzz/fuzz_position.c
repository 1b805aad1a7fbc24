// SPDX-License-Identifier: Apache-2.0
// Where a client asks an event stream to go on (Last-Event-ID): what is read is printed, and read
// again, as the same position.
#include "../../src/gateway/position.h"
#include "fuzz.h"

static bool same_position(const struct position *a, const struct position *b)
{
    return a->xid == b->xid && a->received_xid == b->received_xid && a->seconds == b->seconds &&
           a->era == b->era && a->owner == b->owner;
}

static bool same_progress(const struct progress *a, const struct progress *b)
{
    return same_position(&a->until, &b->until) && strcmp(a->channel_id, b->channel_id) == 0 &&
           a->part == b->part && a->number == b->number;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct position position, position_again;
    struct progress progress, progress_again;
    char text[POSITION_SIZE];
    if (position_parse((const char *)data, size, &position, &progress) < 0)
        return 0;
    assert(position.received_xid >= 1 && position.received_xid <= position.xid);
    assert(position.seconds >= 1 && position.era >= 0 && position.owner >= 0);
    position_print(&position, &progress, text);
    assert(strlen(text) < sizeof text);
    int r = position_parse(text, strlen(text), &position_again, &progress_again);
    assert(r == 0 && same_position(&position, &position_again));
    assert(same_progress(&progress, &progress_again));
    return 0;
}
