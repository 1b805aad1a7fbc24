// SPDX-License-Identifier: Apache-2.0
// Reads libmicrohttpd's memory, and takes connections away from it.
#include "mhd_quirks.h"

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// For another version: test everything in this file first, then update MHD_TRIED.
_Static_assert(MHD_VERSION == 0x00097500, "built with an untested libmicrohttpd");

enum { RESUME_TIMEOUT_S = 3600 };

int mhd_check(const char *version)
{
    if (strcmp(version, MHD_TRIED) == 0)
        return 0;
    log_write(LOG_ERROR, "http", "libmicrohttpd %s is untested; %s is required", version,
              MHD_TRIED);
    return -ERROR_UNAVAILABLE;
}

// libmicrohttpd's buffer always begins with the current request and is zero after the received
// bytes. Half of its memory is enough to inspect.
const char *mhd_fields_peek(const char *memory, const char *target, size_t *ret_length)
{
    const char *end = memory + MHD_MEMORY_BYTES / 2;
    const char *version = target + strlen(target) + 1;
    const char *fields = version + strlen("HTTP/1.1") + 2;
    // Each NUL replaced a blank, CR or LF.
    if (fields >= end || memcmp(version, "HTTP/1.", 7) != 0 || fields[-2] != '\0' ||
        fields[-1] != '\0')
        return NULL;
    *ret_length = strnlen(fields, (size_t)(end - fields));
    return fields;
}

// Writes `byte` over the next NUL before `end`. Returns the position after it, or `end` if there is
// none.
static char *restore_byte(char *at, const char *end, char byte)
{
    char *nul = memchr(at, '\0', (size_t)(end - at));
    if (!nul)
        return at + (end - at);
    *nul = byte;
    return nul + 1;
}

// Writes CR LF over the next two adjacent NULs; leaves single ones.
static char *restore_line_end(char *at, const char *end)
{
    char *nul;
    while ((nul = memchr(at, '\0', (size_t)(end - at))) && nul + 1 < end) {
        at = nul + 1;
        if (*at != '\0')
            continue;
        memcpy(nul, "\r\n", 2);
        return nul + 2;
    }
    return at + (end - at);
}

// Restores a head that libmicrohttpd has parsed. It writes NULs over the two blanks of the request
// line, the colon of each field and each CR LF, and takes the target's query apart; the bytes are
// otherwise intact and contiguous. A NUL sent by the peer, or a bare LF (one NUL), then shows as a
// remaining NUL or as a malformed line.
static void head_restore(char *text, size_t length, const char *target)
{
    const char *end = text + length;
    size_t target_length = strlen(target);
    char *at = restore_byte(text, end, ' ');
    if ((size_t)(end - at) <= target_length)
        return;
    // libmicrohttpd skips additional blanks: they stay here, so that the line is rejected.
    if (*at != ' ')
        memcpy(at, target, target_length);
    at = restore_byte(at + target_length, end, ' ');
    at = restore_line_end(at, end);
    while (at < end) {
        bool is_last = end - at == 2 && at[0] == '\0';
        if (!is_last)
            at = restore_byte(at, end, ':');
        at = restore_line_end(at, end);
    }
}

char *mhd_head_copy(struct MHD_Connection *mhd, const char *verb, const char *target,
                    struct arena *arena, size_t *ret_length)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    char *text = info ? arena_copy(arena, verb, info->header_size) : NULL;
    if (!text)
        return NULL;
    *ret_length = info->header_size;
    head_restore(text, info->header_size, target);
    return text;
}

int mhd_fields_count(struct MHD_Connection *mhd)
{
    return MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, NULL, NULL);
}

// Replaces `fd` by `other` (a socket, or negative). The connection lives on as *ret_fd.
static int descriptor_swap(struct MHD_Connection *mhd, int fd, int other, int *ret_fd)
{
    int taken = other < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    // Suspending removes the descriptor from libmicrohttpd's epoll set; resuming adds the
    // replacement.
    MHD_suspend_connection(mhd);
    if (taken >= 0 && dup3(other, fd, O_CLOEXEC) < 0) {
        close(taken);
        taken = -1;
    }
    if (taken < 0)
        shutdown(fd, SHUT_RDWR);
    MHD_resume_connection(mhd);
    if (taken < 0)
        return -ERROR_BUSY;
    *ret_fd = taken;
    return 0;
}

