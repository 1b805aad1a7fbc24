// SPDX-License-Identifier: Apache-2.0
// What methods read their arguments with: the input is the body of a call, whose argument "a" is
// read as each type there is, and as what a message says.
#include "../../src/api/content.h"
#include "../../src/api/invocation.h"
#include "base/check.h"
#include "call/internal_request.h"
#include "fuzz.h"

enum { TSS_MAX = 4, IDS_MAX = 4, LIST_SIZE = 64 };

typedef bool taker_fn(struct invocation *invocation);

static bool take_a_text(struct invocation *invocation)
{
    const char *text = NULL;
    bool fine = take_text(invocation, "a", &text);
    assert(!fine || text[0] != '\0');
    return fine;
}

static bool take_a_channel(struct invocation *invocation)
{
    const char *id = NULL;
    bool fine = take_id(invocation, "a", "CGD", -ERROR_CHANNEL_NOT_FOUND, &id);
    assert(!fine || id_is_valid(id, "CGD"));
    return fine;
}

static bool take_a_ts(struct invocation *invocation)
{
    int64_t ts = -1;
    bool fine = take_ts(invocation, "a", -ERROR_INVALID_TIMESTAMP, &ts);
    assert(!fine || ts >= 0);
    return fine;
}

static bool take_a_moment(struct invocation *invocation)
{
    int64_t moment = 0, ts = 0;
    bool fine = take_optional_moment(invocation, "a", -ERROR_INVALID_TS_OLDEST, &moment) &&
                take_optional_ts(invocation, "a", -ERROR_INVALID_TS_OLDEST, &ts);
    assert(!fine || (moment >= 0 && ts >= 0));
    return fine;
}

static bool take_a_number(struct invocation *invocation)
{
    bool flag;
    int64_t number = 1;
    bool fine = take_optional_int(invocation, "a", -ERROR_INVALID_LIMIT, 1, 1000, &number);
    assert(number >= 1 && number <= 1000);
    return fine && take_optional_bool(invocation, "a", &flag);
}

static bool take_some_ids(struct invocation *invocation)
{
    struct params params = {0};
    params_open_text_array(&params);
    bool fine = take_ids(invocation, "a", "UW", -ERROR_USER_NOT_FOUND, IDS_MAX, &params);
    params_close_array(&params);
    params_done(&params);
    return fine;
}

static bool take_some_tss(struct invocation *invocation)
{
    int64_t tss[TSS_MAX];
    int count = 0;
    bool fine = take_tss(invocation, "a", tss, TSS_MAX, &count);
    assert(!fine || (count >= 1 && count <= TSS_MAX));
    for (int i = 0; i < count && fine; i++)
        assert(tss[i] >= 0);
    return fine;
}

static bool take_a_list(struct invocation *invocation)
{
    char list[LIST_SIZE];
    bool fine = take_list(invocation, "a", list, sizeof list);
    assert(!fine || strnlen(list, sizeof list) < sizeof list);
    return fine;
}

static bool take_types_and_cursor(struct invocation *invocation)
{
    unsigned types = TYPES_ALL;
    const char *cursor = "";
    bool fine = take_optional_types(invocation, &types) && take_cursor(invocation, "p1", &cursor);
    assert(types != 0 && (types & ~(unsigned)TYPES_ALL) == 0);
    return fine;
}

static bool take_a_message(struct invocation *invocation)
{
    struct content content = {0};
    bool fine = take_content(invocation, &content) && content_find_mentions(invocation, &content);
    if (fine && content.extra)
        assert(content.extra[0] == '{');
    content_done(&content);
    return fine;
}

static void on_reply(void *arg, const struct request_outcome *outcome)
{
    (void)arg;
    assert(outcome->error[0] != '\0');
    json_t *json = json_loadb(outcome->reply, outcome->length, 0, NULL);
    assert(json_is_object(json) && json_is_false(json_object_get(json, "ok")));
    json_decref(json);
}

static void taker_run(taker_fn *taker, const char *body, size_t length)
{
    static const struct method method = {.name = "chat.postMessage"};
    static struct api api = {.options = {.settings = {.text_max = 100, .mentions_max = 3}}};
    static const struct actor actor = {.user_id = "U0000000001"};
    struct request *request = NULL;
    if (request_new("chat.postMessage", NULL, on_reply, NULL, &request) < 0 ||
        request_add_json(request, body, length) < 0) {
        request_drop(request);
        return;
    }
    struct invocation *invocation = calloc(1, sizeof *invocation);
    assert(invocation);
    *invocation = (struct invocation){.tag = TAG(invocation),
                                      .api = &api,
                                      .request = request,
                                      .actor = &actor,
                                      .method = &method};
    if (taker(invocation))
        invocation_fail(invocation, -ERROR_BUSY);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static taker_fn *const takers[] = {
        take_a_text,   take_a_channel, take_a_ts,   take_a_moment,         take_a_number,
        take_some_ids, take_some_tss,  take_a_list, take_types_and_cursor, take_a_message};
    char *body = fuzz_text(data, size);
    for (size_t i = 0; i < sizeof takers / sizeof *takers; i++)
        taker_run(takers[i], body, size);
    free(body);
    return 0;
}
