// SPDX-License-Identifier: Apache-2.0
// Writes log lines as JSON to stderr without blocking; drops and counts what stderr cannot take. A
// line is built completely and then appended to the thread's pending text, so neither a full buffer
// nor a slow reader ever truncates a line. Access lines, the bulk, wait for log_flush(); others are
// written at once.
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/metrics.h"

#include "log_internal.h"

enum {
    PIECE_MAX_BYTES = 4096, // PIPE_BUF: a writable pipe accepts this much without blocking
    MESSAGE_MAX_BYTES = 1800,
    ROW_NAME_MAX_BYTES = 512,
    LINE_MAX_BYTES = 6 * MESSAGE_MAX_BYTES + 1024, // if every byte is escaped as \u00XX
    GATHERED_MAX_BYTES = 64 * 1024,
    AGAIN_MS = 60 * 1000
};

static struct {
    enum log_level level;
    char instance[64];
    bool is_file;         // writes to a file never wait for a reader
    atomic_bool access;   // whether access lines are written
    pthread_mutex_t lock; // one writer at a time: poll()'s result holds for its write
} state = {.level = LOG_INFO, .lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local struct {
    size_t length;
    char text[GATHERED_MAX_BYTES];
} gathered;

void log_init(enum log_level level, const char *instance)
{
    struct stat status;
    state.level = level;
    state.is_file = fstat(STDERR_FILENO, &status) == 0 && S_ISREG(status.st_mode);
    snprintf(state.instance, sizeof state.instance, "%s", instance);
}

void log_access_enable(bool enabled)
{
    atomic_store_explicit(&state.access, enabled, memory_order_relaxed);
}

static int64_t count_lines(const char *text, size_t length)
{
    int64_t lines = 0;
    for (const char *end = text + length; (text = memchr(text, '\n', (size_t)(end - text))); text++)
        lines++;
    return lines;
}

// The number of bytes of `text` to write at once: whole lines.
static size_t piece_length(const char *text, size_t length)
{
    if (state.is_file || length <= PIECE_MAX_BYTES)
        return length;
    const char *end = memrchr(text, '\n', PIECE_MAX_BYTES);
    return end ? (size_t)(end + 1 - text) : PIECE_MAX_BYTES;
}

// Writes one piece of the text. Returns the bytes written or dropped; 0 if stderr takes nothing
// now. Drops the text if the write fails permanently.
static size_t write_piece(const char *text, size_t length)
{
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&ready, 1, 0) != 1)
        return 0;
    ssize_t written = write(STDERR_FILENO, text, piece_length(text, length));
    if (written >= 0)
        return (size_t)written;
    if (errno == EAGAIN || errno == EINTR)
        return 0;
    metric_add(METRIC_LOG_DROPPED, count_lines(text, length));
    return length;
}

void log_flush(void)
{
    if (gathered.length == 0)
        return;
    int errno_before = errno;
    size_t done = 0, step;
    pthread_mutex_lock(&state.lock);
    do {
        step = write_piece(gathered.text + done, gathered.length - done);
        done += step;
    } while (step > 0 && done < gathered.length);
    pthread_mutex_unlock(&state.lock);
    gathered.length -= done;
    memmove(gathered.text, gathered.text + done, gathered.length);
    errno = errno_before;
}

// Starts an empty line at the end of the pending text, as a buffer of fixed size. Counts a dropped
// line and returns false if there is no room.
static bool line_begin(struct buffer *ret_line)
{
    if (gathered.length > sizeof gathered.text - LINE_MAX_BYTES)
        log_flush();
    if (gathered.length > sizeof gathered.text - LINE_MAX_BYTES) {
        metric_add(METRIC_LOG_DROPPED, 1);
        return false;
    }
    *ret_line = (struct buffer){.data = gathered.text + gathered.length,
                                .capacity = LINE_MAX_BYTES,
                                .length_max = LINE_MAX_BYTES};
    return true;
}

static void line_end(struct buffer *line)
{
    buffer_append_text(line, "}\n");
    if (buffer_failed(line))
        metric_add(METRIC_LOG_DROPPED, 1);
    else
        gathered.length += line->length;
}

static void append_time(struct buffer *line)
{
    // The calendar date is computed once per second and thread.
    static _Thread_local time_t second_of_text;
    static _Thread_local char text[24];
    int64_t now_us = clock_wall_us();
    time_t second = now_us / 1000000;
    if (second != second_of_text || text[0] == '\0') {
        struct tm calendar;
        gmtime_r(&second, &calendar);
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &calendar);
        second_of_text = second;
    }
    char micros[] = ".000000Z\"";
    int64_t rest = now_us % 1000000;
    for (int i = 6; i >= 1; i--, rest /= 10)
        micros[i] = (char)('0' + rest % 10);
    buffer_append_text(line, text);
    buffer_append_text(line, micros);
}

static void append_field(struct buffer *line, const char *key, const char *text)
{
    buffer_append_text(line, key);
    log_append_clean(line, text, strlen(text));
    buffer_append_byte(line, '"');
}

static void append_head(struct buffer *line, const char *level)
{
    buffer_append_text(line, "{\"time\":\"");
    append_time(line);
    append_field(line, ",\"level\":\"", level);
    append_field(line, ",\"instance\":\"", state.instance);
}

static const char *level_name(enum log_level level)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    return names[level];
}

void log_write(enum log_level level, const char *where, const char *format, ...)
{
    if (level < state.level)
        return;
    char message[MESSAGE_MAX_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    struct buffer line;
    if (!line_begin(&line))
        return;
    append_head(&line, level_name(level));
    append_field(&line, ",\"where\":\"", where);
    append_field(&line, ",\"message\":\"", message);
    line_end(&line);
    log_flush();
}

void log_row_aside(const char *where, const char *why, const char *format, ...)
{
    char name[ROW_NAME_MAX_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    metric_add(METRIC_ROWS_ASIDE, 1);
    log_write(LOG_ERROR, where, "row put aside: %s: %s", name, why);
}

bool log_is_due(int64_t *logged_ms)
{
    int64_t now_ms = clock_monotonic_ms();
    if (*logged_ms > 0 && now_ms - *logged_ms < AGAIN_MS)
        return false;
    *logged_ms = now_ms;
    return true;
}

static void append_number(struct buffer *line, const char *key, int64_t number)
{
    buffer_append_text(line, key);
    buffer_append_int(line, number);
}

void log_access(const struct log_access *access)
{
    if (!atomic_load_explicit(&state.access, memory_order_relaxed))
        return;
    struct buffer line;
    if (!line_begin(&line))
        return;
    append_head(&line, "info");
    append_field(&line, ",\"where\":\"", "access");
    append_field(&line, ",\"request_id\":\"", access->request_id);
    append_field(&line, ",\"verb\":\"", access->verb);
    append_field(&line, ",\"method\":\"", access->method);
    append_field(&line, ",\"user\":\"", access->user);
    append_field(&line, ",\"error\":\"", access->error);
    append_number(&line, ",\"status\":", access->status);
    append_number(&line, ",\"duration_us\":", access->duration_us);
    append_number(&line, ",\"reply_bytes\":", access->reply_bytes);
    line_end(&line);
}
