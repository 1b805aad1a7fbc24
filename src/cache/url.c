// SPDX-License-Identifier: Apache-2.0
// Parses the forms of URL that Redis is named by.
#include "url.h"

#include "base/error.h"
#include "base/id.h"

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

// ?cacert=…&cert=…&key=…, each at most once, with none of them left empty.
static int file_parse(const char *from, const char *to, struct url *url)
{
    const struct {
        const char *name;
        char *path;
    } files[] = {{"cacert=", url->cacert}, {"cert=", url->cert}, {"key=", url->key}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        size_t length = strlen(files[i].name);
        if ((size_t)(to - from) <= length || memcmp(from, files[i].name, length) != 0)
            continue;
        if (files[i].path[0])
            return -ERROR_INVALID_ARGUMENTS;
        return part_copy(from + length, to, files[i].path, URL_TEXT_SIZE);
    }
    return -ERROR_INVALID_ARGUMENTS;
}

static int files_parse(const char *text, struct url *url)
{
    for (;;) {
        const char *end = text + strcspn(text, "&");
        int r = file_parse(text, end, url);
        if (r < 0)
            return r;
        if (*end == '\0')
            break;
        text = end + 1;
    }
    // A certificate is nothing without its key, and the reverse.
    return (url->cert[0] == '\0') == (url->key[0] == '\0') ? 0 : -ERROR_INVALID_ARGUMENTS;
}

static int database_parse(const char *from, const char *to, struct url *url)
{
    if (from == to)
        return 0;
    return integer_parse(from, (size_t)(to - from), 0, 1000000, &url->database);
}

static int tcp_parse(const char *text, struct url *url)
{
    const char *query = text + strcspn(text, "?#");
    const char *end = memchr(text, '/', (size_t)(query - text));
    if (!end)
        end = query;
    if (*query == '#' || (*query == '?' && !url->tls))
        return -ERROR_INVALID_ARGUMENTS;
    const char *at = memrchr(text, '@', (size_t)(end - text));
    int r = at ? login_parse(text, at, url) : 0;
    if (r >= 0)
        r = address_parse(at ? at + 1 : text, end, url);
    if (r >= 0 && end < query)
        r = database_parse(end + 1, query, url);
    if (r >= 0 && *query == '?')
        r = files_parse(query + 1, url);
    return r;
}

static int tls_parse(const char *text, struct url *url)
{
    url->tls = true;
    return tcp_parse(text, url);
}

static int local_parse(const char *text, struct url *url)
{
    const char *path = strchr(text, '/');
    if (!path)
        return -ERROR_INVALID_ARGUMENTS;
    if (path > text) {
        int r = path[-1] == '@' ? login_parse(text, path - 1, url) : -ERROR_INVALID_ARGUMENTS;
        if (r < 0)
            return r;
    }
    return part_copy(path, path + strlen(path), url->path, sizeof url->path);
}

int url_parse(const char *text, struct url *ret_url)
{
    static const struct {
        const char *scheme;
        int (*parse)(const char *rest, struct url *url);
    } forms[] = {{"redis://", tcp_parse}, {"rediss://", tls_parse}, {"unix://", local_parse}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        size_t length = strlen(forms[i].scheme);
        struct url url = {0};
        if (strncmp(text, forms[i].scheme, length) != 0)
            continue;
        int r = forms[i].parse(text + length, &url);
        if (r >= 0)
            *ret_url = url;
        return r;
    }
    return -ERROR_INVALID_ARGUMENTS;
}

int url_login(const struct url *url, const char **ret_texts)
{
    int count = 0;
    if (!url->password[0] && !url->user[0])
        return 0;
    ret_texts[count++] = "AUTH";
    if (url->user[0])
        ret_texts[count++] = url->user;
    ret_texts[count++] = url->password;
    return count;
}
