// SPDX-License-Identifier: Apache-2.0
// chat.postMessage and chat.meMessage.
#include "methods.h"

#include "base/check.h"
#include "base/digest.h"
#include "base/text.h"
#include "chat/message.h"
#include "content.h"
#include "destination.h"
#include "limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENT_MSG_ID_MAX = 128, KEY_MAX = 4 * CLIENT_MSG_ID_MAX + 32 };

// A post in progress: the struct for the writer, and the memory it points to.
struct posting {
    uint32_t tag;
    struct invocation *invocation;
    struct post post;
    struct content content;
    char channel_id[ID_SIZE];
    char key[KEY_MAX];
    char digest[DIGEST_HEX_SIZE];
};

static const struct statement MESSAGE = {
    "message",
    "SELECT m.channel_id, " MESSAGE_SELECT(
        "m", "$3") " FROM message_rows m WHERE m.channel_id = $1 AND m.ts = $2",
};

static const struct statement ROOT = {"thread_root", "SELECT thread_root($1, $2)"};

static void message_reply(struct invocation *invocation, const char *channel_id,
                          const struct message *message, bool is_duplicate)
{
    const struct posted posted = {.channel_id = channel_id,
                                  .ts = message->ts,
                                  .seq = message->seq,
                                  .is_duplicate = is_duplicate,
                                  .text = message->text,
                                  .text_length = message->text_length};

    if (invocation_posted(invocation, &posted))
        return;
    struct json_writer *w = invocation_open(invocation);
    json_key_string(w, "channel", channel_id);
    json_key_ts(w, "ts", message->ts);
    json_key_int(w, "seq", message->seq);
    if (is_duplicate)
        json_key_bool(w, "is_duplicate", true);
    json_key(w, "message");
    message_write(w, message, invocation->actor->workspace_id);
    invocation_close(invocation);
}

// Answers with the files that were shared, also if a call before has shared them.
static void files_reply(struct posting *posting)
{
    struct json_writer *w = invocation_open(posting->invocation);
    json_key(w, "files");
    json_raw(w, posting->content.files, strlen(posting->content.files));
    invocation_close(posting->invocation);
}

static void posting_end(struct posting *posting)
{
    content_done(&posting->content);
    TAGGED_FREE(posting);
}

// Answers a retry with the stored message in its current state.
static void duplicate_answer(struct invocation *invocation, const struct result *result)
{
    struct message message;

    if (result_rows(result) == 0) { // removed by retention
        invocation_fail(invocation, -ERROR_MESSAGE_NOT_FOUND);
        return;
    }
    message_read(result, 0, 1, &message);
    message_reply(invocation, result_text(result, 0, 0), &message, true);
}

static void duplicate_read(struct invocation *invocation, const char *channel_id, int64_t ts)
{
    struct params params = {0};

    params_text(&params, channel_id);
    params_int(&params, ts);
    params_text(&params, invocation->actor->user_id);
    invocation_query(invocation, STORE_READ, &MESSAGE, &params, duplicate_answer);
}

static void posted_reply(struct posting *posting, const struct post_outcome *outcome)
{
    const struct post *post = &posting->post;
    struct message message = post_message(post, outcome->ts, outcome->seq, outcome->parent_user);

    message_reply(posting->invocation, post->channel_id, &message, false);
}

static void posting_fail(struct posting *posting, int r)
{
    invocation_fail(posting->invocation, r);
    posting_end(posting);
}

static void posting_write(struct posting *posting)
{
    int r = writer_post(posting->invocation->api->options.writer, &posting->post);

    if (r < 0)
        posting_fail(posting, r);
}

static void root_answer(void *arg, const struct store_outcome *outcome)
{
    struct posting *posting = CAST(posting, arg);

    if (outcome->r < 0 || result_is_null(outcome->result, 0, 0)) {
        posting_fail(posting, outcome->r < 0 ? outcome->r : -ERROR_THREAD_NOT_FOUND);
        return;
    }
    posting->post.thread_ts = result_int(outcome->result, 0, 0);
    posting_write(posting);
}

// A reply to a reply, as many bots send it, belongs to the same thread.
static void root_read(struct posting *posting)
{
    struct params params = {0};

    params_text(&params, posting->post.channel_id);
    params_int(&params, posting->post.thread_ts);
    store_call(posting->invocation->api->options.store, STORE_READ, &ROOT, &params, root_answer,
               posting);
}

static void posted(void *arg, const struct post_outcome *outcome)
{
    struct posting *posting = CAST(posting, arg);

    if (outcome->r == -ERROR_THREAD_NOT_FOUND) {
        root_read(posting);
        return;
    }
    if (outcome->r < 0)
        invocation_fail(posting->invocation, outcome->r);
    else if (posting->content.files)
        files_reply(posting);
    else if (outcome->is_duplicate)
        duplicate_read(posting->invocation, posting->post.channel_id, outcome->ts);
    else
        posted_reply(posting, outcome);
    posting_end(posting);
}

