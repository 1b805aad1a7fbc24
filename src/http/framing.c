// SPDX-License-Identifier: Apache-2.0
// The two framings of a body.
#include "framing.h"

static size_t length_read(struct framing *framing, const char *text, size_t length,
                          const char **ret_data, size_t *ret_size)
{
    *ret_data = text;
    *ret_size = framing->left < length ? (size_t)framing->left : length;
    framing->left -= *ret_size;
    return *ret_size;
}

static bool length_at_end(const struct framing *framing)
{
    return framing->left == 0;
}

static size_t chunked_read(struct framing *framing, const char *text, size_t length,
                           const char **ret_data, size_t *ret_size)
{
    size_t count = chunks_read(&framing->chunks, text, length, ret_data, ret_size);
    framing->reason = framing->chunks.reason;
    return count;
}

static bool chunked_at_end(const struct framing *framing)
{
    return chunks_at_end(&framing->chunks);
}

static const struct framing_ops length_ops = {.read = length_read, .at_end = length_at_end};
static const struct framing_ops chunked_ops = {.read = chunked_read, .at_end = chunked_at_end};

void framing_init(struct framing *framing, const struct http_head *head, uint64_t length)
{
    *framing = (struct framing){.ops = &length_ops, .left = length};
    if (head->transfer_encoding)
        *framing = (struct framing){.ops = &chunked_ops};
}
