// SPDX-License-Identifier: Apache-2.0
// What lanes and sessions share: connection settings, prepared statements, errors.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embedded.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "base/service_url.h"
#include "base/version.h"

#include "postgres_internal.h"

enum { TEXT_FORMAT = 0, BINARY_FORMAT = 1, LOCK_MARGIN_MS = 2000, LOCK_TIMEOUT_MIN_MS = 500 };

static int64_t lock_timeout_of(const struct postgres_settings *settings)
{
    int64_t left_ms = settings->statement_timeout_ms - LOCK_MARGIN_MS;

    if (settings->lock_wait_ms > 0)
        return settings->lock_wait_ms;
    return left_ms < LOCK_TIMEOUT_MIN_MS ? LOCK_TIMEOUT_MIN_MS : left_ms;
}

// Generic plans, made once without looking at parameters: planning each batch costs more than
// running it. Only plain index scans, in index order: table statistics are soon outdated, and
// reading the first unread message must not cost reading all of them.
static int format_options(const struct postgres_settings *settings, const char *first,
                          char *ret_options)
{
    int64_t lock_timeout_ms = lock_timeout_of(settings);
    int length = snprintf(
        ret_options, POSTGRES_OPTIONS_SIZE,
        "%s%s%s -c plan_cache_mode=force_generic_plan -c jit=off -c TimeZone=UTC"
        " -c enable_seqscan=off -c enable_bitmapscan=off"
        " -c synchronous_commit=%s -c statement_timeout=%lld -c lock_timeout=%lld"
        " -c idle_in_transaction_session_timeout=5000 -c client_connection_check_interval=1000"
        " -c tidings.url=%s",
        first, settings->nested ? " -c enable_hashjoin=off -c enable_mergejoin=off" : "",
        settings->merged ? " -c enable_hashjoin=off -c enable_nestloop=off -c enable_sort=off" : "",
        settings->relaxed ? "off" : "on", (long long)settings->statement_timeout_ms,
        (long long)lock_timeout_ms, service_url());
    return length < POSTGRES_OPTIONS_SIZE ? 0 : -ERROR_INVALID_ARGUMENTS;
}

// Keeps the options of the URL; ours follow and take precedence.
static int merge_options(const struct postgres_settings *settings, char *ret_options)
{
    PQconninfoOption *parsed = PQconninfoParse(settings->database_url, NULL);
    const char *first = "";
    for (const PQconninfoOption *option = parsed; option && option->keyword; option++)
        if (strcmp(option->keyword, "options") == 0 && option->val)
            first = option->val;
    int r = parsed ? format_options(settings, first, ret_options) : -ERROR_INVALID_ARGUMENTS;
    PQconninfoFree(parsed);
    if (r < 0)
        log_write(LOG_ERROR, "store", "the database URL is not a valid connection string");
    return r;
}

// Prepends the functions' schema to whatever search_path the role, the database or the URL sets. As
// a start-up option it would replace theirs.
static void format_greeting(const struct postgres_settings *settings, char *ret_greeting)
{
    ret_greeting[0] = '\0';
    if (!settings->bare)
        snprintf(ret_greeting, POSTGRES_GREETING_SIZE, SEARCH_PATH_SQL, embedded_functions_schema,
                 "false");
}

int postgres_keywords_init(const struct postgres_settings *settings,
                           struct postgres_keywords *ret_keywords)
{
    int r = merge_options(settings, ret_keywords->options);
    if (r < 0)
        return r;
    ret_keywords->database_url = settings->database_url;
    ret_keywords->connect_timeout_ms = settings->connect_timeout_ms;
    format_greeting(settings, ret_keywords->greeting);
    const char *const pairs[POSTGRES_KEYWORDS_MAX][2] = {
        // Before the URL, which may override it. A standby would return outdated counts as current.
        {"target_session_attrs", "read-write"},
        {"dbname", settings->database_url},
        {"tcp_user_timeout", "5000"},
        {"client_encoding", "UTF8"},
        {"application_name", "tidings " TIDINGS_VERSION}, // release 0.1.0 used "tidings" alone
        {"options", ret_keywords->options},
        {NULL, NULL},
    };
    for (int i = 0; i < POSTGRES_KEYWORDS_MAX; i++) {
        ret_keywords->keys[i] = pairs[i][0];
        ret_keywords->values[i] = pairs[i][1];
    }
    return 0;
}

static const char *error_field(const PGresult *result, int field)
{
    const char *text = PQresultErrorField(result, field);
    return text ? text : "";
}

#define ROW_ASIDE_SQLSTATE "TD003" // row_aside() in sql/01_upkeep.sql

static void log_notice(void *arg, const PGresult *result)
{
    const char *sqlstate = error_field(result, PG_DIAG_SQLSTATE);
    (void)arg;
    if (strcmp(sqlstate, ROW_ASIDE_SQLSTATE) == 0) {
        metric_add(METRIC_ROWS_ASIDE, 1);
        log_write(LOG_WARN, "store", "row put aside: %s",
                  error_field(result, PG_DIAG_MESSAGE_PRIMARY));
        return;
    }
    log_write(LOG_INFO, "store", "postgres: %s %s", sqlstate,
              error_field(result, PG_DIAG_MESSAGE_PRIMARY));
}

