// SPDX-License-Identifier: Apache-2.0
// notifications.get and set, dnd.*: the caller's notification settings for their devices, and quiet
// hours.
#include "methods.h"

#include <string.h>

enum { SNOOZE_MINUTES_MAX = 30 * 24 * 60, TZ_LENGTH_MAX = 64, WORDS_MAX = 3, DND_USERS_MAX = 50 };

static const struct statement GET = {"notifications_get",
                                     "SELECT error, reply FROM notifications_get($1)"};
static const struct statement SET = {
    "notifications_set", "SELECT error, reply FROM notifications_set($1, $2, $3, $4, $5, $6, $7)"};
static const struct statement TIMEZONE = {"timezone_find", "SELECT name FROM timezone_find($1)"};
static const struct statement DND_INFO = {"dnd_info",
                                          "SELECT error, reply FROM dnd_info($1, $2, $3)"};
static const struct statement DND_TEAM = {"dnd_team_info",
                                          "SELECT error, reply FROM dnd_team_info($1, $2)"};
static const struct statement DND_SET = {"dnd_set_snooze",
                                         "SELECT error, reply FROM dnd_set_snooze($1, $2)"};
static const struct statement DND_END = {"dnd_end_snooze",
                                         "SELECT error, reply FROM dnd_end_snooze($1)"};

// For notifications.set: NULL leaves a value unchanged.
struct notification_settings {
    const char *level, *preview, *badge, *dnd_start, *dnd_end, *tz;
};

static bool take_one_of(struct invocation *invocation, const char *name,
                        const char *const words[WORDS_MAX], const char *range, const char **value)
{
    if (!take_optional_word(invocation, name, value))
        return false;
    if (!*value)
        return true;
    for (int i = 0; i < WORDS_MAX && words[i]; i++)
        if (strcmp(words[i], *value) == 0)
            return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS, "%s: must be %s", name, range);
    return false;
}

// "22:00"
static bool time_is_good(const char *text)
{
    static const char digits[] = "0123456789";

    if (strlen(text) != 5 || text[2] != ':' || strspn(text, digits) != 2 ||
        strspn(text + 3, digits) != 2)
        return false;
    return strncmp(text, "24", 2) < 0 && text[3] < '6';
}

static bool take_time(struct invocation *invocation, const char *name, const char **value)
{
    if (!take_optional_text(invocation, name, value))
        return false;
    if (!*value || **value == '\0' || time_is_good(*value))
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                            "%s: must be a time such as 22:00, or empty", name);
    return false;
}

// Both or neither.
static bool take_quiet_hours(struct invocation *invocation, struct notification_settings *settings)
{
    if (!take_time(invocation, "dnd_start", &settings->dnd_start) ||
        !take_time(invocation, "dnd_end", &settings->dnd_end))
        return false;
    const char *start = settings->dnd_start ? settings->dnd_start : "-";
    const char *end = settings->dnd_end ? settings->dnd_end : "-";
    bool are_both = (*start == '-') == (*end == '-') && (*start == '\0') == (*end == '\0');
    bool are_times = *start != '-' && *start != '\0';
    if (are_both && !(are_times && strcmp(start, end) == 0))
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                            "dnd_end: must be given with dnd_start, and differ from it");
    return false;
}

static bool take_tz(struct invocation *invocation, const char **value)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_+-";

    if (!take_optional_word(invocation, "tz", value))
        return false;
    if (!*value || (strlen(*value) <= TZ_LENGTH_MAX && strspn(*value, letters) == strlen(*value)))
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                            "tz: must be a time zone such as Europe/Zurich");
    return false;
}

static bool take_notification_settings(struct invocation *invocation,
                                       struct notification_settings *settings)
{
    static const char *const levels[WORDS_MAX] = {"all", "mentions", "none"};
    static const char *const previews[WORDS_MAX] = {"full", "sender", "none"};
    static const char *const badges[WORDS_MAX] = {"mentions", "all", NULL};

    return take_one_of(invocation, "level", levels, "all, mentions or none", &settings->level) &&
           take_one_of(invocation, "preview", previews, "full, sender or none",
                       &settings->preview) &&
           take_one_of(invocation, "badge", badges, "mentions or all", &settings->badge) &&
           take_quiet_hours(invocation, settings) && take_tz(invocation, &settings->tz);
}

static void notifications_store(struct invocation *invocation,
                                const struct notification_settings *settings)
{
    struct params params = {0};

    params_text(&params, invocation->actor->user_id);
    params_text(&params, settings->level);
    params_text(&params, settings->preview);
    params_text(&params, settings->badge);
    params_text(&params, settings->dnd_start);
    params_text(&params, settings->dnd_end);
    params_text(&params, settings->tz);
    invocation_change(invocation, &SET, &params, false);
}

static void timezone_found(struct invocation *invocation, const struct result *result)
{
    struct notification_settings settings = {0};

    if (result_rows(result) == 0) {
        invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                                "tz: must be a time zone such as Europe/Zurich");
    } else if (take_notification_settings(invocation, &settings)) {
        settings.tz = result_text(result, 0, 0);
        notifications_store(invocation, &settings);
    }
}

void notifications_set(struct invocation *invocation)
{
    struct notification_settings settings = {0};
    struct params params = {0};

    if (!take_notification_settings(invocation, &settings))
        return;
    if (!settings.tz) {
        notifications_store(invocation, &settings);
        return;
    }
    params_text(&params, settings.tz);
    invocation_query(invocation, STORE_LIST, &TIMEZONE, &params, timezone_found);
}

void notifications_get(struct invocation *invocation)
{
    struct params params = {0};

    params_text(&params, invocation->actor->user_id);
    invocation_change(invocation, &GET, &params, false);
}

void dnd_info(struct invocation *invocation)
{
    struct params params = {0};
    const char *user_id = invocation->actor->user_id;

    if (invocation_has(invocation, "user") && !take_user(invocation, "user", &user_id))
        return;
    invocation_caller_params(invocation, &params);
    params_text(&params, user_id);
    invocation_change(invocation, &DND_INFO, &params, false);
}

// Of those of the users who exist, as Slack's.
void dnd_team_info(struct invocation *invocation)
{
    CLEANUP_PARAMS struct params params = {0};

    params_text(&params, invocation->actor->workspace_id);
    params_open_text_array(&params);
    if (!take_ids(invocation, "users", "UW", -ERROR_USER_NOT_FOUND, DND_USERS_MAX, &params))
        return;
    params_close_array(&params);
    invocation_read(invocation, STORE_READ, &DND_TEAM, &params);
}

void dnd_set_snooze(struct invocation *invocation)
{
    struct params params = {0};
    const char *text;
    int64_t minutes = 0;

    if (!take_text(invocation, "num_minutes", &text) ||
        !take_optional_int(invocation, "num_minutes", -ERROR_INVALID_ARGUMENTS, 1,
                           SNOOZE_MINUTES_MAX, &minutes))
        return;
    params_text(&params, invocation->actor->user_id);
    params_int(&params, minutes);
    invocation_change(invocation, &DND_SET, &params, false);
}

void dnd_end_snooze(struct invocation *invocation)
{
    struct params params = {0};

    params_text(&params, invocation->actor->user_id);
    invocation_change(invocation, &DND_END, &params, false);
}
