// SPDX-License-Identifier: Apache-2.0
// An invocation, one call of a method: runs its statements in Postgres, writes its reply, and
// handles errors.
#include "invocation.h"

#include "aliases.h"

#include "base/check.h"
#include "base/json.h"
#include "call/internal_request.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void invocation_end(struct invocation *invocation)
{
    free(invocation->state);
    TAGGED_FREE(invocation);
}

static void rows_answer(void *arg, const struct store_outcome *outcome)
{
    struct invocation *invocation = CAST(invocation, arg);

    invocation->outcome = outcome;
    if (outcome->r < 0)
        invocation_fail(invocation, outcome->r);
    else
        invocation->rows_fn(invocation, outcome->result);
}

struct result *invocation_take_rows(struct invocation *invocation)
{
    ASSERT(invocation->outcome);
    return store_take(invocation->outcome);
}

static const char *change_key(const struct invocation *invocation)
{
    if (invocation->channel_id)
        return invocation->channel_id;
    return invocation->actor ? invocation->actor->user_id : "";
}

void invocation_query(struct invocation *invocation, enum store_lane lane,
                      const struct statement *statement, struct params *params,
                      invocation_rows_fn *fn)
{
    struct store *store = invocation->api->options.store;

    ASSERT(fn);
    invocation->rows_fn = fn;
    if (lane == STORE_WRITE)
        store_change(store, change_key(invocation), statement, params, rows_answer, invocation);
    else if (lane == STORE_MANY)
        store_change_many(store, change_key(invocation), statement, params, rows_answer,
                          invocation);
    else
        store_call(store, lane, statement, params, rows_answer, invocation);
}

void invocation_caller_params(const struct invocation *invocation, struct params *params)
{
    params_text(params, invocation->actor->workspace_id);
    params_text(params, invocation->actor->user_id);
}

void invocation_change_params(struct invocation *invocation, struct params *params)
{
    id_make('O', invocation->outbox_id);
    params_text(params, invocation->outbox_id);
    invocation_caller_params(invocation, params);
}

enum { COLUMN_ERROR, COLUMN_REPLY, COLUMN_TOLD };

// A change's error may have additional members (invite reports each user).
static void change_fail(struct invocation *invocation, const struct result *result)
{
    int r = error_from_code(result_text(result, 0, COLUMN_ERROR));
    size_t length = result_length(result, 0, COLUMN_REPLY);
    char *members =
        length > 2 ? strndup(result_text(result, 0, COLUMN_REPLY) + 1, length - 2) : NULL;

    if (!members) {
        invocation_fail(invocation, r);
        return;
    }
    request_reply_error_members(invocation->request, r, members);
    free(members);
    invocation_end(invocation);
}

// The JSON object with its member `channel` renamed to `key`; the caller frees it. NULL: out of
// memory.
static char *channel_rename(const char *json, size_t length, const char *key)
{
    CLEANUP_JSON json_t *object = NULL;
    CLEANUP_JSON json_t *renamed = json_object();
    const char *name;
    json_t *value;

    if (json_read(json, length, JSON_DEPTH_ANY, JSON_VALUES_ANY, &object) < 0)
        return NULL;
    json_object_foreach(object, name, value)
    {
        if (json_object_set(renamed, strcmp(name, "channel") == 0 ? key : name, value) < 0)
            return NULL;
    }
    return json_dumps(renamed, JSON_COMPACT);
}

// The reply of a change. An alias may have another name for its member `channel`.
static void change_object(struct invocation *invocation, const char *json, size_t length)
{
    const char *key = invocation_key(invocation, "channel");

    if (strcmp(key, "channel") == 0) {
        invocation_object(invocation, json, length);
        return;
    }
    CLEANUP_FREE char *renamed = channel_rename(json, length, key);
    if (renamed)
        invocation_object(invocation, renamed, strlen(renamed));
    else
        invocation_fail(invocation, -ERROR_MEMORY);
}