void postgres_log_notices(PGconn *conn)
{
    PQsetNoticeReceiver(conn, log_notice, NULL);
}

bool postgres_is_fatal(const PGresult *result)
{
    const char *severity = error_field(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    // Errors that libpq raises itself when the connection breaks have no severity.
    return severity[0] == '\0' || strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0;
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

// By SQLSTATE or its class; the first match counts.
static const struct {
    const char *sqlstate;
    int error;
} meanings[] = {
    {"57014", ERROR_BUSY},        // query_canceled: statement timeout
    {"55P03", ERROR_BUSY},        // lock_not_available: lock timeout
    {"40001", ERROR_BUSY},        // serialization_failure
    {"40P01", ERROR_BUSY},        // deadlock_detected
    {"53", ERROR_BUSY},           // insufficient resources
    {"TD001", ERROR_REFUSED},     // raised by our own functions
    {"26000", ERROR_BUSY},        // the prepared statement is gone: the next attempt prepares it
    {"57P", ERROR_UNAVAILABLE},   // shutdown, crash, starting up
    {"08", ERROR_UNAVAILABLE},    // connection exceptions
    {"25006", ERROR_UNAVAILABLE}, // read_only_sql_transaction: not the primary
    {"23514", ERROR_UNAVAILABLE}, // check_violation: no partition for this month yet
};

static int error_of(const PGresult *result)
{
    const char *sqlstate = error_field(result, PG_DIAG_SQLSTATE);
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (starts_with(sqlstate, meanings[i].sqlstate))
            return -meanings[i].error;
    return postgres_is_fatal(result) ? -ERROR_UNAVAILABLE : -ERROR_INTERNAL;
}

bool postgres_is_locked(const PGresult *result)
{
    return strcmp(error_field(result, PG_DIAG_SQLSTATE), "55P03") == 0;
}

int postgres_error(const PGresult *result, const char *name)
{
    int r = error_of(result);
    if (r == -ERROR_REFUSED || postgres_is_locked(result)) // the caller handles it
        return r;
    log_write(r == -ERROR_INTERNAL ? LOG_ERROR : LOG_WARN, "store", "%s: %s %s", name,
              error_field(result, PG_DIAG_SQLSTATE), error_field(result, PG_DIAG_MESSAGE_PRIMARY));
    return r;
}

void prepared_done(struct prepared *prepared)
{
    free(prepared->known);
    *prepared = (struct prepared){0};
}

// Programs have a few dozen statements: a linear scan costs less than hashing.
static int prepared_place(const struct prepared *prepared, const struct statement *statement)
{
    for (int i = 0; i < prepared->count; i++)
        if (prepared->known[i].statement == statement)
            return i;
    return -1;
}

int prepared_find(const struct prepared *prepared, const struct statement *statement,
                  const struct params *params)
{
    int place = prepared_place(prepared, statement);
    if (place < 0)
        return 0;
    if (prepared->known[place].types_hash == params_types_hash(params))
        return 1;
    log_write(LOG_ERROR, "store", "%s: parameter types differ from earlier calls", statement->name);
    return -ERROR_INTERNAL;
}

void prepared_add(struct prepared *prepared, const struct statement *statement,
                  const struct params *params)
{
    if (prepared->count == prepared->capacity) {
        prepared->capacity = prepared->capacity ? 2 * prepared->capacity : 32;
        prepared->known = memory_must_resize(prepared->known, (size_t)prepared->capacity,
                                             sizeof *prepared->known);
    }
    prepared->known[prepared->count].statement = statement;
    prepared->known[prepared->count].types_hash = params_types_hash(params);
    prepared->count++;
}

void prepared_forget(struct prepared *prepared, const struct statement *statement)
{
    int place = prepared_place(prepared, statement);
    if (place >= 0)
        prepared->known[place] = prepared->known[--prepared->count];
}

bool prepared_is_gone(const PGresult *result)
{
    return strcmp(error_field(result, PG_DIAG_SQLSTATE), "26000") == 0;
}

bool postgres_send_prepare(PGconn *conn, const struct statement *statement,
                           const struct params *params)
{
    Oid types[PARAMS_MAX];
    for (int i = 0; i < params->count; i++)
        types[i] = params->value[i].type;
    return PQsendPrepare(conn, statement->name, statement->sql, params->count, types) == 1;
}

bool postgres_send_call(PGconn *conn, const struct statement *statement,
                        const struct params *params)
{
    const char *values[PARAMS_MAX];
    int lengths[PARAMS_MAX];
    int formats[PARAMS_MAX];
    for (int i = 0; i < params->count; i++) {
        bool is_null = params->value[i].length < 0;
        // The data pointer of an empty buffer is NULL, which libpq would send as SQL NULL.
        const char *bytes = params->bytes.data ? params->bytes.data : "";
        values[i] = is_null ? NULL : bytes + params->value[i].offset;
        lengths[i] = is_null ? 0 : params->value[i].length;
        formats[i] = BINARY_FORMAT;
    }
    return PQsendQueryPrepared(conn, statement->name, params->count, values, lengths, formats,
                               TEXT_FORMAT) == 1;
}
