// SPDX-License-Identifier: Apache-2.0
// One stream of requests: open loop (each is due at its time, and its latency counts from there
// whether or not it could be sent then) or closed loop (each client sends its next when the last is
// answered).
#ifndef TIDINGS_BENCH_LOAD_H
#define TIDINGS_BENCH_LOAD_H

#include "http.h"
#include "samples.h"

struct load_plan {
    const char *url;
    unsigned clients;
    unsigned rate;    // per second; 0: closed loop
    uint64_t warm_ns; // what is due in this first while is not measured
    uint64_t run_ns;  // measured after it
    size_t total;     // stop after so many requests; 0: by time alone
    // Refusals are given to `reply` like other replies. A connection on which one with a
    // Retry-After came is not used for so long.
    bool may_refuse;
    // The n-th request, borrowed until the next call; NULL: none now (closed loop: asked again;
    // open loop: left out).
    const char *(*request)(void *owner, size_t n, uint64_t due_ns, size_t *ret_len);
    // The reply to the n-th.
    void (*reply)(void *owner, size_t n, const char *body, size_t len);
    void *owner;
};

struct load {
    struct load_plan plan;
    struct http_pool pool;
    struct http_client *resting, *last_resting; // by next_idle, in the order in which they go on
    uint64_t start_ns, warm_until_ns, end_ns;
    size_t slots; // requests sent or left out
    size_t sent;
    size_t replies;
    size_t measured; // replies that came in the measured time
    struct samples latency;
};

// Opens the clients and starts the clock.
void load_start(struct load *load, struct net_loop *loop, const struct load_plan *plan);
void load_done(struct load *load);

// Sends what is due; returns when it wants to be called next at the latest.
uint64_t load_step(struct load *load);

// Whether all is sent and answered.
bool load_is_over(const struct load *load);

// Steps until all is sent and answered; dies 10 s after the end.
void load_finish(struct load *load, struct net_loop *loop);

// load_start and load_finish.
void load_run(struct load *load, struct net_loop *loop, const struct load_plan *plan);

// Measured replies per second.
double load_rate(const struct load *load);

#endif
