// SPDX-License-Identifier: Apache-2.0
// Sends pushes to a provider as fast as so many at once are answered, by the thread that the server
// uses, and prints how many a second were delivered:
//
//     tidings-pushes URL CA_FILE KEY_FILE AT_ONCE SECONDS
#include "base/check.h"
#include "base/clock.h"
#include "notify/notify.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_MAX 4096
#define TIMEOUT_MS 10000
#define BYTES_MAX (256 << 20)

struct pushes {
    uint32_t tag;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t under_way;
    int64_t outcomes[NOTIFY_OUTCOME_MAX];
};

static void on_answer(void *arg, const struct notify_answer *answer)
{
    struct pushes *pushes = CAST(pushes, arg);

    pthread_mutex_lock(&pushes->lock);
    pushes->under_way--;
    pushes->outcomes[answer->outcome]++;
    pthread_cond_signal(&pushes->changed);
    pthread_mutex_unlock(&pushes->lock);
}

static char *file_read(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = calloc(1, KEY_MAX);

    if (!file || !text || fread(text, 1, KEY_MAX - 1, file) == 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    fclose(file);
    return text;
}

static struct notify_push *push_make(const char *key, int64_t number)
{
    struct notify_push *push = calloc(1, sizeof *push);
    char token[65];

    if (!push)
        abort();
    snprintf(token, sizeof token, "%064" PRIx64, number);
    snprintf(push->app_id, sizeof push->app_id, "T1/phones");
    push->platform = PUSH_APNS;
    push->secret = strdup(key);
    push->app = json_pack("{s:s, s:s, s:s, s:s}", "key_id", "ABCDE12345", "team_id", "TEAM123456",
                          "topic", "com.example.chat", "environment", "production");
    push->address = json_pack("{s:s}", "push_token", token);
    push->message =
        (struct notify_message){.title = strdup("#general"),
                                .subtitle = strdup("ann"),
                                .body = strdup("A message of usual length, as people write"),
                                .workspace_id = strdup("T1"),
                                .channel_id = strdup("C1"),
                                .collapse_id = strdup("C1"),
                                .badge = 3,
                                .ttl_s = 60};
    return push;
}

// Waits until another one may be under way, and counts it.
static void room_wait(struct pushes *pushes, int64_t at_once)
{
    pthread_mutex_lock(&pushes->lock);
    while (pushes->under_way >= at_once)
        pthread_cond_wait(&pushes->changed, &pushes->lock);
    pushes->under_way++;
    pthread_mutex_unlock(&pushes->lock);
}

static void pushes_send(struct pushes *pushes, struct notify *notify, const char *key,
                        int64_t at_once, int64_t until_ms)
{
    for (int64_t number = 1; clock_monotonic_ms() < until_ms; number++) {
        struct notify_push *push = push_make(key, number);
        room_wait(pushes, at_once);
        if (notify_send(notify, push, on_answer, pushes) < 0)
            abort();
    }
    room_wait(pushes, 1); // until the last is answered
}

int main(int count, char **arguments)
{
    struct pushes pushes = {.tag = TAG(pushes)};
    struct notify *notify;

    if (count != 6)
        return 2;
    int64_t at_once = strtoll(arguments[4], NULL, 10);
    const struct notify_options options = {
        .settings =
            {
                .push_apns_url = arguments[1],
                .push_fcm_url = "",
                .push_google_token_url = "",
                .push_ca_file = arguments[2],
                .push_timeout_ms = TIMEOUT_MS,
                .push_queue_max = 2 * at_once, // an answer comes before its room
                .push_queue_bytes = BYTES_MAX,
                .push_app_queue_max = 2 * at_once,
                .push_app_parallel = at_once,
            },
    };
    pthread_mutex_init(&pushes.lock, NULL);
    pthread_cond_init(&pushes.changed, NULL);
    char *key = file_read(arguments[3]);
    if (notify_start(&options, &notify) < 0)
        return EXIT_FAILURE;
    int64_t began_ms = clock_monotonic_ms();
    pushes_send(&pushes, notify, key, at_once, began_ms + 1000 * strtoll(arguments[5], NULL, 10));
    int64_t took_ms = clock_monotonic_ms() - began_ms;
    int64_t delivered = pushes.outcomes[NOTIFY_DELIVERED];
    printf("{\"rate\": %.1f, \"delivered\": %" PRId64 ", \"retry\": %" PRId64 "}\n",
           1000.0 * (double)delivered / (double)took_ms, delivered, pushes.outcomes[NOTIFY_RETRY]);
    notify_stop(notify);
    notify_free(notify);
    free(key);
    return EXIT_SUCCESS;
}
