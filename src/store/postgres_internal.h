// SPDX-License-Identifier: Apache-2.0
// What lanes and sessions have in common: how to connect, which statements a connection knows, what
// an error means.
#pragma once

#include <libpq-fe.h>

#include "params_internal.h"
#include "store/statement.h"

struct postgres_settings {
    const char *database_url;
    int64_t connect_timeout_ms; // for each host of the URL
    int64_t statement_timeout_ms;
    int64_t lock_wait_ms; // 0: as long as a statement may take, less a moment to say so
    bool relaxed;         // synchronous_commit off
    bool nested; // no plans but nested loops over indexes: right for batches of single rows,
                 // whatever the statistics say
    bool bare;   // sees the tables, and no functions of this version
    bool merged; // no plans but merge joins over indexes: right for reading ranges of whole tables
};

enum { POSTGRES_KEYWORDS_MAX = 7, POSTGRES_OPTIONS_SIZE = 1024, POSTGRES_GREETING_SIZE = 256 };

// Puts the schema of the first %s in front of the search_path, whatever that is; the second: true,
// until the end of the transaction, or false.
#define SEARCH_PATH_SQL                                                                            \
    "SELECT set_config('search_path', concat_ws(', ', '%s',"                                       \
    " nullif(current_setting('search_path'), '')), %s)"

// How to connect: arguments of PQconnectStartParams(), with expand_dbname, and what they leave out.
struct postgres_keywords {
    const char *database_url;
    int64_t connect_timeout_ms;
    const char *keys[POSTGRES_KEYWORDS_MAX];
    const char *values[POSTGRES_KEYWORDS_MAX];
    char options[POSTGRES_OPTIONS_SIZE];
    char greeting[POSTGRES_GREETING_SIZE]; // SQL that each connection begins with; "": none
};

// Fills `ret_keywords`, which then points into itself and to the settings' URL.
// -ERROR_INVALID_ARGUMENTS (logged): the URL is none.
NODISCARD int postgres_keywords_init(const struct postgres_settings *settings,
                                     struct postgres_keywords *ret_keywords);

// Sends what Postgres tells besides results to the log instead of to stderr as it stands.
void postgres_log_notices(PGconn *conn);

// The first line of libpq's last error on `conn`, as arguments of "%.*s".
#define POSTGRES_WHY(conn) (int)strcspn(PQerrorMessage(conn), "\n"), PQerrorMessage(conn)

// The error (negative) that the failed `result` of the statement `name` stands for. Logs it,
// without parameters.
int postgres_error(const PGresult *result, const char *name);

// Whether the error is that somebody else held a lock for too long.
bool postgres_is_locked(const PGresult *result);

// Whether the error `result` ends its connection: the outcome of all that was sent on it is then
// unknown.
bool postgres_is_fatal(const PGresult *result);

// The statements that a connection knows. All-zero is empty.
struct prepared {
    struct {
        const struct statement *statement;
        uint32_t types_hash;
    } * known;
    int count;
    int capacity;
};

void prepared_done(struct prepared *prepared);

// 1: known; 0: not yet; -ERROR_INTERNAL (logged): known with parameters of other types.
int prepared_find(const struct prepared *prepared, const struct statement *statement,
                  const struct params *params);
void prepared_add(struct prepared *prepared, const struct statement *statement,
                  const struct params *params);
void prepared_forget(struct prepared *prepared, const struct statement *statement);

// Whether `result` says that the server does not know the statement although the client thought so.
bool prepared_is_gone(const PGresult *result);

// Gives libpq what prepares or runs `statement`. False when it does not take it: the connection is
// of no more use.
NODISCARD bool postgres_send_prepare(PGconn *conn, const struct statement *statement,
                                     const struct params *params);
NODISCARD bool postgres_send_call(PGconn *conn, const struct statement *statement,
                                  const struct params *params);

struct result *postgres_result(PGresult *pg);
