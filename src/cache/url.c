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

static int port_parse(const char *from, const char *to, char *ret_port)
{
    int64_t port;
    int r = integer_parse(from, (size_t)(to - from), 1, 65535, &port);
    if (r < 0)
        return r;
    snprintf(ret_port, URL_PORT_SIZE, "%d", (int)port);
    return 0;
}

// host, host:port, [v6] or [v6]:port
static int address_parse(const char *from, const char *to, const char *default_port, char *ret_host,
                         char *ret_port)
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
    int r = part_copy(from, end, ret_host, URL_TEXT_SIZE);
    if (r < 0)
        return r;
    if (rest == to)
        return port_parse(default_port, default_port + strlen(default_port), ret_port);
    if (*rest != ':')
        return -ERROR_INVALID_ARGUMENTS;
    return port_parse(rest + 1, to, ret_port);
}

// name=value of the query, each at most once and never empty.
static int option_parse(const char *from, const char *to, struct url *url)
{
    const struct {
        const char *name;
        bool fits;
        char *value;
    } options[] = {
        {"cacert=", url->tls, url->cacert},
        {"cert=", url->tls, url->cert},
        {"key=", url->tls, url->key},
        {"sentinel_user=", url->sentinels > 0, url->sentinel_user},
        {"sentinel_password=", url->sentinels > 0, url->sentinel_password},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        size_t length = strlen(options[i].name);
        if ((size_t)(to - from) <= length || memcmp(from, options[i].name, length) != 0)
            continue;
        if (!options[i].fits || options[i].value[0])
            return -ERROR_INVALID_ARGUMENTS;
        return part_copy(from + length, to, options[i].value, URL_TEXT_SIZE);
    }
    return -ERROR_INVALID_ARGUMENTS;
}

static int options_parse(const char *text, struct url *url)
{
    for (;;) {
        const char *end = text + strcspn(text, "&");
        int r = option_parse(text, end, url);
        if (r < 0)
            return r;
        if (*end == '\0')
            break;
        text = end + 1;
    }
    // A certificate is nothing without its key, nor a user without a password; and the reverse.
    bool whole = (url->cert[0] == '\0') == (url->key[0] == '\0') &&
                 (url->sentinel_user[0] == '\0' || url->sentinel_password[0] != '\0');
    return whole ? 0 : -ERROR_INVALID_ARGUMENTS;
}

static int database_parse(const char *from, const char *to, struct url *url)
{
    if (from == to)
        return 0;
    return integer_parse(from, (size_t)(to - from), 0, 1000000, &url->database);
}

static int hosts_parse(const char *from, const char *to, struct url *url)
{
    for (;;) {
        const char *comma = memchr(from, ',', (size_t)(to - from));
        if (url->sentinels == URL_SENTINELS_MAX)
            return -ERROR_INVALID_ARGUMENTS;
        int r = address_parse(from, comma ? comma : to, "26379", url->sentinel[url->sentinels].host,
                              url->sentinel[url->sentinels].port);
        if (r < 0)
            return r;
        url->sentinels++;
        if (!comma)
            return 0;
        from = comma + 1;
    }
}

// host:port/db
static int server_parse(const char *from, const char *to, struct url *url)
{
    const char *slash = memchr(from, '/', (size_t)(to - from));
    int r = address_parse(from, slash ? slash : to, "6379", url->host, url->port);
    return r >= 0 && slash ? database_parse(slash + 1, to, url) : r;
}

// host:port,…/master/db
static int master_parse(const char *from, const char *to, struct url *url)
{
    const char *slash = memchr(from, '/', (size_t)(to - from));
    if (!slash || slash + 1 == to)
        return -ERROR_INVALID_ARGUMENTS;
    const char *name = slash + 1;
    const char *end = memchr(name, '/', (size_t)(to - name));
    int r = hosts_parse(from, slash, url);
    if (r >= 0)
        r = part_copy(name, end ? end : to, url->master, sizeof url->master);
    if (r >= 0 && !url->master[0])
        r = -ERROR_INVALID_ARGUMENTS;
    return r >= 0 && end ? database_parse(end + 1, to, url) : r;
}

// login@place?query, where `place` is of one of the two kinds above.
static int remote_parse(const char *text, struct url *url,
                        int (*place_parse)(const char *from, const char *to, struct url *url))
{
    const char *query = text + strcspn(text, "?#");
    const char *slash = memchr(text, '/', (size_t)(query - text));
    const char *at = memrchr(text, '@', (size_t)((slash ? slash : query) - text));
    if (*query == '#')
        return -ERROR_INVALID_ARGUMENTS;
    int r = at ? login_parse(text, at, url) : 0;
    if (r >= 0)
        r = place_parse(at ? at + 1 : text, query, url);
    return r >= 0 && *query == '?' ? options_parse(query + 1, url) : r;
}

static int tcp_parse(const char *text, struct url *url)
{
    return remote_parse(text, url, server_parse);
}

static int sentinel_parse(const char *text, struct url *url)
{
    return remote_parse(text, url, master_parse);
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
        bool tls;
        int (*parse)(const char *rest, struct url *url);
    } forms[] = {
        {"redis://", false, tcp_parse},
        {"rediss://", true, tcp_parse},
        {"unix://", false, local_parse},
        {"redis+sentinel://", false, sentinel_parse},
        {"rediss+sentinel://", true, sentinel_parse},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        size_t length = strlen(forms[i].scheme);
        struct url url = {.tls = forms[i].tls};
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

void url_sentinel(const struct url *url, int number, struct url *ret_url)
{
    *ret_url = (struct url){.tls = url->tls};
    memcpy(ret_url->host, url->sentinel[number].host, sizeof ret_url->host);
    memcpy(ret_url->port, url->sentinel[number].port, sizeof ret_url->port);
    memcpy(ret_url->user, url->sentinel_user, sizeof ret_url->user);
    memcpy(ret_url->password, url->sentinel_password, sizeof ret_url->password);
    memcpy(ret_url->cacert, url->cacert, sizeof ret_url->cacert);
    memcpy(ret_url->cert, url->cert, sizeof ret_url->cert);
    memcpy(ret_url->key, url->key, sizeof ret_url->key);
}
