// SPDX-License-Identifier: Apache-2.0
// The types of files. Those that browsers may show are known by their bytes alone: never by a name,
// and none of them can contain a script that runs where it is shown.
#include "files/file_type.h"

#include <string.h>
#include <strings.h>

struct magic {
    size_t at;
    const char *bytes;
    struct file_type type;
};

static const struct magic magics[] = {
    {0, "\x89PNG\r\n\x1a\n", {"png", "image/png"}},
    {0, "\xff\xd8\xff", {"jpg", "image/jpeg"}},
    {0, "GIF87a", {"gif", "image/gif"}},
    {0, "GIF89a", {"gif", "image/gif"}},
    {8, "WEBP", {"webp", "image/webp"}},
    {4, "ftypisom", {"mp4", "video/mp4"}},
    {4, "ftypiso2", {"mp4", "video/mp4"}},
    {4, "ftypmp41", {"mp4", "video/mp4"}},
    {4, "ftypmp42", {"mp4", "video/mp4"}},
    {0, "%PDF-", {"pdf", "application/pdf"}},
};

// By name: none that is shown.
static const struct file_type named[] = {
    {"txt", "text/plain"},      {"log", "text/plain"},        {"md", "text/plain"},
    {"csv", "text/plain"},      {"json", "application/json"}, {"zip", "application/zip"},
    {"gz", "application/gzip"}, {"svg", "image/svg+xml"},     {"html", "text/html"},
    {"mp3", "audio/mpeg"},      {"wav", "audio/wav"},         {"yaml", "text/plain"},
    {"xml", "application/xml"},
};

static const struct file_type binary = {"binary", "application/octet-stream"};

static bool magic_fits(const struct magic *magic, const unsigned char *bytes, size_t size)
{
    size_t length = strlen(magic->bytes);
    return size >= magic->at + length && memcmp(bytes + magic->at, magic->bytes, length) == 0;
}

const struct file_type *file_type_of(const unsigned char *bytes, size_t size, const char *name)
{
    for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++)
        if (magic_fits(&magics[i], bytes, size))
            return &magics[i].type;
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof named / sizeof named[0]; i++)
        if (strcasecmp(dot + 1, named[i].name) == 0)
            return &named[i];
    return &binary;
}

bool file_type_is_shown(const char *mime)
{
    for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++)
        if (strcmp(magics[i].type.mime, mime) == 0)
            return true;
    return false;
}
