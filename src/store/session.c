// SPDX-License-Identifier: Apache-2.0
// A blocking connection to Postgres for threads. Never blocks without limit: a stopped server
// neither replies nor closes, so libpq is used in non-blocking mode, with poll() and a deadline.
#include "store/session.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/wait.h"

#include "connector_internal.h"

enum { CONNECT_TIMEOUT_MS = 3000, ANSWER_MARGIN_MS = 1000 };

struct session {
    char *database_url;
    int64_t statement_timeout_ms;
    PGconn *conn; // NULL while not connected
    struct prepared prepared;
    bool relaxed;
    bool bare;
    atomic_bool stopped;
    int stop_fd;       // readable once stopped
    int64_t logged_ms; // when the failure to connect was last logged
};

int session_new(const char *database_url, int64_t statement_timeout_ms,
                struct session **ret_session)
{
    struct session *session = calloc(1, sizeof *session);
    char *url = strdup(database_url);
    int stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!session || !url || stop_fd < 0) {
        free(session);
        free(url);
        if (stop_fd >= 0)
            close(stop_fd);
        return -ERROR_MEMORY;
    }
    session->database_url = url;
    session->stop_fd = stop_fd;
    session->statement_timeout_ms = statement_timeout_ms;
    *ret_session = session;
    return 0;
}

static void session_drop(struct session *session)
{
    PQfinish(TAKE(session->conn));
    prepared_done(&session->prepared);
}

void session_free(struct session *session)
{
    if (!session)
        return;
    session_drop(session);
    close(session->stop_fd);
    free(session->database_url);
    free(session);
}

void session_stop(struct session *session)
{
    atomic_store(&session->stopped, true);
    (void)eventfd_write(session->stop_fd, 1);
}

void session_join(struct session *session, pthread_t thread, int64_t until_ms)
{
    if (join_until(thread, until_ms))
        return;
    session_stop(session);
    pthread_join(thread, NULL);
}

// Drops the connection and returns -ERROR_UNAVAILABLE.
static int session_lose(struct session *session, const char *why)
{
    log_write(LOG_WARN, "store", "session: %s: %.*s", why, POSTGRES_WHY(session->conn));
    metric_add(METRIC_STORE_LOST, 1);
    session_drop(session);
    return -ERROR_UNAVAILABLE;
}

static int session_fail_to_connect(struct session *session)
{
    if (!atomic_load(&session->stopped) && log_is_due(&session->logged_ms))
        log_write(LOG_WARN, "store", "session: cannot connect: %.*s", POSTGRES_WHY(session->conn));
    session_drop(session);
    return -ERROR_UNAVAILABLE;
}

static int session_connect(struct session *session)
{
    if (atomic_load(&session->stopped))
        return -ERROR_UNAVAILABLE;
    if (session->conn)
        return 0;
    struct postgres_keywords keywords;
    const struct postgres_settings settings = {
        .database_url = session->database_url,
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
        .statement_timeout_ms = session->statement_timeout_ms,
        .relaxed = session->relaxed,
        .bare = session->bare,
    };
    int r = postgres_keywords_init(&settings, &keywords);
    if (r < 0)
        return r;
    session->conn = connector_connect(&keywords, session->stop_fd);
    if (PQstatus(session->conn) != CONNECTION_OK || PQsetnonblocking(session->conn, 1) != 0)
        return session_fail_to_connect(session);
    session->logged_ms = 0;
    metric_add(METRIC_STORE_CONNECTS, 1);
    return 0;
}

// Waits until the socket is readable, or writable if data is `left` to write. Past the deadline, or
// if the session is stopped, drops the connection and returns -ERROR_UNAVAILABLE.
static int session_poll(struct session *session, bool left, int64_t deadline_ms)
{
    struct pollfd ready[] = {{.fd = PQsocket(session->conn), .events = POLLIN},
                             {.fd = session->stop_fd, .events = POLLIN}};
    if (left)
        ready[0].events |= POLLOUT;
    int64_t wait_ms = deadline_ms - clock_monotonic_ms();
    if (wait_ms <= 0 || poll(ready, 2, wait_ms < INT32_MAX ? (int)wait_ms : INT32_MAX) == 0)
        return session_lose(session, "no answer in time");
    if (!atomic_load(&session->stopped))
        return 0;
    session_drop(session);
    return -ERROR_UNAVAILABLE;
}

