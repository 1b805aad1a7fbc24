// SPDX-License-Identifier: Apache-2.0
// Requests that are written once and then sent in rotation: posts and channels.info.
#include "commands.h"
#include "setting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROTATION_MIN 2000
#define REQUEST_ROOM 1024
#define TEXT_MAX 400

// A channel that there is not.
static const char nowhere[] = "C00000000000";

struct rotation {
    char (*requests)[REQUEST_ROOM];
    size_t *lens;
    size_t count;
};

static const char *rotation_request(void *owner, size_t n, uint64_t due_ns, size_t *ret_len)
{
    struct rotation *rotation = owner;

    (void)due_ns;
    *ret_len = rotation->lens[n % rotation->count];
    return rotation->requests[n % rotation->count];
}

static void refused_reply(void *owner, size_t n, const char *body, size_t len)
{
    (void)owner;
    (void)n;
    if (!memmem(body, len, "\"channel_not_found\"", 19))
        tool_die("not refused as it should be: %.*s", (int)len, body);
}

static void rotation_init(struct rotation *rotation, const struct setting *setting,
                          const char *method, const char *text)
{
    size_t channels = setting->input.channel_count;
    size_t count = channels > ROTATION_MIN ? channels : ROTATION_MIN;

    *rotation = (struct rotation){.requests = tool_alloc(count, REQUEST_ROOM),
                                  .lens = tool_alloc(count, sizeof(size_t)),
                                  .count = count};
    for (size_t i = 0; i < rotation->count; i++) {
        bool refused = setting->plan.reply == refused_reply; // they are all one user's
        struct setting_turn turn = setting_turn(setting, refused ? 0 : i);
        char json[REQUEST_ROOM];

        if (text)
            snprintf(json, sizeof(json), "{\"channel\":\"%s\",\"text\":\"%s\"}",
                     refused ? nowhere : turn.channel->id, text);
        else
            snprintf(json, sizeof(json), "{\"channel\":\"%s\"}", turn.channel->id);
        rotation->lens[i] = setting_request(setting, rotation->requests[i], REQUEST_ROOM, method,
                                            turn.user->token, json);
    }
}

static void rotation_run(struct setting *setting, const char *method, const char *text)
{
    struct rotation rotation;
    struct load load;

    rotation_init(&rotation, setting, method, text);
    setting->plan.request = rotation_request;
    setting->plan.owner = &rotation;
    load_run(&load, setting->loop, &setting->plan);
    fputs("{", stdout);
    setting_print_load(&load);
    puts("}");
    load_done(&load);
    free(rotation.requests);
    free(rotation.lens);
}

void command_posts(const struct tool_args *args)
{
    struct setting setting;
    char text[TEXT_MAX + 1] = {0};

    setting_init(&setting, args, "small", 64);
    setting.plan.total = tool_args_number(args, "total", 0, 0, UINT32_MAX);
    setting.plan.rate = tool_args_number(args, "rate", 0, 0, 1000000);
    if (tool_args_number(args, "refused", 0, 0, 1) == 1)
        setting.plan.reply = refused_reply;
    memset(text, 'x', tool_args_number(args, "text-bytes", 256, 1, TEXT_MAX));
    rotation_run(&setting, "chat.postMessage", text);
    setting_done(&setting);
}

void command_info(const struct tool_args *args)
{
    struct setting setting;

    setting_init(&setting, args, "small", 64);
    setting.plan.rate = tool_args_number(args, "rate", 5000, 1, 1000000);
    rotation_run(&setting, "channels.info", NULL);
    setting_done(&setting);
}
