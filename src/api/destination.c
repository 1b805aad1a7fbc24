// SPDX-License-Identifier: Apache-2.0
// Finds the conversation of a post: a channel by id or name, or the direct conversation with a
// user, by id or "@name", which is created if it does not exist.
#include "destination.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct statement BY_NAME = {"channel_by_name", "SELECT channel_named($1, $2, $3, $4)"};
static const struct statement BY_USER_NAME = {"user_by_name", "SELECT user_named($1, $2, $3)"};
static const struct statement BY_PEOPLE = {
    "channel_by_people", "SELECT c.id FROM channels c WHERE c.workspace_id = $1 AND c.people = $2"};
static const struct statement OPEN = {
    "direct_open_one",
    "SELECT error, channel_id, told FROM direct_open($1, $2, $3, $4, ARRAY[$5], true, false)"};

struct destination {
    uint32_t tag;
    struct invocation *invocation;
    const char *channel;
    char user_id[ID_SIZE]; // of the other, for a direct conversation
    destination_fn *fn;
    void *arg;
};

static void destination_end(struct destination *destination, int r, const char *channel_id)
{
    destination->fn(destination->arg, r, channel_id);
    TAGGED_FREE(destination);
}

static void name_answer(void *arg, const struct store_outcome *outcome)
{
    bool found = outcome->r == 0 && !result_is_null(outcome->result, 0, 0);

    destination_end(CAST(destination, arg),
                    found            ? 0
                    : outcome->r < 0 ? outcome->r
                                     : -ERROR_CHANNEL_NOT_FOUND,
                    found ? result_text(outcome->result, 0, 0) : NULL);
}

static void name_ask(struct destination *destination)
{
    const struct actor *actor = destination->invocation->actor;
    const char *name = destination->channel;
    struct params params = {0};

    params_text(&params, actor->workspace_id);
    params_text(&params, actor->user_id);
    params_name(&params, name[0] == '#' ? name + 1 : name);
    store_call(destination->invocation->api->options.store, STORE_READ, &BY_NAME, &params,
               name_answer, destination);
}

enum { COLUMN_ERROR, COLUMN_CHANNEL, COLUMN_TOLD };

static void open_answer(void *arg, const struct store_outcome *outcome)
{
    struct destination *destination = CAST(destination, arg);
    const struct invocation *invocation = destination->invocation;

    if (outcome->r < 0) {
        destination_end(destination, outcome->r, NULL);
        return;
    }
    if (!result_is_null(outcome->result, 0, COLUMN_ERROR)) { // no such user, or deactivated
        destination_end(destination, -ERROR_CHANNEL_NOT_FOUND, NULL);
        return;
    }
    if (result_bool(outcome->result, 0, COLUMN_TOLD))
        invocation->api->options.on_committed(invocation->api->options.arg, invocation->outbox_id);
    destination_end(destination, 0, result_text(outcome->result, 0, COLUMN_CHANNEL));
}

static void direct_open(struct destination *destination)
{
    struct params params = {0};
    char id[ID_SIZE];

    id_make('D', id);
    invocation_change_params(destination->invocation, &params);
    params_text(&params, id);
    params_text(&params, destination->user_id);
    store_change(destination->invocation->api->options.store,
                 destination->invocation->actor->user_id, &OPEN, &params, open_answer, destination);
}

static void people_answer(void *arg, const struct store_outcome *outcome)
{
    struct destination *destination = CAST(destination, arg);

    if (outcome->r < 0)
        destination_end(destination, outcome->r, NULL);
    else if (result_rows(outcome->result) > 0)
        destination_end(destination, 0, result_text(outcome->result, 0, 0));
    else
        direct_open(destination);
}

// A direct conversation is identified by its two user ids, sorted.
static void people_ask(struct destination *destination)
{
    const struct actor *actor = destination->invocation->actor;
    const char *other = destination->user_id;
    int order = strcmp(actor->user_id, other);
    char people[64];
    struct params params = {0};

    snprintf(people, sizeof people, "%s%s%s", order < 0 ? actor->user_id : other,
             order == 0 ? "" : ",", order == 0 ? "" : (order < 0 ? other : actor->user_id));
    params_text(&params, actor->workspace_id);
    params_text(&params, people);
    store_call(destination->invocation->api->options.store, STORE_READ, &BY_PEOPLE, &params,
               people_answer, destination);
}

static void user_answer(void *arg, const struct store_outcome *outcome)
{
    struct destination *destination = CAST(destination, arg);

    if (outcome->r < 0) {
        destination_end(destination, outcome->r, NULL);
    } else if (result_is_null(outcome->result, 0, 0)) {
        destination_end(destination, -ERROR_CHANNEL_NOT_FOUND, NULL);
    } else {
        snprintf(destination->user_id, sizeof destination->user_id, "%s",
                 result_text(outcome->result, 0, 0));
        people_ask(destination);
    }
}

static void user_ask(struct destination *destination)
{
    struct params params = {0};

    params_text(&params, destination->invocation->actor->workspace_id);
    params_name(&params, destination->channel + 1);
    store_call(destination->invocation->api->options.store, STORE_READ, &BY_USER_NAME, &params,
               user_answer, destination);
}

static void destination_ask(struct destination *destination)
{
    const char *channel = destination->channel;

    if (id_is_valid(channel, "UW")) {
        snprintf(destination->user_id, sizeof destination->user_id, "%s", channel);
        people_ask(destination);
    } else if (channel[0] == '@') {
        user_ask(destination);
    } else {
        name_ask(destination);
    }
}

void destination_find(struct invocation *invocation, const char *channel, destination_fn *fn,
                      void *arg)
{
    if (id_is_valid(channel, "CGD")) {
        fn(arg, 0, channel);
        return;
    }
    struct destination *destination = calloc(1, sizeof *destination);
    if (!destination) {
        fn(arg, -ERROR_MEMORY, NULL);
        return;
    }
    *destination = (struct destination){.tag = TAG(destination),
                                        .invocation = invocation,
                                        .channel = channel,
                                        .fn = fn,
                                        .arg = arg};
    destination_ask(destination);
}

void destination_fail(struct invocation *invocation, int r)
{
    if (r == -ERROR_CHANNEL_NOT_FOUND)
        invocation_fail_message(invocation, r,
                                "channel: must be the id or the name of a channel, or a user's id "
                                "or @name");
    else
        invocation_fail(invocation, r);
}
