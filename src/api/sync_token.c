// SPDX-License-Identifier: Apache-2.0
// Prints and parses the sync tokens and cursors of unread.sync.
#include "sync_token.h"

#include "base/versioned.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void sync_token_print(const struct sync_token *token, char *ret_text)
{
    snprintf(ret_text, SYNC_TOKEN_SIZE, "s1.%" PRId64 ".%" PRId64 ".%" PRId64, token->xid,
             token->seconds, token->era);
}

bool sync_token_parse(const char *text, struct sync_token *ret_token)
{
    int64_t numbers[3] = {0};

    if (versioned_parse(text, strlen(text), 's', numbers, 3) < 0)
        return false;
    *ret_token = (struct sync_token){numbers[0], numbers[1], numbers[2]};
    return true;
}

void sync_page_print(const struct sync_page *page, char *ret_text)
{
    snprintf(ret_text, SYNC_PAGE_SIZE, "%" PRId64 ".%" PRId64 ".%" PRId64 ".%d.%" PRId64 ".%.*s",
             page->token.xid, page->token.seconds, page->token.era, page->unread, page->updated,
             ID_LENGTH_MAX, page->id);
}

// Parses a number and the dot after it.
static bool number_take(const char **text, int64_t max, int64_t *ret_number)
{
    size_t length = strcspn(*text, ".");

    if ((*text)[length] != '.' || integer_parse(*text, length, 0, max, ret_number) < 0)
        return false;
    *text += length + 1;
    return true;
}

// Parses the id, which ends the text or precedes fields of a later release.
static bool id_take(const char *text, char *ret_id)
{
    size_t length = strcspn(text, ".");

    if (length > ID_LENGTH_MAX || text[length + strspn(text + length, "0123456789.")] != '\0')
        return false;
    memcpy(ret_id, text, length);
    ret_id[length] = '\0';
    return id_is_valid(ret_id, "CGD");
}

bool sync_page_parse(const char *text, struct sync_page *ret_page)
{
    struct sync_page page;
    int64_t unread;

    if (!number_take(&text, INT64_MAX, &page.token.xid) ||
        !number_take(&text, INT64_MAX, &page.token.seconds) ||
        !number_take(&text, INT64_MAX, &page.token.era) || !number_take(&text, 1, &unread) ||
        !number_take(&text, INT64_MAX, &page.updated) || !id_take(text, page.id))
        return false;
    page.unread = unread != 0;
    *ret_page = page;
    return true;
}
