// SPDX-License-Identifier: Apache-2.0
// Decrypts the secrets of a push.
#include "notify/sealed_push.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

enum { PLACE_SIZE = 1024, SECRET_MAX = 65536, JSON_VALUES_MAX = 100 };

static void push_freep(struct notify_push **push)
{
    notify_push_free(*push);
}

static int text_open(const struct secrets *secrets, const char *place, const char *sealed,
                     char **ret_text)
{
    CLEANUP(buffer_done) struct buffer text = BUFFER(SECRET_MAX);
    int r = secrets_open(secrets, place, sealed, &text);

    if (r < 0)
        return r == -ERROR_REFUSED ? -ERROR_SECRET_KEY_MISSING : r;
    *ret_text = buffer_take_text(&text);
    return *ret_text ? 0 : -ERROR_MEMORY;
}

static int object_read(const char *text, json_t **ret_object)
{
    return json_read(text, strlen(text), JSON_DEPTH_MAX, JSON_VALUES_MAX, ret_object);
}

static int address_open(const struct sealed_push *sealed, const struct secrets *secrets,
                        struct notify_push *push)
{
    CLEANUP_FREE char *address = NULL;
    char place[PLACE_SIZE];

    snprintf(place, sizeof place, DEVICE_ADDRESS_PLACE "%s/%s/%s", sealed->user_id, sealed->app,
             sealed->device_id);
    int r = text_open(secrets, place, sealed->address, &address);
    return r < 0 ? r : object_read(address, &push->address);
}

static int secret_open(const struct sealed_push *sealed, const struct secrets *secrets,
                       struct notify_push *push)
{
    char place[PLACE_SIZE];

    if (!sealed->secret)
        return 0;
    snprintf(place, sizeof place, PUSH_APP_SECRET_PLACE "%s/%s", sealed->workspace_id, sealed->app);
    return text_open(secrets, place, sealed->secret, &push->secret);
}

int sealed_push_open(const struct sealed_push *sealed, const struct secrets *secrets,
                     struct notify_push **ret_push)
{
    CLEANUP(push_freep) struct notify_push *push = calloc(1, sizeof *push);

    if (!push)
        return -ERROR_MEMORY;
    push->platform = push_platform_find(sealed->platform);
    if (push->platform == PUSH_PLATFORM_MAX)
        return -ERROR_INVALID_ARGUMENTS;
    push->registered_s = sealed->registered_s;
    snprintf(push->app_id, sizeof push->app_id, "%s/%s", sealed->workspace_id, sealed->app);
    int r = address_open(sealed, secrets, push);
    if (r >= 0)
        r = secret_open(sealed, secrets, push);
    if (r >= 0)
        r = object_read(sealed->fields, &push->app);
    if (r >= 0)
        *ret_push = TAKE(push);
    return r;
}
