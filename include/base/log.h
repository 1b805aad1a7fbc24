// SPDX-License-Identifier: Apache-2.0
// Writes log lines, as JSON, to stderr. Any thread. Access lines are collected per thread and
// written together by log_flush(), which each loop calls once a turn; other lines are written at
// once. Lines that stderr does not take are dropped and counted: logging never waits.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

// Sets the lowest level that is written, and the instance's name in each line. Call once, before
// threads start.
void log_init(enum log_level level, const char *instance);

// One line: {"time":…,"level":…,"instance":…,"where":"store","message":"…"}. `where` is the
// module's name.
void log_write(enum log_level level, const char *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// For a condition that lasts: whether to log it now, which is at first, and then once a minute.
// `*told_ms` belongs to the caller, who sets it to 0 initially and when the condition is over.
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

// Adds the access line of one request, unless the access log is off.
void log_access(const struct log_access *access);
void log_access_enable(bool enabled);

void log_flush(void);
