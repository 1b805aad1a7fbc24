// SPDX-License-Identifier: Apache-2.0
// One HTTP transaction, from the request line to the last byte of the reply. The reader of its
// connection, libmicrohttpd or exchange_chunked.c, is behind a table of functions: struct
// exchange_ops.
#pragma once

#include "call/body.h"
#include "chunks.h"
#include "job_thread.h"
#include "mhd_quirks.h"
#include "server_internal.h"

#include "base/cleanup.h"
#include "http/head.h"

enum exchange_state {
    EXCHANGE_LINE,  // the request line was read, headers follow
    EXCHANGE_ASKED, // waiting for the decision to admit the body
    EXCHANGE_BODY,
    EXCHANGE_ANSWERING, // the handler is running, or has replied already
    EXCHANGE_SUSPENDED, // the handler will reply later
    EXCHANGE_ANSWERED,
    EXCHANGE_DETACHED, // libmicrohttpd no longer has the descriptor
};

struct exchange;

// The reader of the request's connection.
struct exchange_ops {
    // Stops processing the request until resume().
    void (*suspend)(const struct exchange *exchange);
    void (*resume)(struct exchange *exchange);
    // Sends the reply stored in the request. MHD_NO: the connection must be closed.
    enum MHD_Result (*reply)(struct exchange *exchange);
    request_send_fn *send;
    request_load_fn *load;
};

struct exchange {
    struct request request; // must be first: the two are cast to each other
    struct list link;       // in server->calls from the handler's start to the end of its reply
    uint32_t tag;
    const struct exchange_ops *ops;
    struct server *server;      // NULL once the server is gone
    struct MHD_Connection *mhd; // NULL if libmicrohttpd never had, or has finished, the request
    struct http_connection *connection; // NULL once the connection is gone
    const char *target;                 // a copy of the target as libmicrohttpd reported it
    struct http_head head;
    char *head_text; // the text of `head`
    size_t head_length;
    char *query;              // writable
    const char *content_type; // of the reply
    const char *allow;        // value of Allow, for 405
    const char *origin;       // of the calling page, if allowed; else NULL
    bool is_preflight;        // a CORS preflight request
    const struct server_page *page;
    struct body body;
    struct mhd_takeover takeover; // if libmicrohttpd began a request with a chunked body
    struct chunks chunks;         // this and the next three: for a chunked body
    struct buffer rest;           // the part libmicrohttpd had already read
    struct buffer text;           // the head of the reply
    size_t sent;                  // bytes of `text`, then of the reply, sent
    enum exchange_state state;
    bool is_call;          // calls an API method
    bool started;          // counted as a call in progress
    bool is_chunked;       // chunked: the body's length is unknown in advance
    bool is_admitted;      // the body was admitted
    bool is_gzip;          // the reply is compressed
    struct thread_job job; // parses the body, later compresses the reply
    int read_r;            // result of the parsing job
};

// Creates an exchange whose head has not been read. NULL if out of memory.
struct exchange *exchange_new(struct http_connection *connection, const struct exchange_ops *ops);
void exchange_free(struct exchange *exchange);
// Called when the connection is gone: frees the exchange, now or after its handler has replied.
void exchange_leave(struct exchange *exchange);
// Continues after a wait, or frees the exchange if its connection is gone.
void exchange_ready(struct exchange *exchange);
// Sets the request id: the peer's if it is safe for headers and logs, else a new one.
// -ERROR_MEMORY.
NODISCARD int exchange_name(struct exchange *exchange);
// Whether `text` is safe as a name in headers and logs.
bool exchange_name_is_plain(const char *text, size_t length_max);

// Resumes exchanges that wait for their handler, so that the daemon can stop.
void exchanges_abandon(struct server *server);
// Frees the exchanges kept for reuse.
void exchanges_free_spares(struct server *server);
// Detaches exchanges from a server about to be freed. Calls without a reply end when their handler
// replies.
void exchanges_forget(struct server *server);
