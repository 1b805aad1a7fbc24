// SPDX-License-Identifier: Apache-2.0
// What sending a frame costs at the least: ready-made bytes, one send() a socket, round after
// round.
#include "floor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_BYTES 4
#define FRAME_MAX 4096

static int listen_at(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 1024) < 0)
        tool_die("cannot listen at %u: %s", port, strerror(errno));
    return fd;
}

// Takes the next `count` connections; false when told to stop before.
static bool accept_all(int listener, int *ret_fds, size_t count)
{
    struct pollfd wait = {.fd = listener, .events = POLLIN};
    int on = 1;

    for (size_t i = 0; i < count;) {
        if (floor_stopped)
            return false;
        if (poll(&wait, 1, 100) <= 0)
            continue;
        ret_fds[i] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (ret_fds[i] < 0)
            tool_die("accept: %s", strerror(errno));
        setsockopt(ret_fds[i++], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    return true;
}

// Waits where the socket is full: the reader is the slower one then. False: it went away, or the
// stop came.
static bool send_frame(int fd, const char *frame, size_t len)
{
    struct pollfd wait = {.fd = fd, .events = POLLOUT};

    for (;;) {
        ssize_t n = send(fd, frame, len, MSG_NOSIGNAL);

        if (n > 0) {
            frame += n;
            len -= (size_t)n;
        }
        if (len == 0)
            return true;
        if (n < 0 && errno != EAGAIN)
            return false;
        if (floor_stopped)
            return false;
        poll(&wait, 1, 100);
    }
}

static size_t make_frame(char ret_frame[FRAME_MAX], size_t payload_len)
{
    ret_frame[0] = (char)0x81;
    ret_frame[1] = 126;
    ret_frame[2] = (char)(payload_len >> 8);
    ret_frame[3] = (char)(payload_len & 0xff);
    memset(ret_frame + HEAD_BYTES, 'x', payload_len);
    return HEAD_BYTES + payload_len;
}

static void send_rounds(const int *fds, size_t count, const char *frame, size_t len)
{
    for (;;)
        for (size_t i = 0; i < count; i++)
            if (!send_frame(fds[i], frame, len))
                return;
}

void floor_sockets(const struct tool_args *args)
{
    size_t count = tool_args_number(args, "sockets", 1000, 1, 15000);
    int listener = listen_at((uint16_t)tool_args_number(args, "port", 9000, 1, UINT16_MAX));
    char frame[FRAME_MAX];
    size_t len = make_frame(frame, tool_args_number(args, "frame-bytes", 300, 126, 4000));
    int *fds = tool_alloc(count, sizeof(int));

    floor_say_ready();
    while (accept_all(listener, fds, count)) {
        send_rounds(fds, count, frame, len);
        for (size_t i = 0; i < count; i++)
            close(fds[i]);
    }
    close(listener);
    free(fds);
}
