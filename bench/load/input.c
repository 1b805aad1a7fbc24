// SPDX-License-Identifier: Apache-2.0
#include "input.h"

#include "../common/tool.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static json_t *member_of(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);

    if (!value)
        tool_die("the set-up file has no %s", key);
    return value;
}

static char *text_of(json_t *object, const char *key)
{
    const char *text = json_string_value(member_of(object, key));

    if (!text)
        tool_die("the set-up file's %s is no text", key);
    return strdup(text);
}

static void users_read(struct input *input, json_t *users)
{
    input->user_count = json_array_size(users);
    input->users = tool_alloc(input->user_count, sizeof(*input->users));
    for (size_t i = 0; i < input->user_count; i++) {
        json_t *user = json_array_get(users, i);

        input->users[i] = (struct input_user){text_of(user, "id"), text_of(user, "token")};
    }
}

static void channel_read(const struct input *input, json_t *from, struct input_channel *ret_channel)
{
    json_t *members = member_of(from, "members");

    ret_channel->id = text_of(from, "id");
    ret_channel->member_count = json_array_size(members);
    ret_channel->members = tool_alloc(ret_channel->member_count, sizeof(size_t));
    for (size_t i = 0; i < ret_channel->member_count; i++) {
        ret_channel->members[i] = (size_t)json_integer_value(json_array_get(members, i));
        if (ret_channel->members[i] >= input->user_count)
            tool_die("a member of %s is no user", ret_channel->id);
    }
}

static void channels_read(struct input *input, json_t *channels)
{
    input->channel_count = json_array_size(channels);
    input->channels = tool_alloc(input->channel_count, sizeof(*input->channels));
    for (size_t i = 0; i < input->channel_count; i++)
        channel_read(input, json_array_get(channels, i), &input->channels[i]);
}

void input_read(struct input *ret_input, const char *path, const char *group)
{
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    const char *host;

    if (!root)
        tool_die("%s: %s", path, error.text);
    *ret_input = (struct input){.url = text_of(root, "url")};
    host = strstr(ret_input->url, "://");
    if (!host)
        tool_die("%s is no address", ret_input->url);
    ret_input->host = strdup(host + 3);
    users_read(ret_input, member_of(root, "users"));
    if (group)
        channels_read(ret_input, member_of(member_of(root, "groups"), group));
    json_decref(root);
}

void input_done(struct input *input)
{
    for (size_t i = 0; i < input->user_count; i++) {
        free(input->users[i].id);
        free(input->users[i].token);
    }
    for (size_t i = 0; i < input->channel_count; i++) {
        free(input->channels[i].id);
        free(input->channels[i].members);
    }
    free(input->users);
    free(input->channels);
    free(input->url);
    free(input->host);
    *input = (struct input){0};
}
