// SPDX-License-Identifier: Apache-2.0
// Creates provider tokens and caches them while they are valid.
#include "provider_tokens.h"

#include "base/digest.h"
#include "base/error.h"
#include "base/json_writer.h"
#include "base/list.h"
#include "signature.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

enum {
    PART_MAX = 4096,
    TOKEN_MAX = 8192,
    ASSERTION_LIFE_S = 3600,
    VAPID_LIFE_S = 12 * 3600, // push services accept at most 24 hours
    GOOGLE_MARGIN_S = 300,
    GOOGLE_LIFE_MIN_S = 60,
    GOOGLE_LIFE_MAX_S = 24 * 3600
};

struct provider_token {
    struct list link;
    char name[DIGEST_HEX_SIZE]; // what it was created for
    int64_t until_s;
    char *text;
};

struct provider_tokens {
    struct list list; // oldest first
    int count;
};

struct provider_tokens *provider_tokens_new(void)
{
    struct provider_tokens *tokens = calloc(1, sizeof *tokens);

    if (tokens)
        list_init(&tokens->list);
    return tokens;
}

static void token_free(struct provider_tokens *tokens, struct provider_token *token)
{
    list_remove(&token->link);
    tokens->count--;
    OPENSSL_cleanse(token->text, strlen(token->text));
    free(token->text);
    free(token);
}

void provider_tokens_free(struct provider_tokens *tokens)
{
    if (!tokens)
        return;
    LIST_FOREACH(link, &tokens->list)
    {
        token_free(tokens, LIST_ITEM(link, struct provider_token, link));
    }
    free(tokens);
}

static const char *field_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

// Names the token by everything it depends on, so a new key or key id yields a new token.
static int name_make(const struct notify_push *push, const char *origin, char *ret_name)
{
    CLEANUP(buffer_done) struct buffer text = BUFFER(2 * TOKEN_MAX + PART_MAX);
    const char *const parts[] = {push_platform_name(push->platform),
                                 field_of(push->app, "team_id"),
                                 field_of(push->app, "key_id"),
                                 field_of(push->app, "subject"),
                                 origin,
                                 push->secret ? push->secret : ""};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        buffer_append(&text, parts[i], strlen(parts[i]) + 1);
    if (buffer_failed(&text))
        return -ERROR_MEMORY;
    digest_sha256_hex(text.data, text.length, ret_name);
    OPENSSL_cleanse(text.data, text.length);
    return 0;
}

// Finds a token, and drops expired ones on the way.
static struct provider_token *token_find(struct provider_tokens *tokens, const char *name,
                                         int64_t now_s)
{
    LIST_FOREACH(link, &tokens->list)
    {
        struct provider_token *token = LIST_ITEM(link, struct provider_token, link);
        if (token->until_s <= now_s)
            token_free(tokens, token);
        else if (strcmp(token->name, name) == 0)
            return token;
    }
    return NULL;
}

// Takes ownership of `text`.
static struct provider_token *token_put(struct provider_tokens *tokens, const char *name,
                                        char *text, int64_t until_s)
{
    struct provider_token *token = text ? calloc(1, sizeof *token) : NULL;

    if (!token) {
        free(text);
        return NULL;
    }
    if (tokens->count == PROVIDER_TOKENS_MAX)
        token_free(tokens, LIST_ITEM(tokens->list.next, struct provider_token, link));
    memcpy(token->name, name, sizeof token->name);
    token->until_s = until_s;
    token->text = text;
    list_append(&tokens->list, &token->link);
    tokens->count++;
    return token;
}

static void header_write(struct buffer *out, const char *algorithm, const char *type,
                         const char *key_id)
{
    struct json_writer w = json_writer_to(out);

    json_open_object(&w);
    json_key_string(&w, "alg", algorithm);
    if (type)
        json_key_string(&w, "typ", type);
    if (key_id)
        json_key_string(&w, "kid", key_id);
    json_close_object(&w);
}

static void apns_claims(struct buffer *out, const struct notify_push *push, int64_t now_s)
{
    struct json_writer w = json_writer_to(out);

    json_open_object(&w);
    json_key_string(&w, "iss", field_of(push->app, "team_id"));
    json_key_int(&w, "iat", now_s);
    json_close_object(&w);
}

static void vapid_claims(struct buffer *out, const struct notify_push *push, const char *origin,
                         int64_t now_s)
{
    struct json_writer w = json_writer_to(out);

    json_open_object(&w);
    json_key_string(&w, "aud", origin);
    json_key_int(&w, "exp", now_s + VAPID_LIFE_S);
    json_key_string(&w, "sub", field_of(push->app, "subject"));
    json_close_object(&w);
}

