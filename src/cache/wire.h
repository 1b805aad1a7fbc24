// SPDX-License-Identifier: Apache-2.0
// A non-blocking connection to Redis that reconnects by itself. The pause between attempts grows
// from 50 ms to 1 s. All on the loop's thread.
#pragma once

#include "base/loop.h"
#include "url.h"

#include <hiredis/hiredis.h>
#include <stdbool.h>

struct wire;

struct wire_handlers {
    void (*on_open)(void *arg);                     // connected, before anything is sent
    void (*on_reply)(void *arg, redisReply *reply); // the reply is valid only inside the call
    void (*on_lost)(void *arg);                     // the open connection was lost
    const char *name;                               // name in logs: "commands"
};

// `handlers` must outlive the wire; `url` is copied. Starts connecting on the next turn. Drops the
// connection when more than `out_max` bytes wait to be sent.
NODISCARD int wire_new(struct loop *loop, const struct url *url, int64_t connect_timeout_ms,
                       size_t out_max, const struct wire_handlers *handlers, void *arg,
                       struct wire **ret_wire);
void wire_free(struct wire *wire); // closes without on_lost; accepts NULL

bool wire_is_open(const struct wire *wire);

// Appends bytes for the next wire_flush(). Discards them if the connection is not open.
void wire_write(struct wire *wire, const char *data, size_t length);
// Appends one command.
void wire_command(struct wire *wire, int count, const char *const *texts);
// Sends the appended bytes. The rest follows by itself when the socket accepts it.
void wire_flush(struct wire *wire);

// Closes the connection, calls on_lost if it was open, and reconnects after the pause.
void wire_drop(struct wire *wire, const char *reason);

// Marks the connection as working: the next pause starts at 50 ms again.
void wire_settle(struct wire *wire);

// When data last arrived, in the loop's time.
int64_t wire_received_ms(const struct wire *wire);
