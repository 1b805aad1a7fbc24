// SPDX-License-Identifier: Apache-2.0
// A module's settings are one table, MODULE_SETTINGS(TEXT, INTEGER, FLAG, LIMIT), of these rows:
//
//   TEXT(field, NAME, default, description)
//   INTEGER(field, NAME, default, min, max, description)
//   FLAG(field, NAME, default, description)
//   LIMIT(field, NAME, value, description): a fixed limit, which operators can read but not set
//
// SETTINGS_STRUCT() declares the module's struct, `struct module_settings`. app/settings.h joins
// all tables: it reads TIDINGS_NAME from the environment, and prints `tidings --help` and
// docs/settings.md.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SETTINGS_TEXT_FIELD(field, name, value, description) const char *field;
#define SETTINGS_INTEGER_FIELD(field, name, value, min, max, description) int64_t field;
#define SETTINGS_FLAG_FIELD(field, name, value, description) bool field;
#define SETTINGS_LIMIT_FIELD(field, name, value, description) int64_t field;
#define SETTINGS_FIELDS(TABLE)                                                                     \
    TABLE(SETTINGS_TEXT_FIELD, SETTINGS_INTEGER_FIELD, SETTINGS_FLAG_FIELD, SETTINGS_LIMIT_FIELD)
#define SETTINGS_STRUCT(module, TABLE)                                                             \
    struct module##_settings {                                                                     \
        SETTINGS_FIELDS(TABLE)                                                                     \
    }
