// SPDX-License-Identifier: Apache-2.0
// The arguments of a request, collected from query, form, multipart and JSON. Of two with the same
// name, the one added later counts. Strings point into the source text, the arena, or jansson's
// tree.
#pragma once

#include "base/cleanup.h"
#include "call/arena.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ARGUMENTS_MAX = 512, ARGUMENTS_FIRST = 16 };

struct argument {
    const char *name;
    const char *text; // NUL-terminated
    size_t length;
    bool is_text;   // not a JSON array or object
    bool is_parsed; // by arguments_parse_ahead(), into `json` (owned) or with error `json_r`
    int json_r;
    json_t *json;
};

struct arguments {
    struct arena *arena; // not owned
    struct argument *items;
    size_t count;
    size_t capacity;
    json_t *json;
    int64_t values_max;   // JSON values per body or argument
    char error_text[128]; // error text for people, if an arguments_add… function failed
    struct argument first[ARGUMENTS_FIRST];
};

// `arena` must outlive the arguments.
void arguments_init(struct arguments *arguments, struct arena *arena);
void arguments_done(struct arguments *arguments);

// The argument that counts for `name`, or NULL.
const struct argument *arguments_find(const struct arguments *arguments, const char *name);

// Whether a later argument has the same name as the one at `index`.
bool arguments_is_hidden(const struct arguments *arguments, size_t index);

NODISCARD int arguments_add(struct arguments *arguments, const struct argument *argument);

// Adds `a=b&c=d` (a query or form). Decodes in place: `text` must outlive the arguments, and
// text[length] must be writable.
NODISCARD int arguments_add_form(struct arguments *arguments, char *text, size_t length);

// Adds the parts of a multipart/form-data body, in place as above.
NODISCARD int arguments_add_multipart(struct arguments *arguments, const char *content_type,
                                      char *text, size_t length);

// Adds the members of a JSON object. At most once per arguments.
NODISCARD int arguments_add_json(struct arguments *arguments, const char *text, size_t length);
// The same for an object that was parsed from `text` and need not be parsed again. Takes a
// reference.
NODISCARD int arguments_add_parsed(struct arguments *arguments, json_t *object, const char *text,
                                   size_t length);

// Extracts the member `token` of an unparsed JSON object into the arena. NULL if there is none, or
// it contains escapes.
const char *arguments_json_token(struct arguments *arguments, const char *text, size_t length);

// Whether any argument is JSON that takes long to parse.
bool arguments_are_heavy(const struct arguments *arguments);
// Parses these arguments. Errors are reported when the argument is read.
void arguments_parse_ahead(struct arguments *arguments);

// Checks that name and text are UTF-8. -ERROR_INVALID_FORM_DATA, with the error text "name: what";
// -ERROR_INVALID_ARRAY_ARG for "a[]".
NODISCARD int arguments_check_text(struct arguments *arguments, const struct argument *argument,
                                   size_t name_length);

// Stores the error text and returns `r`.
int arguments_fail(struct arguments *arguments, int r, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
