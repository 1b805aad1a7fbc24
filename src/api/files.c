// SPDX-License-Identifier: Apache-2.0
// files.*: announces uploads, shares them, and tells of files. Their bytes: files_transfer.c.
#include "files.h"

#include "methods.h"

#include "base/check.h"
#include "base/digest.h"
#include "base/json.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FILES_OF_MESSAGE_MAX = 10,
    ALT_TXT_MAX = 1000,
    SIGNED_S = 600,
    URL_SIZE = 1024,
    LIST_FIRST = 100,
    LIST_MAX = 1000,
    PAGE_MAX = 1000000,
    IDS_SIZE = FILES_OF_MESSAGE_MAX * ID_SIZE
};
#define SECONDS_MAX 9999999999LL

static const struct statement ANNOUNCE = {
    "files_announce", "SELECT error FROM files_announce($1, $2, $3, $4, $5, $6, $7, $8, $9)"};
static const struct statement COMPLETE = {
    "files_complete", "SELECT error, reply FROM files_complete($1, $2, $3, $4, $5)"};
static const struct statement INFO = {"files_info",
                                      "SELECT error, reply FROM files_info($1, $2, $3, $4)"};
static const struct statement LIST = {
    "files_list", "SELECT error, reply FROM files_list($1, $2, $3, $4, $5, $6, $7, $8, $9)"};
static const struct statement DELETE = {"files_delete",
                                        "SELECT error, reply FROM files_delete($1, $2, $3, $4)"};
static const struct statement SIGN = {"files_sign",
                                      "SELECT error, reply FROM files_sign($1, $2, $3, $4, $5)"};

// A URL being made, whose secret only the caller gets to know.
struct secret_url {
    uint32_t tag;
    char id[ID_SIZE];
    char secret[ID_SECRET_SIZE];
};

// Files being completed and shared.
struct completion {
    uint32_t tag;
    char ids[IDS_SIZE];
    char key[IDS_SIZE + ID_SIZE + 8];
};

bool files_are_on(struct invocation *invocation)
{
    if (invocation->api->options.storage)
        return true;
    invocation_fail(invocation, -ERROR_FILES_DISABLED);
    return false;
}

static struct secret_url *secret_url_new(struct invocation *invocation, char *ret_digest)
{
    struct secret_url *made = TAGGED_NEW(secret_url);

    if (!made) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return NULL;
    }
    invocation->state = made;
    request_set_secret(invocation->request);
    id_make_secret(made->secret);
    digest_sha256_hex(made->secret, strlen(made->secret), ret_digest);
    return made;
}

static void params_base(const struct invocation *invocation, struct params *params)
{
    char base[URL_SIZE];

    invocation_base_url(invocation, base, sizeof base);
    params_text(params, base);
}

static void url_write(struct invocation *invocation, struct json_writer *w, const char *key,
                      const char *path, const char *secret)
{
    char url[URL_SIZE];

    invocation_base_url(invocation, url, sizeof url - ID_SECRET_SIZE - 32);
    size_t length = strlen(url);
    snprintf(url + length, sizeof url - length, "%s%s", path, secret);
    json_key_string(w, key, url);
}

static void announced(struct invocation *invocation, const struct result *result)
{
    const struct secret_url *made = CAST(secret_url, invocation->state);

    if (!invocation_succeeded(invocation, result))
        return;
    struct json_writer *w = invocation_open(invocation);
    url_write(invocation, w, "upload_url", "upload/v1/", made->secret);
    json_key_string(w, "file_id", made->id);
    invocation_close(invocation);
}

// A text of one line, at most `max` characters.
static bool take_line(struct invocation *invocation, const char *name, size_t max,
                      const char **value)
{
    if (!take_optional_word(invocation, name, value))
        return false;
    if (!*value || text_code_points(*value, strlen(*value)) <= max)
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                            "%s: must have at most %zu characters", name, max);
    return false;
}

static bool take_length(struct invocation *invocation, int64_t *ret_length)
{
    const char *text;
    int64_t max = invocation->api->options.settings.file_max_bytes;

    if (!take_text(invocation, "length", &text) ||
        !take_optional_int(invocation, "length", -ERROR_INVALID_ARGUMENTS, 1, INT64_MAX,
                           ret_length))
        return false;
    if (*ret_length <= max)
        return true;
    invocation_fail(invocation, -ERROR_FILE_TOO_LARGE);
    return false;
}

