// SPDX-License-Identifier: Apache-2.0
// What channels and users can be called, and "@name" in a text, for authors who asked to have names
// linked. Such a name consists of letters, marks and numbers of any script, and of '.', '-' and
// '_', but does not end with one of these three ("hello @ann."). Text between < and >, and an '@'
// after a letter (a mail address), are skipped.
#pragma once

#include "base/buffer.h"

#include <stdbool.h>
#include <stddef.h>

enum { NAMES_MAX_CODE_POINTS = 80 };

// Why a text cannot name a channel: -ERROR_INVALID_NAME_MAXLENGTH, _SPECIALS or _PUNCTUATION. 0: it
// can. It has small letters, marks and numbers of any script, '-' and '_', with a letter or a
// number among them.
int names_refuse_channel(const char *name, size_t length);

// Whether a text can name a user: as a channel's name, and with capitals and '.'. "here" and the
// like name everybody.
bool names_can_be_user(const char *name, size_t length);
#define NAMES_OF_USERS                                                                             \
    "1 to 80 letters, digits, '.', '-' and '_', and not here, channel, everyone or group"

// The next name at or after *offset, without its '@'; advances *offset past it. NULL: none left.
const char *names_next(const char *text, size_t length, size_t *offset, size_t *ret_length);

// Returns the id of the user with this name; NULL: unknown.
typedef const char *name_find_fn(const void *arg, const char *name, size_t length);

// Appends the text, replacing each name known to `fn` by "<@U…>", and "@here" and the like by
// "<!here>".
void names_link(const char *text, size_t length, name_find_fn *fn, const void *arg,
                struct buffer *out);
