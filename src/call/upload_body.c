// SPDX-License-Identifier: Apache-2.0
// The parser of an upload's body. Only a CR can begin a delimiter, and none is within one: so a
// mismatch ends at once, and what had matched is data.
#include "call/upload_body.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

// Finds the boundary, quoted or not. Returns its length; 0: there is none, or it is too long.
static size_t boundary_find(const char *content_type, const char **ret_boundary)
{
    const char *at = strcasestr(content_type, "boundary=");
    if (!at)
        return 0;
    at += strlen("boundary=");
    size_t length = *at == '"' ? strcspn(at + 1, "\"") : strcspn(at, "; \t");
    *ret_boundary = *at == '"' ? at + 1 : at;
    return length <= UPLOAD_BOUNDARY_MAX ? length : 0;
}

int upload_body_init(struct upload_body *body, const char *content_type, struct body_sink *sink)
{
    static const char multipart[] = "multipart/form-data";
    const char *boundary = NULL;
    *body = (struct upload_body){.sink = sink};
    if (!content_type || strncasecmp(content_type, multipart, sizeof multipart - 1) != 0)
        return 0;
    size_t length = boundary_find(content_type, &boundary);
    if (length == 0 || memchr(boundary, '\r', length))
        return -ERROR_INVALID_FORM_DATA;
    body->delimiter_length = (size_t)snprintf(body->delimiter, sizeof body->delimiter, "\r\n--%.*s",
                                              (int)length, boundary);
    body->state = UPLOAD_DATA;
    body->matched = 2; // the first delimiter has no line end before it
    return 0;
}

static int data_write(struct upload_body *body, const char *data, size_t size)
{
    return body->is_file && size > 0 ? body->sink->write(body->sink, data, size) : 0;
}

// Takes one byte that may belong to a delimiter.
static int delimiter_match(struct upload_body *body, char byte)
{
    if (byte == body->delimiter[body->matched]) {
        if (++body->matched < body->delimiter_length)
            return 0;
        body->state = UPLOAD_DELIMITER;
        body->matched = 0;
        body->is_file = false;
        return 0;
    }
    int r = data_write(body, body->delimiter, body->matched);
    body->matched = byte == '\r';
    return r < 0 || body->matched > 0 ? r : data_write(body, &byte, 1);
}

// Takes data up to where a delimiter may begin. Returns the number of bytes.
static int data_take(struct upload_body *body, const char *data, size_t size, size_t *ret_taken)
{
    *ret_taken = 1;
    if (body->matched > 0 || *data == '\r')
        return delimiter_match(body, *data);
    const char *end = memchr(data, '\r', size);
    *ret_taken = end ? (size_t)(end - data) : size;
    return data_write(body, data, *ret_taken);
}

// Two bytes follow a delimiter: a line end, or "--" after the last one.
static int delimiter_take(struct upload_body *body, char byte)
{
    if (body->matched++ == 0) {
        body->after = byte;
        return 0;
    }
    body->matched = 0;
    body->header_size = 0;
    if (body->after == '-' && byte == '-')
        body->state = UPLOAD_END;
    else if (body->after == '\r' && byte == '\n')
        body->state = UPLOAD_HEADERS;
    else
        return -ERROR_INVALID_FORM_DATA;
    return 0;
}

static bool headers_name_a_file(const char *headers)
{
    for (const char *line = headers; *line != '\0';
         line += strcspn(line, "\n"), line += *line == '\n')
        if (strncasecmp(line, "Content-Disposition:", 20) == 0) {
            const char *name = strcasestr(line, "filename");
            return name && name < line + strcspn(line, "\n");
        }
    return false;
}

// Collects the headers of a part, up to the empty line.
static int header_take(struct upload_body *body, char byte)
{
    if (body->header_size >= UPLOAD_HEADERS_MAX - 1)
        return -ERROR_INVALID_FORM_DATA;
    body->headers[body->header_size++] = byte;
    body->headers[body->header_size] = '\0';
    const char *end = body->headers + body->header_size;
    bool is_empty = body->header_size == 2 && memcmp(body->headers, "\r\n", 2) == 0;
    if (!is_empty && (body->header_size < 4 || memcmp(end - 4, "\r\n\r\n", 4) != 0))
        return 0;
    body->is_file = !body->has_file && !memchr(body->headers, '\0', body->header_size) &&
                    headers_name_a_file(body->headers);
    body->has_file = body->has_file || body->is_file;
    body->state = UPLOAD_DATA;
    return 0;
}

int upload_body_add(struct upload_body *body, const char *data, size_t size)
{
    int r = 0;
    if (body->state == UPLOAD_RAW)
        return size > 0 ? body->sink->write(body->sink, data, size) : 0;
    while (size > 0 && r >= 0 && body->state != UPLOAD_END) {
        size_t taken = 1;
        if (body->state == UPLOAD_DATA)
            r = data_take(body, data, size, &taken);
        else if (body->state == UPLOAD_DELIMITER)
            r = delimiter_take(body, *data);
        else
            r = header_take(body, *data);
        data += taken;
        size -= taken;
    }
    return r;
}

bool upload_body_is_complete(const struct upload_body *body)
{
    return body->state == UPLOAD_RAW || (body->state == UPLOAD_END && body->has_file);
}
