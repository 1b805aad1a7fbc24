// SPDX-License-Identifier: Apache-2.0
// chat.appendStream and chat.stopStream, which go on with a message of chat.startStream, and
// assistant.threads.setStatus.
#include "methods.h"

#include "chat/unstored_frame.h"
#include "content.h"
#include "unread/keys.h"

#include <string.h>

enum { STATUS_MAX = 200, FRAME_MAX = 8192, STATUS_S = 120 };

static const struct statement APPEND = {
    "stream_append", "SELECT error, reply, frame FROM stream_append($1, $2, $3, $4, $5, $6, "
                     "$7::integer)"};
static const struct statement TEXT = {"stream_text",
                                      "SELECT error, body FROM stream_text($1, $2, $3, $4, $5)"};
static const struct statement STATUS = {"assistant_status", "SELECT channel_refusal($1, $2, $3)"};

static void channel_publish(const struct invocation *invocation, const char *json, size_t length)
{
    char topic[KEY_SIZE];

    key_channel_topic(topic, invocation->channel_id);
    unstored_frame_publish(invocation->api->options.cache, topic, json, length);
}

// Adds workspace, caller and message. False: an error was replied.
static bool take_message(struct invocation *invocation, struct params *params)
{
    const char *channel_id;
    int64_t ts;

    if (!take_channel(invocation, &channel_id) ||
        !take_ts(invocation, "ts", -ERROR_INVALID_TIMESTAMP, &ts))
        return false;
    invocation_caller_params(invocation, params);
    params_text(params, channel_id);
    params_int(params, ts);
    return true;
}

static void place_write(struct invocation *invocation)
{
    struct json_writer *w = invocation_open(invocation);

    json_key_string(w, "channel", request_arg(invocation->request, "channel"));
    json_key_string(w, "ts", request_arg(invocation->request, "ts"));
    invocation_close(invocation);
}

static void append_answer(struct invocation *invocation, const struct result *result)
{
    if (!invocation_succeeded(invocation, result))
        return;
    if (!result_is_null(result, 0, 2))
        channel_publish(invocation, result_text(result, 0, 2), result_length(result, 0, 2));
    place_write(invocation);
}

void chat_append_stream(struct invocation *invocation)
{
    CLEANUP_PARAMS struct params params = {0};
    const char *text;

    if (!take_message(invocation, &params) || !take_markdown_text(invocation, &text))
        return;
    params_text(&params, text);
    params_text(&params, STREAM_START_TEXT);
    params_int(&params, invocation->api->options.settings.text_max);
    invocation_query(invocation, STORE_WRITE, &APPEND, &params, append_answer);
}

static const struct statement END = {"stream_end", "SELECT stream_end($1, $2)"};

static void on_ended(void *arg, const struct store_outcome *outcome)
{
    (void)arg, (void)outcome; // what is left is removed by a later end
}

static void stream_ended(struct invocation *invocation, const struct result *result)
{
    struct params params = {0};
    int64_t ts = 0;

    (void)result;
    if (!take_ts(invocation, "ts", -ERROR_INVALID_TIMESTAMP, &ts))
        return; // was read before
    params_text(&params, invocation->channel_id);
    params_int(&params, ts);
    store_call(invocation->api->options.store, STORE_READ, &END, &params, on_ended, NULL);
}

// The rest is an edit of the message, with all of its text.
static void text_answer(struct invocation *invocation, const struct result *result)
{
    CLEANUP(buffer_done) struct buffer text = BUFFER(SIZE_MAX);
    const char *rest = request_arg(invocation->request, "markdown_text");

    if (!invocation_succeeded(invocation, result))
        return;
    buffer_append(&text, result_text(result, 0, 1), result_length(result, 0, 1));
    buffer_append_text(&text, rest ? rest : "");
    if (text.length == 0)
        buffer_append_text(&text, STREAM_START_TEXT);
    buffer_append_byte(&text, '\0');
    int r = buffer_failed(&text)
                ? -ERROR_MEMORY
                : request_arg_set_copy(invocation->request, "markdown_text", text.data);
    if (r < 0) {
        invocation_fail(invocation, r);
        return;
    }
    invocation->done_fn = stream_ended;
    chat_update(invocation);
}

void chat_stop_stream(struct invocation *invocation)
{
    CLEANUP_PARAMS struct params params = {0};
    const char *text;

    if (!take_message(invocation, &params) ||
        (invocation_has(invocation, "markdown_text") && !take_markdown_text(invocation, &text)))
        return;
    params_text(&params, STREAM_START_TEXT);
    invocation_query(invocation, STORE_READ, &TEXT, &params, text_answer);
}

static void status_answer(struct invocation *invocation, const struct result *result)
{
    CLEANUP(buffer_done) struct buffer out = BUFFER(FRAME_MAX);
    struct json_writer w = json_writer_to(&out);

    if (!invocation_succeeded(invocation, result))
        return;
    json_open_object(&w);
    json_key_string(&w, "type", "assistant_status");
    json_key_string(&w, "channel", invocation->channel_id);
    json_key_string(&w, "thread_ts", request_arg(invocation->request, "thread_ts"));
    json_key_string(&w, "user", invocation->actor->user_id);
    json_key_string(&w, "status", request_arg(invocation->request, "status"));
    json_key_int(&w, "seconds", STATUS_S);
    json_close_object(&w);
    if (!buffer_failed(&out))
        channel_publish(invocation, out.data, out.length);
    invocation_open(invocation);
    invocation_close(invocation);
}

// Says what an agent does, for two minutes or until it posts. "" takes it back.
void assistant_threads_set_status(struct invocation *invocation)
{
    struct params params = {0};
    const char *channel_id;
    const char *status = NULL;
    int64_t ts;

    if (!take_id(invocation, "channel_id", "CGD", -ERROR_CHANNEL_NOT_FOUND, &channel_id) ||
        !take_ts(invocation, "thread_ts", -ERROR_INVALID_TIMESTAMP, &ts) ||
        !take_optional_text(invocation, "status", &status))
        return;
    if (!status || strlen(status) > STATUS_MAX) {
        invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                                "status: must be given, with at most %d bytes", STATUS_MAX);
        return;
    }
    invocation->channel_id = channel_id;
    invocation_caller_params(invocation, &params);
    params_text(&params, channel_id);
    invocation_query(invocation, STORE_READ, &STATUS, &params, status_answer);
}