// Reads the idempotency key: the author's client_msg_id, or the token's Idempotency-Key.
static bool take_key(struct invocation *invocation, struct posting *posting)
{
    const char *client_msg_id = NULL;
    const char *header = request_idempotency_key(invocation->request);

    if (posting->content.files)
        return true;
    if (!take_optional_word(invocation, "client_msg_id", &client_msg_id))
        return false;
    const char *key = client_msg_id ? client_msg_id : header;
    size_t length = strlen(key);
    if (!text_is_utf8(key, length) || text_code_points(key, length) > CLIENT_MSG_ID_MAX) {
        invocation_fail_message(
            invocation, -ERROR_INVALID_ARGUMENTS, "%s: must have at most %d characters of UTF-8",
            client_msg_id ? "client_msg_id" : "Idempotency-Key", CLIENT_MSG_ID_MAX);
        return false;
    }
    posting->post.client_msg_id = client_msg_id;
    if (length == 0)
        return true;
    if (client_msg_id)
        snprintf(posting->key, sizeof posting->key, "m:%s", key);
    else
        snprintf(posting->key, sizeof posting->key, "t:%s:%s", invocation->actor->token_id, key);
    posting->post.key = posting->key;
    return true;
}

// Computes the digest by which a retry is recognised.
static void digest_make(struct posting *posting)
{
    struct buffer content;

    buffer_init(&content, SIZE_MAX);
    buffer_append_int(&content, posting->post.thread_ts);
    buffer_append_byte(&content, posting->post.broadcast ? 'b' : '-');
    buffer_append(&content, posting->post.text, posting->post.text_length);
    buffer_append_byte(&content, '\0');
    if (posting->post.extra)
        buffer_append_text(&content, posting->post.extra);
    digest_sha256_hex(content.data, content.length, posting->digest);
    posting->post.digest = posting->digest;
    buffer_done(&content);
}

static void post_take_content(struct posting *posting)
{
    const struct content *content = &posting->content;

    posting->post.text = content->text ? content->text : "";
    posting->post.text_length = content->text_length;
    posting->post.extra = content->extra;
    posting->post.mentions = content->mentions;
}

static bool take_post(struct invocation *invocation, struct posting *posting)
{
    struct post *post = &posting->post;
    struct content *content = &posting->content;

    if (!take_text(invocation, "channel", &post->channel_id) ||
        !take_optional_ts(invocation, "thread_ts", -ERROR_INVALID_TIMESTAMP, &post->thread_ts) ||
        !take_optional_bool(invocation, "reply_broadcast", &post->broadcast))
        return false;
    content->is_broadcast = post->thread_ts != 0 && post->broadcast;
    if (!take_content(invocation, content) || !take_key(invocation, posting))
        return false;
    if (!content->text && !content->shows) {
        invocation_fail_message(invocation, -ERROR_NO_TEXT,
                                "text: must be given, or blocks or attachments");
        return false;
    }
    post_take_content(posting);
    return true;
}

// Files are shared once in a channel by one call, however often that is repeated.
static void posting_share(struct posting *posting, const struct shared_files *shared)
{
    posting->content.files = shared->objects;
    posting->post.files = shared->ids;
    posting->post.key = shared->key;
    posting->post.digest = "";
}

static void posting_send(struct posting *posting)
{
    if (!limits_admit_post(posting->invocation, posting->channel_id)) {
        posting_end(posting);
        return;
    }
    posting_write(posting);
}

static void destination_found(void *arg, int r, const char *channel_id)
{
    struct posting *posting = CAST(posting, arg);

    if (r >= 0) {
        snprintf(posting->channel_id, sizeof posting->channel_id, "%s", channel_id);
        posting->post.channel_id = posting->channel_id;
        posting_send(posting);
        return;
    }
    destination_fail(posting->invocation, r);
    posting_end(posting);
}

static void post_linked(void *arg, bool good)
{
    struct posting *posting = CAST(posting, arg);

    if (!good || !content_complete(posting->invocation, &posting->content)) {
        posting_end(posting);
        return;
    }
    post_take_content(posting);
    destination_find(posting->invocation, posting->post.channel_id, destination_found, posting);
}

// `extra`: fixed JSON to store with the message; only `text` is then read from the arguments. NULL:
// reads blocks, attachments and metadata, too. `shared`: files to share; NULL: none.
static void message_post(struct invocation *invocation, const char *extra,
                         const struct shared_files *shared)
{
    struct posting *posting = TAGGED_NEW(posting);

    if (!posting) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return;
    }
    posting->content.fixed_extra = extra;
    if (shared)
        posting_share(posting, shared);
    if (!take_post(invocation, posting)) {
        posting_end(posting);
        return;
    }
    posting->invocation = invocation;
    posting->post.actor = invocation->actor;
    posting->post.origin = request_origin(invocation->request);
    posting->post.fn = posted;
    posting->post.arg = posting;
    if (posting->post.key && !shared)
        digest_make(posting); // of the arguments as sent: linked names may change hands
    content_link(invocation, &posting->content, post_linked, posting);
}

void chat_post_message(struct invocation *invocation)
{
    message_post(invocation, NULL, NULL);
}

// Posts a /me message. Its subtype is stored in `extra`, not in a column, since few messages have
// it.
void chat_me_message(struct invocation *invocation)
{
    message_post(invocation, "{\"subtype\":\"me_message\"}", NULL);
}

void shared_files_post(struct invocation *invocation, const struct shared_files *shared)
{
    message_post(invocation, NULL, shared);
}

// Posts a message that chat.appendStream goes on with: the state is stored in `extra`, too.
void chat_start_stream(struct invocation *invocation)
{
    int r = invocation_has(invocation, "markdown_text")
                ? 0
                : request_arg_set(invocation->request, "markdown_text", STREAM_START_TEXT);

    if (r < 0)
        invocation_fail(invocation, r);
    else
        message_post(invocation, "{\"streaming_state\":\"in_progress\"}", NULL);
}
