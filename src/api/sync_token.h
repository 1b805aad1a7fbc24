// SPDX-License-Identifier: Apache-2.0
// The opaque texts of unread.sync that clients store and return: sync tokens and cursors.
//
// A sync token names a snapshot of Postgres: "s1.<xid>.<seconds>.<era>". Every transaction below
// that xid had ended, so its effects are in the reply; all others are read again by the next call.
// So nothing is missed, whatever was being committed. Fields that a later release appends are
// ignored.
#pragma once

#include "base/id.h"

enum { SYNC_TOKEN_SIZE = 80, SYNC_PAGE_SIZE = 128 };

struct sync_token {
    int64_t xid;
    int64_t seconds;
    int64_t era;
};

// Where the previous page ended, and the token returned by the first page.
struct sync_page {
    struct sync_token token;
    bool unread;
    int64_t updated;
    char id[ID_SIZE];
};

// Prints to SYNC_TOKEN_SIZE bytes.
void sync_token_print(const struct sync_token *token, char *ret_text);
// False: malformed. A token of a later version counts as very old and yields a full reply.
NODISCARD bool sync_token_parse(const char *text, struct sync_token *ret_token);

// The cursor without its kind: "<xid>.<seconds>.<era>.<unread>.<updated>.<id>", printed to
// SYNC_PAGE_SIZE bytes.
void sync_page_print(const struct sync_page *page, char *ret_text);
// False: malformed.
NODISCARD bool sync_page_parse(const char *text, struct sync_page *ret_page);
