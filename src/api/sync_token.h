// SPDX-License-Identifier: Apache-2.0
// The texts of unread.sync that clients keep and give back: a sync token, and a cursor.
//
// A sync token names a snapshot of Postgres: "s1.<xid>.<seconds>.<era>". Every transaction below
// that xid had ended, so its effects are in the answer; all others are looked at again by the next
// call. Nothing is missed whatever was being committed. What a later release appends to either text
// is ignored.
#pragma once

#include "base/id.h"

enum { SYNC_TOKEN_SIZE = 80, SYNC_PAGE_SIZE = 128 };

struct sync_token {
    int64_t xid;
    int64_t seconds;
    int64_t era;
};

// Where the page before ended; with the token that the first page gave.
struct sync_page {
    struct sync_token token;
    bool unread;
    int64_t updated;
    char id[ID_SIZE];
};

// Prints to SYNC_TOKEN_SIZE bytes.
void sync_token_print(const struct sync_token *token, char *ret_text);
// False for anything else. A token of a later version is as one of long ago: it gives a full
// answer.
NODISCARD bool sync_token_parse(const char *text, struct sync_token *ret_token);

// The text of a cursor behind its kind: "<xid>.<seconds>.<era>.<unread>.<updated>.<id>", printed to
// SYNC_PAGE_SIZE bytes.
void sync_page_print(const struct sync_page *page, char *ret_text);
// False for anything else.
NODISCARD bool sync_page_parse(const char *text, struct sync_page *ret_page);