void files_get_upload_url_external(struct invocation *invocation)
{
    struct params params = {0};
    char digest[DIGEST_HEX_SIZE];
    const char *required;
    const char *name = NULL;
    const char *alt_txt = NULL;
    int64_t length = 0;

    if (!files_are_on(invocation) || !take_text(invocation, "filename", &required) ||
        !take_line(invocation, "filename", FILE_NAME_MAX, &name) ||
        !take_line(invocation, "alt_txt", ALT_TXT_MAX, &alt_txt) ||
        !take_length(invocation, &length))
        return;
    struct secret_url *made = secret_url_new(invocation, digest);
    if (!made)
        return;
    id_make('F', made->id);
    invocation_caller_params(invocation, &params);
    params_text(&params, made->id);
    params_text(&params, digest);
    params_text(&params, name);
    params_text(&params, name); // its title, until it is completed
    params_text(&params, alt_txt);
    params_int(&params, length);
    params_int(&params, invocation->api->options.settings.user_files_bytes);
    invocation_query(invocation, STORE_WRITE, &ANNOUNCE, &params, announced);
}

static void files_complete_reply(struct invocation *invocation, const char *objects)
{
    struct json_writer *w = invocation_open(invocation);
    json_key(w, "files");
    json_raw(w, objects, strlen(objects));
    invocation_close(invocation);
}

// Shares the completed files, if a channel was named.
static void completed(struct invocation *invocation, const struct result *result)
{
    struct completion *completion = CAST(completion, invocation->state);
    const char *channel = request_arg(invocation->request, "channel");

    if (!invocation_succeeded(invocation, result))
        return;
    if (!channel || channel[0] == '\0') {
        files_complete_reply(invocation, result_text(result, 0, 1));
        return;
    }
    snprintf(completion->key, sizeof completion->key, "f:%s:%.20s", completion->ids, channel);
    char *objects = request_copy(invocation->request, result_text(result, 0, 1));
    if (!objects) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return;
    }
    const struct shared_files shared = {
        .objects = objects, .ids = completion->ids, .key = completion->key};
    shared_files_post(invocation, &shared);
}

static bool file_is_good(const json_t *item, const struct completion *completion)
{
    const char *id = json_string_value(json_object_get(item, "id"));
    const json_t *title = json_object_get(item, "title");

    return id && id_is_valid(id, "F") && !strstr(completion->ids, id) &&
           (!title || json_is_null(title) ||
            (json_is_string(title) &&
             text_code_points(json_string_value(title), json_string_length(title)) <=
                 FILE_NAME_MAX));
}

// Reads `files` into ids and titles.
static bool take_files(struct invocation *invocation, struct completion *completion,
                       struct params *params)
{
    CLEANUP_JSON json_t *files = NULL;
    size_t index;
    json_t *item;

    if (!take_array(invocation, "files", LIST_MAX, &files))
        return false;
    if (json_array_size(files) > FILES_OF_MESSAGE_MAX) {
        invocation_fail(invocation, -ERROR_TOO_MANY_FILES);
        return false;
    }
    params_open_text_array(params);
    json_array_foreach(files, index, item)
    {
        if (!file_is_good(item, completion)) {
            invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                                    "files: must be a list of objects with different ids, and a "
                                    "title of at most %d characters",
                                    FILE_NAME_MAX);
            return false;
        }
        const char *id = json_string_value(json_object_get(item, "id"));
        size_t length = strlen(completion->ids);
        snprintf(completion->ids + length, sizeof completion->ids - length, "%s%s",
                 length > 0 ? "," : "", id);
        params_element_text(params, id);
    }
    params_close_array(params);
    params_open_text_array(params);
    json_array_foreach(files, index, item)
        params_element_text(params, json_string_value(json_object_get(item, "title")));
    params_close_array(params);
    return true;
}

