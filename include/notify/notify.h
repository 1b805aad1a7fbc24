// SPDX-License-Identifier: Apache-2.0
// Sends pushes to phones and browsers, on a thread of its own: to APNs, FCM, Web Push and Matrix
// push gateways. Nothing is stored: each push gets exactly one outcome, and the caller decides
// whether to retry.
#pragma once

#include "base/buffer.h"
#include "base/json.h"
#include "chat/device_address.h"
#include "notify/notify_settings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct notify;

enum notify_outcome {
    NOTIFY_DELIVERED, // accepted by the provider
    NOTIFY_GONE,      // the device no longer exists: delete it
    NOTIFY_RETRY,     // retry after `wait_ms`
    NOTIFY_REFUSED,   // permanent: rejects this push, or this app's key
    NOTIFY_OUTCOME_MAX
};

// "delivered", "gone", "retry", "refused".
const char *notify_outcome_name(enum notify_outcome outcome);

enum { NOTIFY_REASON_SIZE = 128, NOTIFY_APP_ID_SIZE = 128 };

struct notify_answer {
    enum notify_outcome outcome;
    int status;                      // HTTP status; 0: no response
    int64_t wait_ms;                 // with NOTIFY_RETRY; 0: not specified by the provider
    char reason[NOTIFY_REASON_SIZE]; // the provider's text, printable ASCII; may be ""
};

// What the device shows. Strings are owned by the push; NULL: none.
struct notify_message {
    char *title; // NULL: a silent push: the badge, and what is withdrawn
    char *subtitle;
    char *body;
    char *workspace_id;
    char *channel_id;
    char *ts;
    char *thread_ts;
    char *position;    // for events.sync
    char *collapse_id; // pushes with the same id replace each other; NULL: never replaced
    int64_t seq;
    int64_t badge; // negative: leave the badge unchanged
    int64_t ttl_s; // lifetime at the provider
    bool is_quiet; // replaces what is shown, without a sound
};

// Whether the device makes a sound.
static inline bool notify_message_rings(const struct notify_message *message)
{
    return message->title && !message->is_quiet;
}

// One push to one device. Owns everything in it.
struct notify_push {
    enum push_platform platform;
    char app_id[NOTIFY_APP_ID_SIZE]; // charged to this app's limits: workspace and app
    json_t *app;                     // the app's public fields
    char *secret;                    // the provider's key (PEM, or the JSON of a service account)
    json_t *address;                 // the parts of the device's address
    int64_t registered_s;            // when the device was registered
    struct notify_message message;
};

// Frees a push and wipes its secret. NULL is allowed.
void notify_push_free(struct notify_push *push);

struct notify_options {
    struct notify_settings settings;
    bool private_allowed; // whether Web Push and Matrix may connect to private addresses
};

// Called on notify's thread; must not block.
typedef void notify_done_fn(void *arg, const struct notify_answer *answer);

// Starts the thread. What the options point to must outlive it. Call before starting any other
// thread that uses libcurl.
NODISCARD int notify_start(const struct notify_options *options, struct notify **ret_notify);

// Sends a push and, on success, takes ownership of it; `fn` then gets its outcome, once. Any
// thread. -ERROR_BUSY: too many are held. -ERROR_UNAVAILABLE: stopping. -ERROR_MEMORY.
NODISCARD int notify_send(struct notify *notify, struct notify_push *push, notify_done_fn *fn,
                          void *arg);

// Ends the thread. Pushes still held get NOTIFY_RETRY. NULL is allowed.
void notify_stop(struct notify *notify);
// Call after notify_stop(). NULL is allowed.
void notify_free(struct notify *notify);
