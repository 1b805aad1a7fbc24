// SPDX-License-Identifier: Apache-2.0
// One non-blocking connection to Redis that comes back by itself, with a pause that grows from 50
// ms to 1 s. All on the loop's thread.
#pragma once

#include "base/loop.h"
#include "url.h"

#include <hiredis/hiredis.h>
#include <stdbool.h>

struct wire;

struct wire_handlers {
    void (*on_open)(void *arg);                     // connected; nothing sent yet
    void (*on_reply)(void *arg, redisReply *reply); // valid inside the call only
    void (*on_lost)(void *arg);                     // was open
    const char *name;                               // in logs: "commands"
};

// The handlers must outlive the wire; `url` is copied. Connects from the next turn on.
// With more than `out_max` bytes to send it is dropped.
NODISCARD int wire_new(struct loop *loop, const struct url *url, int64_t connect_timeout_ms,
                       size_t out_max, const struct wire_handlers *handlers, void *arg,
                       struct wire **ret_wire);
void wire_free(struct wire *wire); // closes, without on_lost; takes NULL

bool wire_is_open(const struct wire *wire);

// Adds bytes to be sent by the next wire_flush(); drops them unless open.
void wire_write(struct wire *wire, const char *data, size_t length);
// Adds one command.
void wire_command(struct wire *wire, int count, const char *const *texts);
// Sends what was added; the rest goes by itself as the socket takes it.
void wire_flush(struct wire *wire);

// Closes the connection, calls on_lost if it was open, and connects anew after the pause.
void wire_drop(struct wire *wire, const char *reason);

// The connection has proved good: the next pause begins at 50 ms again.
void wire_settle(struct wire *wire);

// When bytes last came, in the loop's time.
int64_t wire_heard_ms(const struct wire *wire);
