// SPDX-License-Identifier: Apache-2.0
// libmicrohttpd's callbacks. mhd_handler_line(): the request line is read. mhd_handler_step(): the
// head is complete; then for each piece of the body, at its end, and after a resume.
// mhd_handler_end(): the reply is sent, or the connection lost. `arg` is the server.
#pragma once

#include "mhd_quirks.h"

#include <stddef.h>

void *mhd_handler_line(void *arg, const char *target, struct MHD_Connection *mhd);
enum MHD_Result mhd_handler_step(void *arg, struct MHD_Connection *mhd, const char *path,
                                 const char *verb, const char *version, const char *data,
                                 size_t *size, void **context);
void mhd_handler_end(void *arg, struct MHD_Connection *mhd, void **context,
                     enum MHD_RequestTerminationCode code);
// Called when libmicrohttpd is about to reply by itself.
mhd_refusal_fn mhd_handler_refuse;
