// SPDX-License-Identifier: Apache-2.0
// The take_* readers: each validates one argument and returns its value, or replies with an error.
#include "invocation.h"
#include "scope_check.h"

#include "base/json.h"
#include "base/text.h"
#include "base/unicode.h"
#include "chat/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

// Reads an argument as text. An array or object instead of text is answered with `error`.
static bool text_present(struct invocation *invocation, const char *name, int error,
                         const char **ret_text, bool *ret_present)
{
    const char *text = request_arg(invocation->request, name);

    *ret_present = text != NULL;
    if (!text)
        return true;
    if (!request_arg_is_text(invocation->request, name)) {
        invocation_fail_message(invocation, error, "%s: must be a string", name);
        return false;
    }
    *ret_text = text;
    return true;
}

bool invocation_has(const struct invocation *invocation, const char *name)
{
    const char *text = request_arg(invocation->request, name);

    return text && text[0] != '\0';
}

bool invocation_label_is_valid(const char *text, size_t length)
{
    return !unicode_is_blank(text, length) &&
           text_code_points(text, length) <= LABEL_MAX_CODE_POINTS;
}

void params_name(struct params *params, const char *name)
{
    CLEANUP_FREE char *folded = unicode_fold(name, strlen(name));

    params_text(params, name);
    params_text(params, folded);
}

bool take_optional_text(struct invocation *invocation, const char *name, const char **value)
{
    bool present;

    return text_present(invocation, name, -ERROR_INVALID_ARGUMENTS, value, &present);
}

bool take_optional_word(struct invocation *invocation, const char *name, const char **value)
{
    return !invocation_has(invocation, name) || take_optional_text(invocation, name, value);
}

static bool take_required(struct invocation *invocation, const char *name, int error,
                          const char **ret_text)
{
    bool present;

    if (!text_present(invocation, name, error, ret_text, &present))
        return false;
    if (present && (*ret_text)[0] != '\0')
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS, "missing required field: %s",
                            name);
    return false;
}

bool take_text(struct invocation *invocation, const char *name, const char **ret_text)
{
    return take_required(invocation, name, -ERROR_INVALID_ARGUMENTS, ret_text);
}

bool take_id(struct invocation *invocation, const char *name, const char *prefixes, int error,
             const char **ret_id)
{
    if (!take_required(invocation, name, error, ret_id))
        return false;
    if (id_is_valid(*ret_id, prefixes))
        return true;
    invocation_fail_message(invocation, error,
                            "%s: must be an id of A-Z and 0-9 that begins with %s", name, prefixes);
    return false;
}

bool take_channel(struct invocation *invocation, const char **ret_channel_id)
{
    if (!take_id(invocation, "channel", "CGD", -ERROR_CHANNEL_NOT_FOUND, ret_channel_id))
        return false;
    invocation->channel_id = *ret_channel_id;
    return true;
}

bool take_user(struct invocation *invocation, const char *name, const char **ret_user_id)
{
    return take_id(invocation, name, "UW", -ERROR_USER_NOT_FOUND, ret_user_id);
}

bool take_label(struct invocation *invocation, const char *name, const char **ret_text)
{
    if (!take_text(invocation, name, ret_text))
        return false;
    if (invocation_label_is_valid(*ret_text, strlen(*ret_text)))
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                            "%s: must have 1 to %d characters", name, LABEL_MAX_CODE_POINTS);
    return false;
}

bool take_optional_label(struct invocation *invocation, const char *name, const char **value)
{
    return !invocation_has(invocation, name) || take_label(invocation, name, value);
}

bool take_user_name(struct invocation *invocation, const char **ret_name)
{
    if (!take_text(invocation, "name", ret_name))
        return false;
    if (names_can_be_user(*ret_name, strlen(*ret_name)))
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS, "name: must be " NAMES_OF_USERS);
    return false;
}

