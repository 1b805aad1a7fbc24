// SPDX-License-Identifier: Apache-2.0
// pins.add, remove and list.
#include "methods.h"

#include "base/check.h"
#include "noted.h"
#include "permalink.h"

static const struct statement ADD = {"pins_add",
                                     "SELECT error, reply, told FROM pins_add($1, $2, $3, $4, $5)"};
static const struct statement REMOVE = {
    "pins_remove", "SELECT error, reply, told FROM pins_remove($1, $2, $3, $4, $5)"};
static const struct statement LIST = {
    "pins_list",
    "SELECT a.error, p.event_ts / 1000000, p.user_id, " MESSAGE_SELECT(
        "r", "$2") " FROM (SELECT channel_refusal($1, $2, $3) AS error) a"
                   " LEFT JOIN pin_rows p ON a.error IS NULL AND p.channel_id = $3"
                   " LEFT JOIN message_rows r ON r.channel_id = p.channel_id AND r.ts = p.ts"
                   " ORDER BY p.event_ts DESC, p.ts DESC"};
enum { COLUMN_ERROR, COLUMN_CREATED, COLUMN_CREATED_BY, COLUMN_MESSAGE };

static void pin_change(struct invocation *invocation, const struct statement *statement)
{
    struct params params = {0};
    struct noted noted;

    if (!take_noted(invocation, &noted))
        return;
    noted_change_params(invocation, &noted, &params);
    invocation_change(invocation, statement, &params, true);
}

void pins_add(struct invocation *invocation)
{
    pin_change(invocation, &ADD);
}

void pins_remove(struct invocation *invocation)
{
    pin_change(invocation, &REMOVE);
}

static void pin_write(struct json_writer *w, const struct invocation *invocation,
                      const struct result *result, int row)
{
    const char *channel_id = request_arg(invocation->request, "channel");
    struct message message;

    message_read(result, row, COLUMN_MESSAGE, &message);
    json_open_object(w);
    json_key_string(w, "type", "message");
    json_key_string(w, "channel", channel_id);
    json_key_int(w, "created", result_int(result, row, COLUMN_CREATED));
    json_key_string(w, "created_by", result_text(result, row, COLUMN_CREATED_BY));
    json_key(w, "message");
    permalink_write_message(w, invocation, channel_id, &message);
    json_close_object(w);
}

static void list_answer(struct invocation *invocation, const struct result *result)
{
    if (!invocation_succeeded(invocation, result))
        return;
    struct json_writer *w = invocation_open(invocation);
    json_key(w, "items");
    json_open_array(w);
    for (int row = 0; row < result_rows(result); row++)
        if (!result_is_null(result, row, COLUMN_MESSAGE))
            pin_write(w, invocation, result, row);
    json_close_array(w);
    invocation_close(invocation);
}

void pins_list(struct invocation *invocation)
{
    struct params params = {0};
    const char *channel_id;

    if (!take_channel(invocation, &channel_id))
        return;
    invocation_caller_params(invocation, &params);
    params_text(&params, channel_id);
    invocation_query(invocation, STORE_READ, &LIST, &params, list_answer);
}
