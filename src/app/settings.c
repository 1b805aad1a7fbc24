// SPDX-License-Identifier: Apache-2.0
// Reads the settings from the environment, validates their ranges, and prints their help.
#include "app/settings.h"

#include "api/api.h"
#include "base/error.h"
#include "base/id.h"
#include "base/log.h"
#include "base/secrets.h"
#include "cache/cache.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "TIDINGS_"
#define NOTHING(...) // of rows of another kind

struct renamed {
    const char *old;
    const char *name;
    const char *release;
};

#define RENAMED_ROW(old, name, release) {PREFIX #old, PREFIX #name, release},
static const struct renamed renamed[] = {SETTINGS_RENAMED(RENAMED_ROW){NULL, NULL, NULL}};

static bool is_set(const char *name)
{
    const char *value = getenv(name);

    return value && value[0] != '\0';
}

// The name of the variable that supplies the setting: the old name if only that is set.
static const char *variable_of(const char *name)
{
    for (const struct renamed *row = renamed; row->old; row++)
        if (strcmp(row->name, name) == 0 && !is_set(name) && is_set(row->old))
            return row->old;
    return name;
}

static int integer_read(const char *name, int64_t min, int64_t max, int64_t *number,
                        struct buffer *errors)
{
    const char *text = getenv(name);

    if (!text || text[0] == '\0' || integer_parse(text, strlen(text), min, max, number) >= 0)
        return 0;
    buffer_append_format(errors, "%s=%s: must be a whole number from %" PRId64 " to %" PRId64 "\n",
                         name, text, min, max);
    return -ERROR_INVALID_ARGUMENTS;
}

static int flag_read(const char *name, bool *flag, struct buffer *errors)
{
    const char *text = getenv(name);

    if (!text || text[0] == '\0')
        return 0;
    bool on = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    if (!on && strcmp(text, "false") != 0 && strcmp(text, "0") != 0) {
        buffer_append_format(errors, "%s=%s: must be true or false\n", name, text);
        return -ERROR_INVALID_ARGUMENTS;
    }
    *flag = on;
    return 0;
}

static int text_read(const char *name, const char **text)
{
    const char *value = getenv(name);

    if (value && value[0] != '\0')
        *text = value;
    return 0;
}

static int text_refuse(const char *name, const char *value, const char *range,
                       struct buffer *errors)
{
    buffer_append_format(errors, "%s=%s: must be %s\n", name, value, range);
    return -ERROR_INVALID_ARGUMENTS;
}

// Prints neither the login nor the query, which may contain a password, nor any part of an invalid
// URL.
static int url_refuse(const char *name, const char *url, const char *range, struct buffer *errors)
{
    const char *scheme_end = strstr(url, "://");
    char shown[256] = "…";

    if (scheme_end) {
        const char *rest = scheme_end + 3;
        const char *at = strrchr(rest, '@');
        const char *host = at ? at : rest;
        snprintf(shown, sizeof shown, "%.*s%s%.*s", (int)(rest - url), url, at ? "…" : "",
                 (int)strcspn(host, "?"), host);
    }
    return text_refuse(name, shown, range, errors);
}

static int listen_check(const char *listen, struct buffer *errors)
{
    const char *port = strrchr(listen, ':');
    int64_t number;

    if (port && integer_parse(port + 1, strlen(port + 1), 0, 65535, &number) >= 0)
        return 0;
    return text_refuse(PREFIX "LISTEN", listen, "address:port, the port from 0 to 65535", errors);
}

static int log_level_check(const char *level, struct buffer *errors)
{
    static const char *const levels[] = {"debug", "info", "warn", "error"};

    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
        if (strcmp(level, levels[i]) == 0)
            return 0;
    return text_refuse(PREFIX "LOG_LEVEL", level, "debug, info, warn or error", errors);
}

// Whether '@' and '/' occur in the URL only as separators: libpq takes a password that contains
// them for a host and a database, and prints these in messages.
static bool login_is_plain(const char *url)
{
    const char *rest = strstr(url, "://") + 3;
    size_t length = strcspn(rest, "?");
    const char *at = memchr(rest, '@', length);

    return !at || (memrchr(rest, '@', length) == at && !memchr(rest, '/', (size_t)(at - rest)));
}

