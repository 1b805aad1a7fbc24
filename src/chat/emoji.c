// SPDX-License-Identifier: Apache-2.0
// Checks names of emoji.
#include "chat/emoji.h"

#include <string.h>

static const char tone[] = "::skin-tone-";
enum { TONE_LENGTH = sizeof tone - 1 };

static size_t plain_length(const char *text, size_t length)
{
    size_t n = 0;

    while (n < length && text[n] != '\0' &&
           strchr("abcdefghijklmnopqrstuvwxyz0123456789_+'-", text[n]))
        n++;
    return n;
}

bool emoji_name_is_plain(const char *text, size_t length)
{
    return length > 0 && length <= EMOJI_NAME_MAX && plain_length(text, length) == length;
}

bool emoji_name_is_valid(const char *text, size_t length)
{
    size_t plain = plain_length(text, length);

    if (plain == 0 || plain > EMOJI_NAME_MAX)
        return false;
    if (plain == length)
        return true;
    return length - plain == TONE_LENGTH + 1 && memcmp(text + plain, tone, TONE_LENGTH) == 0 &&
           text[length - 1] >= '2' && text[length - 1] <= '6';
}
