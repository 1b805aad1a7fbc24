// SPDX-License-Identifier: Apache-2.0
// Opens many WebSockets: rtm.connect for each, then the ticket's socket, until each has said hello.
#ifndef TIDINGS_BENCH_SOCKETS_H
#define TIDINGS_BENCH_SOCKETS_H

#include "setting.h"
#include "ws.h"

struct sockets {
    struct ws_socket *list;
    size_t count;
    bool are_events; // event streams in place of WebSockets
};

// `list` has `count` sockets with user and member set; they get `owner` and `on_frame`, which hears
// all after the hello. Dies when they are not all there within 60 s. The caller frees `list` after
// sockets_close.
void sockets_open(struct sockets *sockets, struct setting *setting, ws_frame_fn on_frame,
                  void *owner);
void sockets_close(struct sockets *sockets);

// One zeroed socket for each member of each channel, in the order of the channels.
void sockets_of_channels(struct sockets *ret_sockets, const struct input *input);

// How many the server closed.
size_t sockets_count_closed(const struct sockets *sockets);

#endif
