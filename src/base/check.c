// SPDX-License-Identifier: Apache-2.0
// Ends the process on a failed assertion.
#include "base/check.h"

#include <stdio.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 512 };

// An expression may contain what a JSON string may not.
static void text_clean(char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '"' || *text == '\\' || (unsigned char)*text < 0x20)
            *text = '\'';
}

// Writes the line itself: the log, and all that it uses, have assertions too.
void check_fail(const char *file, int line, const char *what)
{
    char clean[LINE_MAX_BYTES / 2];
    char text[LINE_MAX_BYTES];

    snprintf(clean, sizeof clean, "%s", what);
    text_clean(clean);
    int length = snprintf(text, sizeof text,
                          "{\"level\":\"error\",\"where\":\"base\",\"message\":\"assertion failed: "
                          "%s, %s:%d\"}\n",
                          clean, file, line);
    if (length > 0)
        (void)!write(STDERR_FILENO, text, (size_t)length);
    abort();
}
