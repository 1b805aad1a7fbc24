// SPDX-License-Identifier: Apache-2.0
// admin.push.test as fast as so many clients are answered, of one device of each member in turn.
// The first user is the admin.
#include "commands.h"
#include "setting.h"

#include <stdio.h>
#include <stdlib.h>

#define REQUEST_ROOM 1024
#define BODY_ROOM 128

struct device_tests {
    char (*requests)[REQUEST_ROOM];
    size_t *lens;
    size_t count;
};

static const char *device_request(void *owner, size_t n, uint64_t due_ns, size_t *ret_len)
{
    struct device_tests *tests = owner;

    (void)due_ns;
    *ret_len = tests->lens[n % tests->count];
    return tests->requests[n % tests->count];
}

static void device_tests_init(struct device_tests *tests, const struct setting *setting)
{
    const struct input_user *users = setting->input.users;
    size_t count = setting->input.user_count;

    *tests = (struct device_tests){.requests = tool_alloc(count, REQUEST_ROOM),
                                   .lens = tool_alloc(count, sizeof(size_t)),
                                   .count = count};
    for (size_t i = 0; i < count; i++) {
        char json[BODY_ROOM];

        snprintf(json, sizeof(json), "{\"user_id\":\"%s\",\"device_id\":\"phone\"}", users[i].id);
        tests->lens[i] = setting_request(setting, tests->requests[i], REQUEST_ROOM,
                                         "admin.push.test", users[0].token, json);
    }
}

void command_push_tests(const struct tool_args *args)
{
    struct setting setting;
    struct device_tests tests;
    struct load load;

    setting_init(&setting, args, NULL, 64);
    device_tests_init(&tests, &setting);
    setting.plan.request = device_request;
    setting.plan.owner = &tests;
    load_run(&load, setting.loop, &setting.plan);
    fputs("{", stdout);
    setting_print_load(&load);
    puts("}");
    load_done(&load);
    free(tests.requests);
    free(tests.lens);
    setting_done(&setting);
}
