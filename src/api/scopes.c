// SPDX-License-Identifier: Apache-2.0
// Names the scopes of tokens, and tells what each permits.
#include "scopes.h"

#include "base/channel.h"

#include <stdbool.h>
#include <string.h>

enum { ALL = (1 << CHANNEL_TYPE_MAX) - 1 };

// What methods require: see methods.c.
#define SCOPES_ALL                                                                                 \
    "channels:history,channels:join,channels:manage,channels:read,channels:write,chat:write,"      \
    "devices:read,devices:write,dnd:read,dnd:write,emoji:read,files:read,files:write,"             \
    "identity.basic,im:write,"                                                                     \
    "notifications:read,notifications:write,pins:read,pins:write,reactions:read,reactions:write,"  \
    "rtm:stream,team:read,usergroups:read,"                                                        \
    "users.profile:read,users.profile:write,users:read,users:write"

// Slack's scopes that permit, in some types of channels, what a scope of Tidings permits in all.
static const struct {
    const char *name;
    const char *scope;
    unsigned types;
} parts[] = {
    {"groups:history", "channels:history", 1U << CHANNEL_PRIVATE},
    {"im:history", "channels:history", 1U << CHANNEL_IM},
    {"mpim:history", "channels:history", 1U << CHANNEL_MPIM},
    {"groups:read", "channels:read", 1U << CHANNEL_PRIVATE},
    {"im:read", "channels:read", 1U << CHANNEL_IM},
    {"mpim:read", "channels:read", 1U << CHANNEL_MPIM},
    {"groups:write", "channels:manage", 1U << CHANNEL_PRIVATE},
    {"im:write", "channels:manage", 1U << CHANNEL_IM},
    {"mpim:write", "channels:manage", 1U << CHANNEL_MPIM},
    {"groups:write", "channels:write", 1U << CHANNEL_PRIVATE},
    {"im:write", "channels:write", 1U << CHANNEL_IM},
    {"mpim:write", "channels:write", 1U << CHANNEL_MPIM},
    {"mpim:write", "im:write", 1U << CHANNEL_MPIM},
    {"chat:write:bot", "chat:write", ALL},
    {"chat:write:user", "chat:write", ALL},
};

// Scopes of Slack's beside these: they permit what there is elsewhere, or not yet.
#define SCOPES_SLACKS                                                                              \
    "admin,app_mentions:read,assistant:write,bookmarks:read,bookmarks:write,bot,"                  \
    "channels:write.invites,channels:write.topic,chat:write.customize,chat:write.public,client,"   \
    "commands,connections:write,files:read,files:write,groups:write.invites,groups:write.topic,"   \
    "identify,identity.avatar,identity.email,identity.team,im:write.topic,incoming-webhook,"       \
    "links.embed:write,links:read,links:write,metadata.message:read,mpim:write.topic,"             \
    "reminders:read,reminders:write,search:read,"                                                  \
    "stars:read,stars:write,usergroups:write,users:read.email"

// What a token is left with whose scopes are all unknown: Slack's scope of every token.
#define SCOPE_OF_ALL_TOKENS "identify"

const char *scopes_of(const struct actor *actor)
{
    if (actor->scopes[0] != '\0')
        return actor->scopes;
    if (actor->type == 'a')
        return "connections:write"; // Slack's name for what an app's token may do
    return actor->is_admin ? SCOPES_ALL ",users:read.email,admin" : SCOPES_ALL;
}

unsigned scopes_types(const struct actor *actor, const char *scope)
{
    unsigned types = 0;

    if (actor_has_scope(actor, scope))
        return ALL;
    for (size_t i = 0; actor->scopes[0] != '\0' && i < sizeof parts / sizeof parts[0]; i++)
        if (strcmp(parts[i].scope, scope) == 0 && actor_has_scope(actor, parts[i].name))
            types |= parts[i].types;
    return types;
}

static bool is_listed(const char *list, const char *name, size_t length)
{
    while (*list != '\0') {
        size_t here = strcspn(list, ",");
        if (here == length && memcmp(list, name, length) == 0)
            return true;
        list += here + (list[here] == ',');
    }
    return false;
}

static bool is_known(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (is_listed(parts[i].name, name, length))
            return true;
    return is_listed(SCOPES_ALL, name, length) || is_listed(SCOPES_SLACKS, name, length);
}

void scopes_keep_known(char *scopes)
{
    bool was_given = scopes[0] != '\0';
    char *to = scopes;

    for (const char *from = scopes; *from != '\0';) {
        size_t length = strcspn(from, ",");
        bool is_last = from[length] == '\0';
        if (is_known(from, length)) {
            if (to != scopes)
                *to++ = ',';
            memmove(to, from, length);
            to += length;
        }
        from += length + !is_last;
    }
    *to = '\0';
    if (was_given && to == scopes)
        memcpy(scopes, SCOPE_OF_ALL_TOKENS, sizeof SCOPE_OF_ALL_TOKENS);
}
