// SPDX-License-Identifier: Apache-2.0
// One setting, "NAME=value" without the prefix. A refusal names it, and shows no password of a URL.
#include "app/settings.h"
#include "base/id.h"
#include "fuzz.h"

#include <stdio.h>

static const char password[] = "hunter2";

// Whether the password stands once in the value, before the last '@' of a URL.
static bool has_password(const char *value)
{
    const char *scheme = strstr(value, "://"), *at = strrchr(value, '@');
    const char *found = strstr(value, password);
    return scheme && at && found && found > scheme && found < at && !strstr(found + 1, password);
}

static void errors_check(const char *name, const char *value, const struct buffer *errors)
{
    assert(errors->length > 0);
    assert(memmem(errors->data, errors->length, name, strlen(name)));
    if (strstr(name, "_URL") && strcmp(name, "TIDINGS_PUBLIC_URL") != 0 && has_password(value))
        assert(!memmem(errors->data, errors->length, password, sizeof password - 1));
}

static void setting_check(const char *name, const char *value)
{
    struct settings settings;
    struct buffer errors;
    buffer_init(&errors, 1 << 22);
    setenv(name, value, 1);
    int r = settings_read(&settings, &errors);
    if (r < 0)
        errors_check(name, value, &errors);
    else
        assert(errors.length == 0);
    unsetenv(name);
    buffer_done(&errors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    char *equals = strchr(text, '=');
    char name[64];
    if (equals && (size_t)(equals - text) == strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_")) {
        *equals = '\0';
        int length = snprintf(name, sizeof name, "TIDINGS_%s", text);
        if ((size_t)length < sizeof name)
            setting_check(name, equals + 1);
    }
    free(text);
    return 0;
}
