// SPDX-License-Identifier: Apache-2.0
// channels.markMany: moves many of the caller's read cursors in one commit, with a result for each.
#include "methods.h"

#include "base/json.h"
#include "base/metrics.h"
#include "unread/view.h"

enum { MARKS_MAX = 1000, EPOCH_ANY = -1 };

static const struct statement MARK_MANY = {
    "mark_many",
    "SELECT b.item, b.error, b.changed, " UNREAD_VIEW_SELECT(
        "b") " FROM mark_many($1, $2, $3, $4, $5, $6) b ORDER BY b.item",
};
enum { COLUMN_ITEM, COLUMN_ERROR, COLUMN_CHANGED, COLUMN_VIEW };

// One mark of the list as given. Strings are owned by the list.
struct item {
    const char *channel_id; // "": missing
    int64_t ts;
    int64_t epoch;
    int r;               // the error found here; 0: sent to Postgres
    const char *message; // names the invalid argument
};

static void item_refuse(struct item *item, int r, const char *message)
{
    item->r = r;
    item->message = message;
}

static bool item_channel(const json_t *json, struct item *item)
{
    const json_t *channel = json_object_get(json, "channel");

    item->channel_id = json_is_string(channel) ? json_string_value(channel) : "";
    if (!channel || json_is_null(channel) || (json_is_string(channel) && !item->channel_id[0]))
        item_refuse(item, -ERROR_INVALID_ARGUMENTS, "[ERROR] missing required field: channel");
    else if (!id_is_valid(item->channel_id, "CGD"))
        item_refuse(item, -ERROR_CHANNEL_NOT_FOUND,
                    "[ERROR] channel: must be an id of A-Z and 0-9 that begins with CGD");
    return item->r == 0;
}

static bool item_ts(const json_t *json, struct item *item)
{
    const json_t *ts = json_object_get(json, "ts");

    if (!ts || json_is_null(ts) || (json_is_string(ts) && json_string_length(ts) == 0))
        item_refuse(item, -ERROR_INVALID_ARGUMENTS, "[ERROR] missing required field: ts");
    else if (!json_is_string(ts) ||
             ts_parse(json_string_value(ts), json_string_length(ts), &item->ts) < 0)
        item_refuse(item, -ERROR_INVALID_TIMESTAMP,
                    "[ERROR] ts: must be a ts such as 1717200000.123456");
    return item->r == 0;
}

static void item_epoch(const json_t *json, struct item *item)
{
    const json_t *epoch = json_object_get(json, "read_epoch");

    item->epoch = EPOCH_ANY;
    if (!epoch || json_is_null(epoch))
        return;
    item->epoch = json_integer_value(epoch);
    if (!json_is_integer(epoch) || item->epoch < 0 || item->epoch > INT64_MAX / 2)
        item_refuse(item, -ERROR_INVALID_ARGUMENTS,
                    "[ERROR] read_epoch: must be a whole number from 0 to 4611686018427387903");
}

static void item_read(const json_t *json, struct item *ret_item)
{
    *ret_item = (struct item){.channel_id = ""};
    if (!json_is_object(json))
        item_refuse(ret_item, -ERROR_INVALID_ARGUMENTS,
                    "[ERROR] marks: each must be an object of channel, ts and read_epoch");
    else if (item_channel(json, ret_item) && item_ts(json, ret_item))
        item_epoch(json, ret_item);
}

static void item_fail(struct json_writer *w, const char *channel_id, const char *error,
                      const char *message)
{
    json_key_string(w, "channel", channel_id);
    json_key_string(w, "error", error);
    if (!message)
        return;
    json_key(w, "messages");
    json_open_array(w);
    json_text(w, message);
    json_close_array(w);
}

static void row_write(struct json_writer *w, const char *channel_id, const struct result *result,
                      int row)
{
    const char *error = result_text(result, row, COLUMN_ERROR);
    struct unread_view view;

    if (error[0] != '\0') {
        item_fail(w, channel_id, error, NULL);
        return;
    }
    metric_add(METRIC_MARKS, 1);
    unread_view_read(result, row, COLUMN_VIEW, &view);
    unread_view_write(w, &view);
}

// Reads the list again, which is known to be valid.
static json_t *marks_again(const struct invocation *invocation)
{
    json_t *marks = NULL;

    return request_arg_json(invocation->request, "marks", JSON_DEPTH_MAX, &marks) < 0 ? NULL
                                                                                      : marks;
}

// There is one row per mark sent to Postgres, in their order.
static void results_reply(struct invocation *invocation, const struct result *result)
{
    CLEANUP_JSON json_t *marks = marks_again(invocation);
    size_t index;
    json_t *json;
    int row = 0;

    if (!marks) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return;
    }
    struct json_writer *w = invocation_open(invocation);
    json_key(w, "results");
    json_open_array(w);
    json_array_foreach(marks, index, json)
    {
        struct item item;
        item_read(json, &item);
        json_open_object(w);
        if (item.r < 0)
            item_fail(w, item.channel_id, error_code(-item.r), item.message);
        else
            row_write(w, item.channel_id, result, row++);
        json_close_object(w);
    }
    json_close_array(w);
    invocation_close(invocation);
}

// A part of the marks has an outbox row if at least one of them changed something.
static void parts_submit(struct invocation *invocation, const struct result *result)
{
    int64_t submitted = -1;

    for (int row = 0; row < result_rows(result); row++) {
        int64_t part = result_int(result, row, COLUMN_ITEM) / INVOCATION_PART;
        if (part == submitted || !result_bool(result, row, COLUMN_CHANGED))
            continue;
        invocation_submit(invocation, part);
        submitted = part;
    }
}

static void marked_many(struct invocation *invocation, const struct result *result)
{
    parts_submit(invocation, result);
    results_reply(invocation, result);
}

static void channels_add(struct params *params, const json_t *marks)
{
    size_t index;
    json_t *json;
    struct item item;

    params_open_text_array(params);
    json_array_foreach(marks, index, json)
    {
        item_read(json, &item);
        if (item.r == 0)
            params_element_text(params, item.channel_id);
    }
    params_close_array(params);
}

static void numbers_add(struct params *params, const json_t *marks, bool epochs)
{
    size_t index;
    json_t *json;
    struct item item;

    params_open_int_array(params);
    json_array_foreach(marks, index, json)
    {
        item_read(json, &item);
        if (item.r == 0)
            params_element_int(params, epochs ? item.epoch : item.ts);
    }
    params_close_array(params);
}

void channels_mark_many(struct invocation *invocation)
{
    CLEANUP_JSON json_t *marks = NULL;
    struct params params = {0};

    if (!take_array(invocation, "marks", MARKS_MAX, &marks))
        return;
    invocation_change_params(invocation, &params);
    channels_add(&params, marks);
    numbers_add(&params, marks, false);
    numbers_add(&params, marks, true);
    invocation_query(invocation, STORE_MANY, &MARK_MANY, &params, marked_many);
}
