// SPDX-License-Identifier: Apache-2.0
// What leans on how libmicrohttpd 0.9.75 works inside.
#include "mhd_quirks.h"
#include "server_internal.h"

#include "base/error.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// Writes `text` over the next NUL before `end`. Behind it, or `end` when there is none.
static char *mend(char *at, const char *end, char byte)
{
    char *nul = memchr(at, '\0', (size_t)(end - at));
    if (!nul)
        return at + (end - at);
    *nul = byte;
    return nul + 1;
}

// The same with CR LF over the next two NULs that follow each other; others stay.
static char *mend_end(char *at, const char *end)
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

// libmicrohttpd cuts lines by NULs over the two blanks of the request line, the colon of each
// field, and CR LF, and takes the query of the target apart: the rest of the head is still one run
// of bytes. A NUL that the peer sent, or a bare LF, which is one NUL, shows as a NUL that is left
// or as a line that is malformed.
static void head_mend(char *text, size_t length, const char *target)
{
    const char *end = text + length;
    size_t target_length = strlen(target);
    char *at = mend(text, end, ' ');
    if ((size_t)(end - at) <= target_length)
        return;
    memcpy(at, target, target_length);
    at = mend(at + target_length, end, ' ');
    at = mend_end(at, end);
    while (at < end) {
        bool is_last = end - at == 2 && at[0] == '\0';
        if (!is_last)
            at = mend(at, end, ':');
        at = mend_end(at, end);
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
    head_mend(text, info->header_size, target);
    return text;
}

int mhd_fields_count(struct MHD_Connection *mhd)
{
    return MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, NULL, NULL);
}

void mhd_takeover_init(struct mhd_takeover *takeover)
{
    *takeover = (struct mhd_takeover){.fd = -1, .pipe = -1};
}

void mhd_takeover_done(struct mhd_takeover *takeover)
{
    if (takeover->fd >= 0)
        close(takeover->fd);
    if (takeover->pipe >= 0)
        close(takeover->pipe);
    mhd_takeover_init(takeover);
}

// libmicrohttpd believes that it has said 101 to the peer.
static void takeover_end(void *arg, struct MHD_Connection *mhd, void *context, const char *rest,
                         size_t length, MHD_socket socket, struct MHD_UpgradeResponseHandle *handle)
{
    struct mhd_takeover *takeover = arg;
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
    enum MHD_Result queued = MHD_queue_response(mhd, MHD_HTTP_SWITCHING_PROTOCOLS, response);
    MHD_destroy_response(response);
    return queued == MHD_YES ? 0 : -ERROR_MEMORY;
}

// The upgrade of a connection is the way to get from libmicrohttpd what it has read. What it says
// to the peer before goes to a pipe, which takes the place of the socket.
int mhd_takeover_start(struct mhd_takeover *takeover, struct connection *connection,
                       mhd_taken_fn *fn, void *arg)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return -ERROR_BUSY;
    takeover->pipe = ends[0];
    takeover->fn = fn;
    takeover->arg = arg;
    int r = takeover_queue(takeover, connection->mhd);
    if (r >= 0)
        r = connection_divert(connection, ends[1], &takeover->fd);
    close(ends[1]);
    return r;
}
