// SPDX-License-Identifier: Apache-2.0
// What makes a token good, in SQL, for all who ask: calls, sockets, event streams and Socket Mode.
// `t` and `u` name the rows of the token and of its user.
#pragma once

#define TOKEN_NOW_S_ "extract(epoch FROM now())"

// The code of the first error that a token has; NULL: it is good.
#define TOKEN_FAULT(t, u)                                                                          \
    "CASE WHEN " t ".revoked_at IS NOT NULL THEN 'token_revoked'"                                  \
    " WHEN NOT " u ".active THEN 'account_inactive'"                                               \
    " WHEN " t ".expires_at <= " TOKEN_NOW_S_ " THEN 'token_expired' END"

#define TOKEN_IS_GOOD(t, u) "(" TOKEN_FAULT(t, u) ") IS NULL"

// For how long it has not expired yet; NULL: it never does.
#define TOKEN_LEFT_MS(t) "ceil((" t ".expires_at - " TOKEN_NOW_S_ ") * 1000)::bigint"
