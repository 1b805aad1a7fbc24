// SPDX-License-Identifier: Apache-2.0
// Checks the claims of a JWT: who issued it, for whom, and for when.
#include "login/jwt.h"

#include "base/error.h"

#include <string.h>

// The end of the year 9999: whatever is later is a mistake in its unit.
static const double moment_max = 253402300799.0;

bool jwt_moment(const struct jwt *jwt, const char *claim, int64_t *ret_s)
{
    const json_t *value = json_object_get(jwt->claims, claim);

    if (!json_is_number(value))
        return false;
    double moment = json_number_value(value);
    if (moment < 0 || moment > moment_max)
        return false;
    *ret_s = (int64_t)moment;
    return true;
}

static bool is_audience(const struct jwt_rules *rules, const json_t *value)
{
    const char *text = json_string_value(value);

    for (int i = 0; text && i < rules->audience_count; i++)
        if (strcmp(rules->audiences[i], text) == 0)
            return true;
    return false;
}

// A list of anything but strings is no audience, whatever else is in it.
static bool audiences_are_met(const struct jwt_rules *rules, const json_t *audiences)
{
    bool is_met = false;

    if (json_array_size(audiences) > JWT_AUDIENCES_MAX)
        return false;
    for (size_t i = 0; i < json_array_size(audiences); i++) {
        const json_t *audience = json_array_get(audiences, i);
        if (!json_is_string(audience))
            return false;
        is_met |= is_audience(rules, audience);
    }
    return is_met;
}

bool jwt_is_meant_for(const struct jwt *jwt, const struct jwt_rules *rules)
{
    const char *issuer = json_string_value(json_object_get(jwt->claims, "iss"));
    const json_t *audience = json_object_get(jwt->claims, "aud");

    if (!issuer || strcmp(issuer, rules->issuer) != 0)
        return false;
    return json_is_array(audience) ? audiences_are_met(rules, audience)
                                   : is_audience(rules, audience);
}

// A token for several audiences may be used by each of them: the party that it was issued to must
// be ours (OpenID Connect Core, 3.1.3.7).
static bool party_is_ours(const struct jwt *jwt, const struct jwt_rules *rules)
{
    return json_array_size(json_object_get(jwt->claims, "aud")) < 2 ||
           is_audience(rules, json_object_get(jwt->claims, "azp"));
}

// Whether the moment is absent, or not after `latest_s`.
static bool has_come(const struct jwt *jwt, const char *claim, int64_t latest_s)
{
    int64_t moment_s;

    if (!json_object_get(jwt->claims, claim))
        return true;
    return jwt_moment(jwt, claim, &moment_s) && moment_s <= latest_s;
}

int jwt_check(const struct jwt *jwt, const struct jwt_rules *rules, int64_t now_s)
{
    int64_t expires_s;

    if (!jwt_is_meant_for(jwt, rules) || !party_is_ours(jwt, rules) ||
        !jwt_moment(jwt, "exp", &expires_s) || !has_come(jwt, "nbf", now_s + rules->leeway_s) ||
        !has_come(jwt, "iat", now_s + rules->leeway_s))
        return -ERROR_INVALID_TOKEN;
    return expires_s > now_s - rules->leeway_s ? 0 : -ERROR_TOKEN_EXPIRED;
}
