// SPDX-License-Identifier: Apache-2.0
// Marks that all commit: `depth` messages are posted to each channel first, then every member in
// turn marks the first of them, then the second, and so on.
#include "commands.h"
#include "setting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TS_ROOM 24

struct marks {
    struct setting setting;
    size_t depth;
    size_t members;      // of all channels together: so many marks go to one depth
    char (*ts)[TS_ROOM]; // of message d of channel c at [d * channels + c]
    char request[1024];
};

static const char *write_request(struct marks *marks, const char *method,
                                 const struct setting_turn *turn, const char *json, size_t *ret_len)
{
    *ret_len = setting_request(&marks->setting, marks->request, sizeof(marks->request), method,
                               turn->user->token, json);
    return marks->request;
}

static const char *post_request(void *owner, size_t n, uint64_t due_ns, size_t *ret_len)
{
    struct marks *marks = owner;
    struct setting_turn turn = setting_turn(&marks->setting, n);
    char json[128];

    (void)due_ns;
    snprintf(json, sizeof(json), "{\"channel\":\"%s\",\"text\":\"to be read\"}", turn.channel->id);
    return write_request(marks, "chat.postMessage", &turn, json, ret_len);
}

static void post_reply(void *owner, size_t n, const char *body, size_t len)
{
    struct marks *marks = owner;

    http_reply_check(body, len);
    http_reply_text(body, len, "ts", marks->ts[n], TS_ROOM);
}

static int compare_ts(const void *left, const void *right)
{
    return strcmp(left, right);
}

// Replies may come in another order than the posts went; all that matters is that each next ts is
// later.
static void sort_by_channel(struct marks *marks)
{
    size_t channels = marks->setting.input.channel_count;
    char(*column)[TS_ROOM] = tool_alloc(marks->depth, TS_ROOM);

    for (size_t c = 0; c < channels; c++) {
        for (size_t d = 0; d < marks->depth; d++)
            memcpy(column[d], marks->ts[d * channels + c], TS_ROOM);
        qsort(column, marks->depth, TS_ROOM, compare_ts);
        for (size_t d = 0; d < marks->depth; d++)
            memcpy(marks->ts[d * channels + c], column[d], TS_ROOM);
    }
    free(column);
}

static void post_all(struct marks *marks)
{
    struct load_plan plan = marks->setting.plan;
    struct load load;

    plan.clients = 64;
    plan.run_ns = 60 * TOOL_NS_PER_S;
    plan.total = marks->depth * marks->setting.input.channel_count;
    plan.request = post_request;
    plan.reply = post_reply;
    plan.owner = marks;
    marks->ts = tool_alloc(plan.total, TS_ROOM);
    load_run(&load, marks->setting.loop, &plan);
    load_done(&load);
    sort_by_channel(marks);
}

static const char *mark_ts(const struct marks *marks, size_t n)
{
    size_t channels = marks->setting.input.channel_count;

    if (n / marks->members >= marks->depth)
        tool_die("all %zu marks are used up: a higher --depth", n);
    return marks->ts[n / marks->members * channels + n % channels];
}

static const char *mark_request(void *owner, size_t n, uint64_t due_ns, size_t *ret_len)
{
    struct marks *marks = owner;
    struct setting_turn turn = setting_turn(&marks->setting, n);
    char json[128];

    (void)due_ns;
    snprintf(json, sizeof(json), "{\"channel\":\"%s\",\"ts\":\"%s\"}", turn.channel->id,
             mark_ts(marks, n));
    return write_request(marks, "channels.mark", &turn, json, ret_len);
}

static void mark_reply(void *owner, size_t n, const char *body, size_t len)
{
    char last_read[TS_ROOM];

    http_reply_check(body, len);
    http_reply_text(body, len, "last_read", last_read, sizeof(last_read));
    if (strcmp(last_read, mark_ts(owner, n)) != 0)
        tool_die("a mark at %s was answered with %s", mark_ts(owner, n), last_read);
}

// Members of all channels; the rotation needs as many in each.
static size_t count_members(const struct input *input)
{
    for (size_t i = 1; i < input->channel_count; i++)
        if (input->channels[i].member_count != input->channels[0].member_count)
            tool_die("channels of one size are needed");
    return input->channel_count * input->channels[0].member_count;
}

void command_marks(const struct tool_args *args)
{
    struct marks marks = {0};
    struct load load;

    setting_init(&marks.setting, args, "small", 64);
    marks.depth = tool_args_number(args, "depth", 200, 1, 100000);
    marks.members = count_members(&marks.setting.input);
    post_all(&marks);
    marks.setting.plan.request = mark_request;
    marks.setting.plan.reply = mark_reply;
    marks.setting.plan.owner = &marks;
    load_run(&load, marks.setting.loop, &marks.setting.plan);
    fputs("{", stdout);
    setting_print_load(&load);
    puts("}");
    load_done(&load);
    free(marks.ts);
    setting_done(&marks.setting);
}
