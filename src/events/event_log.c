// SPDX-License-Identifier: Apache-2.0
// The log's interface: forwards each call to Kafka or to the in-process log.
#include "events/event_log.h"

#include "base/check.h"
#include "base/metrics.h"
#include "event_log_internal.h"

int log_new(const struct log_options *options, log_done_fn *fn, void *arg, struct log **ret_log)
{
    ASSERT(fn && options->workers > 0);
    bool kafka = options->brokers && options->brokers[0] != '\0';
    struct log *log;
    int r = kafka ? log_kafka_new(options, fn, arg, &log) : log_local_new(options, fn, arg, &log);
    if (r < 0)
        return r;
    *ret_log = log;
    return 0;
}

void log_stop(struct log *log, int64_t flush_ms)
{
    log->backend->stop(log, flush_ms);
}

void log_free(struct log *log)
{
    if (log)
        log->backend->free(log);
}

bool log_is_ready(const struct log *log)
{
    return log->backend->is_ready(log);
}

bool log_answers(const struct log *log)
{
    return !log->backend->answers || log->backend->answers(log);
}

bool log_is_behind(const struct log *log)
{
    return log->backend->is_behind && log->backend->is_behind(log);
}

int log_append(struct log *log, const char *outbox_id, struct event *const *events, size_t count)
{
    ASSERT(outbox_id && events && count > 0);
    int r = log->backend->append(log, outbox_id, events, count);
    if (r == 0)
        metric_add(METRIC_EVENTS_PRODUCED, (int64_t)count);
    return r;
}

int log_read(struct log *log, int worker, struct event **ret_events, int max, int64_t timeout_ms)
{
    ASSERT(worker >= 0 && max > 0);
    return log->backend->read(log, worker, ret_events, max, timeout_ms);
}

void log_commit(struct log *log, int worker)
{
    ASSERT(worker >= 0);
    log->backend->commit(log, worker);
}
