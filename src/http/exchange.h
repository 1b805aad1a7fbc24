// SPDX-License-Identifier: Apache-2.0
// One HTTP request, from its first line to its last byte of reply. Who reads its connection, which
// is libmicrohttpd or exchange_chunked.c, is behind one table of functions: struct exchange_ops.
#pragma once

#include "chunks.h"
#include "job_thread.h"
#include "mhd_quirks.h"
#include "request_internal.h"
#include "server_internal.h"

#include "base/cleanup.h"
#include "http/head.h"

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

struct exchange;

// Who reads the request's connection.
struct exchange_ops {
    // Does not go on with the request until resume().
    void (*suspend)(const struct exchange *exchange);
    void (*resume)(struct exchange *exchange);
    // Sends the reply that the request holds. MHD_NO: the connection must end.
    enum MHD_Result (*reply)(struct exchange *exchange);
    request_send_fn *send;
    request_load_fn *load;
};

struct exchange {
    struct request request; // first: the one is cast to the other
    struct list link;       // in server->calls while the handler owes or has sent a reply
    uint32_t tag;
    const struct exchange_ops *ops;
    struct server *server;      // NULL once the server is gone
    struct MHD_Connection *mhd; // NULL once libmicrohttpd is done with the request, or never had it
    struct http_connection *connection; // NULL once it is gone
    const char *target;                 // as it came in libmicrohttpd's memory
    struct http_head head;
    char *head_text; // which it lies in
    size_t head_length;
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
    bool is_gzip;          // the reply is compressed
    struct thread_job job; // reads the body, later compresses the reply
    int read_r;            // what came of the job
};

// An exchange whose head is not read. NULL without memory.
struct exchange *exchange_new(struct http_connection *connection, const struct exchange_ops *ops);
void exchange_free(struct exchange *exchange);
// The connection is gone: frees the exchange, unless its handler will.
void exchange_leave(struct exchange *exchange);
// What was waited for is there: goes on, or frees the exchange when its connection is gone.
void exchange_ready(struct exchange *exchange);
// Sees to it that the request has an id: the peer's when it may go into headers and logs, else a
// new one. -ERROR_MEMORY.
NODISCARD int exchange_name(struct exchange *exchange);
// Whether `text` may be a name in headers and logs.
bool exchange_name_is_plain(const char *text, size_t length_max);

// Resumes what still waits for its handler, so that the daemon may stop.
void exchanges_abandon(struct server *server);
// Frees what is kept to be used again.
void exchanges_free_spares(struct server *server);
// The server goes: calls whose handler has not replied yet end with that reply.
void exchanges_forget(struct server *server);
