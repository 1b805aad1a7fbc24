// SPDX-License-Identifier: Apache-2.0
// Builds the parameters of post_batch() for a batch: its posts, which of them share a channel or an
// author, and their order there.
#include "writer_internal.h"

#include "base/error.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { PREVIEW_CODE_POINTS = 80, PREVIEW_SIZE = 4 * PREVIEW_CODE_POINTS + 1 };

struct plan {
    int count;
    bool has_keys;
    bool has_replies;
    bool has_mentions;
    struct place *places;            // by index in the batch; the writer's
    const struct place **by_channel; // sorted by channel, workspace, index
    const struct place **by_author;  // sorted by channel, workspace, author, index
};

static int channel_compare(const struct place *a, const struct place *b)
{
    int order = strcmp(a->post->channel_id, b->post->channel_id);

    return order != 0 ? order : strcmp(a->post->actor->workspace_id, b->post->actor->workspace_id);
}

static int author_compare(const struct place *a, const struct place *b)
{
    int order = channel_compare(a, b);

    return order != 0 ? order : strcmp(a->post->actor->user_id, b->post->actor->user_id);
}

static int by_channel_compare(const void *left, const void *right)
{
    const struct place *a = *(const struct place *const *)left;
    const struct place *b = *(const struct place *const *)right;
    int order = channel_compare(a, b);

    return order != 0 ? order : a->index - b->index;
}

static int by_author_compare(const void *left, const void *right)
{
    const struct place *a = *(const struct place *const *)left;
    const struct place *b = *(const struct place *const *)right;
    int order = author_compare(a, b);

    return order != 0 ? order : a->index - b->index;
}

static void channels_number(struct plan *plan)
{
    int64_t channel = 0;
    int64_t rank = 0;
    int64_t ord = 0;

    for (int i = 0; i < plan->count; i++) {
        struct place *place = &plan->places[plan->by_channel[i]->index];
        place->begins_channel = i == 0 || channel_compare(plan->by_channel[i - 1], place) != 0;
        if (place->begins_channel) {
            channel++;
            rank = 0;
            ord = 0;
        }
        ord += place->counted;
        place->channel = channel;
        place->rank = rank++;
        place->ord = ord;
    }
}

static void authors_number(struct plan *plan)
{
    int64_t author = 0;
    int64_t own = 0;

    for (int i = 0; i < plan->count; i++) {
        struct place *place = &plan->places[plan->by_author[i]->index];
        place->begins_author = i == 0 || author_compare(plan->by_author[i - 1], place) != 0;
        if (place->begins_author) {
            author++;
            own = 0;
        }
        own += place->counted;
        place->author = author;
        place->own = own;
    }
}

static void plan_done(struct plan *plan)
{
    free(plan->by_channel);
    free(plan->by_author);
}

static int plan_make(struct plan *plan, struct post *const *posts, int count, struct place *places)
{
    size_t size = (size_t)count;

    plan->count = count;
    plan->places = places;
    plan->by_channel = calloc(size, sizeof *plan->by_channel);
    plan->by_author = calloc(size, sizeof *plan->by_author);
    if (!plan->by_channel || !plan->by_author)
        return -ERROR_MEMORY;
    for (int i = 0; i < count; i++) {
        bool counted = posts[i]->thread_ts == 0 || posts[i]->broadcast;
        plan->places[i] = (struct place){.post = posts[i], .index = i, .counted = counted};
        plan->by_channel[i] = plan->by_author[i] = &plan->places[i];
        plan->has_keys = plan->has_keys || posts[i]->key;
        plan->has_replies = plan->has_replies || posts[i]->thread_ts != 0;
        plan->has_mentions = plan->has_mentions || posts[i]->mentions.count > 0;
    }
    qsort(plan->by_channel, size, sizeof *plan->by_channel, by_channel_compare);
    qsort(plan->by_author, size, sizeof *plan->by_author, by_author_compare);
    channels_number(plan);
    authors_number(plan);
    return 0;
}

// The first 80 code points in one line, as preview() in sql/02_events.sql does it.
static void preview_write(char *preview, const char *text, size_t length)
{
    size_t prefix = text_prefix_length(text, length, PREVIEW_CODE_POINTS);

    memcpy(preview, text, prefix);
    preview[prefix] = '\0';
    for (char *c = preview; *c != '\0'; c++)
        if (*c == '\n' || *c == '\r' || *c == '\t')
            *c = ' ';
}

// What one channel gets of the batch.
struct channel_share {
    const struct place *first;
    const struct place *last;         // of all its posts
    const struct place *last_counted; // NULL: none
};

