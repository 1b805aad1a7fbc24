// SPDX-License-Identifier: Apache-2.0
// The thread of a server that reads large bodies, one after the other, so that the loop never
// stops for one.
#pragma once

#include "base/cleanup.h"
#include "base/list.h"
#include "base/loop.h"

struct parser;

struct parser_job {
    struct list link;
    void (*run)(struct parser_job *job);         // on the thread
    void (*done)(struct parser_job *job, int r); // on the loop, once; see parser_free()
};

NODISCARD int parser_new(struct loop *loop, struct parser **ret_parser);
// Takes over the job until its done().
void parser_add(struct parser *parser, struct parser_job *job);
// Calls done() with -ERROR_UNAVAILABLE for what is left. Only after loop_run() has returned.
void parser_free(struct parser *parser);
