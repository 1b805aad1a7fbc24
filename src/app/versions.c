// SPDX-License-Identifier: Apache-2.0
// Registers this version's Postgres functions and Redis library as in use, and drops those of
// unused versions.
#include "versions.h"

#include "base/embedded.h"
#include "base/error.h"
#include "base/log.h"
#include "base/version.h"
#include "cache/libraries.h"
#include "parts.h"
#include "store/session.h"

enum { INTERVAL_MAX_S = 60, TIMES_WITHIN_KEEP = 4, LIBRARIES_MAX = 1000 };

static const struct statement USE = {"version_use", "SELECT version_use($1, $2, $3)"};
static const struct statement LIBRARIES = {"libraries_in_use", "SELECT libraries_in_use()"};
static const struct statement DROP = {"versions_drop", "SELECT versions_drop($1, $2)"};

int64_t versions_interval_s(const struct settings *settings)
{
    int64_t interval_s = settings->versions_keep_s / TIMES_WITHIN_KEEP;

    if (interval_s > INTERVAL_MAX_S)
        return INTERVAL_MAX_S;
    return interval_s > 0 ? interval_s : 1;
}

static int version_use(const struct settings *settings, struct session *session)
{
    CLEANUP_RESULT struct result *result = NULL;
    struct params params = {0};

    params_text(&params, embedded_functions_schema);
    params_text(&params, parts_cache_options(settings).library_name);
    params_text(&params, TIDINGS_VERSION);
    return session_call(session, &USE, &params, &result);
}

static int versions_drop(const struct settings *settings, struct session *session)
{
    CLEANUP_RESULT struct result *dropped = NULL;
    struct params params = {0};

    params_text(&params, embedded_functions_schema);
    params_int(&params, settings->versions_keep_s);
    int r = session_call(session, &DROP, &params, &dropped);
    for (int row = 0; r >= 0 && row < result_rows(dropped); row++)
        log_write(LOG_INFO, "app", "dropped the functions in %s: no instance uses them",
                  result_text(dropped, row, 0));
    return r;
}

// If Redis is down, leftovers are dropped another time.
static int libraries_drop_unused(struct session *session, struct pipeline *pipeline)
{
    CLEANUP_RESULT struct result *used = NULL;
    const char *names[LIBRARIES_MAX];
    size_t count = 0;

    int r = session_call(session, &LIBRARIES, NULL, &used);
    if (r < 0)
        return r;
    for (; count < LIBRARIES_MAX && (int)count < result_rows(used); count++)
        names[count] = result_text(used, (int)count, 0);
    r = libraries_drop(pipeline, names, count);
    return r == -ERROR_UNAVAILABLE ? 0 : r;
}

int versions_renew(const struct settings *settings, struct session *session,
                   struct pipeline *pipeline)
{
    int r = version_use(settings, session);
    if (r >= 0)
        r = versions_drop(settings, session);
    return r < 0 ? r : libraries_drop_unused(session, pipeline);
}
