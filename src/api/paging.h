// SPDX-License-Identifier: Apache-2.0
// Pages of a list sorted by id: `limit`, and a cursor that contains the last id of a page.
#pragma once

#include "invocation.h"

// Reads the arguments limit and cursor; the limit is stored as the invocation's state. *ret_after
// is "" for the first page. False: an error was replied.
NODISCARD bool take_page(struct invocation *invocation, const char *kind, const char *prefixes,
                         const char **ret_after);

// The number of rows to query: one more than the page, to detect a next page.
int64_t paging_rows_wanted(const struct invocation *invocation);

// The number of rows that belong to the page.
int paging_rows(const struct invocation *invocation, const struct result *result);

// Replies with the page's objects as the list `name`: ids are in `column`, objects in the next one.
// Rows without an id are omitted.
void paging_reply(struct invocation *invocation, const char *name, const char *kind,
                  const struct result *result, int column);

// Writes response_metadata: continues after the id in `column` of the page's last row.
void paging_end_write(struct json_writer *w, const struct invocation *invocation, const char *kind,
                      const struct result *result, int column);
