// SPDX-License-Identifier: Apache-2.0
// Compresses replies for clients that accept gzip: short replies at once, long ones on a thread,
// while the loop serves others.
#include "exchange_gzip.h"

#include "base/check.h"
#include "gzip.h"

// Takes less than half a millisecond.
enum { AT_ONCE_BYTES = 65536 };

static bool is_wanted(const struct exchange *exchange)
{
    const struct request *request = &exchange->request;
    bool is_due = exchange->state == EXCHANGE_ANSWERING || exchange->state == EXCHANGE_SUSPENDED;

    if (!exchange->server || !exchange->connection || !exchange->is_call || !is_due ||
        request->is_secret)
        return false;
    int64_t min = exchange->server->options.settings.gzip_min_bytes;
    return min > 0 && (int64_t)request->reply.length > min &&
           gzip_is_accepted(exchange->head.accept_encoding);
}

// Creates the compressor on first use.
static bool reply_compress(struct exchange *exchange, struct gzip **gzip)
{
    if (!*gzip)
        *gzip = gzip_new();
    return *gzip && gzip_text(*gzip, &exchange->request.reply);
}

static void job_run(struct thread_job *job)
{
    struct exchange *exchange = LIST_ITEM(job, struct exchange, job);
    exchange->is_gzip = reply_compress(exchange, &exchange->server->gzip_long);
}

// Called even if the job was not run: the reply is then sent uncompressed.
static void job_done(struct thread_job *job, int r)
{
    struct exchange *exchange = LIST_ITEM(job, struct exchange, job);
    (void)r;
    exchange->request.replied = true;
    exchange_ready(exchange);
}

// Compresses the reply if allowed. True if the thread of long replies does it: the reply is ready
// afterwards.
static bool is_compressed_later(struct exchange *exchange)
{
    struct server *server = exchange->server;

    if (!is_wanted(exchange))
        return false;
    if (exchange->request.reply.length <= AT_ONCE_BYTES || !server->long_replies) {
        exchange->is_gzip = reply_compress(exchange, &server->gzip);
        return false;
    }
    exchange->request.replied = false;
    exchange->job.run = job_run;
    exchange->job.done = job_done;
    job_thread_add(server->long_replies, &exchange->job);
    return true;
}

void exchange_send(struct request *request)
{
    struct exchange *exchange = CAST(exchange, request);
    if (!is_compressed_later(exchange))
        exchange_ready(exchange);
}