static bool ts_take(struct invocation *invocation, const char *name, int error, const char *text,
                    int64_t *ret_ts)
{
    if (ts_parse(text, strlen(text), ret_ts) >= 0)
        return true;
    invocation_fail_message(invocation, error, "%s: must be a ts such as 1717200000.123456", name);
    return false;
}

bool take_ts(struct invocation *invocation, const char *name, int error, int64_t *ret_ts)
{
    const char *text;

    return take_required(invocation, name, error, &text) &&
           ts_take(invocation, name, error, text, ret_ts);
}

bool take_optional_ts(struct invocation *invocation, const char *name, int error, int64_t *value)
{
    const char *text = NULL;
    bool present;

    if (!text_present(invocation, name, error, &text, &present))
        return false;
    if (!present || text[0] == '\0')
        return true;
    if (strcmp(text, "0") == 0) { // some clients send 0 for "none"
        *value = 0;
        return true;
    }
    return ts_take(invocation, name, error, text, value);
}

bool take_optional_moment(struct invocation *invocation, const char *name, int error,
                          int64_t *value)
{
    const char *text = NULL;
    bool present;

    if (!text_present(invocation, name, error, &text, &present))
        return false;
    if (!present || text[0] == '\0' || ts_parse_moment(text, strlen(text), value) >= 0)
        return true;
    invocation_fail_message(invocation, error, "%s: must be a Unix time such as 1717200000.123456",
                            name);
    return false;
}

// Case-insensitive: forms built from Python dicts contain True.
int invocation_flag_parse(const char *text, bool *ret_flag)
{
    bool on = strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0;

    if (!on && strcasecmp(text, "false") != 0 && strcmp(text, "0") != 0)
        return -ERROR_INVALID_ARGUMENTS;
    *ret_flag = on;
    return 0;
}

bool take_optional_bool(struct invocation *invocation, const char *name, bool *value)
{
    const char *text = NULL;
    bool present;

    if (!text_present(invocation, name, -ERROR_INVALID_ARGUMENTS, &text, &present))
        return false;
    if (!present || text[0] == '\0')
        return true;
    if (invocation_flag_parse(text, value) >= 0)
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS, "%s: must be true or false",
                            name);
    return false;
}

// Length without a trailing ".0": in JSON, 100.0 is an integer, and some programs write it that
// way.
static size_t whole_length(const char *text)
{
    const char *dot = strchr(text, '.');
    bool is_whole = dot && dot[1] == '0' && dot[1 + strspn(dot + 1, "0")] == '\0';

    return is_whole ? (size_t)(dot - text) : strlen(text);
}

bool take_optional_int(struct invocation *invocation, const char *name, int error, int64_t min,
                       int64_t max, int64_t *value)
{
    const char *text = NULL;
    bool present;

    if (!text_present(invocation, name, error, &text, &present))
        return false;
    if (!present || text[0] == '\0' ||
        integer_parse(text, whole_length(text), min, max, value) >= 0)
        return true;
    invocation_fail_message(invocation, error,
                            "%s: must be a whole number from %" PRId64 " to %" PRId64, name, min,
                            max);
    return false;
}

// A list may always be shorter than requested, and programs request whatever they can count to.
bool take_limit(struct invocation *invocation, int64_t max, int64_t *limit)
{
    const char *text = NULL;
    int64_t asked = 0;
    bool present;

    if (!text_present(invocation, "limit", -ERROR_INVALID_LIMIT, &text, &present))
        return false;
    if (!present || text[0] == '\0')
        return true;
    size_t length = whole_length(text);
    bool is_whole = length > 0 && strspn(text, "0123456789") >= length;
    if (!is_whole || (text[0] == '0' && length > 1)) {
        invocation_fail_message(invocation, -ERROR_INVALID_LIMIT,
                                "limit: must be a whole number; the most is %" PRId64, max);
        return false;
    }
    if (integer_parse(text, length, 0, max, &asked) < 0)
        *limit = max;
    else if (asked > 0)
        *limit = asked;
    return true;
}

