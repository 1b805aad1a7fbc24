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

void position_print(const struct position *position, const struct progress *progress,
                    char *ret_text)
{
    int length =
        snprintf(ret_text, POSITION_SIZE, "e1.%" PRId64 ".%" PRId64 ".%" PRId64 ".%" PRId64,
                 position->xid, position->received_xid, position->seconds, position->era);
    length += progress_print(progress, ret_text + length, POSITION_SIZE - (size_t)length);
    if (position->owner > 0)
        snprintf(ret_text + length, POSITION_SIZE - (size_t)length, ".%" PRId64, position->owner);
}

void place_print(struct place *place)
{
    position_print(&place->since, &place->progress, place->text);
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

// The text after the position: the progress, the owner, both or neither.
static void rest_parse(struct text rest, struct position *position, struct progress *ret_progress)
{
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

int position_parse(const char *text, size_t length, struct position *ret_position,
                   struct progress *ret_progress)
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
    *ret_progress = (struct progress){0};
    if (version == 1)
        rest_parse(rest, &position, ret_progress);
    *ret_position = position;
    return 0;
}