// Slack's names of the channel: channel_id, or channels with one.
static bool take_share(struct invocation *invocation)
{
    struct request *request = invocation->request;
    const char *channels = request_arg(request, "channels");
    int r = 0;

    if (invocation_has(invocation, "channel_id"))
        r = request_arg_copy(request, "channel", "channel_id");
    else if (channels && strchr(channels, ',')) {
        invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                                "channels: must name one channel");
        return false;
    } else if (invocation_has(invocation, "channels"))
        r = request_arg_copy(request, "channel", "channels");
    else
        r = request_arg_set(request, "channel", "");
    if (r >= 0 && invocation_has(invocation, "initial_comment"))
        r = request_arg_copy(request, "text", "initial_comment");
    else if (r >= 0)
        r = request_arg_set(request, "text", "");
    if (r < 0)
        invocation_fail(invocation, r);
    return r >= 0;
}

void files_complete_upload_external(struct invocation *invocation)
{
    struct params params = {0};

    if (!files_are_on(invocation) || !take_share(invocation))
        return;
    struct completion *completion = TAGGED_NEW(completion);
    if (!completion) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return;
    }
    invocation->state = completion;
    invocation_caller_params(invocation, &params);
    if (!take_files(invocation, completion, &params)) {
        params_done(&params);
        return;
    }
    params_base(invocation, &params);
    invocation_query(invocation, STORE_WRITE, &COMPLETE, &params, completed);
}

static bool take_file(struct invocation *invocation, const char **ret_file_id)
{
    return files_are_on(invocation) &&
           take_id(invocation, "file", "F", -ERROR_FILE_NOT_FOUND, ret_file_id);
}

void files_info(struct invocation *invocation)
{
    struct params params = {0};
    const char *file_id;

    if (!take_file(invocation, &file_id))
        return;
    invocation_caller_params(invocation, &params);
    params_text(&params, file_id);
    params_base(invocation, &params);
    invocation_read(invocation, STORE_READ, &INFO, &params);
}

void files_list(struct invocation *invocation)
{
    struct params params = {0};
    const char *channel_id = NULL;
    const char *user_id = NULL;
    int64_t from = 0, to = SECONDS_MAX, count = LIST_FIRST, page = 1;

    if (!files_are_on(invocation) ||
        (invocation_has(invocation, "channel") && !take_channel(invocation, &channel_id)) ||
        (invocation_has(invocation, "user") && !take_user(invocation, "user", &user_id)) ||
        !take_optional_int(invocation, "ts_from", -ERROR_INVALID_ARGUMENTS, 0, SECONDS_MAX,
                           &from) ||
        !take_optional_int(invocation, "ts_to", -ERROR_INVALID_ARGUMENTS, 0, SECONDS_MAX, &to) ||
        !take_optional_int(invocation, "count", -ERROR_INVALID_LIMIT, 1, LIST_MAX, &count) ||
        !take_optional_int(invocation, "page", -ERROR_INVALID_ARGUMENTS, 1, PAGE_MAX, &page))
        return;
    invocation_caller_params(invocation, &params);
    params_text(&params, channel_id);
    params_text(&params, user_id);
    params_int(&params, from);
    params_int(&params, to);
    params_int(&params, count);
    params_int(&params, page);
    params_base(invocation, &params);
    invocation_read(invocation, STORE_LIST, &LIST, &params);
}

void files_delete(struct invocation *invocation)
{
    struct params params = {0};
    const char *file_id;

    if (!take_file(invocation, &file_id))
        return;
    invocation_caller_params(invocation, &params);
    params_bool(&params, invocation->actor->is_admin);
    params_text(&params, file_id);
    invocation_change(invocation, &DELETE, &params, false);
}

static void file_signed(struct invocation *invocation, const struct result *result)
{
    const struct secret_url *made = CAST(secret_url, invocation->state);

    if (!invocation_succeeded(invocation, result))
        return;
    struct json_writer *w = invocation_open(invocation);
    url_write(invocation, w, "url", "files-signed/", made->secret);
    buffer_append_byte(w->out, ',');
    buffer_append(w->out, result_text(result, 0, 1) + 1, result_length(result, 0, 1) - 2);
    invocation_close(invocation);
}

void files_sign(struct invocation *invocation)
{
    struct params params = {0};
    char digest[DIGEST_HEX_SIZE];
    const char *file_id;

    if (!take_file(invocation, &file_id))
        return;
    if (!secret_url_new(invocation, digest))
        return;
    invocation_caller_params(invocation, &params);
    params_text(&params, file_id);
    params_text(&params, digest);
    params_int(&params, SIGNED_S);
    invocation_query(invocation, STORE_WRITE, &SIGN, &params, file_signed);
}
