// SPDX-License-Identifier: Apache-2.0
// /healthz, /readyz, /metrics, and the files of web.h. On the loop's thread.
#pragma once

#include "events/event_log.h"
#include "http/server.h"
#include "readiness.h"

struct pages;

NODISCARD int pages_new(struct server *server, const struct readiness *readiness,
                        const struct log *log, struct pages **ret_pages);
void pages_drain(struct pages *pages); // from now on /readyz answers 503
void pages_free(struct pages *pages);
