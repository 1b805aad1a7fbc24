// SPDX-License-Identifier: Apache-2.0
// The URL of Redis: what is read is written as a URL in which all is %XX, and read again.
#include "../../src/cache/url.h"
#include "base/buffer.h"
#include "fuzz.h"

#include <inttypes.h>

static void hex_write(struct buffer *out, const char *text)
{
    for (; *text != '\0'; text++)
        buffer_append_format(out, "%%%02x", (unsigned char)*text);
}

static void login_write(struct buffer *out, const struct url *url)
{
    hex_write(out, url->user);
    buffer_append_byte(out, ':');
    hex_write(out, url->password);
    buffer_append_byte(out, '@');
}

static void options_write(struct buffer *out, const struct url *url)
{
    const char *const options[][2] = {{"cacert", url->cacert},
                                      {"cert", url->cert},
                                      {"key", url->key},
                                      {"sentinel_user", url->sentinel_user},
                                      {"sentinel_password", url->sentinel_password}};
    char before = '?';
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (options[i][1][0] == '\0')
            continue;
        buffer_append_format(out, "%c%s=", before, options[i][0]);
        hex_write(out, options[i][1]);
        before = '&';
    }
}

static void address_write(struct buffer *out, const char *host, const char *port)
{
    buffer_append_byte(out, '[');
    hex_write(out, host);
    buffer_append_format(out, "]:%s", port);
}

static void place_write(struct buffer *out, const struct url *url)
{
    if (url->master[0] == '\0')
        address_write(out, url->host, url->port);
    for (int i = 0; i < url->sentinels; i++) {
        if (i > 0)
            buffer_append_byte(out, ',');
        address_write(out, url->sentinel[i].host, url->sentinel[i].port);
    }
    if (url->master[0] != '\0') {
        buffer_append_byte(out, '/');
        hex_write(out, url->master);
    }
}

static char *url_write(const struct url *url)
{
    struct buffer out;
    buffer_init(&out, 1 << 16);
    if (url->path[0] != '\0') {
        buffer_append_text(&out, "unix://");
        login_write(&out, url);
        buffer_append_byte(&out, '/');
        hex_write(&out, url->path + 1);
        return buffer_take_text(&out);
    }
    buffer_append_format(&out, "redis%s%s://", url->tls ? "s" : "",
                         url->master[0] ? "+sentinel" : "");
    login_write(&out, url);
    place_write(&out, url);
    buffer_append_format(&out, "/%" PRId64, url->database);
    options_write(&out, url);
    return buffer_take_text(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct url url, again;
    char *text = fuzz_text(data, size);
    int r = url_parse(text, &url);
    free(text);
    if (r < 0)
        return 0;
    assert((url.host[0] != '\0') + (url.path[0] != '\0') + (url.sentinels > 0) == 1);
    char *written = url_write(&url);
    assert(written);
    r = url_parse(written, &again);
    assert(r == 0 && url.database == again.database && url.tls == again.tls);
    assert(strcmp(url.host, again.host) == 0 && strcmp(url.port, again.port) == 0);
    assert(strcmp(url.path, again.path) == 0 && strcmp(url.user, again.user) == 0);
    assert(strcmp(url.password, again.password) == 0 && strcmp(url.cacert, again.cacert) == 0);
    assert(url.sentinels == again.sentinels && strcmp(url.master, again.master) == 0);
    assert(memcmp(url.sentinel, again.sentinel, sizeof url.sentinel) == 0);
    assert(strcmp(url.sentinel_user, again.sentinel_user) == 0);
    assert(strcmp(url.sentinel_password, again.sentinel_password) == 0);
    assert(strcmp(url.cert, again.cert) == 0 && strcmp(url.key, again.key) == 0);
    free(written);
    return 0;
}
