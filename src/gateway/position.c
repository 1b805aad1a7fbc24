// SPDX-License-Identifier: Apache-2.0
// Prints and parses positions: the ids of events, and the positions of sockets and calls.
#include "position.h"

#include "text_cut.h"

#include "base/digest.h"
#include "base/error.h"
#include "base/versioned.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 4, PROGRESS_NUMBERS = 6, OWNER_DIGITS = 12 };

// Prints an id as digits: the code of each character, 48 to 90, in two digits.
static void channel_print(const char *channel_id, char *ret_digits)
{
    for (; *channel_id; channel_id++) {
        *ret_digits++ = (char)('0' + *channel_id / 10);
        *ret_digits++ = (char)('0' + *channel_id % 10);
    }
    *ret_digits = '\0';
}

static bool channel_parse(struct text digits, char *ret_channel_id)
{
    if (digits.length % 2 != 0 || digits.length > 2 * ID_LENGTH_MAX)
        return false;
    for (size_t i = 0; i < digits.length; i += 2)
        ret_channel_id[i / 2] = (char)(10 * (digits.data[i] - '0') + digits.data[i + 1] - '0');
    ret_channel_id[digits.length / 2] = '\0';
    return id_is_valid(ret_channel_id, "CGD");
}

int64_t position_owner(const char *user_id)
{
    char digest[DIGEST_HEX_SIZE];

    digest_sha256_hex(user_id, strlen(user_id), digest);
    digest[OWNER_DIGITS] = '\0';
    return strtoll(digest, NULL, 16) | 1; // never 0
}

bool position_is_of_another(const struct position *position, const char *user_id)
{
    return position->owner != 0 && position->owner != position_owner(user_id);
}

static int progress_print(const struct progress *progress, char *ret_text, size_t size)
{
    char channel[2 * ID_LENGTH_MAX + 1];

    if (!progress || !progress->channel_id[0])
        return 0;
    channel_print(progress->channel_id, channel);
    return snprintf(ret_text, size, ".%" PRId64 ".%" PRId64 ".%" PRId64 ".%s.%d.%" PRId64,
                    progress->until.xid, progress->until.seconds, progress->until.era, channel,
                    (int)progress->part, progress->number);
}

int64_t beyond_seq(const struct beyond *beyond, const char *channel_id)
{
    for (int i = 0; i < beyond->count; i++)
        if (strcmp(beyond->channels[i].channel_id, channel_id) == 0)
            return beyond->channels[i].seq;
    return 0;
}

bool beyond_add(struct beyond *beyond, const char *channel_id, int64_t seq)
{
    if (beyond->count == BEYOND_MAX)
        return false;
    snprintf(beyond->channels[beyond->count].channel_id, ID_SIZE, "%s", channel_id);
    beyond->channels[beyond->count++].seq = seq;
    return true;
}

void place_drop_reached(struct place *place)
{
    const struct progress *progress = &place->progress;
    struct beyond kept = {0};

    for (int i = 0; i < place->beyond.count && progress->part != PROGRESS_CREATED; i++)
        if (strcmp(place->beyond.channels[i].channel_id, progress->channel_id) > 0)
            (void)beyond_add(&kept, place->beyond.channels[i].channel_id,
                             place->beyond.channels[i].seq);
    place->beyond = kept;
}

static int beyond_print(const struct beyond *beyond, char *ret_text, size_t size)
{
    char channel[2 * ID_LENGTH_MAX + 1];
    int length = 0;

    if (beyond->count > 0)
        length = snprintf(ret_text, size, ".0.%d", beyond->count);
    for (int i = 0; i < beyond->count; i++) {
        channel_print(beyond->channels[i].channel_id, channel);
        length += snprintf(ret_text + length, size - (size_t)length, ".%s.%" PRId64, channel,
                           beyond->channels[i].seq);
    }
    return length;
}

static void text_print(const struct position *position, const struct beyond *beyond,
                       const struct progress *progress, char *ret_text, size_t size)
{
    int length = snprintf(ret_text, size, "e1.%" PRId64 ".%" PRId64 ".%" PRId64 ".%" PRId64,
                          position->xid, position->received_xid, position->seconds, position->era);
    if (beyond)
        length += beyond_print(beyond, ret_text + length, size - (size_t)length);
    length += progress_print(progress, ret_text + length, size - (size_t)length);
    if (position->owner > 0)
        snprintf(ret_text + length, size - (size_t)length, ".%" PRId64, position->owner);
}

