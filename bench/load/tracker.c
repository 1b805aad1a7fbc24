// SPDX-License-Identifier: Apache-2.0
#include "tracker.h"

#include "../common/tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARKER_LEN 19 // ~rrrrrrrr:nnnnnnnn~

void tracker_init(struct tracker *tracker, size_t members)
{
    *tracker = (struct tracker){
        .run = (uint32_t)(tool_now_ns() >> 10), .members = members, .words = (members + 63) / 64};
}

void tracker_done(struct tracker *tracker)
{
    free(tracker->posts);
    free(tracker->seen);
    samples_done(&tracker->latency);
    *tracker = (struct tracker){0};
}

static void grow(struct tracker *tracker)
{
    size_t room = tracker->room > 0 ? tracker->room * 2 : 4096;
    size_t words = tracker->words * sizeof(uint64_t);

    tracker->posts = tool_grow(tracker->posts, room * sizeof(struct tracked_post));
    tracker->seen = tool_grow(tracker->seen, room * words);
    memset((char *)tracker->seen + tracker->room * words, 0, (room - tracker->room) * words);
    tracker->room = room;
}

void tracker_add(struct tracker *tracker, uint64_t due_ns, char *ret_text, size_t bytes)
{
    if (tracker->count == tracker->room)
        grow(tracker);
    snprintf(ret_text, MARKER_LEN + 1, "~%08x:%08x~", tracker->run, (unsigned)tracker->count);
    if (bytes > MARKER_LEN)
        memset(ret_text + MARKER_LEN, 'x', bytes - MARKER_LEN);
    ret_text[bytes > MARKER_LEN ? bytes : MARKER_LEN] = '\0';
    tracker->posts[tracker->count++] = (struct tracked_post){.due_ns = due_ns};
}

static void count_complete(struct tracker *tracker, const struct tracked_post *post)
{
    tracker->complete += post->acked && post->received == tracker->members;
}

void tracker_ack(struct tracker *tracker, size_t n)
{
    tracker->posts[n].acked = true;
    count_complete(tracker, &tracker->posts[n]);
}

static bool parse_hex(const char *text, uint32_t *ret_value)
{
    uint32_t value = 0;

    for (int i = 0; i < 8; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c >= '0' && c <= '9')
            value = value << 4 | (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value << 4 | (uint32_t)(c - 'a' + 10);
        else
            return false;
    }
    *ret_value = value;
    return true;
}

static bool find_post(const struct tracker *tracker, const char *text, size_t len, uint32_t *ret_n)
{
    const char *at = memmem(text, len, "\"~", 2);
    uint32_t run;

    if (!at || (size_t)(text + len - at) < 1 + MARKER_LEN)
        return false;
    return parse_hex(at + 2, &run) && run == tracker->run && parse_hex(at + 11, ret_n) &&
           *ret_n < tracker->count;
}

bool tracker_frame(struct tracker *tracker, size_t member, const char *text, size_t len,
                   uint64_t now_ns)
{
    struct tracked_post *post;
    uint64_t *word, bit = 1ull << (member % 64);
    uint32_t n;

    if (!find_post(tracker, text, len, &n))
        return false;
    post = &tracker->posts[n];
    word = &tracker->seen[n * tracker->words + member / 64];
    tracker->frames++;
    tracker->bytes += len;
    if ((*word & bit) != 0) {
        tracker->doubled++;
        return true;
    }
    *word |= bit;
    post->received++;
    count_complete(tracker, post);
    if (post->due_ns >= tracker->warm_until_ns)
        samples_add(&tracker->latency, now_ns - post->due_ns);
    return true;
}

uint64_t tracker_lost(const struct tracker *tracker)
{
    uint64_t lost = 0;

    for (size_t n = 0; n < tracker->count; n++)
        if (tracker->posts[n].acked)
            lost += tracker->members - tracker->posts[n].received;
    return lost;
}