// Waits for the next result; NULL after a statement's last.
static int session_next(struct session *session, int64_t deadline_ms, PGresult **ret_result)
{
    for (;;) {
        int left = PQflush(session->conn);
        if (left < 0)
            return session_lose(session, "cannot send");
        if (left == 0 && !PQisBusy(session->conn))
            break;
        int r = session_poll(session, left > 0, deadline_ms);
        if (r < 0)
            return r;
        if (!PQconsumeInput(session->conn))
            return session_lose(session, "connection lost");
    }
    *ret_result = PQgetResult(session->conn);
    return 0;
}

static bool is_success(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

// Waits for all results of the sent statement. Keeps the last one, or the first that failed.
static int session_collect(struct session *session, PGresult **ret_last)
{
    int64_t deadline_ms = clock_monotonic_ms() + session->statement_timeout_ms + ANSWER_MARGIN_MS;
    PGresult *last = NULL;
    for (;;) {
        PGresult *result = NULL;
        int r = session_next(session, deadline_ms, &result);
        if (r < 0) {
            PQclear(last);
            return r;
        }
        if (!result)
            break;
        if (last && !is_success(last)) {
            PQclear(result);
            continue;
        }
        PQclear(last);
        last = result;
    }
    *ret_last = last;
    return 0;
}

// Waits for the outcome of the sent statement. `sent`: whether libpq accepted it.
static int session_finish(struct session *session, bool sent, const char *name,
                          PGresult **ret_result)
{
    if (!sent)
        return session_lose(session, "cannot send");
    PGresult *result = NULL;
    int r = session_collect(session, &result);
    if (r < 0)
        return r;
    if (is_success(result)) {
        *ret_result = result;
        return 0;
    }
    if (!result || postgres_is_fatal(result) || PQstatus(session->conn) != CONNECTION_OK)
        r = session_lose(session, name);
    else
        r = postgres_error(result, name);
    PQclear(result);
    return r;
}

static int session_prepare(struct session *session, const struct statement *statement,
                           const struct params *params)
{
    int known = prepared_find(&session->prepared, statement, params);
    if (known != 0)
        return known;
    PGresult *result = NULL;
    bool sent = postgres_send_prepare(session->conn, statement, params);
    int r = session_finish(session, sent, statement->name, &result);
    if (r < 0)
        return r;
    PQclear(result);
    prepared_add(&session->prepared, statement, params);
    return 0;
}

int session_call(struct session *session, const struct statement *statement, struct params *params,
                 struct result **ret_result)
{
    ASSERT(statement && ret_result);
    CLEANUP_PARAMS struct params taken = {0};
    if (params) {
        taken = *params;
        *params = (struct params){0};
    }
    if (!params_are_whole(&taken))
        return -ERROR_MEMORY;
    int r = session_connect(session);
    if (r < 0)
        return r;
    r = session_prepare(session, statement, &taken);
    if (r < 0)
        return r;
    PGresult *result = NULL;
    bool sent = postgres_send_call(session->conn, statement, &taken);
    r = session_finish(session, sent, statement->name, &result);
    if (r < 0)
        return r;
    *ret_result = postgres_result(result);
    return 0;
}

int session_script(struct session *session, const char *sql)
{
    int r = session_connect(session);
    if (r < 0)
        return r;
    // Statements sent in one query string form one transaction: all or none.
    PGresult *result = NULL;
    r = session_finish(session, PQsendQuery(session->conn, sql) == 1, "script", &result);
    if (r < 0)
        return r;
    PQclear(result);
    return 0;
}

void session_bare(struct session *session)
{
    session->bare = true;
}

int session_relax(struct session *session)
{
    session->relaxed = true;
    return session->conn ? session_script(session, "SET synchronous_commit = off") : 0;
}
