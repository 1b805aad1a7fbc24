// SPDX-License-Identifier: Apache-2.0
// The table of Slack's older method names (groups.*, im.* …) and the methods they are aliases of.
#include "aliases.h"

#include <stdio.h>
#include <string.h>

static const struct method_alias aliases[] = {
    {"groups.create", "channels.create", "is_private", "true", "group"},
    {"groups.list", "channels.list", "types", "private_channel", "groups"},
    {"groups.info", "channels.info", NULL, NULL, "group"},
    {"groups.invite", "channels.invite", NULL, NULL, "group"},
    {"im.list", "channels.list", "types", "im", "ims"},
    {"im.open", "channels.open", NULL, NULL, NULL},
    {"mpim.list", "channels.list", "types", "mpim", "groups"},
    {"mpim.open", "channels.open", NULL, NULL, "group"},
};

// Families, with those of their methods whose arguments and replies are identical; NULL: all.
struct alias_family {
    const char *family;
    const char *verbs;
};
static const struct alias_family families[] = {
    {"conversations.", NULL},
    {"groups.", " mark history replies kick leave archive unarchive rename setTopic setPurpose "},
    {"im.", " mark history replies close "},
    {"mpim.", " mark history replies close "},
};

// Arguments with other names in the older families.
static const struct argument_alias {
    const char *verb;
    const char *alias;
    const char *name;
} renamed[] = {
    {"history", "count", "limit"},
    {"replies", "thread_ts", "ts"},
    {"invite", "user", "users"},
    {"open", "user", "users"},
};

const struct method_alias *method_alias_find(const char *name)
{
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++)
        if (strcmp(aliases[i].name, name) == 0)
            return &aliases[i];
    return NULL;
}

static bool family_has(const struct alias_family *family, const char *verb)
{
    const char *found = family->verbs ? strstr(family->verbs, verb) : NULL;
    size_t length = strlen(verb);

    return !family->verbs || (length > 0 && found && found[-1] == ' ' && found[length] == ' ');
}

const char *method_alias_resolve(const char *name, char *ret_name, size_t size)
{
    const struct method_alias *alias = method_alias_find(name);

    if (alias)
        return alias->method;
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        size_t length = strlen(families[i].family);
        if (strncmp(name, families[i].family, length) != 0 ||
            !family_has(&families[i], name + length))
            continue;
        snprintf(ret_name, size, "channels.%s", name + length);
        return ret_name;
    }
    return name;
}

static int argument_rename(struct request *request, const struct argument_alias *rename)
{
    if (request_arg(request, rename->name) || !request_arg(request, rename->alias))
        return 0;
    return request_arg_copy(request, rename->name, rename->alias);
}

int method_alias_arguments(struct request *request, const struct method_alias *alias)
{
    const char *name = request_method(request);
    const char *dot = strchr(name, '.');
    int r = alias && alias->argument ? request_arg_set(request, alias->argument, alias->value) : 0;

    if (!dot || strncmp(name, "conversations.", 14) == 0)
        return r;
    for (size_t i = 0; r >= 0 && i < sizeof renamed / sizeof renamed[0]; i++)
        if (strcmp(renamed[i].verb, dot + 1) == 0)
            r = argument_rename(request, &renamed[i]);
    return r;
}
