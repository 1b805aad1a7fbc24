// SPDX-License-Identifier: Apache-2.0
// Parses redis:// URLs.
#include "url.h"

#include "base/error.h"
#include "base/id.h"
#include "cache/cache.h"

#include <stdio.h>
#include <string.h>

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

// Copies [from, to), percent-decoded. Fails on NUL and if it does not fit.
static int part_copy(const char *from, const char *to, char *out, size_t size)
{
    size_t length = 0;
    while (from < to) {
        int byte = (unsigned char)*from++;
        if (byte == '%') {
            if (to - from < 2 || hex_digit(from[0]) < 0 || hex_digit(from[1]) < 0)
                return -ERROR_INVALID_ARGUMENTS;
            byte = hex_digit(from[0]) * 16 + hex_digit(from[1]);
            from += 2;
        }
        if (byte == 0 || length + 1 >= size)
            return -ERROR_INVALID_ARGUMENTS;
        out[length++] = (char)byte;
    }
    out[length] = '\0';
    return 0;
}

static int login_parse(const char *from, const char *to, struct url *url)
{
    const char *colon = memchr(from, ':', (size_t)(to - from));
    if (!colon)
        return -ERROR_INVALID_ARGUMENTS;
    int r = part_copy(from, colon, url->user, sizeof url->user);
    if (r < 0)
        return r;
    return part_copy(colon + 1, to, url->password, sizeof url->password);
}

static int port_parse(const char *from, const char *to, struct url *url)
{
    int64_t port;
    int r = integer_parse(from, (size_t)(to - from), 1, 65535, &port);
    if (r < 0)
        return r;
    snprintf(url->port, sizeof url->port, "%d", (int)port);
    return 0;
}

static int address_parse(const char *from, const char *to, struct url *url)
{
    const char *end = to;
    const char *rest = to;
    if (from < to && *from == '[') {
        end = memchr(from, ']', (size_t)(to - from));
        if (!end)
            return -ERROR_INVALID_ARGUMENTS;
        from++;
        rest = end + 1;
    } else {
        const char *colon = memchr(from, ':', (size_t)(to - from));
        end = rest = colon ? colon : to;
    }
    if (from == end)
        return -ERROR_INVALID_ARGUMENTS;
    int r = part_copy(from, end, url->host, sizeof url->host);
    if (r < 0)
        return r;
    static const char port[] = "6379";
    if (rest == to)
        return port_parse(port, port + sizeof port - 1, url);
    if (*rest != ':')
        return -ERROR_INVALID_ARGUMENTS;
    return port_parse(rest + 1, to, url);
}

static int tcp_parse(const char *text, struct url *url)
{
    const char *end = text + strcspn(text, "/?#");
    if (*end == '?' || *end == '#')
        return -ERROR_INVALID_ARGUMENTS;
    const char *at = memrchr(text, '@', (size_t)(end - text));
    if (at) {
        int r = login_parse(text, at, url);
        if (r < 0)
            return r;
        text = at + 1;
    }
    int r = address_parse(text, end, url);
    if (r < 0 || *end == '\0' || end[1] == '\0')
        return r;
    return integer_parse(end + 1, strlen(end + 1), 0, 1000000, &url->database);
}

bool cache_url_is_valid(const char *redis_url)
{
    struct url url;
    return url_parse(redis_url, &url) >= 0;
}

int url_parse(const char *text, struct url *ret_url)
{
    static const char tcp[] = "redis://", local[] = "unix://";
    struct url url = {0};
    int r = -ERROR_INVALID_ARGUMENTS;
    if (strncmp(text, tcp, sizeof tcp - 1) == 0) {
        r = tcp_parse(text + sizeof tcp - 1, &url);
    } else if (strncmp(text, local, sizeof local - 1) == 0 && text[sizeof local - 1] == '/') {
        text += sizeof local - 1;
        r = part_copy(text, text + strlen(text), url.path, sizeof url.path);
    }
    if (r < 0)
        return r;
    *ret_url = url;
    return 0;
}
