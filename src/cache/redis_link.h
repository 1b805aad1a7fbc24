// SPDX-License-Identifier: Apache-2.0
// A connected socket to Redis as its URL wants it: plain, or with TLS. Non-blocking. One thread at
// a time.
#pragma once

#include "url.h"

#include <stddef.h>
#include <sys/types.h>

struct link;

// Takes the socket, which may still be connecting. `url` must outlive the link.
struct link *link_new(int fd, const struct url *url);
void link_free(struct link *link); // closes the socket; accepts NULL

int link_fd(const struct link *link);

// Goes on with connecting. 1: done; 0: call again when the socket is ready for link_events();
// -ERROR_UNAVAILABLE.
NODISCARD int link_open(struct link *link);
short link_events(const struct link *link); // POLLIN or POLLOUT

// Return the number of bytes; 0 if the socket is not ready; -ERROR_UNAVAILABLE once it is lost.
// What link_write() did not take has to be given again, perhaps with more behind it.
NODISCARD ssize_t link_read(struct link *link, char *data, size_t size);
NODISCARD ssize_t link_write(struct link *link, const char *data, size_t length);

// Why link_open(), link_read() or link_write() failed last. Valid until the next call.
const char *link_problem(const struct link *link);
