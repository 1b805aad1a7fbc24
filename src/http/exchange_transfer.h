// SPDX-License-Identifier: Apache-2.0
// Bodies and replies that are files: moved by the thread of transfers. The exchange, and what it
// points to, stay until that is done, even if its connection does not.
#pragma once

#include "exchange.h"

// A request_stream_fn: reads the body.
NODISCARD int exchange_stream(struct request *request, struct body_sink *sink,
                              request_streamed_fn *fn, void *arg);

// Whether the reply is a file that has not been sent.
bool exchange_has_file(const struct exchange *exchange);
// Chooses status and headers of a file's reply, before its head is written.
void exchange_file_prepare(struct exchange *exchange);
// Sends the head, which is in exchange->text, and the file; then calls exchange->ops->sent.
// -ERROR_BUSY: too many transfers.
NODISCARD int exchange_send_file(struct exchange *exchange);