static void change_answer(struct invocation *invocation, const struct result *result)
{
    if (result_rows(result) == 0) {
        invocation_fail(invocation, -ERROR_INTERNAL);
    } else if (!result_is_null(result, 0, COLUMN_ERROR)) {
        change_fail(invocation, result);
    } else {
        if (invocation->with_outbox && result_bool(result, 0, COLUMN_TOLD))
            invocation->api->options.on_committed(invocation->api->options.arg,
                                                  invocation->outbox_id);
        if (invocation->done_fn)
            invocation->done_fn(invocation, result);
        change_object(invocation, result_text(result, 0, COLUMN_REPLY),
                      result_length(result, 0, COLUMN_REPLY));
    }
}

void invocation_change(struct invocation *invocation, const struct statement *statement,
                       struct params *params, bool with_outbox)
{
    invocation->with_outbox = with_outbox;
    invocation_query(invocation, STORE_WRITE, statement, params, change_answer);
}

bool invocation_succeeded(struct invocation *invocation, const struct result *result)
{
    if (result_rows(result) > 0 && result_is_null(result, 0, COLUMN_ERROR))
        return true;
    invocation_fail(invocation, result_rows(result) == 0
                                    ? -ERROR_INTERNAL
                                    : error_from_code(result_text(result, 0, COLUMN_ERROR)));
    return false;
}

static void read_answer(struct invocation *invocation, const struct result *result)
{
    if (invocation_succeeded(invocation, result))
        invocation_object(invocation, result_text(result, 0, COLUMN_REPLY),
                          result_length(result, 0, COLUMN_REPLY));
}

void invocation_read(struct invocation *invocation, enum store_lane lane,
                     const struct statement *statement, struct params *params)
{
    invocation_query(invocation, lane, statement, params, read_answer);
}

void invocation_change_many(struct invocation *invocation, const struct statement *statement,
                            struct params *params)
{
    invocation->with_outbox = true;
    invocation_query(invocation, STORE_MANY, statement, params, change_answer);
}

void invocation_submit(const struct invocation *invocation, int64_t part)
{
    const struct api_options *options = &invocation->api->options;
    char id[OUTBOX_ID_SIZE + 24];

    if (part == 0) {
        options->on_committed(options->arg, invocation->outbox_id);
        return;
    }
    snprintf(id, sizeof id, "%s.%" PRId64, invocation->outbox_id, part);
    options->on_committed_later(options->arg, id);
}

const char *invocation_key(const struct invocation *invocation, const char *key)
{
    const struct method_alias *alias = invocation->alias;

    return alias && alias->key ? alias->key : key;
}

struct json_writer *invocation_open(struct invocation *invocation)
{
    return request_reply_open(invocation->request);
}

void invocation_close(struct invocation *invocation)
{
    request_reply_close(invocation->request);
    invocation_end(invocation);
}

bool invocation_posted(struct invocation *invocation, const struct posted *posted)
{
    if (!request_reply_posted(invocation->request, posted))
        return false;
    invocation_end(invocation);
    return true;
}

void invocation_objects(struct invocation *invocation, const char *key, const struct result *result)
{
    struct json_writer *w = invocation_open(invocation);

    json_key(w, key);
    json_open_array(w);
    for (int row = 0; row < result_rows(result); row++)
        json_raw(w, result_text(result, row, 0), result_length(result, row, 0));
    json_close_array(w);
    invocation_close(invocation);
}

void invocation_file(struct invocation *invocation, const struct reply_file *file)
{
    request_reply_file(invocation->request, file);
    invocation_end(invocation);
}

void invocation_object(struct invocation *invocation, const char *json, size_t length)
{
    request_reply_object(invocation->request, json, length);
    invocation_end(invocation);
}

void invocation_fail(struct invocation *invocation, int r)
{
    request_reply_error(invocation->request, r);
    invocation_end(invocation);
}

void invocation_unread(struct invocation *invocation, int r)
{
    request_reply_unread(invocation->request, r);
    invocation_end(invocation);
}

const char *invocation_body_owner(const struct invocation *invocation)
{
    const struct actor *actor = invocation->actor;

    return actor->type == 'o' ? OPERATOR_OWNER : actor->user_id;
}

void invocation_fail_for(struct invocation *invocation, int64_t seconds)
{
    request_reply_ratelimited(invocation->request, seconds);
    invocation_end(invocation);
}

void invocation_fail_message(struct invocation *invocation, int r, const char *format, ...)
{
    char text[256];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    request_reply_error_message(invocation->request, r, "%s", text);
    invocation_end(invocation);
}
