// SPDX-License-Identifier: Apache-2.0
// The headers of replies, and how a reply is written to the connection.
#pragma once

#include "exchange.h"

enum { REPLY_HEADERS_MAX = 24 };

struct reply_header {
    const char *name;
    const char *value;
};

// Fills in the headers of the reply stored in the request. Returns their number, at most
// REPLY_HEADERS_MAX.
int exchange_headers(const struct exchange *exchange, struct reply_header *ret_headers);
// Writes as much of the reply as the socket takes, or a piece of a long one. 1: that was all; 0: go
// on when the socket is writable. -ERROR_UNAVAILABLE: the peer is gone; -ERROR_MEMORY.
NODISCARD int exchange_write(struct exchange *exchange, int fd);
// Writes the head of a file's reply and gives the rest to the thread of transfers, which calls
// exchange->ops->sent. -ERROR_BUSY, -ERROR_MEMORY, -ERROR_UNAVAILABLE.
NODISCARD int exchange_write_file(struct exchange *exchange);
// Stores an error reply in the request, without a handler.
void exchange_plain_error(struct exchange *exchange, int status, const char *code,
                          const char *message);
// Rejects a malformed request. Its connection is closed after the reply.
void exchange_refuse(struct exchange *exchange, int status, const char *reason);
// The maximum number of bytes to discard after a connection's last reply.
int64_t exchange_linger_bytes(const struct exchange *exchange);
