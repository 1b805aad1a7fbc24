// SPDX-License-Identifier: Apache-2.0
// In place of what our modules call (objcopy renames it in their libraries, by the list in
// `symbols`): each call is counted, and the one whose number the test has written fails. Counters
// are in the file $TORTURE_FILE, shared with the test (tests/torture/control.py); without it
// nothing fails.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum kind { ALLOCATION, CALL, KIND_MAX };

struct control {
    _Atomic int64_t counted[KIND_MAX];
    _Atomic int64_t fails_at[KIND_MAX]; // 0: none
    _Atomic int64_t failed[KIND_MAX];
};

static struct control inert;
static struct control *control = &inert;
static bool traces; // to stderr, where it failed: if $TORTURE_TRACE is set

void __sanitizer_print_stack_trace(void);

__attribute__((constructor)) static void control_open(void)
{
    const char *path = getenv("TORTURE_FILE");
    traces = getenv("TORTURE_TRACE");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *memory = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory != MAP_FAILED)
        control = memory;
    close(fd);
}

static bool fails(enum kind kind, int error)
{
    int64_t number = atomic_fetch_add(&control->counted[kind], 1) + 1;
    if (number != atomic_load(&control->fails_at[kind]))
        return false;
    atomic_fetch_add(&control->failed[kind], 1);
    if (traces)
        __sanitizer_print_stack_trace();
    errno = error;
    return true;
}

void *torture_malloc(size_t size);
void *torture_malloc(size_t size)
{
    return fails(ALLOCATION, ENOMEM) ? NULL : malloc(size);
}

void *torture_calloc(size_t count, size_t size);
void *torture_calloc(size_t count, size_t size)
{
    return fails(ALLOCATION, ENOMEM) ? NULL : calloc(count, size);
}

void *torture_realloc(void *memory, size_t size);
void *torture_realloc(void *memory, size_t size)
{
    return fails(ALLOCATION, ENOMEM) ? NULL : realloc(memory, size);
}

void *torture_reallocarray(void *memory, size_t count, size_t size);
void *torture_reallocarray(void *memory, size_t count, size_t size)
{
    return fails(ALLOCATION, ENOMEM) ? NULL : reallocarray(memory, count, size);
}

char *torture_strdup(const char *text);
char *torture_strdup(const char *text)
{
    return fails(ALLOCATION, ENOMEM) ? NULL : strdup(text);
}

char *torture_strndup(const char *text, size_t length);
char *torture_strndup(const char *text, size_t length)
{
    return fails(ALLOCATION, ENOMEM) ? NULL : strndup(text, length);
}

int torture_vasprintf(char **text, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
int torture_vasprintf(char **text, const char *format, va_list arguments)
{
    return fails(ALLOCATION, ENOMEM) ? -1 : vasprintf(text, format, arguments);
}

int torture_asprintf(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));
int torture_asprintf(char **text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = torture_vasprintf(text, format, arguments);
    va_end(arguments);
    return length;
}

// Of the writes those to sockets: to an eventfd, or a pipe to nobody, they cannot fail so.
ssize_t torture_write(int fd, const void *data, size_t length);
ssize_t torture_write(int fd, const void *data, size_t length)
{
    int type;
    bool is_socket = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &(socklen_t){sizeof type}) == 0;
    return is_socket && fails(CALL, ECONNRESET) ? -1 : write(fd, data, length);
}

ssize_t torture_send(int fd, const void *data, size_t length, int flags);
ssize_t torture_send(int fd, const void *data, size_t length, int flags)
{
    return fails(CALL, ECONNRESET) ? -1 : send(fd, data, length, flags);
}

ssize_t torture_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t torture_sendmsg(int fd, const struct msghdr *message, int flags)
{
    return fails(CALL, ECONNRESET) ? -1 : sendmsg(fd, message, flags);
}

ssize_t torture_recv(int fd, void *data, size_t length, int flags);
ssize_t torture_recv(int fd, void *data, size_t length, int flags)
{
    return fails(CALL, ECONNRESET) ? -1 : recv(fd, data, length, flags);
}

int torture_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
int torture_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    return fails(CALL, EMFILE) ? -1 : accept4(fd, address, length, flags);
}

int torture_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
int torture_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    bool may_fail = operation == EPOLL_CTL_ADD; // the others need no memory
    return may_fail && fails(CALL, ENOSPC) ? -1 : epoll_ctl(epoll, operation, fd, event);
}

int torture_epoll_create1(int flags);
int torture_epoll_create1(int flags)
{
    return fails(CALL, EMFILE) ? -1 : epoll_create1(flags);
}

int torture_eventfd(unsigned value, int flags);
int torture_eventfd(unsigned value, int flags)
{
    return fails(CALL, EMFILE) ? -1 : eventfd(value, flags);
}

int torture_socket(int domain, int type, int protocol);
int torture_socket(int domain, int type, int protocol)
{
    return fails(CALL, EMFILE) ? -1 : socket(domain, type, protocol);
}

int torture_open(const char *path, int flags, ...);
int torture_open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return fails(CALL, EMFILE) ? -1 : open(path, flags, mode);
}

// Its name where files may be large.
int torture_open64(const char *path, int flags, ...) __attribute__((alias("torture_open")));

int torture_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                           void *(*run)(void *), void *arg);
int torture_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                           void *(*run)(void *), void *arg)
{
    return fails(CALL, EAGAIN) ? EAGAIN : pthread_create(thread, attributes, run, arg);
}
