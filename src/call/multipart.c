// SPDX-License-Identifier: Apache-2.0
// Parses a multipart/form-data body that is completely in memory. (libmicrohttpd's post processor
// takes the rest of the header line for the boundary, and returns values in pieces.)
#include "call/request_arguments.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { BOUNDARY_MAX = 70 };

static int multipart_fail(struct arguments *arguments, const char *what)
{
    return arguments_fail(arguments, -ERROR_INVALID_FORM_DATA, "multipart: %s", what);
}

// Copies the parameter `name="…"` or `name=…` of a header value to `ret_value`. Returns its length,
// or -1.
static int parameter_copy(const char *value, const char *name, size_t size, char *ret_value)
{
    size_t name_length = strlen(name);
    for (const char *at = strchr(value, ';'); at; at = strchr(at, ';')) {
        at++;
        at += strspn(at, " \t");
        if (strncasecmp(at, name, name_length) != 0 || at[name_length] != '=')
            continue;
        at += name_length + 1;
        size_t length = *at == '"' ? strcspn(at + 1, "\"") : strcspn(at, "; \t");
        if (*at == '"')
            at++;
        if (length >= size)
            return -1;
        memcpy(ret_value, at, length);
        ret_value[length] = '\0';
        return (int)length;
    }
    return -1;
}

// Terminates the header line at `line` with a NUL and returns the start of the next line; NULL if
// it has no line end.
static char *line_cut(char *line, const char *end)
{
    char *stop = memmem(line, (size_t)(end - line), "\r\n", 2);
    if (!stop)
        return NULL;
    *stop = '\0';
    return stop + 2;
}

// Parses a part's headers: finds its name and the start of its value.
static int part_head(struct arguments *arguments, char *part, const char *end, size_t size,
                     char *name, char **ret_value)
{
    static const char header[] = "Content-Disposition:";
    int length = -1;
    for (;;) {
        char *line = part;
        part = line_cut(line, end);
        if (!part)
            return multipart_fail(arguments, "a part without end of its headers");
        if (*line == '\0')
            break;
        if (strncasecmp(line, header, sizeof header - 1) == 0)
            length = parameter_copy(line, "name", size, name);
    }
    if (length < 0)
        return multipart_fail(arguments, "a part without a name");
    *ret_value = part;
    return length;
}

static int part_add(struct arguments *arguments, char *part, char *end)
{
    char name[256];
    char *value = NULL;
    int length = part_head(arguments, part, end, sizeof name, name, &value);
    if (length < 0)
        return length;
    char *copy = arena_copy(arguments->arena, name, (size_t)length);
    if (!copy)
        return -ERROR_MEMORY;
    *end = '\0'; // on the first byte of the delimiter
    struct argument argument = {
        .name = copy, .text = value, .length = (size_t)(end - value), .is_text = true};
    int r = arguments_check_text(arguments, &argument, (size_t)length);
    return r < 0 ? r : arguments_add(arguments, &argument);
}

int arguments_add_multipart(struct arguments *arguments, const char *content_type, char *text,
                            size_t length)
{
    char boundary[BOUNDARY_MAX + 1];
    if (parameter_copy(content_type, "boundary", sizeof boundary, boundary) < 1)
        return multipart_fail(arguments, "no boundary in the content type");
    char delimiter[BOUNDARY_MAX + 8];
    size_t size = (size_t)snprintf(delimiter, sizeof delimiter, "\r\n--%s", boundary);

    char *end = text + length;
    // The first delimiter has no preceding line end.
    if (length < size || memcmp(text, delimiter + 2, size - 2) != 0)
        return multipart_fail(arguments, "does not begin with its boundary");
    char *at = text + size - 2;
    while (end - at < 2 || memcmp(at, "--", 2) != 0) {
        if (end - at < 2 || memcmp(at, "\r\n", 2) != 0)
            return multipart_fail(arguments, "a broken boundary");
        char *part_end = memmem(at, (size_t)(end - at), delimiter, size);
        if (!part_end)
            return multipart_fail(arguments, "ends within a part");
        // A part without headers begins with the delimiter's line end.
        if (part_end < at + 2)
            return multipart_fail(arguments, "an empty part");
        int r = part_add(arguments, at + 2, part_end);
        if (r < 0)
            return r;
        at = part_end + size;
    }
    return 0;
}
