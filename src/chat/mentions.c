// SPDX-License-Identifier: Apache-2.0
// Extracts the mentions of users and of everybody from a message's text and blocks.
#include "chat/mentions.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char EVERYBODY[] = "";

void mentions_done(struct mentions *mentions)
{
    free(mentions->items);
    *mentions = (struct mentions){0};
}

// The index of the user, or where to insert them.
static int mention_place(const struct mentions *mentions, const char *user_id)
{
    int low = 0, high = mentions->count;

    while (low < high) {
        int middle = low + (high - low) / 2;
        if (strcmp(mentions->items[middle].user_id, user_id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Makes room for one more. Capacity is the next power of two, so the count tells when it is full.
static int mentions_grow(struct mentions *mentions)
{
    size_t count = (size_t)mentions->count;

    if ((count & (count - 1)) != 0)
        return 0;
    struct mention *items =
        realloc(mentions->items, (count == 0 ? 1 : 2 * count) * sizeof *mentions->items);
    if (!items)
        return -ERROR_MEMORY;
    mentions->items = items;
    return 0;
}

static int mention_add(struct mentions *mentions, const char *user_id, enum mention_source source,
                       int users_max)
{
    int place = mention_place(mentions, user_id);

    if (place < mentions->count && strcmp(mentions->items[place].user_id, user_id) == 0) {
        mentions->items[place].sources |= (int)source;
        return 0;
    }
    if (user_id[0] != '\0' && mentions->users == users_max)
        return -ERROR_INVALID_ARGUMENTS;
    int r = mentions_grow(mentions);
    if (r < 0)
        return r;
    struct mention *mention = &mentions->items[place];
    memmove(mention + 1, mention, (size_t)(mentions->count++ - place) * sizeof *mention);
    *mention = (struct mention){.sources = (int)source};
    snprintf(mention->user_id, sizeof mention->user_id, "%s", user_id);
    mentions->users += user_id[0] != '\0';
    return 0;
}

bool mentions_everybody(const char *name, size_t length)
{
    static const char *const names[] = {"channel", "here", "everyone", "group"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return true;
    return false;
}

// Copies a user id; false if the `length` bytes are anything else.
static bool user_id_read(const char *text, size_t length, char *ret_id)
{
    if (length >= ID_SIZE)
        return false;
    memcpy(ret_id, text, length);
    ret_id[length] = '\0';
    return strlen(ret_id) == length && id_is_valid(ret_id, "UW");
}

// The text between < and >: "@U…" or "!here", optionally followed by "|label".
static int sequence_read(struct mentions *mentions, const char *text, size_t length,
                         enum mention_source source, int users_max)
{
    const char *bar = memchr(text, '|', length);
    size_t name_length = bar ? (size_t)(bar - text) : length;
    char user_id[ID_SIZE];

    if (name_length < 2)
        return 0;
    if (text[0] == '!' && mentions_everybody(text + 1, name_length - 1))
        return mention_add(mentions, EVERYBODY, source, users_max);
    if (text[0] == '@' && user_id_read(text + 1, name_length - 1, user_id))
        return mention_add(mentions, user_id, source, users_max);
    return 0;
}

int mentions_find(struct mentions *mentions, const char *text, size_t length,
                  enum mention_source source, int users_max)
{
    const char *open = NULL;

    for (const char *c = text; c < text + length; c++) {
        if (*c == '<') {
            open = c + 1;
        } else if (*c == '>' && open) {
            int r = sequence_read(mentions, open, (size_t)(c - open), source, users_max);
            if (r < 0)
                return r;
            open = NULL;
        }
    }
    return 0;
}

// {"type":"user","user_id":"U…"}, {"type":"broadcast","range":"here"}, {"type":"mrkdwn","text":"…"}
static int element_read(struct mentions *mentions, const json_t *element, int users_max)
{
    const json_t *text = json_object_get(element, "text");
    const json_t *user = json_object_get(element, "user_id");
    const json_t *range = json_object_get(element, "range");
    const char *type = json_string_value(json_object_get(element, "type"));
    char user_id[ID_SIZE];

    if (!type)
        return 0;
    if (strcmp(type, "mrkdwn") == 0 && json_is_string(text))
        return mentions_find(mentions, json_string_value(text), json_string_length(text),
                             MENTION_IN_BLOCKS, users_max);
    if (strcmp(type, "user") == 0 && json_is_string(user) &&
        user_id_read(json_string_value(user), json_string_length(user), user_id))
        return mention_add(mentions, user_id, MENTION_IN_BLOCKS, users_max);
    if (strcmp(type, "broadcast") == 0 && json_is_string(range) &&
        mentions_everybody(json_string_value(range), json_string_length(range)))
        return mention_add(mentions, EVERYBODY, MENTION_IN_BLOCKS, users_max);
    return 0;
}

int mentions_find_in_blocks(struct mentions *mentions, json_t *blocks, int users_max)
{
    size_t index;
    const char *key;
    json_t *value;
    int r = json_is_object(blocks) ? element_read(mentions, blocks, users_max) : 0;

    if (r < 0)
        return r;
    json_array_foreach(blocks, index, value)
    {
        r = mentions_find_in_blocks(mentions, value, users_max);
        if (r < 0)
            return r;
    }
    json_object_foreach(blocks, key, value)
    {
        r = mentions_find_in_blocks(mentions, value, users_max);
        if (r < 0)
            return r;
    }
    return 0;
}
