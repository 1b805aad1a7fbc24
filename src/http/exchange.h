// SPDX-License-Identifier: Apache-2.0
// One HTTP request inside libmicrohttpd, from its first line to its last byte of reply.
#pragma once

#include "chunks.h"
#include "head.h"
#include "mhd_quirks.h"
#include "parser.h"
#include "request_internal.h"
#include "server_internal.h"

enum exchange_state {
    EXCHANGE_LINE,  // the request line is read, headers are coming
    EXCHANGE_ASKED, // whether the body is let in will be told later
    EXCHANGE_BODY,
    EXCHANGE_ANSWERING, // the handler runs, or has replied already
    EXCHANGE_SUSPENDED, // the handler will reply later
    EXCHANGE_ANSWERED,
    EXCHANGE_DETACHED, // libmicrohttpd no longer has the descriptor
};

enum body_type { BODY_UNTOLD, BODY_UNKNOWN, BODY_FORM, BODY_JSON, BODY_MULTIPART };

struct exchange {
    struct request request;     // first: the one is cast to the other
    struct list link;           // in server->calls while the handler owes or has sent a reply
    struct server *server;      // NULL once the server is gone
    struct MHD_Connection *mhd; // NULL once libmicrohttpd is done with the request, or never had it
    struct http_connection *connection; // NULL once it is gone
    const char *verb;                   // where the head begins in libmicrohttpd's memory
    const char *target;                 // as it came there
    struct http_head head;
    char *query;              // writable
    const char *content_type; // of the reply
    const char *allow;        // for 405
    const char *origin;       // of the page that calls, when it may; else NULL
    bool is_preflight;        // its browser asks first
    const struct server_page *page;
    struct buffer body;
    struct mhd_takeover takeover; // of a request with a chunked body from libmicrohttpd
    struct chunks chunks;         // this and the next three: of a chunked body
    struct buffer rest;           // what libmicrohttpd had read of it
    struct buffer text;           // the reply
    size_t sent;                  // of that
    enum exchange_state state;
    bool is_call;     // of an API method
    bool started;     // the call was counted
    bool is_chunked;  // the length of the body is not announced
    bool is_admitted; // the body is let in
    bool is_text;     // the body is UTF-8 that a NUL ends
    bool is_read;     // there are arguments of it
    enum body_type type;
    size_t text_length;
    struct gzip *gzip;     // while the reply is compressed
    struct list gzip_link; // in server->gzips, while others have their turn
    bool is_gzip;          // the reply is compressed
    struct parser_job job;
    int read_r; // what came of the job
};

// exchange.c

// The rest of what libmicrohttpd's callbacks do, for who reads requests without it. MHD_NO: the
// connection must end. In the state DETACHED the reply is on its way already.

// An exchange whose head is not read. NULL without memory.
struct exchange *exchange_new(struct http_connection *connection);
// Goes on with a whole head, which is changed and must live as long as the exchange: up to letting
// the body in or refusing it.
NODISCARD enum MHD_Result exchange_begin(struct exchange *exchange, char *text, size_t length);
// Takes a piece of the body.
NODISCARD enum MHD_Result exchange_take(struct exchange *exchange, const char *data, size_t *size);
// Refuses the request for what is malformed in it.
void exchange_refuse_early(struct exchange *exchange, int status, const char *reason);
// All of the request is there.
NODISCARD enum MHD_Result exchange_answer(struct exchange *exchange);
// The answer to exchange_ask() came.
NODISCARD enum MHD_Result exchange_admit_end(struct exchange *exchange);
// The connection is gone: frees the exchange, unless its handler will.
void exchange_leave(struct exchange *exchange);

// exchange_chunked.c

// Takes a request with a chunked body away from libmicrohttpd.
NODISCARD enum MHD_Result exchange_take_over(struct exchange *exchange);
// Writes the reply of such a request and closes, politely.
NODISCARD enum MHD_Result exchange_chunked_reply(struct exchange *exchange);
// Goes on with such a request: what was waited for is there.
void exchange_chunked_resume(struct exchange *exchange);

// exchange_admission.c

// Asks whether the body that the head announces is let in. Negative: it is not, and the request may
// hold the reply already. In the state ASKED the answer comes later: exchange_send() or
// exchange_resume() wakes libmicrohttpd up.
NODISCARD int exchange_ask(struct exchange *exchange);
// What came of it, the same way.
NODISCARD int exchange_ask_end(struct exchange *exchange);
// Keeps a piece of the body. -ERROR_REQUEST_TOO_LARGE, -ERROR_RATELIMITED, -ERROR_BUSY.
NODISCARD int exchange_body_add(struct exchange *exchange, const char *data, size_t size);

// exchange_body.c

// Reads the query and, when the head has no token, as much of the body as tells one.
NODISCARD int exchange_find_token(struct exchange *exchange);
// request_load_fn of exchanges.
void exchange_load(struct request *request);

// exchange_gzip.c

// Compresses the reply, if it may be. True: it goes on in later turns, and calls exchange_ready().
bool exchange_gzip(struct exchange *exchange);
// Ends that.
void exchange_gzip_drop(struct exchange *exchange);

// exchange_reply.c

// Gives the reply that the request holds to libmicrohttpd.
NODISCARD enum MHD_Result exchange_queue(struct exchange *exchange);
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
// Hands the connection over to on_takeover.
void exchange_hand_over(struct exchange *exchange);
// libmicrohttpd does not go on with the request until exchange_resume().
void exchange_suspend(const struct exchange *exchange);
// Lets libmicrohttpd go on with what was suspended.
void exchange_resume(struct exchange *exchange);
// request_send_fn of exchanges.
void exchange_send(struct request *request);
// The reply is as it goes out: sends it.
void exchange_ready(struct exchange *exchange);
void exchange_free(struct exchange *exchange);
