// SPDX-License-Identifier: Apache-2.0
// What sending a frame costs at the least: ready-made bytes, one send() a socket, round after
// round.
#include "floor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FRAME_HEAD 4
#define FRAME_MAX 4096

static size_t frame_make(char ret_frame[FRAME_MAX], size_t payload_len)
{
    ret_frame[0] = (char)0x81;
    ret_frame[1] = 126;
    ret_frame[2] = (char)(payload_len >> 8);
    ret_frame[3] = (char)(payload_len & 0xff);
    memset(ret_frame + FRAME_HEAD, 'x', payload_len);
    return FRAME_HEAD + payload_len;
}

// Until one of them goes.
static void rounds_send(const int *fds, size_t count, const char *frame, size_t len)
{
    for (;;)
        for (size_t i = 0; i < count; i++)
            if (send(fds[i], frame, len, MSG_NOSIGNAL) != (ssize_t)len)
                return;
}

void floor_sockets(const struct tool_args *args)
{
    size_t count = tool_args_number(args, "sockets", 1000, 1, 15000);
    int listener = server_listen(tool_args_number(args, "port", 9000, 1, UINT16_MAX));
    int *fds = tool_alloc(count, sizeof(int));
    char frame[FRAME_MAX];
    size_t len = frame_make(frame, tool_args_number(args, "frame-bytes", 300, 126, 4000));

    server_say_ready();
    for (;;) {
        for (size_t i = 0; i < count; i++)
            if ((fds[i] = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) < 0)
                tool_die("accept: %s", strerror(errno));
        rounds_send(fds, count, frame, len);
        for (size_t i = 0; i < count; i++)
            close(fds[i]);
    }
}
