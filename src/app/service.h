// SPDX-License-Identifier: Apache-2.0
// One loop with all of its parts, on a thread of its own. Two of them behave as two instances do.
#pragma once

#include "app/settings.h"
#include "base/cleanup.h"
#include "base/secrets.h"
#include "fanout/relay.h"
#include "readiness.h"
#include "sessions.h"

#include <stdbool.h>

struct notify;
struct service;

// Makes loop `index` and its parts, listening already, and adds them to `readiness`. What is passed
// must outlive it.
NODISCARD int service_new(const struct settings *settings, const struct secrets *secrets,
                          struct notify *notify, struct relay *relay, struct readiness *readiness,
                          int index, struct service **ret_service);
// To be told of those of all loops before the thread starts; owned by the service.
struct sessions *service_sessions(const struct service *service);
NODISCARD int service_start(struct service *service); // the thread

// Begins to end: no new calls or sockets, /readyz answers 503; sockets are told. Any thread.
void service_drain(struct service *service);
// Whether calls or sockets are still there. Any thread.
bool service_is_busy(const struct service *service);
// Ends the thread and closes what is left. Any other thread; service_free() after it.
void service_stop(struct service *service);
void service_free(struct service *service); // takes NULL
