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

static void files_write(struct buffer *out, const struct url *url)
{
    const char *const files[][2] = {
        {"cacert", url->cacert}, {"cert", url->cert}, {"key", url->key}};
    char before = '?';
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (files[i][1][0] == '\0')
            continue;
        buffer_append_format(out, "%c%s=", before, files[i][0]);
        hex_write(out, files[i][1]);
        before = '&';
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
    buffer_append_text(&out, url->tls ? "rediss://" : "redis://");
    login_write(&out, url);
    buffer_append_byte(&out, '[');
    hex_write(&out, url->host);
    buffer_append_format(&out, "]:%s/%" PRId64, url->port, url->database);
    files_write(&out, url);
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
    assert((url.host[0] != '\0') != (url.path[0] != '\0'));
    char *written = url_write(&url);
    assert(written);
    r = url_parse(written, &again);
    assert(r == 0 && url.database == again.database && url.tls == again.tls);
    assert(strcmp(url.host, again.host) == 0 && strcmp(url.port, again.port) == 0);
    assert(strcmp(url.path, again.path) == 0 && strcmp(url.user, again.user) == 0);
    assert(strcmp(url.password, again.password) == 0 && strcmp(url.cacert, again.cacert) == 0);
    assert(strcmp(url.cert, again.cert) == 0 && strcmp(url.key, again.key) == 0);
    free(written);
    return 0;
}
