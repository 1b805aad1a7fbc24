// SPDX-License-Identifier: Apache-2.0
// What a reply says, and how it is said past libmicrohttpd.
#pragma once

#include "exchange.h"

enum { REPLY_HEADERS_MAX = 20 };

struct reply_header {
    const char *name;
    const char *value;
};

// The headers of the reply that the request holds; how many. At most REPLY_HEADERS_MAX.
int exchange_headers(const struct exchange *exchange, struct reply_header *ret_headers);
// A reply made here and not by a handler; the request holds it then.
void exchange_plain_error(struct exchange *exchange, int status, const char *code,
                          const char *message);
void exchange_fill_page(struct exchange *exchange);
// Takes the descriptor from whoever has it. The connection is gone or ends then.
NODISCARD int exchange_detach(struct exchange *exchange, int *ret_fd);
// The reply as libmicrohttpd would send it as a connection's last.
void exchange_print_reply(struct exchange *exchange, struct buffer *text);
// What is thrown away at most behind a connection's last reply.
int64_t exchange_linger_bytes(const struct exchange *exchange);
// Writes the reply that the request holds past libmicrohttpd and closes, politely.
void exchange_last_word(struct exchange *exchange);
// Refuses the request for what is malformed in it.
void exchange_refuse_early(struct exchange *exchange, int status, const char *reason);
// Answers a head that libmicrohttpd must not see, at the acceptor, and closes, politely. The
// connection is gone afterwards.
void exchange_refuse_head(struct http_connection *connection, int status, const char *reason);
