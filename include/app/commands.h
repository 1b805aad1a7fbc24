// SPDX-License-Identifier: Apache-2.0
// The subcommands of the binary; each returns the process's exit code.
#pragma once

#include "app/settings.h"

#include <stdio.h>

// tidings migrate [--check]
int command_migrate(const struct settings *settings, int count, char *const *arguments);
void command_migrate_usage(FILE *out);
// Whether the instance at TIDINGS_LISTEN answers /readyz with 200.
int command_check(const struct settings *settings);
// tidings admin METHOD [name=value …]: runs an admin.* method directly on the database, without an
// instance, and prints the reply.
int command_admin(const struct settings *settings, int count, char *const *arguments);
void command_admin_usage(FILE *out);
// tidings unread verify|rebuild [--workspace ID|--channel ID|--user ID]: compares the unread counts
// in Redis with Postgres (exit code 1: some are wrong), or corrects and completes them.
int command_unread(const struct settings *settings, int count, char *const *arguments);
void command_unread_usage(FILE *out);
// tidings secrets rotate: re-encrypts all secrets in Postgres with the first key of
// TIDINGS_SECRET_KEY (exit code 1: some could not be decrypted with any key, and are unchanged).
int command_secrets(const struct settings *settings, int count, char *const *arguments);
void command_secrets_usage(FILE *out);
// tidings push dead list|retry|drop [--workspace ID] [--app NAME]: lists, retries or deletes dead
// letters of pushes.
int command_push(const struct settings *settings, int count, char *const *arguments);
void command_push_usage(FILE *out);
