// SPDX-License-Identifier: Apache-2.0
// Tokens and cursors of unread.sync, which clients give back.
#include "../../src/api/sync_token.h"
#include "fuzz.h"

static bool same_token(const struct sync_token *a, const struct sync_token *b)
{
    return a->xid == b->xid && a->seconds == b->seconds && a->era == b->era;
}

static void token_check(const char *text)
{
    struct sync_token token, again;
    char printed[SYNC_TOKEN_SIZE];
    if (!sync_token_parse(text, &token))
        return;
    assert(token.xid >= 0 && token.seconds >= 0 && token.era >= 0);
    sync_token_print(&token, printed);
    bool fine = sync_token_parse(printed, &again);
    assert(fine && same_token(&token, &again));
}

// A cursor is what was printed, perhaps with more behind it.
static void page_check(const char *text)
{
    struct sync_page page, again;
    char printed[SYNC_PAGE_SIZE];
    if (!sync_page_parse(text, &page))
        return;
    sync_page_print(&page, printed);
    assert(strncmp(printed, text, strlen(printed)) == 0);
    bool fine = sync_page_parse(printed, &again);
    assert(fine && same_token(&page.token, &again.token) && page.unread == again.unread);
    assert(page.updated == again.updated && strcmp(page.id, again.id) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    token_check(text);
    page_check(text);
    free(text);
    return 0;
}
