// SPDX-License-Identifier: Apache-2.0
// The sockets of channels' members at their barest: a handshake that is not checked, and one send()
// a frame and socket.
#ifndef TIDINGS_FLOOR_MEMBERS_H
#define TIDINGS_FLOOR_MEMBERS_H

#include "server.h"

#include <stddef.h>

struct members;

// Reads users and the group `small` from the set-up's file, and listens at a port of its own; dies
// on failure. Never NULL.
struct members *members_new(const char *data_path, struct server *server);
void members_free(struct members *members);

// Writes the address of the user's socket, as rtm.connect tells it: with slashes escaped.
size_t members_write_url(const struct members *members, const char *token, char *ret_url,
                         size_t room);

// Sends the text as one frame to all members of a channel, or to one user: to those who have a
// socket. A socket that is full is closed.
void members_send_channel(struct members *members, const char *channel, const char *text,
                          size_t len);
void members_send_user(struct members *members, const char *token, const char *text, size_t len);

#endif
