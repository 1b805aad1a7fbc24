// SPDX-License-Identifier: Apache-2.0
// The error table: wire code and HTTP status of each error.
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *code;
    int status;
} errors[ERROR_MAX] = {[ERROR_NONE] = {"", 200},
#define ERROR_ROW(name, status, code) [ERROR_##name] = {code, status},
                       ERROR_TABLE(ERROR_ROW)
#undef ERROR_ROW
};

// The table index of `error`. Unknown errors count as internal.
static int error_index(int error)
{
    if (error <= -ERROR_MAX || error >= ERROR_MAX)
        return ERROR_INTERNAL;
    return abs(error);
}

const char *error_code(int error)
{
    return errors[error_index(error)].code;
}

int error_http_status(int error)
{
    return errors[error_index(error)].status;
}

int error_from_code(const char *code)
{
    for (int i = ERROR_NONE + 1; i < ERROR_MAX; i++)
        if (strcmp(errors[i].code, code) == 0)
            return -i;
    return -ERROR_INTERNAL;
}
