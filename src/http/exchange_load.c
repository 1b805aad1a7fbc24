// SPDX-License-Identifier: Apache-2.0
// Parses the arguments of a call, here or on the parser thread.
#include "exchange_load.h"

#include "base/check.h"
#include "base/metrics.h"

static void job_run(struct thread_job *job)
{
    struct exchange *exchange = LIST_ITEM(job, struct exchange, job);
    exchange->read_r = body_read(&exchange->body, &exchange->request);
}

static void job_done(struct thread_job *job, int r)
{
    struct exchange *exchange = LIST_ITEM(job, struct exchange, job);
    struct request *request = &exchange->request;
    request->read_fn(request->read_arg, r < 0 ? r : exchange->read_r);
}

void exchange_load(struct request *request)
{
    struct exchange *exchange = CAST(exchange, request);
    bool is_done;
    int r = body_read_light(&exchange->body, request, &is_done);
    if (r < 0 || is_done) {
        request->read_fn(request->read_arg, r);
        return;
    }
    exchange->job.run = job_run;
    exchange->job.done = job_done;
    metric_add(METRIC_BODIES_PARSED_ASIDE, 1);
    job_thread_add(exchange->server->parser, &exchange->job);
}
