// SPDX-License-Identifier: Apache-2.0
// Runs a call of a method: authenticates the token, applies rate limits, checks the scope, reads
// the body and calls the method's function.
#include "api/api.h"

#include "base/check.h"
#include "base/digest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aliases.h"
#include "channel_json_cache.h"
#include "channel_state.h"
#include "limits.h"
#include "methods.h"
#include "scope_check.h"
#include "scopes.h"
#include "tokens.h"

enum { RATE_IDLE_MS = 60 * 1000 };

static int api_make_tokens(struct api *api, bool of_webhooks, struct token_cache **ret_cache)
{
    const struct api_options *options = &api->options;
    return token_cache_new(
        api,
        &(struct token_cache_options){.of_webhooks = of_webhooks,
                                      .redis = options->cache,
                                      .max_age_ms = options->settings.token_cache_ms,
                                      .entries_max = options->settings.tokens_max,
                                      .lookups_max = options->settings.token_lookups_max},
        ret_cache);
}

static int api_make(struct api *api)
{
    const struct api_options *options = &api->options;
    const struct limiter_options limiter_options = {
        .settle_ms = options->settings.rate_settle_ms,
        .idle_ms = RATE_IDLE_MS,
        .buckets_max = (int)options->settings.rate_buckets_max,
    };

    api->limits = calloc(1, sizeof *api->limits);
    if (!api->limits)
        return -ERROR_MEMORY;
    int r = limits_read(options->settings.rate_limits, options->settings.rate_limit, api->limits);
    if (r < 0)
        return r;
    api->limits->channel = options->settings.rate_channel;
    r = limiter_new(api->loop, options->cache, &limiter_options, &api->limiter);
    if (r < 0)
        return r;
    r = channel_json_cache_new(options->settings.objects_bytes, &api->objects);
    if (r < 0)
        return r;
    r = channel_states_new(api->loop, options->store, options->queue_max, &api->channel_states);
    if (r < 0)
        return r;
    r = api_make_tokens(api, false, &api->tokens);
    return r < 0 ? r : api_make_tokens(api, true, &api->webhooks);
}

int api_new(struct loop *loop, const struct api_options *options, struct api **ret_api)
{
    struct api *api = TAGGED_NEW(api);

    if (!api)
        return -ERROR_MEMORY;
    api->loop = loop;
    api->options = *options;
    int r = api_make(api);
    if (r < 0) {
        api_free(api);
        return r;
    }
    *ret_api = api;
    return 0;
}

void api_free(struct api *api)
{
    if (!api)
        return;
    token_cache_free(api->tokens);
    token_cache_free(api->webhooks);
    limiter_free(api->limiter);
    channel_json_cache_free(api->objects);
    channel_states_free(api->channel_states);
    free(api->limits);
    TAGGED_FREE(api);
}

void api_session_changed(struct api *api, const char *id)
{
    token_cache_invalidate(api->tokens, id);
    token_cache_invalidate(api->webhooks, id);
}

// Retry-After of a rejected body, in seconds.
enum { BODY_RETRY_S = 1 };

static int access_refusal(enum method_access access, const struct actor *actor)
{
    switch (access) {
    case ACCESS_OPEN:
    case ACCESS_WEBHOOK: // found by its secret
        return 0;
    case ACCESS_ANYONE:
        return actor->type != 'o' ? 0 : -ERROR_NOT_ALLOWED_TOKEN_TYPE;
    case ACCESS_MEMBER:
        return actor->type == 'u' || actor->type == 'b' ? 0 : -ERROR_NOT_ALLOWED_TOKEN_TYPE;
    case ACCESS_APP:
        return actor->type == 'a' ? 0 : -ERROR_NOT_ALLOWED_TOKEN_TYPE;
    case ACCESS_OPERATOR:
        if (actor->type == 'o')
            return 0;
        return actor->type == 'u' ? -ERROR_NO_PERMISSION : -ERROR_NOT_ALLOWED_TOKEN_TYPE;
    case ACCESS_ADMIN:
        if (actor->type != 'u')
            return -ERROR_NOT_ALLOWED_TOKEN_TYPE;
        return actor->is_admin ? 0 : -ERROR_NO_PERMISSION;
    }
    return -ERROR_INTERNAL;
}

static void arguments_read(void *arg, int r)
{
    struct invocation *invocation = CAST(invocation, arg);

    if (r < 0) {
        invocation_unread(invocation, r);
        return;
    }
    r = method_alias_arguments(invocation->request, invocation->alias);
    if (r < 0)
        invocation_fail(invocation, r);
    else
        scope_check(invocation);
}

