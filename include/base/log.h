// SPDX-License-Identifier: Apache-2.0
// Writes log lines as JSON to stderr. Any thread. Access lines are collected per thread and written
// by log_flush(), which each loop calls once per turn; all other lines are written at once. Lines
// that stderr cannot take are dropped and counted: logging never blocks.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

// Sets the minimum level and the instance name of every line. Call once, before threads start.
void log_init(enum log_level level, const char *instance);

// Writes one line: {"time":…,"level":…,"instance":…,"where":"store","message":"…"}. `where` is the
// module's name.
void log_write(enum log_level level, const char *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Logs and counts a bad row that was put aside so that others are not held up. The format names it.
void log_row_aside(const char *where, const char *why, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Rate limit for a persistent condition: true the first time, then once a minute. The caller owns
// `*logged_ms` and sets it to 0 initially and whenever the condition ends.
bool log_is_due(int64_t *logged_ms);

struct log_access {
    const char *request_id;
    const char *verb;   // GET, POST
    const char *method; // chat.postMessage, or the path
    const char *user;   // user id or ""
    const char *error;  // "" on success
    int status;
    int64_t duration_us;
    int64_t reply_bytes;
};

// Adds the access line of one request, unless the access log is off.
void log_access(const struct log_access *access);
void log_access_enable(bool enabled);

void log_flush(void);
