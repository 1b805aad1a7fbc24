// SPDX-License-Identifier: Apache-2.0
// Decodes a chunked body: lines byte by byte, data in pieces.
#include "chunks.h"

#include <string.h>

enum {
    CHUNKS_DIGITS_MAX = 15,       // a size then fits into 64 bits
    CHUNKS_LINES_BYTES_MAX = 1024 // between two pieces of data, and for the whole trailer
};

static int hex_value(unsigned char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    if (byte >= 'a' && byte <= 'f')
        return byte - 'a' + 10;
    return byte >= 'A' && byte <= 'F' ? byte - 'A' + 10 : -1;
}

static bool is_value(unsigned char byte)
{
    return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
}

static bool is_name(unsigned char byte)
{
    return byte > 0x20 && byte < 0x7f && !strchr("\"(),/:;<=>?@[\\]{}", byte);
}

static enum chunks_state bad(struct chunks *chunks, const char *reason)
{
    chunks->reason = reason;
    return CHUNKS_BAD;
}

static enum chunks_state size_step(struct chunks *chunks, unsigned char byte)
{
    int value = hex_value(byte);
    if (value >= 0) {
        chunks->length = chunks->length * 16 + (uint64_t)value;
        return ++chunks->digits <= CHUNKS_DIGITS_MAX ? CHUNKS_SIZE
                                                     : bad(chunks, "a chunk's size is too large");
    }
    if (chunks->digits > 0 && byte == '\r')
        return CHUNKS_SIZE_LF;
    if (chunks->digits > 0 && byte == ';')
        return CHUNKS_EXTENSION;
    if (chunks->digits > 0 && byte == '\n')
        return bad(chunks, "a line of the chunked body does not end with CR LF");
    return bad(chunks, "a malformed chunk size");
}

// The next state if `byte` is the `wanted` byte of a line end; otherwise CHUNKS_BAD.
static enum chunks_state end_step(struct chunks *chunks, unsigned char wanted, unsigned char byte,
                                  enum chunks_state next)
{
    return byte == wanted ? next
                          : bad(chunks, "a line of the chunked body does not end with CR LF");
}

static enum chunks_state chunk_begin(struct chunks *chunks)
{
    chunks->digits = 0;
    return CHUNKS_SIZE;
}

static enum chunks_state trailer_step(struct chunks *chunks, unsigned char byte)
{
    switch (chunks->state) {
    case CHUNKS_LINE:
        return is_name(byte) ? CHUNKS_NAME : end_step(chunks, '\r', byte, CHUNKS_LAST_LF);
    case CHUNKS_NAME:
        if (is_name(byte))
            return CHUNKS_NAME;
        return byte == ':' ? CHUNKS_VALUE : bad(chunks, "a malformed trailer");
    case CHUNKS_VALUE:
        return is_value(byte) ? CHUNKS_VALUE : end_step(chunks, '\r', byte, CHUNKS_VALUE_LF);
    case CHUNKS_VALUE_LF:
        return end_step(chunks, '\n', byte, CHUNKS_LINE);
    default:
        return end_step(chunks, '\n', byte, CHUNKS_END);
    }
}

static enum chunks_state line_step(struct chunks *chunks, unsigned char byte)
{
    if (++chunks->line_bytes > CHUNKS_LINES_BYTES_MAX)
        return bad(chunks, "a line of the chunked body is too long");
    switch (chunks->state) {
    case CHUNKS_SIZE:
        return size_step(chunks, byte);
    case CHUNKS_EXTENSION:
        return is_value(byte) ? CHUNKS_EXTENSION : end_step(chunks, '\r', byte, CHUNKS_SIZE_LF);
    case CHUNKS_SIZE_LF:
        return end_step(chunks, '\n', byte, chunks->length > 0 ? CHUNKS_DATA : CHUNKS_LINE);
    case CHUNKS_DATA_CR:
        return end_step(chunks, '\r', byte, CHUNKS_DATA_LF);
    case CHUNKS_DATA_LF:
        return end_step(chunks, '\n', byte, chunk_begin(chunks));
    default:
        return trailer_step(chunks, byte);
    }
}

static bool is_line(const struct chunks *chunks)
{
    return chunks->state != CHUNKS_DATA && chunks->state != CHUNKS_END &&
           chunks->state != CHUNKS_BAD;
}

size_t chunks_read(struct chunks *chunks, const char *text, size_t length, const char **ret_data,
                   size_t *ret_size)
{
    size_t count = 0;
    while (count < length && is_line(chunks))
        chunks->state = line_step(chunks, (unsigned char)text[count++]);
    *ret_data = text + count;
    *ret_size = 0;
    if (chunks->state != CHUNKS_DATA)
        return count;
    size_t left = length - count;
    *ret_size = left < chunks->length ? left : (size_t)chunks->length;
    chunks->length -= *ret_size;
    if (*ret_size > 0)
        chunks->line_bytes = 0;
    if (chunks->length == 0)
        chunks->state = CHUNKS_DATA_CR;
    return count + *ret_size;
}

bool chunks_at_end(const struct chunks *chunks)
{
    return chunks->state == CHUNKS_END;
}
