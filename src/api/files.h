// SPDX-License-Identifier: Apache-2.0
// What the methods of files share.
#pragma once

#include "invocation.h"

enum { FILE_NAME_MAX = 255, UPLOAD_SECRET_SIZE = 4 * ID_SIZE };

// Whether files are on. False: the error was replied.
NODISCARD bool files_are_on(struct invocation *invocation);

// Makes the secret of a URL: letters and digits, of which the caller stores the digest.
void files_secret_make(char *ret_secret, char *ret_digest);