static int database_url_check(const char *url, struct buffer *errors)
{
    bool is_url = strncmp(url, "postgres://", 11) == 0 || strncmp(url, "postgresql://", 13) == 0;

    if (is_url && login_is_plain(url) && store_url_is_valid(url))
        return 0;
    return url_refuse(PREFIX "DATABASE_URL", url,
                      "a postgres:// URL, with special characters of a password as %XX", errors);
}

static int redis_url_check(const char *url, struct buffer *errors)
{
    const char *problem = cache_url_problem(url);
    return problem ? url_refuse(PREFIX "REDIS_URL", url, problem, errors) : 0;
}

static bool is_host_and_port(const char *text, size_t length)
{
    const char *colon = memrchr(text, ':', length);
    int64_t port;

    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] >= 0x7f)
            return false;
    return colon && colon > text &&
           integer_parse(colon + 1, length - (size_t)(colon + 1 - text), 1, 65535, &port) >= 0;
}

static int kafka_brokers_check(const char *brokers, struct buffer *errors)
{
    const char *rest = brokers;

    while (*rest != '\0') {
        size_t length = strcspn(rest, ",");
        if (!is_host_and_port(rest, length) || (rest[length] == ',' && rest[length + 1] == '\0'))
            return text_refuse(PREFIX "KAFKA_BROKERS", brokers,
                               "host:port,…, a port from 1 to 65535", errors);
        rest += length + (rest[length] == ',');
    }
    return 0;
}

// Kafka's rule for topic names, which <topic>.dead must also satisfy.
static int kafka_topic_check(const char *topic, struct buffer *errors)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    enum { TOPIC_MAX = 244 };

    size_t length = strlen(topic);
    if (length <= TOPIC_MAX && strspn(topic, letters) == length)
        return 0;
    return text_refuse(PREFIX "KAFKA_TOPIC", topic, "at most 244 of A-Z, a-z, 0-9, '.', '_', '-'",
                       errors);
}

// Skips http:// or https:// and a host of visible ASCII; *ret_rest is the remainder. False: not an
// origin.
static bool origin_skip(const char *text, const char **ret_rest)
{
    const char *host = strncmp(text, "https://", 8) == 0  ? text + 8
                       : strncmp(text, "http://", 7) == 0 ? text + 7
                                                          : NULL;

    if (!host)
        return false;
    const char *rest = host;
    while (*rest > ' ' && *rest < 0x7f && !strchr("/,?#\"<>\\", *rest))
        rest++;
    *ret_rest = rest;
    return rest > host;
}

static int public_url_check(const char *url, struct buffer *errors)
{
    const char *rest;

    if (url[0] == '\0' || (origin_skip(url, &rest) && (*rest == '\0' || *rest == '/') &&
                           strcspn(rest, "?#\" ") == strlen(rest)))
        return 0;
    return text_refuse(PREFIX "PUBLIC_URL", url, "an http:// or https:// URL", errors);
}

static int cors_origins_check(const char *origins, struct buffer *errors)
{
    const char *rest = origins;

    if (strcmp(origins, "*") == 0)
        return 0;
    while (*rest != '\0') {
        if (!origin_skip(rest, &rest) || (*rest == ',' ? rest[1] == '\0' : *rest != '\0'))
            return text_refuse(PREFIX "CORS_ORIGINS", origins,
                               "origins such as https://a.example,https://b.example, or *", errors);
        rest += *rest == ',';
    }
    return 0;
}

static int rate_limits_check(const char *limits, struct buffer *errors)
{
    if (api_limits_check(limits) >= 0)
        return 0;
    return text_refuse(PREFIX "RATE_LIMITS", limits,
                       "method=number,…, the number from 0 to 1000000000", errors);
}

// Does not print the key.
static int secret_key_check(const char *keys, struct buffer *errors)
{
    struct secrets secrets;

    if (secrets_read(keys, &secrets) >= 0)
        return 0;
    return text_refuse(PREFIX "SECRET_KEY", "…",
                       "one key or two (\"new,old\"), each 32 bytes in hex or base64", errors);
}

