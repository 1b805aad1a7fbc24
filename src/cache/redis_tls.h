// SPDX-License-Identifier: Apache-2.0
// TLS on a connected, non-blocking socket. One thread at a time.
#pragma once

#include "url.h"

#include <stddef.h>
#include <sys/types.h>

struct tls;

// What the URL must be and is not because of its files; NULL if they can be used.
const char *tls_files_problem(const struct url *url);

// The socket stays the caller's. Whatever fails is told by tls_open().
struct tls *tls_new(int fd, const struct url *url);
void tls_free(struct tls *tls); // accepts NULL

// 1: open; 0: call again when the socket is ready for tls_events(); -ERROR_UNAVAILABLE.
NODISCARD int tls_open(struct tls *tls);
short tls_events(const struct tls *tls); // POLLIN or POLLOUT

// The number of bytes; 0 if the socket is not ready; -ERROR_UNAVAILABLE. Reads of 16 KB or more
// leave nothing behind that the socket would not tell of. What tls_write() did not take has to be
// given again, perhaps with more behind it.
NODISCARD ssize_t tls_read(struct tls *tls, char *data, size_t size);
NODISCARD ssize_t tls_write(struct tls *tls, const char *data, size_t length);

const char *tls_problem(const struct tls *tls); // of the last failure
