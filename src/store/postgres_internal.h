// SPDX-License-Identifier: Apache-2.0
// Shared by lanes and sessions: connection settings, prepared statements of a connection, and error
// mapping.
#pragma once

#include <libpq-fe.h>

#include "params_internal.h"
#include "store/statement.h"

struct postgres_settings {
    const char *database_url;
    int64_t connect_timeout_ms; // per host of the URL
    int64_t statement_timeout_ms;
    int64_t lock_wait_ms; // 0: the statement timeout, less a margin to report the failure
    bool relaxed;         // synchronous_commit off
    bool nested; // only nested loops over indexes: right for batches of single rows, whatever the
                 // statistics say
    bool bare;   // without this version's functions in the search_path
    bool merged; // only merge joins over indexes: right for reading ranges of whole tables
};

enum { POSTGRES_KEYWORDS_MAX = 7, POSTGRES_OPTIONS_SIZE = 1024, POSTGRES_GREETING_SIZE = 256 };

// Prepends a schema (the first %s) to the current search_path. The second %s: true: until the end
// of the transaction; false: for the session.
#define SEARCH_PATH_SQL                                                                            \
    "SELECT set_config('search_path', concat_ws(', ', '%s',"                                       \
    " nullif(current_setting('search_path'), '')), %s)"

// Connection parameters: arguments of PQconnectStartParams() (with expand_dbname), and settings
// that it does not take.
struct postgres_keywords {
    const char *database_url;
    int64_t connect_timeout_ms;
    const char *keys[POSTGRES_KEYWORDS_MAX];
    const char *values[POSTGRES_KEYWORDS_MAX];
    char options[POSTGRES_OPTIONS_SIZE];
    char greeting[POSTGRES_GREETING_SIZE]; // the first SQL on each connection; "": none
};

// Fills `ret_keywords`, which then points into itself and to the settings' URL.
// -ERROR_INVALID_ARGUMENTS (logged): the URL is invalid.
NODISCARD int postgres_keywords_init(const struct postgres_settings *settings,
                                     struct postgres_keywords *ret_keywords);

// Sends Postgres' notices to the log instead of straight to stderr.
void postgres_log_notices(PGconn *conn);

// The first line of libpq's last error on `conn`, as arguments of "%.*s".
#define POSTGRES_WHY(conn) (int)strcspn(PQerrorMessage(conn), "\n"), PQerrorMessage(conn)

// Maps the failed `result` of statement `name` to a negative error. Logs it, without parameters.
int postgres_error(const PGresult *result, const char *name);

// Whether the error is a lock timeout: another transaction held a lock for too long.
bool postgres_is_locked(const PGresult *result);

// Whether the error ends the connection. The outcome of everything sent on it is then unknown.
bool postgres_is_fatal(const PGresult *result);

// The statements prepared on a connection. All-zero is empty.
struct prepared {
    struct {
        const struct statement *statement;
        uint32_t types_hash;
    } *known;
    int count;
    int capacity;
};

void prepared_done(struct prepared *prepared);

// 1: prepared; 0: not yet; -ERROR_INTERNAL (logged): prepared with parameters of other types.
int prepared_find(const struct prepared *prepared, const struct statement *statement,
                  const struct params *params);
void prepared_add(struct prepared *prepared, const struct statement *statement,
                  const struct params *params);
void prepared_forget(struct prepared *prepared, const struct statement *statement);

// Whether the server has lost a prepared statement that the client believes prepared.
bool prepared_is_gone(const PGresult *result);

// Passes the preparation or the call of `statement` to libpq. False if libpq refuses: the
// connection is unusable.
NODISCARD bool postgres_send_prepare(PGconn *conn, const struct statement *statement,
                                     const struct params *params);
NODISCARD bool postgres_send_call(PGconn *conn, const struct statement *statement,
                                  const struct params *params);

struct result *postgres_result(PGresult *pg);