void position_print(const struct position *position, const struct progress *progress,
                    char *ret_text)
{
    text_print(position, NULL, progress, ret_text, POSITION_SIZE);
}

void place_print(struct place *place)
{
    position_print(&place->since, &place->progress, place->text);
}

void place_print_all(const struct place *place, char *ret_text)
{
    text_print(&place->since, &place->beyond, &place->progress, ret_text, PLACE_SIZE);
}

static int progress_parse(struct text *rest, struct progress *ret_progress)
{
    struct text parts[PROGRESS_NUMBERS];
    struct progress progress = {0};
    int64_t part;
    for (int i = 0; i < PROGRESS_NUMBERS; i++)
        parts[i] = text_take(rest, ".");
    struct position *until = &progress.until;
    if (integer_parse(parts[0].data, parts[0].length, 1, INT64_MAX, &until->xid) < 0 ||
        integer_parse(parts[1].data, parts[1].length, 1, INT64_MAX, &until->seconds) < 0 ||
        integer_parse(parts[2].data, parts[2].length, 0, INT64_MAX, &until->era) < 0 ||
        !channel_parse(parts[3], progress.channel_id) ||
        integer_parse(parts[4].data, parts[4].length, 0, PROGRESS_PART_MAX - 1, &part) < 0 ||
        integer_parse(parts[5].data, parts[5].length, 0, INT64_MAX, &progress.number) < 0)
        return -ERROR_INVALID_ARGUMENTS;
    until->received_xid = until->xid;
    progress.part = (enum progress_part)part;
    *ret_progress = progress;
    return 0;
}

static int dots_count(struct text text)
{
    int count = 0;
    for (size_t i = 0; i < text.length; i++)
        count += text.data[i] == '.';
    return count;
}

// -ERROR_INVALID_ARGUMENTS: nothing after it can be read either.
static int beyond_parse(struct text *rest, struct beyond *ret_beyond)
{
    struct text count = text_take(rest, ".");
    struct beyond beyond = {0};
    int64_t number;
    if (integer_parse(count.data, count.length, 1, BEYOND_MAX, &number) < 0)
        return -ERROR_INVALID_ARGUMENTS;
    beyond.count = (int)number;
    for (int i = 0; i < beyond.count; i++) {
        struct text channel = text_take(rest, ".");
        struct text seq = text_take(rest, ".");
        if (!channel_parse(channel, beyond.channels[i].channel_id) ||
            integer_parse(seq.data, seq.length, 1, INT64_MAX, &beyond.channels[i].seq) < 0)
            return -ERROR_INVALID_ARGUMENTS;
    }
    *ret_beyond = beyond;
    return 0;
}

// The text after the position: what is beyond, the progress and the owner, each perhaps absent.
static void rest_parse(struct text rest, struct place *place)
{
    struct position *position = &place->since;
    struct progress *ret_progress = &place->progress;
    if (rest.length > 1 && rest.data[0] == '0' && rest.data[1] == '.') {
        (void)text_take(&rest, ".");
        if (beyond_parse(&rest, &place->beyond) < 0)
            return;
    }
    if (rest.length == 0)
        return;
    if (dots_count(rest) + 1 >= PROGRESS_NUMBERS &&
        (progress_parse(&rest, ret_progress) < 0 || ret_progress->until.xid < position->xid))
        *ret_progress = (struct progress){0};
    struct text owner = text_take(&rest, ".");
    if (owner.length > 0 && rest.length == 0 &&
        integer_parse(owner.data, owner.length, 1, INT64_MAX, &position->owner) < 0)
        position->owner = 0;
}

int place_parse(const char *text, size_t length, struct place *ret_place)
{
    int64_t numbers[NUMBERS] = {1, 1, 1, 0}; // for a later version: before everything
    int version = versioned_parse(text, length, 'e', numbers, NUMBERS);
    if (version < 0)
        return version;
    struct position position = {numbers[0], numbers[1], numbers[2], numbers[3], 0};
    if (position.received_xid < 1 || position.received_xid > position.xid || position.seconds < 1)
        return -ERROR_INVALID_ARGUMENTS; // only the era may be 0
    struct text rest = {text, length};
    for (int i = 0; i < 1 + NUMBERS; i++)
        (void)text_take(&rest, ".");
    *ret_place = (struct place){.since = position};
    if (version == 1)
        rest_parse(rest, ret_place);
    return 0;
}
