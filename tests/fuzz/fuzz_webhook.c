// SPDX-License-Identifier: Apache-2.0
// Bodies of incoming webhooks: the first line is the content type, the rest the body.
#include "call/body.h"
#include "fuzz.h"

static void unused(struct request *request)
{
    (void)request;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct request request;
    size_t rest;
    size_t length = fuzz_line(data, size, &rest);
    char *type = fuzz_text(data, length);
    struct body body = {.content_type = type};
    request_init(&request, 1 << 20, unused);
    request.is_webhook = true;
    request.token = "T1/B1/S1";
    request.arguments.values_max = 1000;
    buffer_init(&body.bytes, size + 2);
    buffer_append(&body.bytes, data + rest, size - rest);
    int r = body_find_token(&body, &request, NULL);
    assert(r == 0 && strcmp(request.token, "T1/B1/S1") == 0);
    r = body_read(&body, &request);
    // A form without a message is refused: what was read is the JSON's members, or nothing.
    if (r == 0 && size > rest && body.type != BODY_JSON)
        assert(arguments_find(&request.arguments, "payload"));
    buffer_done(&body.bytes);
    request_done(&request);
    free(type);
    return 0;
}
