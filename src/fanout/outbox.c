// SPDX-License-Identifier: Apache-2.0
// Reads, marks and deletes rows of the outbox.
#include "outbox.h"

static const struct statement delete_statement = {
    "outbox_delete",
    "SELECT outbox_delete($1)",
};

static const struct statement mark_statement = {
    "outbox_mark_done",
    "UPDATE outbox SET done = true WHERE id = ANY ($1)",
};

static const struct statement leftovers_statement = {
    "outbox_leftovers",
    "SELECT outbox_leftovers($1, $2::integer)",
};

void outbox_batch_add(struct outbox_batch *batch, const char *outbox_id, bool polled)
{
    struct params *params = polled ? &batch->polled : &batch->own;
    int *count = polled ? &batch->polled_count : &batch->own_count;
    if ((*count)++ == 0)
        params_open_text_array(params);
    params_element_text(params, outbox_id);
}

static int ids_call(struct session *session, const struct statement *statement,
                    struct params *params, int count)
{
    CLEANUP_RESULT struct result *result = NULL;
    if (count == 0)
        return 0;
    params_close_array(params);
    return session_call(session, statement, params, &result);
}

int outbox_clean(struct session *session, struct outbox_batch *batch)
{
    int r = ids_call(session, &delete_statement, &batch->own, batch->own_count);
    if (r >= 0)
        r = ids_call(session, &mark_statement, &batch->polled, batch->polled_count);
    params_done(&batch->own);
    params_done(&batch->polled);
    *batch = (struct outbox_batch){0};
    return r;
}

int outbox_leftovers(struct session *session, int64_t age_ms, int64_t max,
                     struct outbox_ids *ret_ids)
{
    CLEANUP_PARAMS struct params params = {0};
    params_int(&params, age_ms);
    params_int(&params, max);
    int r = session_call(session, &leftovers_statement, &params, &ret_ids->result);
    return r < 0 ? r : result_rows(ret_ids->result);
}

const char *outbox_ids_at(const struct outbox_ids *ids, int index)
{
    return result_text(ids->result, index, 0);
}

void outbox_ids_done(struct outbox_ids *ids)
{
    result_free(ids->result);
    ids->result = NULL;
}
