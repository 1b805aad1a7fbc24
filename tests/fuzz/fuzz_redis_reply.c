// SPDX-License-Identifier: Apache-2.0
// Answers of a Redis that says anything, through hiredis' reader into whatever reads them.
#include "../../src/cache/redis_reply.h"
#include "base/check.h"
#include "base/id.h"
#include "fuzz.h"
#include "unread/member_lists.h"
#include "unread/strategy.h"

static const struct unread_view view = {
    .channel_id = "C0000000001", .user_id = "U0000000001", .head = {.seq = 7, .ord = 6}};

static void value_walk(const struct cache_value *value)
{
    int64_t number;
    (void)cache_value_int(value);
    if (cache_value_number(value, &number))
        assert(number >= 0);
    assert(strlen(cache_value_text(value)) <= cache_value_length(value));
    assert(!cache_value_at(value, cache_value_count(value)));
    for (size_t i = 0; i < cache_value_count(value); i++)
        value_walk(cache_value_at(value, i));
}

static void members_check(const struct cache_value *value)
{
    struct member_list list = {.tag = TAG(member_list)};
    member_list_take(&list, 0, value);
    assert(list.r == 0 && list.shards >= 0);
    for (size_t i = 0; i < list.ids.count; i++)
        assert(id_is_valid(list.ids.ids[i], "UW"));
    member_list_done(&list);
}

static void reply_check(const redisReply *reply)
{
    static const struct cache_options options = {.library = "#!lua", .library_name = "name"};
    const struct cache_value *value = reply_value(reply);
    char run_id[RUN_ID_SIZE];
    value_walk(value);
    reply_run_id(value, run_id);
    assert(strnlen(run_id, sizeof run_id) < sizeof run_id);
    (void)reply_library_name(value);
    (void)reply_has_library(value, &options);
    (void)reply_is_unknown_function(reply);
    members_check(value);
    int64_t count = strategy_sequence_count(&view, 0, value);
    assert(count == STRATEGY_UNKNOWN || (count >= 0 && count <= view.head.ord));
}

// hiredis allocates an array when it is announced, however long.
static bool announces_much(const uint8_t *data, size_t size)
{
    size_t digits = 0;
    for (size_t i = 0; i < size; i++) {
        digits = data[i] >= '0' && data[i] <= '9' ? digits + 1 : 0;
        if (digits > 4 && memchr(data, '*', i))
            return true;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (announces_much(data, size))
        return 0;
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;
    assert(reader);
    (void)redisReaderFeed(reader, (const char *)data, size);
    while (redisReaderGetReply(reader, &reply) == REDIS_OK && reply) {
        reply_check(reply);
        freeReplyObject(reply);
        reply = NULL;
    }
    redisReaderFree(reader);
    return 0;
}
