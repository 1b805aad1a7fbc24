// SPDX-License-Identifier: Apache-2.0
// Draws pictures: five by five squares, the right side mirroring the left, in one of sixteen
// colours. Nothing is looked up for it, so it says nothing about who exists.
#include "http/picture.h"

#include <libdeflate.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/id.h"

enum { SQUARES = 5, ROW_BYTES_MAX = 1 + (PICTURE_PIXELS_MAX + 7) / 8, LEVEL = 6 };

static void number_write(uint32_t number, uint8_t *to)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(number >> (24 - 8 * i));
}

static void chunk_append(struct buffer *out, const char *type, const void *data, size_t length)
{
    uint8_t number[4];
    uint32_t crc = libdeflate_crc32(libdeflate_crc32(0, type, 4), data, length);

    number_write((uint32_t)length, number);
    buffer_append(out, number, sizeof number);
    buffer_append(out, type, 4);
    buffer_append(out, data, length);
    number_write(crc, number);
    buffer_append(out, number, sizeof number);
}

// Whether the pattern of `digest` fills the pixel. A margin of half a square is left.
static bool is_filled(const uint8_t *digest, int pixels, int x, int y)
{
    int column = (x * 2 * (SQUARES + 1) / pixels - 1) / 2;
    int row = (y * 2 * (SQUARES + 1) / pixels - 1) / 2;
    bool is_margin = x * 2 * (SQUARES + 1) < pixels || y * 2 * (SQUARES + 1) < pixels ||
                     column >= SQUARES || row >= SQUARES;

    if (column > SQUARES / 2)
        column = SQUARES - 1 - column;
    return !is_margin && (digest[row * (SQUARES / 2 + 1) + column] & 1) != 0;
}

// Rows of one bit a pixel, each behind a byte for its filter: none.
static void pixels_draw(const uint8_t *digest, int pixels, uint8_t *rows)
{
    size_t row_bytes = (size_t)(1 + (pixels + 7) / 8);

    for (int y = 0; y < pixels; y++)
        for (int x = 0; x < pixels; x++)
            if (is_filled(digest, pixels, x, y))
                rows[(size_t)y * row_bytes + 1 + (size_t)x / 8] |= (uint8_t)(0x80 >> (x % 8));
}

static void rows_append(struct buffer *out, const uint8_t *digest, int pixels)
{
    uint8_t rows[ROW_BYTES_MAX * PICTURE_PIXELS_MAX] = {0};
    uint8_t packed[sizeof rows];
    size_t length = (size_t)(1 + (pixels + 7) / 8) * (size_t)pixels;
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(LEVEL);

    if (!compressor) {
        out->failed = true;
        return;
    }
    pixels_draw(digest, pixels, rows);
    size_t size = libdeflate_zlib_compress(compressor, rows, length, packed, sizeof packed);
    chunk_append(out, "IDAT", packed, size);
    libdeflate_free_compressor(compressor);
}

void picture_append(const char *id, int pixels, struct buffer *out)
{
    static const uint8_t colours[16][3] = {
        {0xc0, 0x39, 0x2b}, {0xd3, 0x54, 0x00}, {0xb9, 0x77, 0x0e}, {0x7d, 0x66, 0x08},
        {0x1e, 0x84, 0x49}, {0x11, 0x7a, 0x65}, {0x0e, 0x66, 0x55}, {0x1f, 0x61, 0x8d},
        {0x28, 0x74, 0xa6}, {0x2e, 0x40, 0x53}, {0x6c, 0x34, 0x83}, {0x76, 0x44, 0x8a},
        {0x94, 0x31, 0x26}, {0x5d, 0x40, 0x37}, {0x45, 0x5a, 0x64}, {0xad, 0x14, 0x57},
    };
    char digest[DIGEST_HEX_SIZE];
    uint8_t palette[6] = {0xf2, 0xf3, 0xf4};
    uint8_t header[13] = {[8] = 1, [9] = 3}; // one bit a pixel, of a palette

    digest_sha256_hex(id, strlen(id), digest);
    memcpy(palette + 3, colours[(unsigned char)digest[DIGEST_HEX_SIZE - 2] & 15], 3);
    number_write((uint32_t)pixels, header);
    number_write((uint32_t)pixels, header + 4);
    buffer_append(out, "\x89PNG\r\n\x1a\n", 8);
    chunk_append(out, "IHDR", header, sizeof header);
    chunk_append(out, "PLTE", palette, sizeof palette);
    rows_append(out, (const uint8_t *)digest, pixels);
    chunk_append(out, "IEND", "", 0);
}

// "/avatars/48/U1.png". -ERROR_INVALID_ARGUMENTS: another form, or size.
static int path_parse(const char *path, char *ret_id, int *ret_pixels)
{
    static const struct {
        const char *name;
        int pixels;
    } sizes[] = {{"24", 24}, {"32", 32}, {"48", 48}, {"72", 72}, {"192", 192}, {"512", 512}};
    char size[4];
    int end = 0;

    if (sscanf(path, "/avatars/%3[0-9]/%20[A-Z0-9].png%n", size, ret_id, &end) != 2 || end == 0 ||
        path[end] != '\0' || !id_is_valid(ret_id, "UWB"))
        return -ERROR_INVALID_ARGUMENTS;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (strcmp(sizes[i].name, size) == 0) {
            *ret_pixels = sizes[i].pixels;
            return 0;
        }
    return -ERROR_INVALID_ARGUMENTS;
}

int picture_page(void *arg, const char *path, struct buffer *body, const char **ret_type)
{
    char id[ID_SIZE];
    int pixels;

    (void)arg;
    if (path_parse(path, id, &pixels) < 0) {
        *ret_type = "text/plain; charset=utf-8";
        buffer_append_text(body, "not found\n");
        return 404;
    }
    *ret_type = "image/png";
    picture_append(id, pixels, body);
    return 200;
}
