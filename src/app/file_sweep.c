// SPDX-License-Identifier: Apache-2.0
// Removes the bytes of files that are gone. Postgres names the objects; they are forgotten there
// only once they are removed, so a crash in between leaves nothing behind.
#include "file_sweep.h"

#include "base/error.h"
#include "base/metrics.h"
#include "files/storage.h"
#include "store/session.h"

enum { PAGE = 100 };

static const struct statement SWEEP = {"files_sweep", "SELECT object FROM files_sweep($1, $2, $3)"};
static const struct statement SWEPT = {"files_swept", "SELECT files_swept($1)"};

int file_sweep(const struct settings *settings, struct session *session,
               const struct storage *storage)
{
    CLEANUP_RESULT struct result *found = NULL;
    CLEANUP_RESULT struct result *forgotten = NULL;
    struct params params = {0};
    int removed = 0;

    params_int(&params, settings->upload_keep_s);
    params_int(&params, settings->retention_days);
    params_int(&params, PAGE);
    int r = session_call(session, &SWEEP, &params, &found);
    if (r < 0)
        return r;
    params_open_text_array(&params);
    for (int i = 0; i < result_rows(found); i++) {
        const char *object = result_text(found, i, 0);
        if (storage_remove(storage, object) < 0)
            continue;
        params_element_text(&params, object);
        removed++;
    }
    params_close_array(&params);
    r = session_call(session, &SWEPT, &params, &forgotten);
    if (r < 0)
        return r;
    metric_add(METRIC_FILE_OBJECTS_REMOVED, removed);
    return removed == PAGE;
}