// Adds the members of a JSON array of strings. -ERROR_INVALID_ARGUMENTS: not an array.
static int array_add(const struct request *request, const char *name, const char *prefixes,
                     struct params *params)
{
    CLEANUP_JSON json_t *array = NULL;
    size_t index;
    json_t *item;

    if (request_arg_json(request, name, 1, &array) < 0)
        return -ERROR_INVALID_ARGUMENTS;
    json_array_foreach(array, index, item)
    {
        if (!json_is_string(item) || !id_is_valid(json_string_value(item), prefixes))
            return -ERROR_INVALID_ARGUMENTS;
        params_element_text_n(params, json_string_value(item), json_string_length(item));
    }
    return (int)json_array_size(array);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// The next member of "a, b", without surrounding blanks; advances *text past it and its comma.
static const char *member_next(const char **text, size_t *ret_length)
{
    const char *member = *text;
    size_t length = strcspn(member, ",");

    *text += length + (member[length] == ',');
    for (; length > 0 && is_blank(*member); length--)
        member++;
    while (length > 0 && is_blank(member[length - 1]))
        length--;
    *ret_length = length;
    return member;
}

static int list_add(const char *text, const char *prefixes, struct params *params)
{
    int count = 0;

    while (*text != '\0') {
        size_t length;
        const char *member = member_next(&text, &length);
        char id[ID_SIZE];
        snprintf(id, sizeof id, "%.*s", (int)(length < sizeof id ? length : sizeof id), member);
        if (length >= sizeof id || !id_is_valid(id, prefixes))
            return -ERROR_INVALID_ARGUMENTS;
        params_element_text_n(params, member, length);
        count++;
    }
    return count;
}

bool take_ids(struct invocation *invocation, const char *name, const char *prefixes, int error,
              int max, struct params *params)
{
    const char *text = request_arg(invocation->request, name);

    if (!text || text[0] == '\0') {
        invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS, "missing required field: %s",
                                name);
        return false;
    }
    int count = text[0] == '[' ? array_add(invocation->request, name, prefixes, params)
                               : list_add(text, prefixes, params);
    if (count < 0) {
        invocation_fail_message(invocation, error, "%s: must be a list of ids that begin with %s",
                                name, prefixes);
        return false;
    }
    if (count == 0 || count > max) {
        invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                                "%s: must be a list of 1 to %d ids", name, max);
        return false;
    }
    return true;
}

// Joins a JSON array of strings as "a,b". False: not an array, or too long.
static bool array_join(const struct request *request, const char *name, char *ret_text, size_t size)
{
    CLEANUP_JSON json_t *array = NULL;
    size_t used = 0;
    size_t index;
    json_t *item;

    if (request_arg_json(request, name, 1, &array) < 0)
        return false;
    ret_text[0] = '\0';
    json_array_foreach(array, index, item)
    {
        if (!json_is_string(item) || used + json_string_length(item) + 2 > size)
            return false;
        used += (size_t)snprintf(ret_text + used, size - used, "%s%s", index == 0 ? "" : ",",
                                 json_string_value(item));
    }
    return true;
}

// Copies "a, b" as "a,b". False: too long.
static bool list_copy(const char *text, char *ret_text, size_t size)
{
    if (strlen(text) >= size)
        return false;
    while (*text != '\0') {
        size_t length;
        const char *member = member_next(&text, &length);
        memcpy(ret_text, member, length);
        ret_text += length;
        if (text[-1] == ',')
            *ret_text++ = ',';
    }
    *ret_text = '\0';
    return true;
}

bool take_list(struct invocation *invocation, const char *name, char *ret_text, size_t size)
{
    const char *text = request_arg(invocation->request, name);

    if (!text)
        text = "";
    if (text[0] == '[' ? array_join(invocation->request, name, ret_text, size)
                       : list_copy(text, ret_text, size))
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                            "%s: must be a list of strings, at most %zu characters", name,
                            size - 1);
    return false;
}

