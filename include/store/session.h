// SPDX-License-Identifier: Apache-2.0
// Postgres as a thread other than a loop sees it: one blocking connection. Not thread safe, except
// session_stop(): one thread per session.
#pragma once

#include "store/statement.h"

#include <pthread.h>

struct session;

// Makes a session; connects at first use and again whenever the connection was lost.
NODISCARD int session_new(const char *database_url, int64_t statement_timeout_ms,
                          struct session **ret_session);
void session_free(struct session *session);

// Any thread. Makes a call that is under way, and all later ones, fail with -ERROR_UNAVAILABLE.
// (The server still finishes the statement it is running.)
void session_stop(struct session *session);

// Joins the thread that uses the session. One that has not ended when clock_monotonic_ms() reaches
// `until_ms` is stopped first: Postgres may stand still.
void session_join(struct session *session, pthread_t thread, int64_t until_ms);

// The session will see the tables alone, without the functions of this version: for migrations.
// Before its first call.
void session_bare(struct session *session);

// Runs `statement` and waits for its rows. Takes over `params` (may be NULL). The result is freed
// by result_free(). -ERROR_UNAVAILABLE: no connection, or lost on the way (the outcome is unknown);
// others as in store.h.
NODISCARD int session_call(struct session *session, const struct statement *statement,
                           struct params *params, struct result **ret_result);

// Runs SQL text of several statements (migrations) in one transaction. Logs what Postgres says when
// it fails.
NODISCARD int session_script(struct session *session, const char *sql);

// Switches synchronous_commit off for this session: for work that is repeated anyway if it is
// lost.
NODISCARD int session_relax(struct session *session);

void result_free(struct result *result);
static inline void result_freep(struct result **result)
{
    result_free(*result);
}
#define CLEANUP_RESULT CLEANUP(result_freep)
