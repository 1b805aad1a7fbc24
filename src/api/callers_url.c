// SPDX-License-Identifier: Apache-2.0
// Validates callers' URLs: their form, and that literal addresses are public.
#include "callers_url.h"

#include "base/address.h"
#include "base/cleanup.h"
#include "base/id.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { HOST_SIZE = 256 };

static const char *scheme_skip(const char *url)
{
    static const char *const schemes[] = {"http://", "https://"};

    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (strncmp(url, schemes[i], strlen(schemes[i])) == 0)
            return url + strlen(schemes[i]);
    return NULL;
}

// Whether the `length` characters are host or host:port; the host may be an IPv6 address in
// brackets.
static bool is_host_and_port(const char *text, size_t length)
{
    const char *end = text + length;
    const char *bracket = length > 0 && text[0] == '[' ? memchr(text, ']', length) : NULL;
    const char *colon =
        memchr(bracket ? bracket : text, ':', (size_t)(end - (bracket ? bracket : text)));
    const char *host_end = colon ? colon : end;
    int64_t port;

    if (host_end == text || (text[0] == '[' && (!bracket || bracket + 1 != host_end)))
        return false;
    return !colon || integer_parse(colon + 1, (size_t)(end - colon - 1), 1, UINT16_MAX, &port) >= 0;
}

// Host and port of a URL with a known scheme.
static const char *authority_of(const char *url, size_t *ret_length)
{
    const char *authority = scheme_skip(url);
    size_t length = strcspn(authority, "/?#");
    const char *login_end = memrchr(authority, '@', length);
    const char *host = login_end ? login_end + 1 : authority;

    *ret_length = length - (size_t)(host - authority);
    return host;
}

bool url_is_good(const char *url)
{
    size_t length;

    if (!scheme_skip(url) || strlen(url) > URL_MAX)
        return false;
    for (const char *at = url; *at != '\0'; at++)
        if (*at <= ' ' || *at > '~')
            return false;
    const char *host = authority_of(url, &length);
    return is_host_and_port(host, length);
}

bool url_check(struct invocation *invocation, const char *name, const char *url)
{
    if (!url || url_is_good(url))
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                            "%s: must be an http:// or https:// URL of at most %d characters", name,
                            URL_MAX);
    return false;
}

static void addresses_free(struct addrinfo **addresses)
{
    if (*addresses)
        freeaddrinfo(*addresses);
}

bool url_is_public(const char *url)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    CLEANUP(addresses_free) struct addrinfo *addresses = NULL;
    size_t length;
    char host[HOST_SIZE];

    if (!url_is_good(url) || strncmp(url, "https://", 8) != 0)
        return false;
    const char *start = authority_of(url, &length);
    bool in_brackets = start[0] == '[';
    length = strcspn(start + in_brackets, in_brackets ? "]" : ":/?#");
    if (length >= sizeof host)
        return false;
    snprintf(host, sizeof host, "%.*s", (int)length, start + in_brackets);
    if (getaddrinfo(host, NULL, &hints, &addresses) != 0) // a host name
        return strcasecmp(host, "localhost") != 0;
    return address_is_public(addresses->ai_addr);
}
