// SPDX-License-Identifier: Apache-2.0
// The arguments of the SQL functions called by the writer, by name. Each list below generates both
// the SQL of the call and the code that fills in its parameters.
#include "writer_internal.h"

#include "base/clock.h"
#include "base/text.h"

#include <string.h>

// A row of a list is X(number, name in SQL, source, type, value). The source says whether it has a
// single value:
#define BATCH(type, ...) VALUE_##type(params, __VA_ARGS__);
// or is an array with one element per channel, author, place, post or mention:
#define CHANNELS(type, ...)                                                                        \
    ARRAY(type, plan->channel_count, const struct batch_channel *channel = &plan->channels[i];     \
          ELEMENT_##type(params, __VA_ARGS__))
#define AUTHORS(type, ...)                                                                         \
    ARRAY(type, plan->author_count, const struct batch_author *author = &plan->authors[i];         \
          ELEMENT_##type(params, __VA_ARGS__))
#define PLACES(type, ...)                                                                          \
    ARRAY(type, plan->count, const struct batch_place *place = &plan->places[i];                   \
          ELEMENT_##type(params, __VA_ARGS__))
#define POSTS(type, ...)                                                                           \
    ARRAY(type, batch->count, const struct post *post = post_of(batch, i);                         \
          ELEMENT_##type(params, __VA_ARGS__))
#define MENTIONS(type, ...)                                                                        \
    ARRAY(type, batch->count, const struct mentions *mentions = &post_of(batch, i)->mentions;      \
          for (int k = 0; k < mentions->count; k++) ELEMENT_##type(params, __VA_ARGS__))

#define ARRAY(type, count, ...)                                                                    \
    OPEN_##type(params);                                                                           \
    for (int i = 0; i < (count); i++) {                                                            \
        __VA_ARGS__;                                                                               \
    }                                                                                              \
    params_close_array(params);

#define VALUE_TEXT params_text
#define OPEN_TEXT params_open_text_array
#define ELEMENT_TEXT params_element_text
#define VALUE_BYTES params_text_n
#define OPEN_BYTES params_open_text_array
#define ELEMENT_BYTES params_element_text_n
#define VALUE_INT params_int
#define OPEN_INT params_open_int_array
#define ELEMENT_INT params_element_int
#define VALUE_BOOL params_bool
#define OPEN_BOOL params_open_bool_array
#define ELEMENT_BOOL params_element_bool

#define POST_BATCH_ARGUMENTS(FIRST, X)                                                             \
    FIRST(1, batch_id, BATCH, TEXT, posted->id)                                                    \
    X(2, channel_ids, CHANNELS, TEXT, channel->post->channel_id)                                   \
    X(3, channel_workspaces, CHANNELS, TEXT, channel->post->actor->workspace_id)                   \
    X(4, channel_events, CHANNELS, INT, channel->events)                                           \
    X(5, channel_counted, CHANNELS, INT, channel->counted)                                         \
    X(6, channel_last, CHANNELS, INT, channel->last)                                               \
    X(7, channel_authors, CHANNELS, TEXT, author_id(channel->last_counted))                        \
    X(8, channel_previews, CHANNELS, TEXT, preview_write(preview, channel->last_counted))          \
    X(9, author_places, AUTHORS, INT, author->channel)                                             \
    X(10, author_ids, AUTHORS, TEXT, author->post->actor->user_id)                                 \
    X(11, author_posts, AUTHORS, INT, author->posts)                                               \
    X(12, item_channels, PLACES, INT, place->channel)                                              \
    X(13, item_ranks, PLACES, INT, place->rank)                                                    \
    X(14, item_ords, PLACES, INT, place->ord)                                                      \
    X(15, item_authors, PLACES, INT, place->author)                                                \
    X(16, item_posts, PLACES, INT, place->own)                                                     \
    X(17, bodies, POSTS, BYTES, post->text, post->text_length)                                     \
    X(18, extras, POSTS, TEXT, post->extra)                                                        \
    X(19, threads_ts, POSTS, INT, post->thread_ts)                                                 \
    X(20, broadcasts, POSTS, BOOL, post->broadcast)                                                \
    X(21, keys, POSTS, TEXT, post->key)                                                            \
    X(22, digests, POSTS, TEXT, post->digest)                                                      \
    X(23, client_msg_ids, POSTS, TEXT, post->client_msg_id)                                        \
    X(24, mention_items, MENTIONS, INT, i + 1)                                                     \
    X(25, mention_users, MENTIONS, TEXT, mentions->items[k].user_id)                               \
    X(26, mention_sources, MENTIONS, INT, mentions->items[k].sources)                              \
    X(27, has_keys, BATCH, BOOL, plan->has_keys)                                                   \
    X(28, has_replies, BATCH, BOOL, plan->has_replies)                                             \
    X(29, has_mentions, BATCH, BOOL, plan->has_mentions)                                           \
    X(30, heat, BATCH, INT, writer_heat(posted->writer))                                           \
    X(31, has_files, BATCH, BOOL, plan->has_files)                                                 \
    X(32, files, POSTS, TEXT, post->files)

#define POST_ONE_ARGUMENTS(FIRST, X)                                                               \
    FIRST(1, batch_id, BATCH, TEXT, posted->id)                                                    \
    X(2, workspace, BATCH, TEXT, post->actor->workspace_id)                                        \
    X(3, channel, BATCH, TEXT, post->channel_id)                                                   \
    X(4, author, BATCH, TEXT, post->actor->user_id)                                                \
    X(5, message_preview, BATCH, TEXT, preview_write(preview, post))                               \
    X(6, message_body, BATCH, BYTES, post->text, post->text_length)                                \
    X(7, message_extra, BATCH, TEXT, post->extra)                                                  \
    X(8, key, BATCH, TEXT, post->key)                                                              \
    X(9, digest, BATCH, TEXT, post->digest)                                                        \
    X(10, client_msg_id, BATCH, TEXT, post->client_msg_id)                                         \
    X(11, heat, BATCH, INT, writer_heat(posted->writer))

#define POST_CHECK_ARGUMENTS(FIRST, X)                                                             \
    FIRST(1, workspaces, POSTS, TEXT, post->actor->workspace_id)                                   \
    X(2, channel_ids, POSTS, TEXT, post->channel_id)                                               \
    X(3, authors, POSTS, TEXT, post->actor->user_id)                                               \
    X(4, threads_ts, POSTS, INT, post->thread_ts)                                                  \
    X(5, keys, POSTS, TEXT, post->key)                                                             \
    X(6, digests, POSTS, TEXT, post->digest)

#define POST_LOCKED_ARGUMENTS(FIRST, X)                                                            \
    FIRST(1, channel_ids, POSTS, TEXT, post->channel_id)                                           \
    X(2, authors, POSTS, TEXT, post->actor->user_id)                                               \
    X(3, mention_items, MENTIONS, INT, i + 1)                                                      \
    X(4, mention_users, MENTIONS, TEXT, mentions->items[k].user_id)

#define NAMED_FIRST(number, name, ...) #name " => $" #number
#define NAMED(number, name, ...) ", " #name " => $" #number
#define FILL(number, name, what, type, ...) what(type, __VA_ARGS__)

static const struct statement POST_BATCH = {
    "post_batch",
    "SELECT first_ts, first_seq, first_ord, traits, parent_users FROM "
    "post_batch(" POST_BATCH_ARGUMENTS(NAMED_FIRST, NAMED) ")",
};
static const struct statement POST_ONE = {
    "post_one",
    "SELECT first_ts, first_seq, first_ord, traits FROM "
    "post_one(" POST_ONE_ARGUMENTS(NAMED_FIRST, NAMED) ")",
};
static const struct statement POST_CHECK = {
    "post_check",
    "SELECT error, duplicate_ts FROM post_check(" POST_CHECK_ARGUMENTS(NAMED_FIRST, NAMED) ")",
};
static const struct statement POST_LOCKED = {
    "post_locked",
    "SELECT * FROM post_locked(" POST_LOCKED_ARGUMENTS(NAMED_FIRST, NAMED) ")",
};

// A snapshot older than this makes channels hot.
enum { SNAPSHOT_S = 1 };

int64_t writer_heat(const struct writer *writer)
{
    const struct heat *heat = writer->options.heat;

    if (atomic_load_explicit(&heat->snapshot_s, memory_order_relaxed) >= SNAPSHOT_S)
        return 2;
    return atomic_load_explicit(&heat->channels, memory_order_relaxed) > 0 ||
           clock_monotonic_ms() < writer->hot_until_ms;
}

// One more than is shown: so the reader knows whether a grapheme cluster ends there.
enum { PREVIEW_KEPT = PREVIEW_CODE_POINTS + 1, PREVIEW_SIZE = 4 * PREVIEW_KEPT + 1 };

// Writes the first code points as one line, like preview() in sql/02_events.sql, and returns
// `preview`. Empty if there is no post or no text: Postgres then looks in blocks and attachments.
static const char *preview_write(char *preview, const struct post *post)
{
    size_t length = post ? text_prefix_length(post->text, post->text_length, PREVIEW_KEPT) : 0;

    if (length > 0)
        memcpy(preview, post->text, length);
    preview[length] = '\0';
    for (char *c = preview; *c != '\0'; c++)
        if (*c == '\n' || *c == '\r' || *c == '\t')
            *c = ' ';
    return preview;
}

static const char *author_id(const struct post *post)
{
    return post ? post->actor->user_id : "";
}

static const struct statement *one_fill(struct params *params, const struct post_batch *posted)
{
    const struct post *post = post_of(posted->batch, 0);
    char preview[PREVIEW_SIZE];

    POST_ONE_ARGUMENTS(FILL, FILL)
    return &POST_ONE;
}

const struct statement *post_batch_params(struct params *params, const struct post_batch *posted)
{
    const struct batch *batch = posted->batch;
    const struct batch_plan *plan = &posted->plan;
    char preview[PREVIEW_SIZE];

    if (plan->count == 1 && !plan->has_replies && !plan->has_mentions && !plan->has_files)
        return one_fill(params, posted);
    POST_BATCH_ARGUMENTS(FILL, FILL)
    return &POST_BATCH;
}

const struct statement *writer_check_params(struct params *params, const struct batch *batch)
{
    POST_CHECK_ARGUMENTS(FILL, FILL)
    return &POST_CHECK;
}

const struct statement *writer_locked_params(struct params *params, const struct batch *batch)
{
    POST_LOCKED_ARGUMENTS(FILL, FILL)
    return &POST_LOCKED;
}
