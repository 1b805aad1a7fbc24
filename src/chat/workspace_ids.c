// SPDX-License-Identifier: Apache-2.0
// Reads a sorted set of workspaces from Postgres, and searches it.
#include "chat/workspace_ids.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int workspace_ids_read(struct session *session, const struct statement *statement,
                       struct buffer *ids)
{
    CLEANUP_RESULT struct result *result = NULL;
    int r = session_call(session, statement, NULL, &result);
    for (int row = 0; r >= 0 && row < result_rows(result); row++) {
        char id[EVENT_ID_SIZE] = "";
        snprintf(id, sizeof id, "%s", result_text(result, row, 0));
        buffer_append(ids, id, sizeof id);
    }
    return r < 0 ? r : buffer_failed(ids) ? -ERROR_MEMORY : 0;
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp(a, b);
}

bool workspace_ids_have(const struct buffer *ids, const char *id)
{
    return ids->length > 0 &&
           bsearch(id, ids->data, ids->length / EVENT_ID_SIZE, EVENT_ID_SIZE, compare_ids);
}
