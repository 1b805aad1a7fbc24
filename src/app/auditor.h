// SPDX-License-Identifier: Apache-2.0
// Watches over what Redis keeps of unread counts, on a thread of its own. Every so often it
// compares a sample with Postgres and mends what is wrong. When Redis has lost everything, one
// instance lets it know again, connected users first, no faster than a setting says; readers need
// none of that, they ask Postgres meanwhile.
#pragma once

#include "app/settings.h"
#include "base/cleanup.h"

struct auditor;

NODISCARD int auditor_start(const struct settings *settings, struct auditor **ret_auditor);
void auditor_stop(struct auditor *auditor); // frees it; takes NULL
