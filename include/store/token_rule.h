// SPDX-License-Identifier: Apache-2.0
// The validity rule for tokens, in SQL, shared by calls, sockets, event streams and Socket Mode.
// `t` and `u` are the aliases of the token's row and its user's row.
#pragma once

#define TOKEN_NOW_S_ "extract(epoch FROM now())"

// The error code of an invalid token; NULL if the token is valid.
#define TOKEN_FAULT(t, u)                                                                          \
    "CASE WHEN " t ".revoked_at IS NOT NULL THEN 'token_revoked'"                                  \
    " WHEN NOT " u ".active THEN 'account_inactive'"                                               \
    " WHEN " t ".expires_at <= " TOKEN_NOW_S_ " THEN 'token_expired' END"

#define TOKEN_IS_GOOD(t, u) "(" TOKEN_FAULT(t, u) ") IS NULL"

// Milliseconds until the token expires; NULL: it never expires.
#define TOKEN_LEFT_MS(t) "ceil((" t ".expires_at - " TOKEN_NOW_S_ ") * 1000)::bigint"

// What messages of a bot show of it (struct actor_bot); NULLs for people.
#define TOKEN_BOT(u)                                                                               \
    "CASE WHEN " u ".bot_id IS NOT NULL THEN bot_app_id(" u ".id, " u ".bot_id) END, CASE WHEN " u \
    ".bot_id IS NOT NULL THEN " u ".real_name END, CASE WHEN " u ".bot_id IS NOT NULL THEN " u     \
    ".updated END"