// The caller is authorized: the body is charged to them from here on.
static void body_read(struct invocation *invocation)
{
    int r = request_charge(invocation->request, invocation_body_owner(invocation));

    if (r == -ERROR_RATELIMITED)
        invocation_fail_for(invocation, BODY_RETRY_S);
    else if (r < 0)
        invocation_fail(invocation, r);
    else if (limits_admit_body(invocation))
        request_read(invocation->request, arguments_read, invocation);
}

static bool call_admit(struct invocation *invocation)
{
    if (invocation->method->access == ACCESS_WEBHOOK)
        return limits_admit_webhook(invocation);
    return limits_admit(invocation,
                        invocation->api->limits->methods[method_number(invocation->method)]);
}

static void method_run(struct invocation *invocation)
{
    const struct method *method = invocation->method;

    if (!call_admit(invocation))
        return;
    int r = access_refusal(method->access, invocation->actor);

    if (r < 0)
        invocation_fail(invocation, r);
    else if (method->scope && scopes_types(invocation->actor, method->scope) == 0)
        scope_refuse(invocation);
    else
        body_read(invocation);
}

static void actor_known(struct invocation *invocation, int r, const struct actor *actor)
{
    if (r < 0) {
        invocation_fail(invocation, r);
        return;
    }
    *request_actor(invocation->request) = *actor;
    if (invocation->method->access != ACCESS_WEBHOOK)
        request_set_granted(invocation->request, scopes_of(invocation->actor));
    method_run(invocation);
}

static bool is_operator(const struct api *api, const char *token)
{
    return api->options.settings.operator_token[0] != '\0' &&
           strlen(token) == strlen(api->options.settings.operator_token) &&
           digest_equal(token, api->options.settings.operator_token, strlen(token));
}

static void actor_find(struct invocation *invocation)
{
    const char *token = request_token(invocation->request);

    if (invocation->method->access == ACCESS_WEBHOOK) {
        token_look_up(invocation->api->webhooks, token, invocation, actor_known);
    } else if (invocation->actor->type != 0 || invocation->method->access == ACCESS_OPEN) {
        method_run(invocation);
    } else if (token[0] == '\0') {
        invocation_fail(invocation, -ERROR_NOT_AUTHED);
    } else if (is_operator(invocation->api, token)) {
        request_actor(invocation->request)->type = 'o';
        method_run(invocation);
    } else {
        token_look_up(invocation->api->tokens, token, invocation, actor_known);
    }
}

static void unknown_fail(struct request *request)
{
    char members[160];

    snprintf(members, sizeof members, "\"req_method\":\"%s\"", request_method(request));
    request_reply_error_members(request, -ERROR_UNKNOWN_METHOD, members);
}

// Whether a name looks like a method's; any other name is not echoed.
static bool name_is_plain(const char *name)
{
    return strlen(name) <= 100 &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
               strlen(name);
}

bool api_has_method(const char *name)
{
    return method_find(name) != NULL;
}

// NULL: unknown method or out of memory; an error was replied.
static struct invocation *invocation_new(struct api *api, struct request *request)
{
    const struct method *method = method_find(request_method(request));

    if (!method && name_is_plain(request_method(request))) {
        unknown_fail(request);
        return NULL;
    }
    struct invocation *invocation = method ? calloc(1, sizeof *invocation) : NULL;
    if (!invocation) {
        request_reply_error(request, method ? -ERROR_MEMORY : -ERROR_UNKNOWN_METHOD);
        return NULL;
    }
    request_set_known(request, method->name);
    request_set_scope(request, method->scope);
    invocation->tag = TAG(invocation);
    invocation->api = api;
    invocation->request = request;
    invocation->actor = request_actor(request);
    invocation->method = method;
    invocation->alias = method_alias_find(request_method(request));
    return invocation;
}

void api_call(void *arg, struct request *request)
{
    struct invocation *invocation = invocation_new(CAST(api, arg), request);

    if (invocation)
        actor_find(invocation);
}

static void body_owner_known(struct invocation *invocation, int r, const struct actor *actor)
{
    struct request *request = invocation->request;

    if (r < 0) {
        invocation_fail(invocation, r);
        return;
    }
    int64_t wait_s = limits_ask_body(invocation->api, actor->user_id);
    if (wait_s > 0) {
        invocation_fail_for(invocation, wait_s);
        return;
    }
    TAGGED_FREE(invocation);
    request_admit(request, actor->user_id);
}

void api_admit(void *arg, struct request *request)
{
    struct invocation *invocation = invocation_new(CAST(api, arg), request);
    struct actor operator= {.user_id = OPERATOR_OWNER };

    if (!invocation)
        return;
    if (invocation->method->access == ACCESS_WEBHOOK)
        token_look_up(invocation->api->webhooks, request_token(request), invocation,
                      body_owner_known);
    else if (is_operator(CAST(api, arg), request_token(request)))
        body_owner_known(invocation, 0, &operator);
    else
        token_look_up(invocation->api->tokens, request_token(request), invocation,
                      body_owner_known);
}
