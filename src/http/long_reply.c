// SPDX-License-Identifier: Apache-2.0
// Frees the text of long replies on a thread of the server.
#include "long_reply.h"

#include "job_thread.h"

#include "base/check.h"

// Shorter ones are unmapped in a fraction of a millisecond.
enum { LONG_BYTES = 1 << 20 };

struct long_reply {
    uint32_t tag;
    struct thread_job job;
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

void long_reply_free(struct server *server, struct buffer *reply)
{
    bool is_long = reply->length >= LONG_BYTES && server->long_replies;
    struct long_reply *taken = is_long ? TAGGED_NEW(long_reply) : NULL;
    if (!taken) {
        buffer_done(reply);
        return;
    }
    taken->job.run = job_run;
    taken->job.done = job_done;
    taken->text = *reply;
    buffer_init(reply, reply->length_max);
    job_thread_add(server->long_replies, &taken->job);
}