// The share that begins at `start` of by_channel; returns where the next one does.
static int share_read(const struct plan *plan, int start, struct channel_share *ret_share)
{
    int end = start;

    *ret_share = (struct channel_share){.first = plan->by_channel[start]};
    do {
        const struct place *place = plan->by_channel[end++];
        ret_share->last = place;
        if (place->counted)
            ret_share->last_counted = place;
    } while (end < plan->count && !plan->by_channel[end]->begins_channel);
    return end;
}

typedef void share_add_fn(struct params *params, const struct channel_share *share);

static void share_id(struct params *params, const struct channel_share *share)
{
    params_element_text(params, share->first->post->channel_id);
}

static void share_workspace(struct params *params, const struct channel_share *share)
{
    params_element_text(params, share->first->post->actor->workspace_id);
}

static void share_events(struct params *params, const struct channel_share *share)
{
    params_element_int(params, share->last->rank + 1);
}

static void share_counted(struct params *params, const struct channel_share *share)
{
    params_element_int(params, share->last->ord);
}

static void share_last(struct params *params, const struct channel_share *share)
{
    params_element_int(params, share->last_counted ? share->last_counted->rank + 1 : 0);
}

static void share_author(struct params *params, const struct channel_share *share)
{
    params_element_text(params,
                        share->last_counted ? share->last_counted->post->actor->user_id : "");
}

static void share_preview(struct params *params, const struct channel_share *share)
{
    char preview[PREVIEW_SIZE] = "";

    if (share->last_counted)
        preview_write(preview, share->last_counted->post->text,
                      share->last_counted->post->text_length);
    params_element_text(params, preview);
}

static void shares_add(struct params *params, const struct plan *plan, bool texts, share_add_fn *fn)
{
    struct channel_share share;

    if (texts)
        params_open_text_array(params);
    else
        params_open_int_array(params);
    for (int start = 0; start < plan->count;) {
        start = share_read(plan, start, &share);
        fn(params, &share);
    }
    params_close_array(params);
}

static void channels_add(struct params *params, const struct plan *plan)
{
    shares_add(params, plan, true, share_id);
    shares_add(params, plan, true, share_workspace);
    shares_add(params, plan, false, share_events);
    shares_add(params, plan, false, share_counted);
    shares_add(params, plan, false, share_last);
    shares_add(params, plan, true, share_author);
    shares_add(params, plan, true, share_preview);
}

static void authors_add(struct params *params, const struct plan *plan)
{
    params_open_int_array(params);
    for (int i = 0; i < plan->count; i++)
        if (plan->by_author[i]->begins_author)
            params_element_int(params, plan->by_author[i]->channel);
    params_close_array(params);
    params_open_text_array(params);
    for (int i = 0; i < plan->count; i++)
        if (plan->by_author[i]->begins_author)
            params_element_text(params, plan->by_author[i]->post->actor->user_id);
    params_close_array(params);
    params_open_int_array(params);
    for (int i = 0; i < plan->count; i++)
        if (i + 1 == plan->count || plan->by_author[i + 1]->begins_author)
            params_element_int(params, plan->by_author[i]->own);
    params_close_array(params);
}

static void places_add(struct params *params, const struct plan *plan, size_t member)
{
    params_open_int_array(params);
    for (int i = 0; i < plan->count; i++)
        params_element_int(
            params, *(const int64_t *)(const void *)((const char *)&plan->places[i] + member));
    params_close_array(params);
}

typedef const char *post_text_fn(const struct post *post);

static const char *workspace_of(const struct post *post)
{
    return post->actor->workspace_id;
}

static const char *channel_of(const struct post *post)
{
    return post->channel_id;
}

static const char *author_of(const struct post *post)
{
    return post->actor->user_id;
}

static const char *extra_of(const struct post *post)
{
    return post->extra;
}

static const char *key_of(const struct post *post)
{
    return post->key;
}

static const char *digest_of(const struct post *post)
{
    return post->digest;
}

static const char *client_msg_id_of(const struct post *post)
{
    return post->client_msg_id;
}

static void texts_add(struct params *params, struct post *const *posts, int count, post_text_fn *fn)
{
    params_open_text_array(params);
    for (int i = 0; i < count; i++)
        params_element_text(params, fn(posts[i]));
    params_close_array(params);
}

static void bodies_add(struct params *params, struct post *const *posts, int count)
{
    params_open_text_array(params);
    for (int i = 0; i < count; i++)
        params_element_text_n(params, posts[i]->text, posts[i]->text_length);
    params_close_array(params);
}

static void threads_add(struct params *params, struct post *const *posts, int count)
{
    params_open_int_array(params);
    for (int i = 0; i < count; i++)
        params_element_int(params, posts[i]->thread_ts);
    params_close_array(params);
}

static void broadcasts_add(struct params *params, struct post *const *posts, int count)
{
    params_open_bool_array(params);
    for (int i = 0; i < count; i++)
        params_element_bool(params, posts[i]->broadcast);
    params_close_array(params);
}

