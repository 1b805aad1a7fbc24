// SPDX-License-Identifier: Apache-2.0
// The text of a long reply: read in pieces, freed on a thread of the server.
#include "long_reply.h"

#include "job_thread.h"

#include "base/check.h"

#include <string.h>

// Shorter ones are copied, and unmapped, in a fraction of a millisecond.
enum { LONG_BYTES = 1 << 20 };

struct long_reply {
    uint32_t tag;
    struct thread_job job;
    struct server *server;
    struct buffer text;
};

static void job_run(struct thread_job *job)
{
    buffer_done(&LIST_ITEM(job, struct long_reply, job)->text);
}

// Called even if the job was not run.
static void job_done(struct thread_job *job, int r)
{
    struct long_reply *reply = LIST_ITEM(job, struct long_reply, job);
    (void)r;
    buffer_done(&reply->text);
    TAGGED_FREE(reply);
}

struct long_reply *long_reply_take(struct server *server, struct buffer *reply)
{
    if (!reply->data || reply->length < LONG_BYTES || !server->long_replies)
        return NULL;
    struct long_reply *taken = TAGGED_NEW(long_reply);
    if (!taken)
        return NULL;
    taken->job.run = job_run;
    taken->job.done = job_done;
    taken->server = server;
    taken->text = *reply;
    buffer_init(reply, reply->length_max);
    return taken;
}

void long_reply_free(void *arg)
{
    if (!arg)
        return;
    struct long_reply *reply = CAST(long_reply, arg);
    if (reply->server->long_replies)
        job_thread_add(reply->server->long_replies, &reply->job);
    else
        job_done(&reply->job, 0);
}

ssize_t long_reply_read(void *arg, uint64_t position, char *ret_data, size_t size)
{
    const struct long_reply *reply = CAST(long_reply, arg);
    ASSERT(position <= reply->text.length);
    size_t left = reply->text.length - position;
    size_t length = left < size ? left : size;
    memcpy(ret_data, reply->text.data + position, length);
    return (ssize_t)length;
}
