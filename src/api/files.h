// SPDX-License-Identifier: Apache-2.0
// What the methods of files share.
#pragma once

#include "invocation.h"

enum { FILE_NAME_MAX = 255 };

// Whether files are on. False: the error was replied.
NODISCARD bool files_are_on(struct invocation *invocation);
