// SPDX-License-Identifier: Apache-2.0
// link_names and parse=full: looks up the users mentioned as "@name" and replaces each with <@U…>.
#include "content.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "chat/names.h"

#include <stdlib.h>
#include <string.h>

static const struct statement USERS_OF_NAMES = {
    "users_of_names", "SELECT u.name, u.id FROM users u WHERE u.workspace_id = $1 AND u.active"
                      " AND u.name = ANY ($2) ORDER BY u.name COLLATE \"C\""};
enum { COLUMN_NAME, COLUMN_ID };

enum { NAME_BYTES_MAX = 4 * 80 };

struct linking {
    uint32_t tag;
    struct invocation *invocation;
    struct content *content;
    content_linked_fn *fn;
    void *arg;
};

static int name_compare(const struct result *result, int row, const char *name, size_t length)
{
    size_t known = result_length(result, row, COLUMN_NAME);
    int order =
        memcmp(result_text(result, row, COLUMN_NAME), name, known < length ? known : length);

    return order != 0 ? order : (known > length) - (known < length);
}

// A name_find_fn over the rows, which are sorted bytewise.
static const char *id_find(const void *arg, const char *name, size_t length)
{
    const struct result *result = arg;
    int low = 0;
    int high = result_rows(result);

    while (low < high) {
        int middle = low + (high - low) / 2;
        int order = name_compare(result, middle, name, length);
        if (order == 0)
            return result_text(result, middle, COLUMN_ID);
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

// Moves the linked text, with its new mentions, to the content.
static bool text_link(struct linking *linking, const struct result *result)
{
    struct content *content = linking->content;
    struct buffer text;

    buffer_init(&text, SIZE_MAX);
    names_link(content->text, content->text_length, id_find, result, &text);
    size_t length = text.length;
    content->linked = buffer_take_text(&text);
    if (!content->linked) {
        invocation_fail(linking->invocation, -ERROR_MEMORY);
        return false;
    }
    content->text = content->linked;
    content->text_length = length;
    return content_find_mentions(linking->invocation, content);
}

static void on_users(void *arg, const struct store_outcome *outcome)
{
    struct linking *linking = CAST(linking, arg);
    bool linked = false;

    if (outcome->r < 0)
        invocation_fail(linking->invocation, outcome->r);
    else
        linked = text_link(linking, outcome->result);
    linking->fn(linking->arg, linked);
    TAGGED_FREE(linking);
}

// False: the text contains no name.
static bool names_params(struct params *params, const struct content *content)
{
    size_t offset = 0;
    size_t length;
    const char *name;
    bool any = false;

    params_open_text_array(params);
    while ((name = names_next(content->text, content->text_length, &offset, &length))) {
        any = true;
        if (length <= NAME_BYTES_MAX)
            params_element_text_n(params, name, length);
    }
    params_close_array(params);
    return any;
}

void content_link(struct invocation *invocation, struct content *content, content_linked_fn *fn,
                  void *arg)
{
    CLEANUP_PARAMS struct params params = {0};

    params_text(&params, invocation->actor->workspace_id);
    if (!content->links_names || !content->text || !names_params(&params, content)) {
        fn(arg, true);
        return;
    }
    struct linking *linking = malloc(sizeof *linking);
    if (!linking) {
        invocation_fail(invocation, -ERROR_MEMORY);
        fn(arg, false);
        return;
    }
    *linking = (struct linking){TAG(linking), invocation, content, fn, arg};
    store_call(invocation->api->options.store, STORE_READ, &USERS_OF_NAMES, &params, on_users,
               linking);
}
