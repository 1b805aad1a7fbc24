// SPDX-License-Identifier: Apache-2.0
// Audits the unread state in Redis, on a thread of its own. Periodically compares a sample with
// Postgres and corrects it. When Redis has lost its data, one instance rebuilds it, connected users
// first, at a limited rate; meanwhile readers use Postgres.
#pragma once

#include "app/settings.h"
#include "base/cleanup.h"

struct auditor;

NODISCARD int auditor_start(const struct settings *settings, struct auditor **ret_auditor);
void auditor_stop(struct auditor *auditor); // frees it; NULL is allowed
