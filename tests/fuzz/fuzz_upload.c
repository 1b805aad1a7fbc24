// SPDX-License-Identifier: Apache-2.0
// Bodies of uploads, in pieces and at once: the same bytes, or the same error. The first byte is
// the size of a piece; the rest of the first line is the content type.
#include "base/buffer.h"
#include "base/error.h"
#include "base/list.h"
#include "call/upload_body.h"
#include "fuzz.h"

struct fuzz_sink {
    struct body_sink sink;
    struct buffer bytes;
};

static int sink_write(struct body_sink *sink, const char *data, size_t size)
{
    buffer_append(&LIST_ITEM(sink, struct fuzz_sink, sink)->bytes, data, size);
    return 0;
}

static int feed(const char *type, const uint8_t *data, size_t size, size_t piece,
                struct fuzz_sink *sink)
{
    struct upload_body body;
    buffer_init(&sink->bytes, size + 1);
    sink->sink.write = sink_write;
    int r = upload_body_init(&body, type, &sink->sink);
    for (size_t at = 0; r >= 0 && at < size; at += piece) {
        char *copy = fuzz_bytes(data + at, size - at < piece ? size - at : piece);
        r = upload_body_add(&body, copy, size - at < piece ? size - at : piece);
        free(copy);
    }
    if (r >= 0 && !upload_body_is_complete(&body))
        r = -ERROR_INVALID_FORM_DATA;
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_sink whole, pieces;
    size_t rest;
    size_t length = fuzz_line(data, size, &rest);
    if (length == 0)
        return 0;
    char *type = fuzz_text(data + 1, length - 1);
    int r = feed(type, data + rest, size - rest, SIZE_MAX, &whole);
    assert(feed(type, data + rest, size - rest, (size_t)data[0] + 1, &pieces) == r);
    assert(r < 0 || whole.bytes.length == pieces.bytes.length);
    assert(r < 0 || whole.bytes.length == 0 ||
           memcmp(whole.bytes.data, pieces.bytes.data, whole.bytes.length) == 0);
    buffer_done(&whole.bytes);
    buffer_done(&pieces.bytes);
    free(type);
    return 0;
}
