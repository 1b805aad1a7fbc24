// SPDX-License-Identifier: Apache-2.0
// One HTTP transaction, from its complete head to the last byte of the reply. Its connection is
// read by http_reader.c.
#pragma once

#include "call/body.h"
#include "call/streaming.h"
#include "call/upload_body.h"
#include "framing.h"
#include "job_thread.h"
#include "server_internal.h"
#include "transfer_thread.h"

#include "base/cleanup.h"
#include "http/head.h"

enum exchange_state {
    EXCHANGE_HEAD,
    EXCHANGE_PAGE,  // for libmicrohttpd; nothing of it has been consumed
    EXCHANGE_ASKED, // waiting for the decision to admit the body
    EXCHANGE_BODY,
    EXCHANGE_ANSWERING, // a callback is running, in which the handler may reply
    EXCHANGE_SUSPENDED, // the handler will reply later
    EXCHANGE_REPLY,     // the request holds the reply
};

struct exchange;

// What is called for an exchange by those below.
struct exchange_ops {
    request_send_fn *send;
    request_load_fn *load;
    request_stream_fn *stream;
    void (*resume)(struct exchange *exchange);      // continues what was ASKED or SUSPENDED
    void (*sent)(struct exchange *exchange, int r); // a file was sent, or could not be
};

struct exchange {
    struct request request; // must be first: the two are cast to each other
    struct list link;       // in server->calls from the handler's start to the end of its reply
    uint32_t tag;
    struct server *server;              // NULL once the server is gone
    struct http_connection *connection; // NULL once the connection is gone
    const struct exchange_ops *ops;
    struct http_head head;
    char *query;              // writable
    const char *content_type; // of the reply
    const char *allow;        // value of Allow, for 405
    const char *origin;       // of the calling page, if allowed; else NULL
    const struct server_page *page;
    struct framing framing;
    struct body body;
    struct buffer text; // the head of the reply
    size_t sent;        // bytes of `text`, then of the reply, sent
    enum exchange_state state;
    bool is_preflight;     // a CORS preflight request
    bool is_call;          // calls an API method
    bool is_last;          // the connection is closed after the reply
    bool started;          // counted as a call in progress
    bool is_admitted;      // the body was admitted
    bool is_gzip;          // the reply is compressed
    struct thread_job job; // parses the body, later compresses the reply
    int read_r;            // result of the parsing job
    bool is_streamed;      // the body is not read by the loop
    bool is_sending;       // the thread of transfers sends the reply
    struct file_transfer transfer;
    struct body_sink *sink;
    request_streamed_fn *streamed_fn;
    void *streamed_arg;
    int file_fd; // of the reply; negative: not open
    int64_t file_at;
    int64_t file_end;
    char content_range[80];    // "": none
    struct upload_body upload; // last: too large to be cleared for each request
};

// Creates the exchange of a connection. NULL if out of memory.
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

// Frees the exchanges kept for reuse.
void exchanges_free_spares(struct server *server);
// Detaches exchanges from a server about to be freed. Calls without a reply end when their handler
// replies.
void exchanges_forget(struct server *server);
