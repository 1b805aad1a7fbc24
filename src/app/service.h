// SPDX-License-Identifier: Apache-2.0
// One loop with all its parts, on a thread of its own. Two of them behave like two instances.
#pragma once

#include "app/settings.h"
#include "base/cleanup.h"
#include "base/secrets.h"
#include "chat/heat.h"
#include "fanout/relay.h"
#include "readiness.h"
#include "sessions.h"

#include <stdbool.h>

struct notify;
struct service;
struct storage;

// Creates loop `index` and its parts, already listening, and adds them to `readiness`. All
// arguments must outlive it.
NODISCARD int service_new(const struct settings *settings, const struct secrets *secrets,
                          const struct storage *storage, const struct heat *heat,
                          struct notify *notify, struct relay *relay, struct readiness *readiness,
                          int index, struct service **ret_service);
// Owned by the service. Before any thread starts, pass those of all loops to sessions_set_all().
struct sessions *service_sessions(const struct service *service);
NODISCARD int service_start(struct service *service); // starts the thread

// Starts to drain: accepts no new calls or sockets, answers /readyz with 503, and says goodbye to
// sockets. Any thread.
void service_drain(struct service *service);
// Whether calls or sockets remain. Any thread.
bool service_is_busy(const struct service *service);
// Ends the thread. Call from another thread, before service_free().
void service_stop(struct service *service);
void service_free(struct service *service); // NULL is allowed