// The cached token of that name, or a newly signed one.
static int token_get(struct provider_tokens *tokens, const struct notify_push *push,
                     const char *origin, int64_t now_s, const char **ret_token)
{
    CLEANUP(buffer_done) struct buffer header = BUFFER(PART_MAX);
    CLEANUP(buffer_done) struct buffer claims = BUFFER(PART_MAX);
    CLEANUP(buffer_done) struct buffer text = BUFFER(TOKEN_MAX);
    bool is_apns = push->platform == PUSH_APNS;
    char name[DIGEST_HEX_SIZE];

    int r = name_make(push, origin, name);
    if (r < 0)
        return r;
    struct provider_token *token = token_find(tokens, name, now_s);
    if (!token) {
        header_write(&header, "ES256", is_apns ? NULL : "JWT",
                     is_apns ? field_of(push->app, "key_id") : NULL);
        if (is_apns)
            apns_claims(&claims, push, now_s);
        else
            vapid_claims(&claims, push, origin, now_s);
        r = signature_token_make(SIGNATURE_ES256, push->secret ? push->secret : "", &header,
                                 &claims, &text);
        if (r < 0)
            return r;
        token = token_put(tokens, name, buffer_take_text(&text),
                          now_s + (is_apns ? PROVIDER_TOKENS_APNS_S : PROVIDER_TOKENS_VAPID_S));
    }
    *ret_token = token ? token->text : NULL;
    return token ? 0 : -ERROR_MEMORY;
}

int provider_tokens_apns(struct provider_tokens *tokens, const struct notify_push *push,
                         int64_t now_s, const char **ret_token)
{
    return token_get(tokens, push, "", now_s, ret_token);
}

int provider_tokens_vapid(struct provider_tokens *tokens, const struct notify_push *push,
                          const char *origin, int64_t now_s, const char **ret_token)
{
    return token_get(tokens, push, origin, now_s, ret_token);
}

const char *provider_tokens_google(struct provider_tokens *tokens, const struct notify_push *push,
                                   int64_t now_s)
{
    char name[DIGEST_HEX_SIZE];

    if (name_make(push, "", name) < 0)
        return NULL;
    struct provider_token *token = token_find(tokens, name, now_s);
    return token ? token->text : NULL;
}

// A token that expires at once is used all the same: a rejection by Google ends the push, whereas
// requesting again would not.
static int64_t google_use_s(int64_t life_s)
{
    if (life_s > GOOGLE_LIFE_MAX_S)
        return GOOGLE_LIFE_MAX_S;
    return life_s < GOOGLE_LIFE_MIN_S + GOOGLE_MARGIN_S ? GOOGLE_LIFE_MIN_S
                                                        : life_s - GOOGLE_MARGIN_S;
}

void provider_tokens_google_put(struct provider_tokens *tokens, const struct notify_push *push,
                                const char *token, int64_t now_s, int64_t life_s)
{
    char name[DIGEST_HEX_SIZE];

    provider_tokens_google_forget(tokens, push);
    if (name_make(push, "", name) == 0)
        (void)token_put(tokens, name, strdup(token), now_s + google_use_s(life_s));
}

void provider_tokens_google_forget(struct provider_tokens *tokens, const struct notify_push *push)
{
    char name[DIGEST_HEX_SIZE];
    struct provider_token *token =
        name_make(push, "", name) == 0 ? token_find(tokens, name, INT64_MIN) : NULL;

    if (token)
        token_free(tokens, token);
}

int provider_tokens_google_assertion(const json_t *account, int64_t now_s, struct buffer *out)
{
    CLEANUP(buffer_done) struct buffer header = BUFFER(PART_MAX);
    CLEANUP(buffer_done) struct buffer claims = BUFFER(PART_MAX);
    struct json_writer w = json_writer_to(&claims);

    header_write(&header, "RS256", "JWT",
                 json_string_value(json_object_get(account, "private_key_id")));
    json_open_object(&w);
    json_key_string(&w, "iss", field_of(account, "client_email"));
    json_key_string(&w, "scope", "https://www.googleapis.com/auth/firebase.messaging");
    json_key_string(&w, "aud", field_of(account, "token_uri"));
    json_key_int(&w, "iat", now_s);
    json_key_int(&w, "exp", now_s + ASSERTION_LIFE_S);
    json_close_object(&w);
    return signature_token_make(SIGNATURE_RS256, field_of(account, "private_key"), &header, &claims,
                                out);
}
