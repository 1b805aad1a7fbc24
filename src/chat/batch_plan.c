// SPDX-License-Identifier: Apache-2.0
// Finds the posts of a batch that share a channel or an author, and numbers them within each.
#include "batch_plan.h"

#include "base/check.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

struct batch_sorted {
    const struct post *post;
    int index; // position in the batch
};

int batch_plan_init(struct batch_plan *ret_plan, int count_max)
{
    size_t size = (size_t)count_max;

    *ret_plan = (struct batch_plan){
        .places = calloc(size, sizeof *ret_plan->places),
        .channels = calloc(size, sizeof *ret_plan->channels),
        .authors = calloc(size, sizeof *ret_plan->authors),
        .sorted = calloc(size, sizeof *ret_plan->sorted),
        .count_max = count_max,
    };
    return ret_plan->places && ret_plan->channels && ret_plan->authors && ret_plan->sorted
               ? 0
               : -ERROR_MEMORY;
}

void batch_plan_done(struct batch_plan *plan)
{
    free(plan->places);
    free(plan->channels);
    free(plan->authors);
    free(plan->sorted);
}

static int channel_compare(const struct post *a, const struct post *b)
{
    int order = strcmp(a->channel_id, b->channel_id);

    return order != 0 ? order : strcmp(a->actor->workspace_id, b->actor->workspace_id);
}

static int author_compare(const struct post *a, const struct post *b)
{
    int order = channel_compare(a, b);

    return order != 0 ? order : strcmp(a->actor->user_id, b->actor->user_id);
}

static int sorted_by_channel(const void *left, const void *right)
{
    const struct batch_sorted *a = left;
    const struct batch_sorted *b = right;
    int order = channel_compare(a->post, b->post);

    return order != 0 ? order : a->index - b->index;
}

static int sorted_by_author(const void *left, const void *right)
{
    const struct batch_sorted *a = left;
    const struct batch_sorted *b = right;
    int order = author_compare(a->post, b->post);

    return order != 0 ? order : a->index - b->index;
}

static void channel_add(struct batch_plan *plan, const struct batch_sorted *sorted)
{
    ASSERT(plan->channel_count > 0 && sorted->index < plan->count);
    struct batch_channel *channel = &plan->channels[plan->channel_count - 1];
    bool counted = post_is_counted(sorted->post);

    channel->counted += counted;
    plan->places[sorted->index] = (struct batch_place){
        .channel = plan->channel_count, .rank = channel->events, .ord = channel->counted};
    channel->events++;
    if (counted) {
        channel->last_counted = sorted->post;
        channel->last = channel->events;
    }
}

static void channels_number(struct batch_plan *plan)
{
    qsort(plan->sorted, (size_t)plan->count, sizeof *plan->sorted, sorted_by_channel);
    plan->channel_count = 0;
    for (int i = 0; i < plan->count; i++) {
        const struct post *post = plan->sorted[i].post;
        if (i == 0 || channel_compare(plan->sorted[i - 1].post, post) != 0)
            plan->channels[plan->channel_count++] = (struct batch_channel){.post = post};
        channel_add(plan, &plan->sorted[i]);
    }
}

static void authors_number(struct batch_plan *plan)
{
    qsort(plan->sorted, (size_t)plan->count, sizeof *plan->sorted, sorted_by_author);
    plan->author_count = 0;
    for (int i = 0; i < plan->count; i++) {
        const struct post *post = plan->sorted[i].post;
        struct batch_place *place = &plan->places[plan->sorted[i].index];
        if (i == 0 || author_compare(plan->sorted[i - 1].post, post) != 0)
            plan->authors[plan->author_count++] =
                (struct batch_author){.post = post, .channel = place->channel};
        struct batch_author *author = &plan->authors[plan->author_count - 1];
        author->posts += post_is_counted(post);
        place->author = plan->author_count;
        place->own = author->posts;
    }
}

void batch_plan_make(struct batch_plan *plan, struct post *const *posts, int count)
{
    ASSERT(count > 0 && count <= plan->count_max);
    plan->count = count;
    plan->has_keys = plan->has_files = plan->has_replies = plan->has_mentions = false;
    for (int i = 0; i < count; i++) {
        plan->sorted[i] = (struct batch_sorted){posts[i], i};
        plan->has_keys = plan->has_keys || posts[i]->key;
        plan->has_files = plan->has_files || posts[i]->files;
        plan->has_replies = plan->has_replies || posts[i]->thread_ts != 0;
        plan->has_mentions = plan->has_mentions || posts[i]->mentions.count > 0;
    }
    channels_number(plan);
    authors_number(plan);
}

bool batch_plan_same_author(const struct post *one, const struct post *other)
{
    return strcmp(one->actor->user_id, other->actor->user_id) == 0 &&
           strcmp(one->channel_id, other->channel_id) == 0;
}

bool batch_plan_same_key(const struct post *one, const struct post *other)
{
    return one->key && other->key && strcmp(one->key, other->key) == 0 &&
           strcmp(one->actor->user_id, other->actor->user_id) == 0;
}
