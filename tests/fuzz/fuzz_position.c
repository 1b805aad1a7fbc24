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

static bool same_beyond(const struct beyond *a, const struct beyond *b)
{
    bool same = a->count == b->count;
    for (int i = 0; same && i < a->count; i++)
        same = strcmp(a->channels[i].channel_id, b->channels[i].channel_id) == 0 &&
               a->channels[i].seq == b->channels[i].seq;
    return same;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct place place, again;
    char text[PLACE_SIZE];
    if (place_parse((const char *)data, size, &place) < 0)
        return 0;
    const struct position *since = &place.since;
    assert(since->received_xid >= 1 && since->received_xid <= since->xid);
    assert(since->seconds >= 1 && since->era >= 0 && since->owner >= 0);
    place_print_all(&place, text);
    assert(strlen(text) < sizeof text);
    int r = place_parse(text, strlen(text), &again);
    assert(r == 0 && same_position(since, &again.since));
    assert(same_progress(&place.progress, &again.progress));
    assert(same_beyond(&place.beyond, &again.beyond));
    return 0;
}
