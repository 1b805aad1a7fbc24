// SPDX-License-Identifier: Apache-2.0
// Answers incoming webhooks as Slack does: with an HTTP status and a plain word. Tools compare the
// word, and repeat their request only after a status of 5xx or 429.
#include "webhook_reply.h"

#include <string.h>

struct word {
    const char *error; // of the call; "": none
    int status;
    const char *word;
};

// All that is wrong with the secret has one answer.
#define NO_SERVICE 404, "no_service"

static const struct word words[] = {
    {"", 200, "ok"},
    {"no_text", 400, "no_text"},
    {"too_many_attachments", 400, "too_many_attachments"},
    {"not_in_channel", 403, "action_prohibited"},
    {"invalid_auth", NO_SERVICE},
    {"account_inactive", NO_SERVICE},
    {"channel_not_found", 404, "channel_not_found"},
    {"method_not_allowed", 405, "method_not_allowed"},
    {"idempotency_key_reused", 409, "idempotency_key_reused"},
    {"is_archived", 410, "channel_is_archived"},
    {"request_too_large", 413, "request_too_large"},
    {"ratelimited", 429, "ratelimited"},
    {"internal_error", 500, "internal_error"},
    {"service_unavailable", 503, "service_unavailable"},
};

void webhook_reply_write(struct request *request)
{
    static const struct word other = {NULL, 400, "invalid_payload"};
    const struct word *word = &other;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i].error, request->error) == 0)
            word = &words[i];
    }
    request->status = word->status;
    buffer_clear(&request->reply);
    buffer_append_text(&request->reply, word->word);
}
