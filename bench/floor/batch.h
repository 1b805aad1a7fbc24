// SPDX-License-Identifier: Apache-2.0
// Group commit at its barest: what gathered while the last batch was under way goes as one prepared
// statement of arrays.
#ifndef TIDINGS_FLOOR_BATCH_H
#define TIDINGS_FLOOR_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct batch_writer;

enum batch_kind {
    BATCH_POSTS,       // inserts messages
    BATCH_POSTS_HEADS, // and moves the heads of their channels
    BATCH_CURSORS,     // moves a member's cursor: channel, user and ts of a row
};

struct batch_row {
    const char *channel;
    const char *user;
    const char *body;
    int64_t ts;
    int64_t seq;
    bool is_head; // the last of its channel: one a channel and batch
};

// Connects, makes the tables anew and prepares the statement; dies on failure. Never NULL.
struct batch_writer *batch_writer_new(const char *database_url, enum batch_kind kind);
void batch_writer_free(struct batch_writer *writer);

// Makes the head of a new channel, before the first row of it is sent; nothing where none are kept.
void batch_writer_add_channel(struct batch_writer *writer, const char *channel);

// The socket to watch; *ret_writes tells whether for writing too.
int batch_writer_socket(const struct batch_writer *writer, bool *ret_writes);

// Whether a batch is under way.
bool batch_writer_is_busy(const struct batch_writer *writer);

// Sends the rows, which it copies, as one statement; not while one is under way.
void batch_writer_send(struct batch_writer *writer, const struct batch_row *rows, size_t count);

// Reads and writes what the socket is ready for; true once the batch under way is committed. Dies
// when it fails.
bool batch_writer_step(struct batch_writer *writer);

#endif
