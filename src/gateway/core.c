// SPDX-License-Identifier: Apache-2.0
// Counts requests in flight, so that a gateway lives until the last answer; subscribes to topics.
#include "core.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

enum { CHECK_MS = 100 };

void gateway_ask(struct gateway *gateway)
{
    gateway->asked++;
}

bool gateway_answer(struct gateway *gateway)
{
    ASSERT(gateway->asked > 0);
    gateway->asked--;
    if (!gateway->ended)
        return true;
    if (gateway->asked == 0)
        TAGGED_FREE(gateway);
    return false;
}

void gateway_subscribe(struct gateway *gateway, const char *topic, bool subscribe)
{
    if (gateway->ended)
        return;
    if (subscribe)
        cache_subscribe(gateway->cache, topic);
    else
        cache_unsubscribe(gateway->cache, topic);
}

void gateway_check_soon(struct gateway *gateway)
{
    if (gateway->check_runs)
        return;
    gateway->check_runs = true;
    loop_timer_set(gateway->check_timer, CHECK_MS);
}

bool gateway_topic_id(const char *topic, const char *kind, char *ret_id)
{
    size_t length = strlen(kind);
    if (strncmp(topic, kind, length) != 0 || strncmp(topic + length, ":{", 2) != 0)
        return false;
    size_t id_length = strcspn(topic + length + 2, "}");
    if (id_length >= EVENT_ID_SIZE)
        return false;
    memcpy(ret_id, topic + length + 2, id_length);
    ret_id[id_length] = '\0';
    return true;
}
