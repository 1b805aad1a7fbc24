// SPDX-License-Identifier: Apache-2.0
// The bytes of files: uploads to the URLs of files.getUploadURLExternal, and downloads.
#include "files.h"

#include "methods.h"

#include "base/check.h"
#include "base/digest.h"
#include "call/streaming.h"
#include "files/file_type.h"
#include "files/storage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DISPOSITION_SIZE = 3 * 4 * FILE_NAME_MAX + 2 * FILE_NAME_MAX + 64 };

static const struct statement BEGIN = {
    "files_upload_begin", "SELECT id, size, user_id FROM files_upload_begin($1, $2, $3)"};
static const struct statement NAME = {"file_name", "SELECT name FROM files WHERE id = $1"};
static const struct statement END = {"files_upload_end", "SELECT files_upload_end($1, $2, $3, $4)"};
static const struct statement OPEN = {
    "files_open", "SELECT object, name, mimetype, size FROM files_open($1, $2, $3, $4)"};
enum { COLUMN_FILE, COLUMN_SIZE, COLUMN_USER };
enum { COLUMN_OBJECT, COLUMN_NAME, COLUMN_MIME, COLUMN_BYTES };

// An upload in progress. While it is streamed, only the thread of transfers touches what follows
// `sink`.
struct file_upload {
    uint32_t tag;
    struct invocation *invocation;
    char file_id[ID_SIZE];
    char object[ID_SIZE];
    int64_t size; // as announced
    struct body_sink sink;
    struct storage_writer *writer;
    int64_t written;
    unsigned char first[FILE_TYPE_BYTES];
};

static void first_bytes_keep(struct file_upload *upload, const char *data, size_t size)
{
    if (upload->written >= FILE_TYPE_BYTES)
        return;
    size_t room = FILE_TYPE_BYTES - (size_t)upload->written;
    memcpy(upload->first + upload->written, data, size < room ? size : room);
}

static int sink_write(struct body_sink *sink, const char *data, size_t size)
{
    struct file_upload *upload = LIST_ITEM(sink, struct file_upload, sink);
    const struct storage *storage = upload->invocation->api->options.storage;

    if ((int64_t)size > upload->size - upload->written)
        return -ERROR_INVALID_ARGUMENTS; // more than announced
    if (!upload->writer) {
        int r = storage_write_begin(storage, upload->object, &upload->writer);
        if (r < 0)
            return r;
    }
    first_bytes_keep(upload, data, size);
    upload->written += (int64_t)size;
    return storage_write(upload->writer, data, size);
}

static int sink_end(struct body_sink *sink, int r)
{
    struct file_upload *upload = LIST_ITEM(sink, struct file_upload, sink);

    if (r >= 0 && upload->written != upload->size)
        r = -ERROR_INVALID_ARGUMENTS;
    if (r >= 0)
        return storage_write_end(upload->writer);
    storage_write_drop(upload->writer);
    return r;
}

static void upload_stored(struct invocation *invocation, const struct result *result)
{
    if (!result_bool(result, 0, 0)) {
        invocation_fail(invocation, -ERROR_FILE_NOT_FOUND);
        return;
    }
    (void)invocation_open(invocation);
    invocation_close(invocation);
}

// The bytes are durable: the file may have them.
static void upload_settle(struct invocation *invocation, const struct result *result)
{
    const struct file_upload *upload = CAST(file_upload, invocation->state);
    struct params params = {0};
    size_t seen = upload->size < FILE_TYPE_BYTES ? (size_t)upload->size : FILE_TYPE_BYTES;
    const struct file_type *type = file_type_of(upload->first, seen, result_text(result, 0, 0));

    params_text(&params, upload->file_id);
    params_text(&params, upload->object);
    params_text(&params, type->mime);
    params_text(&params, type->name);
    invocation_query(invocation, STORE_WRITE, &END, &params, upload_stored);
}

static void upload_streamed(void *arg, int r)
{
    struct file_upload *upload = CAST(file_upload, arg);
    struct invocation *invocation = upload->invocation;
    struct params params = {0};

    if (r == -ERROR_INVALID_ARGUMENTS) {
        invocation_fail_message(invocation, r, "length: the file must have as many bytes");
        return;
    }
    if (r < 0) {
        invocation_fail(invocation, r);
        return;
    }
    params_text(&params, upload->file_id);
    invocation_query(invocation, STORE_READ, &NAME, &params, upload_settle);
}

static void upload_found(struct invocation *invocation, const struct result *result)
{
    struct file_upload *upload = CAST(file_upload, invocation->state);

    if (result_rows(result) == 0) {
        invocation_fail(invocation, -ERROR_FILE_NOT_FOUND);
        return;
    }
    snprintf(upload->file_id, sizeof upload->file_id, "%s", result_text(result, 0, COLUMN_FILE));
    snprintf(request_actor(invocation->request)->user_id, ID_SIZE, "%s",
             result_text(result, 0, COLUMN_USER));
    upload->size = result_int(result, 0, COLUMN_SIZE);
    upload->sink = (struct body_sink){.write = sink_write, .end = sink_end};
    int r = request_stream(invocation->request, &upload->sink, upload_streamed, upload);
    if (r < 0)
        invocation_fail(invocation, r);
}

