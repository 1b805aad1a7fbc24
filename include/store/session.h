// SPDX-License-Identifier: Apache-2.0
// A blocking connection to Postgres, for threads without an event loop. One thread per session;
// only session_stop() is thread-safe.
#pragma once

#include "store/statement.h"

#include <pthread.h>

struct session;

// Creates a session. Connects at first use, and again after the connection was lost.
NODISCARD int session_new(const char *database_url, int64_t statement_timeout_ms,
                          struct session **ret_session);
void session_free(struct session *session);

// Any thread. The current call and all later ones fail with -ERROR_UNAVAILABLE. (The server still
// finishes the statement it is running.)
void session_stop(struct session *session);

// Joins the thread that uses the session. Stops the session first if the thread has not ended when
// clock_monotonic_ms() reaches `until_ms`: Postgres may hang.
void session_join(struct session *session, pthread_t thread, int64_t until_ms);

// Leaves this version's functions out of the search_path, for migrations. Call before the first
// statement.
void session_bare(struct session *session);

// Runs `statement` and waits for its result. Takes over `params` (may be NULL). Free the result
// with result_free(). -ERROR_UNAVAILABLE: no connection, or it was lost during the call (outcome
// unknown). Other errors as in store.h.
NODISCARD int session_call(struct session *session, const struct statement *statement,
                           struct params *params, struct result **ret_result);

// Runs SQL text of several statements (a migration) in one transaction. Logs Postgres' error
// message on failure.
NODISCARD int session_script(struct session *session, const char *sql);

// Turns synchronous_commit off for this session: for work that is repeated anyway if it is lost.
NODISCARD int session_relax(struct session *session);

void result_free(struct result *result);
static inline void result_freep(struct result **result)
{
    result_free(*result);
}
#define CLEANUP_RESULT CLEANUP(result_freep)
