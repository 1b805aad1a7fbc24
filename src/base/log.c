// SPDX-License-Identifier: Apache-2.0
// A line is made in one go and then appended whole to the thread's gathered text, so that neither a
// full buffer nor a slow reader ever cuts one. Access lines, the mass, wait for log_flush(); others
// are written at once.
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
    LINE_MAX_BYTES =
        4096, // at most PIPE_BUF: a pipe that is writable takes as much without blocking
    MESSAGE_MAX_BYTES = 1800,
    GATHERED_MAX_BYTES = 64 * 1024
};

static struct {
    enum log_level level;
    char instance[64];
    bool is_file;       // writing to a file never waits for a reader
    atomic_bool access; // whether access lines are written
    pthread_mutex_t
        lock; // one writer at a time: what poll() said stays true for the write after it
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

// How much of the gathered text goes in one write: whole lines.
static size_t piece_length(void)
{
    if (state.is_file || gathered.length <= LINE_MAX_BYTES)
        return gathered.length;
    const char *end = memrchr(gathered.text, '\n', LINE_MAX_BYTES);
    return end ? (size_t)(end + 1 - gathered.text) : LINE_MAX_BYTES;
}

static void gathered_consume(size_t length)
{
    gathered.length -= length;
    memmove(gathered.text, gathered.text + length, gathered.length);
}

// Writes one piece; false when stderr takes nothing now. What it will never take is dropped.
static bool write_piece(void)
{
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&ready, 1, 0) != 1)
        return false;
    ssize_t written = write(STDERR_FILENO, gathered.text, piece_length());
    if (written > 0) {
        gathered_consume((size_t)written);
        return true;
    }
    if (written < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    metric_add(METRIC_LOG_DROPPED, count_lines(gathered.text, gathered.length));
    gathered.length = 0;
    return false;
}

void log_flush(void)
{
    if (gathered.length == 0)
        return;
    int errno_before = errno;
    pthread_mutex_lock(&state.lock);
    while (gathered.length > 0 && write_piece())
        ;
    pthread_mutex_unlock(&state.lock);
    errno = errno_before;
}

static void gather(const struct buffer *line)
{
    if (line->length > sizeof gathered.text - gathered.length)
        log_flush();
    if (buffer_failed(line) || line->length > sizeof gathered.text - gathered.length) {
        metric_add(METRIC_LOG_DROPPED, 1);
        return;
    }
    memcpy(gathered.text + gathered.length, line->data, line->length);
    gathered.length += line->length;
}

static void append_time(struct buffer *line)
{
    // The calendar is worked out once a second and thread.
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

static void line_open(struct buffer *line, const char *level)
{
    buffer_append_text(line, "{\"time\":\"");
    append_time(line);
    append_field(line, ",\"level\":\"", level);
    append_field(line, ",\"instance\":\"", state.instance);
}

// A line's memory: on the stack, as a buffer that never grows.
static struct buffer line_on(char *memory, size_t size)
{
    return (struct buffer){.data = memory, .capacity = size, .length_max = size};
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
    // Room for the worst case: every byte of the message escaped as \u00XX.
    char memory[6 * MESSAGE_MAX_BYTES + 1024];
    struct buffer line = line_on(memory, sizeof memory);
    line_open(&line, level_name(level));
    append_field(&line, ",\"where\":\"", where);
    append_field(&line, ",\"message\":\"", message);
    buffer_append_text(&line, "}\n");
    gather(&line);
    log_flush();
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
    char memory[LINE_MAX_BYTES];
    struct buffer line = line_on(memory, sizeof memory);
    line_open(&line, "info");
    append_field(&line, ",\"where\":\"", "access");
    append_field(&line, ",\"request_id\":\"", access->request_id);
    append_field(&line, ",\"verb\":\"", access->verb);
    append_field(&line, ",\"method\":\"", access->method);
    append_field(&line, ",\"user\":\"", access->user);
    append_field(&line, ",\"error\":\"", access->error);
    append_number(&line, ",\"status\":", access->status);
    append_number(&line, ",\"duration_us\":", access->duration_us);
    append_number(&line, ",\"reply_bytes\":", access->reply_bytes);
    buffer_append_text(&line, "}\n");
    gather(&line);
}
