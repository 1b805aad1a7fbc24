// SPDX-License-Identifier: Apache-2.0
// Logs as JSON lines on stderr. Access lines are gathered per thread and written in one piece by
// log_flush(), which each loop calls once a turn; others are written at once. What cannot be
// written is dropped and counted, never waited for.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

// Sets the least level written and the instance's name put on each line. Call once, before threads
// start.
void log_init(enum log_level level, const char *instance);

// One line: {"time":…,"level":…,"instance":…,"where":"store","message":"…"}. `where` is the
// module's name.
void log_write(enum log_level level, const char *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Whether something that lasts is to be told now: at first, then once a minute. `told_ms` is the
// caller's; 0 once it is over, and at first.
bool log_is_due(int64_t *told_ms);

struct log_access {
    const char *request_id;
    const char *verb;   // GET, POST
    const char *method; // chat.postMessage, or the path
    const char *user;   // user id or ""
    const char *error;  // "" when ok
    int status;
    int64_t duration_us;
    int64_t reply_bytes;
};

// The access line of one request; nothing when the access log is off.
void log_access(const struct log_access *access);
void log_access_enable(bool enabled);

void log_flush(void);
