// SPDX-License-Identifier: Apache-2.0
// Reads a user's id, name and e-mail address from a JWT.
#include "jwt_profile.h"

#include "base/error.h"
#include "base/unicode.h"
#include "chat/names.h"
#include "invocation.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum {
    NAMES_WANTED = 3,
    CANDIDATES = NAMES_WANTED + 1,
    CANDIDATE_SIZE = 4 * NAMES_MAX_CODE_POINTS + 8
};

// The claim that the rule names; NULL: none.
static const json_t *claim_find(const struct jwt *jwt, const json_t *rules, const char *rule)
{
    const char *claim = json_string_value(json_object_get(rules, rule));

    return claim ? json_object_get(jwt->claims, claim) : NULL;
}

int jwt_profile_external_id(const struct jwt *jwt, const json_t *rules, char *ret_id)
{
    const json_t *id = claim_find(jwt, rules, "user_claim");
    size_t length = json_string_length(id);

    if (json_is_integer(id)) {
        snprintf(ret_id, JWT_EXTERNAL_ID_SIZE, "%lld", (long long)json_integer_value(id));
        return 0;
    }
    if (length == 0 || length > JWT_EXTERNAL_ID_MAX)
        return -ERROR_INVALID_TOKEN;
    memcpy(ret_id, json_string_value(id), length + 1);
    return 0;
}

// A claim that can be shown as a name or address; NULL: none.
static const char *label_find(const struct jwt *jwt, const json_t *rules, const char *rule)
{
    const json_t *claim = claim_find(jwt, rules, rule);
    const char *text = json_string_value(claim);

    return text && invocation_label_is_valid(text, json_string_length(claim)) ? text : NULL;
}

// An address that the provider itself does not believe is not taken.
static const char *email_find(const struct jwt *jwt, const json_t *rules)
{
    return json_is_false(json_object_get(jwt->claims, "email_verified"))
               ? NULL
               : label_find(jwt, rules, "email_claim");
}

// "Ann Lee" and "ann@example.com" can name a user as "Ann.Lee" and "ann".
static void name_make(const char *text, size_t length, int number, char ret_name[CANDIDATE_SIZE])
{
    char suffix[8] = "";

    if (number > 1)
        snprintf(suffix, sizeof suffix, "-%d", number);
    snprintf(ret_name, CANDIDATE_SIZE, "%.*s%s", (int)length, text, suffix);
    for (char *at = ret_name; *at != '\0'; at++)
        if (*at == ' ')
            *at = '.';
}

// Names to try, best first; returns their number.
static int names_make(const char *text, const char *user_id,
                      char ret_names[CANDIDATES][CANDIDATE_SIZE])
{
    size_t length = text ? strcspn(text, "@") : 0;
    int count = 0;

    for (int number = 1; number <= NAMES_WANTED; number++) {
        name_make(text ? text : "", length, number, ret_names[count]);
        count += names_can_be_user(ret_names[count], strlen(ret_names[count]));
    }
    snprintf(ret_names[count], CANDIDATE_SIZE, "user-%s", user_id);
    for (char *at = ret_names[count]; *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
    return count + 1;
}

static int folded_add(char names[CANDIDATES][CANDIDATE_SIZE], int count, struct params *params)
{
    params_open_text_array(params);
    for (int i = 0; i < count; i++) {
        CLEANUP_FREE char *folded = unicode_fold(names[i], strlen(names[i]));
        if (!folded)
            return -ERROR_MEMORY;
        params_element_text(params, folded);
    }
    params_close_array(params);
    return 0;
}

int jwt_profile_add(const struct jwt *jwt, const json_t *rules, const char *user_id,
                    struct params *params)
{
    char names[CANDIDATES][CANDIDATE_SIZE];
    const char *name = label_find(jwt, rules, "name_claim");
    const char *email = email_find(jwt, rules);
    int count = names_make(name ? name : email, user_id, names);

    params_open_text_array(params);
    for (int i = 0; i < count; i++)
        params_element_text(params, names[i]);
    params_close_array(params);
    int r = folded_add(names, count, params);
    params_text(params, name);
    params_text(params, email);
    return r;
}
