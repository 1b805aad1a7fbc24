// SPDX-License-Identifier: Apache-2.0
// The table of Slack's older method names (groups.*, im.* …) and the method that each one is an
// alias of.
#include "older.h"

#include <stdio.h>
#include <string.h>

static const struct older olders[] = {
    {"groups.create", "channels.create", "is_private", "true", "group"},
    {"groups.list", "channels.list", "types", "private_channel", "groups"},
    {"groups.info", "channels.info", NULL, NULL, "group"},
    {"groups.invite", "channels.invite", NULL, NULL, "group"},
    {"im.list", "channels.list", "types", "im", "ims"},
    {"im.open", "channels.open", NULL, NULL, NULL},
    {"mpim.list", "channels.list", "types", "mpim", "groups"},
    {"mpim.open", "channels.open", NULL, NULL, "group"},
};

// Families, with those of their methods whose arguments and replies are the same; NULL: all of
// them.
struct alias {
    const char *family;
    const char *verbs;
};
static const struct alias aliases[] = {
    {"conversations.", NULL},
    {"groups.", " mark history replies kick leave archive unarchive rename setTopic setPurpose "},
    {"im.", " mark history replies close "},
    {"mpim.", " mark history replies close "},
};

// What the older families call otherwise.
static const struct older_name {
    const char *verb;
    const char *older;
    const char *name;
} renamed[] = {
    {"history", "count", "limit"},
    {"replies", "thread_ts", "ts"},
    {"invite", "user", "users"},
    {"open", "user", "users"},
};

const struct older *older_find(const char *name)
{
    for (size_t i = 0; i < sizeof olders / sizeof olders[0]; i++)
        if (strcmp(olders[i].name, name) == 0)
            return &olders[i];
    return NULL;
}

static bool alias_has(const struct alias *alias, const char *verb)
{
    const char *found = alias->verbs ? strstr(alias->verbs, verb) : NULL;
    size_t length = strlen(verb);

    return !alias->verbs || (length > 0 && found && found[-1] == ' ' && found[length] == ' ');
}

const char *older_resolve(const char *name, char *ret_name, size_t size)
{
    const struct older *older = older_find(name);

    if (older)
        return older->method;
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        size_t length = strlen(aliases[i].family);
        if (strncmp(name, aliases[i].family, length) != 0 || !alias_has(&aliases[i], name + length))
            continue;
        snprintf(ret_name, size, "channels.%s", name + length);
        return ret_name;
    }
    return name;
}

static int argument_rename(struct request *request, const struct older_name *rename)
{
    if (request_arg(request, rename->name) || !request_arg(request, rename->older))
        return 0;
    return request_arg_copy(request, rename->name, rename->older);
}

int older_arguments(struct request *request, const struct older *older)
{
    const char *name = request_method(request);
    const char *dot = strchr(name, '.');
    int r = older && older->argument ? request_arg_set(request, older->argument, older->value) : 0;

    if (!dot || strncmp(name, "conversations.", 14) == 0)
        return r;
    for (size_t i = 0; r >= 0 && i < sizeof renamed / sizeof renamed[0]; i++)
        if (strcmp(renamed[i].verb, dot + 1) == 0)
            r = argument_rename(request, &renamed[i]);
    return r;
}
