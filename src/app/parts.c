// SPDX-License-Identifier: Apache-2.0
// Translates settings into the modules' options.
#include "parts.h"

#include "base/buffer.h"
#include "base/check.h"
#include "base/embedded.h"
#include "base/error.h"
#include "base/log.h"
#include "store/migrate.h"

#include <string.h>

enum { REPORT_MAX_BYTES = 65536, CONNECT_TIMEOUT_MS = 3000 };

struct store_options parts_store_options(const struct settings *settings)
{
    return (struct store_options){
        .database_url = settings->database_url,
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
        .statement_timeout_ms = settings->statement_timeout_ms,
        .lock_wait_ms = settings->lock_wait_ms,
        .queue_max = (int)settings->statements_max,
        .queue_bytes = (size_t)settings->statements_bytes,
    };
}

struct cache_options parts_cache_options(const struct settings *settings)
{
    return (struct cache_options){
        .redis_url = settings->redis_url,
        .library = embedded_redis_functions[0].data,
        .library_name = embedded_redis_functions[0].name,
        .timeout_ms = settings->redis_timeout_ms,
        .pending_max = (int)settings->commands_max,
        .pending_bytes = (size_t)settings->commands_bytes,
    };
}

void parts_secrets(const struct settings *settings, struct secrets *ret_secrets)
{
    int r = secrets_read(settings->secret_key, ret_secrets);

    ASSERT(r >= 0); // checked by settings_read()
}

static void report_log(const struct buffer *report)
{
    const char *line = report->data;
    const char *end = line + report->length;

    for (const char *next; line < end; line = next + 1) {
        next = memchr(line, '\n', (size_t)(end - line));
        log_write(LOG_ERROR, "app", "%.*s", (int)(next - line), line);
    }
}

int parts_check_database(const struct settings *settings)
{
    CLEANUP(buffer_done) struct buffer report = BUFFER(REPORT_MAX_BYTES);
    int r = migrate_serves(settings->database_url, &report);

    if (r == -ERROR_REFUSED)
        report_log(&report);
    else if (r == -ERROR_INTERNAL)
        log_write(LOG_ERROR, "app", "cannot use the database: its role must own the tables");
    return r == -ERROR_REFUSED || r == -ERROR_INTERNAL ? r : 0;
}
