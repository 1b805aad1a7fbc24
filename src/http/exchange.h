// SPDX-License-Identifier: Apache-2.0
// One HTTP request inside libmicrohttpd, from its first line to its last byte of reply.
#pragma once

#include "gate.h"
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
    struct MHD_Connection *mhd; // NULL once libmicrohttpd is done with the request
    struct connection *connection;
    struct gate_line line;
    struct gate_head head;
    const char *target;       // as it came
    char *query;              // writable
    const char *content_type; // of the reply
    const char *allow;        // for 405
    const char *origin;       // of the page that calls, when it may; else NULL
    bool is_preflight;        // its browser asks first
    const struct page *page;
    struct buffer body;
    enum exchange_state state;
    bool is_call;     // of an API method
    bool started;     // the call was counted
    bool is_chunked;  // the length of the body is not announced
    bool is_admitted; // the body is let in
    bool is_text;     // the body is UTF-8 that a NUL ends
    bool is_read;     // there are arguments of it
    enum body_type type;
    size_t text_length;
    struct parser_job job;
    int read_r; // what came of the job
};

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

// exchange_reply.c

// Gives the reply that the request holds to libmicrohttpd.
NODISCARD enum MHD_Result exchange_queue(struct exchange *exchange);
// A reply made here and not by a handler; the request holds it then.
void exchange_plain_error(struct exchange *exchange, int status, const char *code,
                          const char *message);
void exchange_fill_page(struct exchange *exchange);
// Writes the reply that the request holds past libmicrohttpd and closes, politely.
void exchange_last_word(struct exchange *exchange);
// Hands the connection over to on_takeover.
void exchange_hand_over(struct exchange *exchange);
// libmicrohttpd's timeout of the connection; 0: none.
void exchange_set_timeout(const struct exchange *exchange, int timeout_s);
// Lets libmicrohttpd go on with what was suspended.
void exchange_resume(struct exchange *exchange);
// request_send_fn of exchanges.
void exchange_send(struct request *request);
void exchange_free(struct exchange *exchange);
