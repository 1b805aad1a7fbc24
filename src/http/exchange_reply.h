// SPDX-License-Identifier: Apache-2.0
// The headers and text of replies, and replies that bypass libmicrohttpd.
#pragma once

#include "exchange.h"

enum { REPLY_HEADERS_MAX = 20 };

struct reply_header {
    const char *name;
    const char *value;
};

// Fills in the headers of the reply stored in the request. Returns their number, at most
// REPLY_HEADERS_MAX.
int exchange_headers(const struct exchange *exchange, struct reply_header *ret_headers);
// Stores an error reply in the request, without a handler.
void exchange_plain_error(struct exchange *exchange, int status, const char *code,
                          const char *message);
void exchange_fill_page(struct exchange *exchange);
// Takes the descriptor from its owner. The connection is then gone, or about to end.
NODISCARD int exchange_detach(struct exchange *exchange, int *ret_fd);
// Appends the head of the reply as libmicrohttpd would send it for the last request of a
// connection.
void exchange_print_head(const struct exchange *exchange, struct buffer *text);
// The number of bytes that follow the head: none of a reply to HEAD.
size_t exchange_reply_bytes(const struct exchange *exchange);
// The maximum number of bytes to discard after a connection's last reply.
int64_t exchange_linger_bytes(const struct exchange *exchange);
// Sends the reply stored in the request without libmicrohttpd, then closes with a lingering close.
void exchange_last_word(struct exchange *exchange);
// Rejects a malformed request.
void exchange_refuse_early(struct exchange *exchange, int status, const char *reason);
// Answers a head that libmicrohttpd must not see, at the acceptor, then closes with a lingering
// close. Frees the connection.
void exchange_refuse_head(struct http_connection *connection, int status, const char *reason);
