// SPDX-License-Identifier: Apache-2.0
// Parses a request's head strictly, before libmicrohttpd sees it.
#include "head.h"

#include <string.h>
#include <strings.h>

enum {
    HEAD_VERB_MAX = 16,
    // Ten to the power of this many digits is less than 2^63.
    HEAD_LENGTH_DIGITS_MAX = 18
};

static size_t verb_length(const char *text, size_t length)
{
    size_t count = 0;
    while (count < length && text[count] >= 'A' && text[count] <= 'Z')
        count++;
    return count;
}

static size_t target_length(const char *text, size_t length)
{
    size_t count = 0;
    while (count < length && (unsigned char)text[count] > 0x20 && text[count] != 0x7f)
        count++;
    return count;
}

// Whether `text` begins with a verb and a blank, or may yet.
static bool verb_is_fine(const char *text, size_t length)
{
    size_t count = verb_length(text, length);
    return count <= HEAD_VERB_MAX && (count == length || (count > 0 && text[count] == ' '));
}

static const char *line_check(const char *line, size_t length)
{
    size_t verb = verb_length(line, length);
    if (verb == length)
        return "a malformed request line";
    const char *target = line + verb + 1;
    size_t left = length - verb - 1;
    size_t count = target_length(target, left);
    if (count == 0 || target[0] != '/')
        return "a malformed target";
    if (count == left || target[count] != ' ')
        return "a malformed request line";
    const char *version = target + count + 1;
    left -= count + 1;
    if (left != 8 || (memcmp(version, "HTTP/1.1", 8) != 0 && memcmp(version, "HTTP/1.0", 8) != 0))
        return "an unknown version";
    return NULL;
}

static bool length_is_fine(const char *value, size_t length)
{
    while (length > 0 && (*value == ' ' || *value == '\t')) {
        value++;
        length--;
    }
    if (length == 0 || length > HEAD_LENGTH_DIGITS_MAX)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (value[i] < '0' || value[i] > '9')
            return false;
    }
    return true;
}

static const char *field_check(const char *line, size_t length)
{
    static const char name[] = "Content-Length:";
    const size_t name_length = sizeof name - 1;
    const char *colon = memchr(line, ':', length);
    if (!colon || colon == line || line[0] == ' ' || line[0] == '\t')
        return "a malformed header line";
    if (length >= name_length && strncasecmp(line, name, name_length) == 0 &&
        !length_is_fine(line + name_length, length - name_length))
        return "a malformed Content-Length header";
    return NULL;
}

// The length without CR LF of the line that begins at `text` and ends at `end`; negative when it
// ends otherwise.
static ptrdiff_t line_length(const char *text, const char *end)
{
    return end > text && end[-1] == '\r' ? end - 1 - text : -1;
}

const char *head_scan_fields(const char *text, size_t length, bool *ret_complete)
{
    const char *end = text + length;
    const char *feed;
    *ret_complete = false;
    for (const char *line = text; (feed = memchr(line, '\n', (size_t)(end - line)));
         line = feed + 1) {
        ptrdiff_t count = line_length(line, feed);
        if (count == 0) {
            *ret_complete = true;
            return NULL;
        }
        const char *reason =
            count < 0 ? "a malformed end of a line" : field_check(line, (size_t)count);
        if (reason)
            return reason;
    }
    return NULL;
}

const char *head_scan(const char *text, size_t length, struct head_progress *ret_progress)
{
    *ret_progress = (struct head_progress){0};
    if (!verb_is_fine(text, length))
        return "a malformed request line";
    const char *feed = memchr(text, '\n', length);
    if (!feed)
        return NULL;
    ptrdiff_t count = line_length(text, feed);
    const char *reason = count < 0 ? "a malformed end of a line" : line_check(text, (size_t)count);
    if (reason)
        return reason;
    ret_progress->line_length = (size_t)count;
    return head_scan_fields(feed + 1, length - (size_t)(feed + 1 - text), &ret_progress->complete);
}