static int texts_check(const struct settings *settings, struct buffer *errors)
{
    int r = listen_check(settings->listen, errors);

    r |= log_level_check(settings->log_level, errors);
    r |= database_url_check(settings->database_url, errors);
    r |= redis_url_check(settings->redis_url, errors);
    r |= kafka_brokers_check(settings->kafka_brokers, errors);
    r |= kafka_topic_check(settings->kafka_topic, errors);
    r |= public_url_check(settings->public_url, errors);
    r |= cors_origins_check(settings->cors_origins, errors);
    r |= rate_limits_check(settings->rate_limits, errors);
    r |= secret_key_check(settings->secret_key, errors);
    return r;
}

int settings_read(struct settings *ret_settings, struct buffer *errors)
{
    int r = 0;
#define TEXT_DEFAULT(field, name, value, description) .field = (value),
#define INTEGER_DEFAULT(field, name, value, min, max, description) .field = (value),
#define FLAG_DEFAULT(field, name, value, description) .field = (value),
#define LIMIT_VALUE(field, name, value, description) .field = (value),
    struct settings s = {SETTINGS_TABLE(TEXT_DEFAULT, INTEGER_DEFAULT, FLAG_DEFAULT, LIMIT_VALUE)};

#define TEXT_READ(field, name, value, description)                                                 \
    r |= text_read(variable_of(PREFIX #name), &s.field);
#define INTEGER_READ(field, name, value, min, max, description)                                    \
    r |= integer_read(variable_of(PREFIX #name), min, max, &s.field, errors);
#define FLAG_READ(field, name, value, description)                                                 \
    r |= flag_read(variable_of(PREFIX #name), &s.field, errors);
    SETTINGS_TABLE(TEXT_READ, INTEGER_READ, FLAG_READ, NOTHING)
    r |= texts_check(&s, errors);
    if (r < 0)
        return -ERROR_INVALID_ARGUMENTS;
    *ret_settings = s;
    return 0;
}

#define NAME_ROW(field, name, ...) PREFIX #name,
static const char *const setting_names[] = {SETTINGS_TABLE(NAME_ROW, NAME_ROW, NAME_ROW, NOTHING)
                                                NULL};
static const char *const limit_names[] = {SETTINGS_TABLE(NOTHING, NOTHING, NOTHING, NAME_ROW) NULL};

static bool is_among(const char *const *names, const char *name, size_t length)
{
    for (; *names; names++)
        if (strlen(*names) == length && memcmp(*names, name, length) == 0)
            return true;
    return false;
}

static const struct renamed *renamed_find(const char *old, size_t length)
{
    for (const struct renamed *row = renamed; row->old; row++)
        if (strlen(row->old) == length && memcmp(row->old, old, length) == 0)
            return row;
    return NULL;
}

static void unknown_log(const char *name, size_t length)
{
    const struct renamed *row = renamed_find(name, length);

    if (row)
        log_write(LOG_WARN, "app", "%s was renamed to %s in %s%s", row->old, row->name,
                  row->release,
                  is_set(row->name) ? "; both are set, so the old one is ignored"
                                    : "; the next release drops the old name");
    else if (is_among(limit_names, name, length))
        log_write(LOG_WARN, "app", "%.*s is a fixed limit, which cannot be set: see tidings --help",
                  (int)length, name);
    else if (!is_among(setting_names, name, length))
        log_write(LOG_WARN, "app", "%.*s is not a setting: see tidings --help", (int)length, name);
}

void settings_log_unknown(void)
{
    for (char *const *entry = environ; *entry; entry++) {
        size_t length = strcspn(*entry, "=");
        bool has_value = (*entry)[length] != '\0' && (*entry)[length + 1] != '\0';
        if (has_value && strncmp(*entry, PREFIX, strlen(PREFIX)) == 0)
            unknown_log(*entry, length);
    }
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
#define LIMIT_PRINT(field, name, value, description)                                               \
    buffer_append_format(out, "  %-36s %s [%" PRId64 "]\n", #name, description, (int64_t)(value));
    SETTINGS_TABLE(TEXT_PRINT, INTEGER_PRINT, FLAG_PRINT, NOTHING)
    buffer_append_text(out, "\nFixed limits [value]:\n");
    SETTINGS_TABLE(NOTHING, NOTHING, NOTHING, LIMIT_PRINT)
    if (renamed[0].old)
        buffer_append_text(out,
                           "\nOld names, read until the next release if the new one is unset:\n");
    for (const struct renamed *row = renamed; row->old; row++)
        buffer_append_format(out, "  %-36s %s, since %s\n", row->old, row->name, row->release);
}
