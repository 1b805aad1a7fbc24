// SPDX-License-Identifier: Apache-2.0
// Pushes to phones and browsers: a thread that sends them to APNs, FCM, Web Push and Matrix push
// gateways, and tells what became of each. It keeps nothing: who gives it a push gets exactly one
// outcome, and decides whether to try again.
#pragma once

#include "base/buffer.h"
#include "base/json.h"
#include "chat/device_address.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct notify;

enum notify_outcome {
    NOTIFY_DELIVERED, // the provider took it
    NOTIFY_GONE,      // there is no such device any more: forget it
    NOTIFY_RETRY,     // not now: again after `wait_ms`
    NOTIFY_REFUSED,   // this push, or this app's key, will never do
    NOTIFY_OUTCOME_MAX
};

// "delivered", "gone", "retry", "refused".
const char *notify_outcome_name(enum notify_outcome outcome);

enum { NOTIFY_REASON_SIZE = 128, NOTIFY_APP_ID_SIZE = 128 };

struct notify_answer {
    enum notify_outcome outcome;
    int status;                      // of HTTP; 0: the provider did not answer
    int64_t wait_ms;                 // of NOTIFY_RETRY; 0: the provider does not say
    char reason[NOTIFY_REASON_SIZE]; // in the provider's words, printable ASCII; may be ""
};

// What the device shows. Texts belong to the push; NULL where there is none.
struct notify_message {
    char *title; // NULL: a silent push, which only sets the badge
    char *subtitle;
    char *body;
    char *workspace_id;
    char *channel_id;
    char *ts;
    char *thread_ts;
    char *position;    // for events.sync
    char *collapse_id; // pushes of one id replace each other; NULL: none do
    int64_t seq;
    int64_t badge; // negative: the one that the device shows stays
    int64_t ttl_s; // the provider gives up after so long
};

// One push to one device. Everything in it belongs to it.
struct notify_push {
    enum push_platform platform;
    char app_id[NOTIFY_APP_ID_SIZE]; // whose budget it takes: workspace and app
    json_t *app;                     // the app's public fields
    char *secret;                    // the provider's key (PEM, or the JSON of a service account)
    json_t *address;                 // the device's address, by its parts
    int64_t registered_s;            // when the device was registered
    struct notify_message message;
};

// Frees a push, and wipes its secret. Takes NULL.
void notify_push_free(struct notify_push *push);

struct notify_options {
    const char *apns_url;         // "": Apple's, by the app's environment
    const char *fcm_url;          // "": Google's
    const char *google_token_url; // "": what the service account says
    const char *ca_file;          // "": the system's
    int64_t timeout_ms;           // for a provider to answer
    int64_t queue_max;            // pushes held, waiting and under way together
    int64_t queue_bytes;          // about how large these may be together
    int64_t app_queue_max;        // of these, of one app
    int64_t app_parallel;         // under way at once, of one app
    bool private_allowed;         // whether Web Push and Matrix may lead to private addresses
};

// On the thread of notify; must not block.
typedef void notify_done_fn(void *arg, const struct notify_answer *answer);

// Starts the thread. What the options point to must outlive it. Before any other thread that uses
// libcurl.
NODISCARD int notify_start(const struct notify_options *options, struct notify **ret_notify);

// Sends a push, which is taken over only on success; `fn` then gets its outcome, once. Any thread.
// -ERROR_BUSY: too many are held. -ERROR_UNAVAILABLE: it is stopping. -ERROR_MEMORY.
NODISCARD int notify_send(struct notify *notify, struct notify_push *push, notify_done_fn *fn,
                          void *arg);

// Ends the thread. Pushes that are still held get NOTIFY_RETRY. Takes NULL.
void notify_stop(struct notify *notify);
// After notify_stop(). Takes NULL.
void notify_free(struct notify *notify);
