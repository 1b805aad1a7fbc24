// SPDX-License-Identifier: Apache-2.0
#include "app/settings.h"

#include "api/api.h"
#include "base/error.h"
#include "base/id.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "TIDINGS_"

static int integer_read(const char *name, int64_t min, int64_t max, int64_t *number,
                        struct buffer *complaint)
{
    const char *text = getenv(name);

    if (text == NULL || text[0] == '\0' || integer_parse(text, strlen(text), min, max, number) >= 0)
        return 0;
    buffer_append_format(complaint,
                         "%s=%s: must be a whole number from %" PRId64 " to %" PRId64 "\n", name,
                         text, min, max);
    return -ERROR_INVALID_ARGUMENTS;
}

static int flag_read(const char *name, bool *flag, struct buffer *complaint)
{
    const char *text = getenv(name);

    if (text == NULL || text[0] == '\0')
        return 0;
    bool on = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    if (!on && strcmp(text, "false") != 0 && strcmp(text, "0") != 0) {
        buffer_append_format(complaint, "%s=%s: must be true or false\n", name, text);
        return -ERROR_INVALID_ARGUMENTS;
    }
    *flag = on;
    return 0;
}

static int text_read(const char *name, const char **text)
{
    const char *value = getenv(name);

    if (value != NULL && value[0] != '\0')
        *text = value;
    return 0;
}

// What a text must look like, where not every text will do.
static int text_check(const char *name, const char *value, const char *const *prefixes,
                      const char *range, struct buffer *complaint)
{
    for (; *prefixes != NULL; prefixes++)
        if (strncmp(value, *prefixes, strlen(*prefixes)) == 0)
            return 0;
    buffer_append_format(complaint, "%s=%s: must be %s\n", name, value, range);
    return -ERROR_INVALID_ARGUMENTS;
}

static int texts_check(const struct settings *settings, struct buffer *complaint)
{
    const char *port = strrchr(settings->listen, ':');
    int64_t number;
    int r = 0;

    if (port == NULL || integer_parse(port + 1, strlen(port + 1), 0, 65535, &number) < 0) {
        buffer_append_format(complaint,
                             PREFIX "LISTEN=%s: must be address:port, the port from 0 to 65535\n",
                             settings->listen);
        r = -ERROR_INVALID_ARGUMENTS;
    }
    if (text_check(PREFIX "LOG_LEVEL", settings->log_level,
                   (const char *const[]){"debug", "info", "warn", "error", NULL},
                   "debug, info, warn or error", complaint) < 0)
        r = -ERROR_INVALID_ARGUMENTS;
    if (text_check(PREFIX "DATABASE_URL", settings->database_url,
                   (const char *const[]){"postgres://", "postgresql://", NULL}, "a postgres:// URL",
                   complaint) < 0)
        r = -ERROR_INVALID_ARGUMENTS;
    if (text_check(PREFIX "REDIS_URL", settings->redis_url,
                   (const char *const[]){"redis://", "unix://", NULL}, "a redis:// or unix:// URL",
                   complaint) < 0)
        r = -ERROR_INVALID_ARGUMENTS;
    if (api_limits_check(settings->rate_limits) < 0) {
        buffer_append_format(
            complaint,
            PREFIX "RATE_LIMITS=%s: must be method=number,…, the number from 0 to 1000000000\n",
            settings->rate_limits);
        r = -ERROR_INVALID_ARGUMENTS;
    }
    return r;
}

int settings_read(struct settings *ret_settings, struct buffer *complaint)
{
    int r = 0;
#define TEXT_DEFAULT(field, name, value, description) .field = (value),
#define INTEGER_DEFAULT(field, name, value, min, max, description) .field = (value),
#define FLAG_DEFAULT(field, name, value, description) .field = (value),
    struct settings s = {SETTINGS_TABLE(TEXT_DEFAULT, INTEGER_DEFAULT, FLAG_DEFAULT)};

#define TEXT_READ(field, name, value, description) r |= text_read(PREFIX #name, &s.field);
#define INTEGER_READ(field, name, value, min, max, description)                                    \
    r |= integer_read(PREFIX #name, min, max, &s.field, complaint);
#define FLAG_READ(field, name, value, description)                                                 \
    r |= flag_read(PREFIX #name, &s.field, complaint);
    SETTINGS_TABLE(TEXT_READ, INTEGER_READ, FLAG_READ)
    r |= texts_check(&s, complaint);
    if (r < 0)
        return -ERROR_INVALID_ARGUMENTS;
    *ret_settings = s;
    return 0;
}

void settings_print(struct buffer *out)
{
#define TEXT_PRINT(field, name, value, description)                                                \
    buffer_append_format(out, "  %-36s %s [%s]\n", PREFIX #name, description, value);
#define INTEGER_PRINT(field, name, value, min, max, description)                                   \
    buffer_append_format(out, "  %-36s %s [%" PRId64 "; %" PRId64 " to %" PRId64 "]\n",            \
                         PREFIX #name, description, (int64_t)(value), (int64_t)(min),              \
                         (int64_t)(max));
#define FLAG_PRINT(field, name, value, description)                                                \
    buffer_append_format(out, "  %-36s %s [%s]\n", PREFIX #name, description,                      \
                         (value) ? "true" : "false");
    SETTINGS_TABLE(TEXT_PRINT, INTEGER_PRINT, FLAG_PRINT)
}