bool take_array(struct invocation *invocation, const char *name, int max, json_t **ret_array)
{
    CLEANUP_JSON json_t *array = NULL;

    if (!invocation_has(invocation, name)) {
        invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS, "missing required field: %s",
                                name);
        return false;
    }
    int r = request_arg_json(invocation->request, name, JSON_DEPTH_MAX, &array);
    size_t count = json_array_size(array); // 0: not an array
    if (r < 0 || count == 0 || count > (size_t)max) {
        invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                                "%s: must be a JSON array of 1 to %d", name, max);
        return false;
    }
    *ret_array = TAKE(array);
    return true;
}

bool take_tss(struct invocation *invocation, const char *name, int64_t *ret_tss, int max,
              int *ret_count)
{
    char list[4096];
    int count = 0;

    if (!take_list(invocation, name, list, sizeof list))
        return false;
    for (const char *text = list; *text != '\0' && count <= max; count++) {
        size_t length = strcspn(text, ",");
        int64_t ts;
        if (ts_parse(text, length, &ts) < 0) {
            invocation_fail_message(invocation, -ERROR_INVALID_TIMESTAMP,
                                    "%s: must be a list of the form 1717200000.123456", name);
            return false;
        }
        if (count < max)
            ret_tss[count] = ts;
        text += length + (text[length] == ',');
    }
    if (count == 0 || count > max) {
        invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                                "%s: must be a list of 1 to %d", name, max);
        return false;
    }
    *ret_count = count;
    return true;
}

// The type of channel named by `length` characters; CHANNEL_TYPE_MAX: unknown.
static size_t type_find(const char *text, size_t length)
{
    static const char *const known[CHANNEL_TYPE_MAX] = {"public_channel", "private_channel", "mpim",
                                                        "im"};
    size_t i = 0;

    while (i < CHANNEL_TYPE_MAX &&
           !(strlen(known[i]) == length && strncmp(known[i], text, length) == 0))
        i++;
    return i;
}

bool take_optional_types(struct invocation *invocation, unsigned *value)
{
    char types[128];
    unsigned asked = 0;

    if (!take_list(invocation, "types", types, sizeof types))
        return false;
    for (const char *text = types; *text != '\0';) {
        size_t length = strcspn(text, ",");
        asked |= 1U << type_find(text, length);
        text += length + (text[length] == ',');
    }
    if ((asked & ~(unsigned)TYPES_ALL) != 0) {
        invocation_fail_message(
            invocation, -ERROR_INVALID_TYPES,
            "types: must be a list of public_channel, private_channel, mpim and im");
        return false;
    }
    unsigned permitted = (asked != 0 ? asked : *value) & invocation->types;
    if (permitted == 0 || (asked & ~invocation->types) != 0) {
        scope_refuse(invocation);
        return false;
    }
    *value = permitted;
    return true;
}

bool take_cursor(struct invocation *invocation, const char *kind, const char **ret_text)
{
    const char *text = NULL;
    size_t length = strlen(kind);
    bool present;

    if (!text_present(invocation, "cursor", -ERROR_INVALID_CURSOR, &text, &present))
        return false;
    if (!present || text[0] == '\0')
        return true;
    if (strncmp(text, kind, length) != 0 || text[length] != '.' || text[length + 1] == '\0') {
        invocation_fail_message(invocation, -ERROR_INVALID_CURSOR,
                                "cursor: must be the next_cursor of an earlier reply");
        return false;
    }
    *ret_text = text + length + 1;
    return true;
}

void invocation_write_next_cursor(struct json_writer *w, const char *kind, const char *text)
{
    char cursor[256] = "";

    if (text && text[0] != '\0')
        snprintf(cursor, sizeof cursor, "%s.%s", kind, text);
    json_key(w, "response_metadata");
    json_open_object(w);
    json_key_string(w, "next_cursor", cursor);
    json_close_object(w);
}