// Of each mention: the place of its post, and who is mentioned.
static void mentioned_add(struct params *params, struct post *const *posts, int count)
{
    params_open_int_array(params);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < posts[i]->mentions.count; k++)
            params_element_int(params, i + 1);
    params_close_array(params);
    params_open_text_array(params);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < posts[i]->mentions.count; k++)
            params_element_text(params, posts[i]->mentions.items[k].user_id);
    params_close_array(params);
}

static void mentions_add(struct params *params, struct post *const *posts, int count)
{
    mentioned_add(params, posts, count);
    params_open_int_array(params);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < posts[i]->mentions.count; k++)
            params_element_int(params, posts[i]->mentions.items[k].sources);
    params_close_array(params);
}

int batch_params(struct params *params, struct batch *batch)
{
    CLEANUP(plan_done) struct plan plan = {0};
    struct post *const *posts = batch->posts;
    int count = batch->count;

    int r = plan_make(&plan, posts, count, batch->places);
    if (r < 0)
        return r;
    batch->channel_count = (int)plan.by_channel[count - 1]->channel;
    batch->has_replies = plan.has_replies;
    params_text(params, batch->id);
    channels_add(params, &plan);
    authors_add(params, &plan);
    places_add(params, &plan, offsetof(struct place, channel));
    places_add(params, &plan, offsetof(struct place, rank));
    places_add(params, &plan, offsetof(struct place, ord));
    places_add(params, &plan, offsetof(struct place, author));
    places_add(params, &plan, offsetof(struct place, own));
    bodies_add(params, posts, count);
    texts_add(params, posts, count, extra_of);
    threads_add(params, posts, count);
    broadcasts_add(params, posts, count);
    texts_add(params, posts, count, key_of);
    texts_add(params, posts, count, digest_of);
    texts_add(params, posts, count, client_msg_id_of);
    mentions_add(params, posts, count);
    params_bool(params, plan.has_keys);
    params_bool(params, plan.has_replies);
    params_bool(params, plan.has_mentions);
    params_int(params, writer_heat(batch->writer));
    return 0;
}

bool batch_is_one(const struct batch *batch)
{
    const struct post *post = batch->posts[0];

    return batch->count == 1 && post->thread_ts == 0 && post->mentions.count == 0;
}

void batch_one_params(struct params *params, struct batch *batch)
{
    const struct post *post = batch->posts[0];
    char preview[PREVIEW_SIZE];

    batch->places[0] = (struct place){
        .post = post, .counted = true, .channel = 1, .ord = 1, .author = 1, .own = 1};
    batch->channel_count = 1;
    batch->has_replies = false;
    preview_write(preview, post->text, post->text_length);
    params_text(params, batch->id);
    params_text(params, post->actor->workspace_id);
    params_text(params, post->channel_id);
    params_text(params, post->actor->user_id);
    params_text(params, preview);
    params_text_n(params, post->text, post->text_length);
    params_text(params, post->extra);
    params_text(params, post->key);
    params_text(params, post->digest);
    params_text(params, post->client_msg_id);
    params_int(params, writer_heat(batch->writer));
}

void batch_check_params(struct params *params, const struct batch *batch)
{
    texts_add(params, batch->posts, batch->count, workspace_of);
    texts_add(params, batch->posts, batch->count, channel_of);
    texts_add(params, batch->posts, batch->count, author_of);
    threads_add(params, batch->posts, batch->count);
    texts_add(params, batch->posts, batch->count, key_of);
    texts_add(params, batch->posts, batch->count, digest_of);
}

void batch_locked_params(struct params *params, const struct batch *batch)
{
    texts_add(params, batch->posts, batch->count, channel_of);
    texts_add(params, batch->posts, batch->count, author_of);
    mentioned_add(params, batch->posts, batch->count);
}

bool writer_same_place(const struct post *one, const struct post *other)
{
    return strcmp(one->actor->user_id, other->actor->user_id) == 0 &&
           strcmp(one->channel_id, other->channel_id) == 0;
}

bool writer_same_key(const struct post *one, const struct post *other)
{
    return one->key && other->key && strcmp(one->key, other->key) == 0 &&
           strcmp(one->actor->user_id, other->actor->user_id) == 0;
}

static void name_copy(char *ret_name, const char *name)
{
    size_t length = strnlen(name, EVENT_ID_SIZE - 1);

    memcpy(ret_name, name, length);
    ret_name[length] = '\0';
}

void writer_event_name(struct event *event, const struct post *post)
{
    name_copy(event->workspace_id, post->actor->workspace_id);
    name_copy(event->channel_id, post->channel_id);
    name_copy(event->user_id, post->actor->user_id);
    name_copy(event->origin, post->origin);
}
