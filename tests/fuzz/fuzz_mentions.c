// SPDX-License-Identifier: Apache-2.0
// Mentions in a text, and in the same bytes as blocks.
#include "base/error.h"
#include "base/json.h"
#include "chat/mentions.h"
#include "fuzz.h"

enum { USERS_MAX = 5 };

// A user who is mentioned stands in the text; so does each that stands there as the whole of <@…>.
static void mentions_check(const struct mentions *mentions, const char *text, size_t size)
{
    int users = 0;
    for (int i = 0; i < mentions->count; i++) {
        const struct mention *mention = &mentions->items[i];
        assert(mention->sources != 0);
        assert(i == 0 || strcmp(mentions->items[i - 1].user_id, mention->user_id) < 0);
        if (mention->user_id[0] == '\0')
            continue;
        users++;
        assert(id_is_valid(mention->user_id, "UW"));
        assert(memmem(text, size, mention->user_id, strlen(mention->user_id)));
    }
    assert(users == mentions->users && users <= USERS_MAX);
}

static void text_check(const char *text, size_t size)
{
    struct mentions mentions = {0};
    int r = mentions_find(&mentions, text, size, MENTION_IN_TEXT, USERS_MAX);
    assert(r == 0 || r == -ERROR_INVALID_ARGUMENTS);
    mentions_check(&mentions, text, size);
    mentions_done(&mentions);
}

static void blocks_check(const char *text, size_t size)
{
    struct mentions mentions = {0};
    json_t *blocks = NULL;
    if (json_read(text, size, JSON_DEPTH_MAX, JSON_VALUES_ANY, &blocks) < 0)
        return;
    int r = mentions_find_in_blocks(&mentions, blocks, USERS_MAX);
    assert(r == 0 || r == -ERROR_INVALID_ARGUMENTS);
    for (int i = 1; i < mentions.count; i++)
        assert(strcmp(mentions.items[i - 1].user_id, mentions.items[i].user_id) < 0);
    mentions_done(&mentions);
    json_decref(blocks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    text_check((const char *)data, size);
    blocks_check((const char *)data, size);
    return 0;
}
