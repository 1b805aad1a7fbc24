// SPDX-License-Identifier: Apache-2.0
// libmicrohttpd's callbacks. It calls mhd_handler_line() for the request line, mhd_handler_step()
// when the head is complete, for each piece of the body, when all is there, and again after a
// resume; and mhd_handler_end() when the reply is out or all is lost. `arg` is the server.
#pragma once

#include "mhd_quirks.h"

#include <stddef.h>

void *mhd_handler_line(void *arg, const char *target, struct MHD_Connection *mhd);
enum MHD_Result mhd_handler_step(void *arg, struct MHD_Connection *mhd, const char *path,
                                 const char *verb, const char *version, const char *data,
                                 size_t *size, void **context);
void mhd_handler_end(void *arg, struct MHD_Connection *mhd, void **context,
                     enum MHD_RequestTerminationCode code);
// libmicrohttpd was about to answer by itself.
mhd_refusal_fn mhd_handler_refuse;