void files_receive(struct invocation *invocation)
{
    struct params params = {0};
    char digest[DIGEST_HEX_SIZE];
    const char *secret = request_token(invocation->request);

    if (!files_are_on(invocation))
        return;
    struct file_upload *upload = TAGGED_NEW(file_upload);
    if (!upload) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return;
    }
    invocation->state = upload;
    upload->invocation = invocation;
    id_make('O', upload->object);
    digest_sha256_hex(secret, strlen(secret), digest);
    params_text(&params, digest);
    params_text(&params, upload->object);
    params_int(&params, invocation->api->options.settings.upload_keep_s);
    invocation_query(invocation, STORE_WRITE, &BEGIN, &params, upload_found);
}

static bool is_plain(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '.' || byte == '-' || byte == '_';
}

// Writes the header: the name as any client understands it, and as it is (RFC 5987).
static void disposition_write(struct buffer *out, const char *kind, const char *name)
{
    static const char digits[] = "0123456789ABCDEF";

    buffer_append_text(out, kind);
    buffer_append_text(out, "; filename=\"");
    for (const char *at = name; *at != '\0'; at++)
        buffer_append_byte(out, is_plain(*at) ? *at : '_');
    buffer_append_text(out, "\"; filename*=UTF-8''");
    for (const char *at = name; *at != '\0'; at++) {
        if (is_plain(*at)) {
            buffer_append_byte(out, *at);
            continue;
        }
        buffer_append_byte(out, '%');
        buffer_append_byte(out, digits[(unsigned char)*at >> 4]);
        buffer_append_byte(out, digits[(unsigned char)*at & 15]);
    }
    buffer_append_byte(out, '\0');
}

static void file_found(struct invocation *invocation, const struct result *result)
{
    CLEANUP(buffer_done) struct buffer disposition = BUFFER(DISPOSITION_SIZE);
    struct request *request = invocation->request;
    const char *path = request_arg(request, "path");

    if (result_rows(result) == 0) {
        invocation_fail(invocation, -ERROR_FILE_NOT_FOUND);
        return;
    }
    const char *mime = result_text(result, 0, COLUMN_MIME);
    bool is_shown = file_type_is_shown(mime) && !(path && strstr(path, "/download/"));
    disposition_write(&disposition, is_shown ? "inline" : "attachment",
                      result_text(result, 0, COLUMN_NAME));
    if (buffer_failed(&disposition)) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return;
    }
    const struct reply_file file = {
        .open = storage_open,
        .storage = invocation->api->options.storage,
        .object = request_copy(request, result_text(result, 0, COLUMN_OBJECT)),
        .size = result_int(result, 0, COLUMN_BYTES),
        .type = request_copy(request, is_shown ? mime : "application/octet-stream"),
        .disposition = request_copy(request, disposition.data),
    };
    if (!file.object || !file.type || !file.disposition)
        invocation_fail(invocation, -ERROR_MEMORY);
    else
        invocation_file(invocation, &file);
}

// Opens a file for the caller, or by the digest of a secret. `file_id` "": by the secret alone.
static void file_open(struct invocation *invocation, const char *file_id, const char *digest)
{
    struct params params = {0};

    invocation_caller_params(invocation, &params);
    params_text(&params, file_id);
    params_text(&params, digest);
    invocation_query(invocation, STORE_READ, &OPEN, &params, file_found);
}

// The path is "T…-F…/name" or "T…-F…/download/name".
void files_send(struct invocation *invocation)
{
    const char *path = request_arg(invocation->request, "path");
    const char *dash = path ? strchr(path, '-') : NULL;
    char file_id[ID_SIZE];

    if (!files_are_on(invocation))
        return;
    size_t length = dash ? strcspn(dash + 1, "/") : 0;
    if (length == 0 || length >= sizeof file_id) {
        invocation_fail(invocation, -ERROR_FILE_NOT_FOUND);
        return;
    }
    snprintf(file_id, sizeof file_id, "%.*s", (int)length, dash + 1);
    if (id_is_valid(file_id, "F"))
        file_open(invocation, file_id, NULL);
    else
        invocation_fail(invocation, -ERROR_FILE_NOT_FOUND);
}

void files_send_signed(struct invocation *invocation)
{
    char digest[DIGEST_HEX_SIZE];
    const char *secret = request_token(invocation->request);

    if (!files_are_on(invocation))
        return;
    digest_sha256_hex(secret, strlen(secret), digest);
    file_open(invocation, "", digest);
}
