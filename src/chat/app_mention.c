// SPDX-License-Identifier: Apache-2.0
// Builds app_mention events for the bots that a message mentions.
#include "chat/app_mention.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "chat/mentions.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { USERS_MAX = 1 << 20 };

void app_mention_done(struct app_mention *mention)
{
    free(mention->frame);
    free(mention->users);
    *mention = (struct app_mention){0};
}

static bool has_text(const char *frame, size_t length, const char *text)
{
    return memmem(frame, length, text, strlen(text)) != NULL;
}

static bool is_equal(const json_t *frame, const char *key, const char *text)
{
    const char *value = json_string_value(json_object_get(frame, key));
    return value && strcmp(value, text) == 0;
}

static bool is_notice(const json_t *frame)
{
    const char *subtype = json_string_value(json_object_get(frame, "subtype"));
    return subtype && strncmp(subtype, "channel_", strlen("channel_")) == 0;
}

static int users_read(const json_t *frame, struct app_mention *mention)
{
    CLEANUP(mentions_done) struct mentions mentions = {0};
    CLEANUP(buffer_done) struct buffer users = BUFFER(USERS_MAX);
    const json_t *text = json_object_get(frame, "text");
    int r = json_is_string(text) ? mentions_find(&mentions, json_string_value(text),
                                                 json_string_length(text), MENTION_IN_TEXT, INT_MAX)
                                 : 0;
    if (r >= 0)
        r = mentions_find_in_blocks(&mentions, json_object_get(frame, "blocks"), INT_MAX);
    if (r < 0)
        return r;
    for (int i = 0; i < mentions.count; i++) {
        const char *id = mentions.items[i].user_id;
        if (id[0] != '\0' && !is_equal(frame, "user", id))
            buffer_append_format(&users, "%s ", id);
    }
    if (users.length == 0)
        return buffer_failed(&users) ? -ERROR_MEMORY : 0;
    mention->users = strndup(users.data, users.length);
    return mention->users ? 1 : -ERROR_MEMORY;
}

// Slack sends no app_mention in direct conversations of two.
int app_mention_read(enum channel_type channel_type, const char *frame, size_t length,
                     struct app_mention *ret_mention)
{
    CLEANUP_JSON json_t *value = NULL;
    CLEANUP_APP_MENTION struct app_mention mention = {0};
    if (channel_type == CHANNEL_IM ||
        (!has_text(frame, length, "<@") && !has_text(frame, length, "\"user_id\"")))
        return 0;
    if (json_read(frame, length, JSON_DEPTH_ANY, JSON_VALUES_ANY, &value) < 0 || is_notice(value))
        return 0;
    int r = users_read(value, &mention);
    if (r <= 0)
        return r;
    json_object_set_new(value, "type", json_string("app_mention"));
    json_object_del(value, "channel_type");
    mention.frame = json_dumps(value, JSON_COMPACT);
    if (!mention.frame)
        return -ERROR_MEMORY;
    mention.frame_length = strlen(mention.frame);
    *ret_mention = mention;
    mention = (struct app_mention){0};
    return 1;
}

bool app_mention_names(const struct app_mention *mention, const char *user_id)
{
    size_t length = strlen(user_id);
    for (const char *at = mention->users; (at = strstr(at, user_id)); at += length)
        if ((at == mention->users || at[-1] == ' ') && at[length] == ' ')
            return true;
    return false;
}
