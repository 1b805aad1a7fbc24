// SPDX-License-Identifier: Apache-2.0
// Pages of a list in the order of ids: `limit`, and a cursor that names the last id of a page.
#pragma once

#include "invocation.h"

// Reads the arguments limit and cursor; the limit is kept as the invocation's state. *ret_after is
// "" on the first page. False after an error was replied.
NODISCARD bool take_page(struct invocation *invocation, const char *kind, const char *prefixes,
                         const char **ret_after);

// How many rows to ask for: one more than the page holds, to know whether there is a next one.
int64_t paging_rows_wanted(const struct invocation *invocation);

// How many of the rows belong to the page.
int paging_rows(const struct invocation *invocation, const struct result *result);

// Replies with the page's objects as the list `name`: ids are in `column`, objects in the next one.
// Rows without an id are left out.
void paging_reply(struct invocation *invocation, const char *name, const char *kind,
                  const struct result *result, int column);

// Writes response_metadata: continues after the id in `column` of the page's last row.
void paging_end_write(struct json_writer *w, const struct invocation *invocation, const char *kind,
                      const struct result *result, int column);