int mhd_descriptor_take(struct MHD_Connection *mhd, int fd, int *ret_fd)
{
    int nowhere = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int r = descriptor_swap(mhd, fd, nowhere, ret_fd);
    if (nowhere >= 0)
        close(nowhere);
    return r;
}

typedef enum MHD_Result queue_fn(struct MHD_Connection *, unsigned, struct MHD_Response *);

static _Atomic(mhd_refusal_fn *) on_refusal;

void mhd_on_refusal(mhd_refusal_fn *fn)
{
    on_refusal = fn;
}

enum MHD_Result mhd_reply_queue(struct MHD_Connection *mhd, unsigned status,
                                struct MHD_Response *response)
{
    static _Atomic(queue_fn *) queue;
    queue_fn *fn = queue;
    if (!fn) {
        *(void **)&fn = dlsym(RTLD_NEXT, "MHD_queue_response");
        queue = fn;
    }
    return fn(mhd, status, response);
}

enum MHD_Result MHD_queue_response(struct MHD_Connection *mhd, unsigned status,
                                   struct MHD_Response *response)
{
    mhd_refusal_fn *fn = on_refusal;
    if (fn)
        fn(mhd, status);
    return mhd_reply_queue(mhd, status, response);
}

// A peer that half-closes may still wait for the reply. But libmicrohttpd reads before it continues
// a resumed connection, and takes the end of input for the end of the connection. A connection with
// a timeout of its own, however long, is processed before anything is read.
void mhd_resume(struct MHD_Connection *mhd)
{
    MHD_set_connection_option(mhd, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)RESUME_TIMEOUT_S);
    MHD_resume_connection(mhd);
}

// Connections with a timeout cost a check in every run, so reset it.
void mhd_resumed(struct MHD_Connection *mhd)
{
    MHD_set_connection_option(mhd, MHD_CONNECTION_OPTION_TIMEOUT, 0U);
}

bool mhd_end_is_missed(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void mhd_takeover_init(struct mhd_takeover *takeover)
{
    *takeover = (struct mhd_takeover){.tag = TAG(mhd_takeover), .fd = -1, .pipe = -1};
}

void mhd_takeover_done(struct mhd_takeover *takeover)
{
    if (takeover->fd >= 0)
        close(takeover->fd);
    if (takeover->pipe >= 0)
        close(takeover->pipe);
    mhd_takeover_init(takeover);
}

// libmicrohttpd believes that it has sent 101 to the peer.
static void takeover_end(void *arg, struct MHD_Connection *mhd, void *context, const char *rest,
                         size_t length, MHD_socket socket, struct MHD_UpgradeResponseHandle *handle)
{
    struct mhd_takeover *takeover = CAST(mhd_takeover, arg);
    int fd = takeover->fd;
    (void)mhd;
    (void)context;
    (void)socket;
    takeover->fd = -1;
    takeover->fn(takeover->arg, fd, rest, length);
    mhd_takeover_done(takeover);
    MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
}

static int takeover_queue(struct mhd_takeover *takeover, struct MHD_Connection *mhd)
{
    struct MHD_Response *response = MHD_create_response_for_upgrade(takeover_end, takeover);
    if (!response)
        return -ERROR_MEMORY;
    MHD_add_response_header(response, MHD_HTTP_HEADER_UPGRADE, "nothing");
    enum MHD_Result queued = mhd_reply_queue(mhd, MHD_HTTP_SWITCHING_PROTOCOLS, response);
    MHD_destroy_response(response);
    return queued == MHD_YES ? 0 : -ERROR_MEMORY;
}

// An upgrade is the way to get the bytes that libmicrohttpd has already read. Its 101 response goes
// into a socket pair that replaces the connection's socket.
int mhd_takeover_start(struct mhd_takeover *takeover, struct MHD_Connection *mhd, int fd,
                       mhd_taken_fn *fn, void *arg)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return -ERROR_BUSY;
    takeover->pipe = ends[0];
    takeover->fn = fn;
    takeover->arg = arg;
    int r = takeover_queue(takeover, mhd);
    if (r >= 0)
        r = descriptor_swap(mhd, fd, ends[1], &takeover->fd);
    close(ends[1]);
    return r;
}
