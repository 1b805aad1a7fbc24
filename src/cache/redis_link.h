// SPDX-License-Identifier: Apache-2.0
// A socket to Redis, dressed as its URL says: TLS, login, database, and, where Sentinel named it,
// checked to be a master. Non-blocking. One thread at a time.
#pragma once

#include "url.h"

#include <hiredis/hiredis.h>
#include <stddef.h>
#include <sys/types.h>

struct link;

// Takes the socket, which may still be connecting. `url` must outlive the link.
struct link *link_new(int fd, const struct url *url);
void link_free(struct link *link); // closes the socket; accepts NULL

// Makes a command part of the opening; its reply is link_answer() then.
void link_ask(struct link *link, int count, const char *const *texts);
const redisReply *link_answer(const struct link *link);

int link_fd(const struct link *link);

// Goes on with opening when the socket is ready for link_events(). 1: done; 0: call again;
// -ERROR_UNAVAILABLE.
NODISCARD int link_open(struct link *link);
short link_events(const struct link *link); // POLLIN or POLLOUT

// The number of bytes; 0 if the socket is not ready; -ERROR_UNAVAILABLE once it is lost. Read at
// least LINK_READ_MIN bytes at once: TLS would keep the rest of a record without telling. What
// link_write() did not take has to be given again, perhaps with more behind it.
enum { LINK_READ_MIN = 16384 };
NODISCARD ssize_t link_read(struct link *link, char *data, size_t size);
NODISCARD ssize_t link_write(struct link *link, const char *data, size_t length);

// Why link_open(), link_read() or link_write() failed last. Valid until the next call.
const char *link_problem(const struct link *link);
