// SPDX-License-Identifier: Apache-2.0
// Entry point: selects the subcommand and runs it.
#include "app/commands.h"
#include "app/instance.h"
#include "base/log.h"
#include "base/version.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char commands[] =
    "usage: tidings COMMAND\n"
    "\n"
    "  serve                        run an instance until SIGTERM\n"
    "  migrate [--check]            upgrade the database to this version, or report what is "
    "missing\n"
    "  check                        exit 0 if the instance at TIDINGS_LISTEN is ready\n"
    "  admin METHOD [name=value …]  call an admin.* method on the database, without an instance\n"
    "  unread verify|rebuild [--workspace ID|--channel ID|--user ID]\n"
    "                               verify or repair unread counts in Redis against Postgres\n"
    "  secrets rotate               re-encrypt secrets in Postgres with TIDINGS_SECRET_KEY\n"
    "  push dead list|retry|drop [--workspace ID] [--app NAME]\n"
    "                               list, retry or drop undeliverable pushes to devices\n"
    "  COMMAND --help, --help, --version\n";

static int help_print(void)
{
    struct buffer out;

    buffer_init(&out, 65536);
    buffer_append_text(&out, commands);
    buffer_append_text(&out, "\nSettings, from the environment [default; range]:\n");
    settings_print(&out);
    fwrite(out.data, 1, out.length, stdout);
    buffer_done(&out);
    return EXIT_SUCCESS;
}

static int usage_fail(void)
{
    fputs(commands, stderr);
    return 2;
}

// Whether the arguments are "COMMAND --help", which is answered without settings.
static bool command_help(int count, char **arguments)
{
    if (count < 3 || strcmp(arguments[2], "--help") != 0)
        return false;
    if (strcmp(arguments[1], "admin") == 0)
        command_admin_usage(stdout);
    else if (strcmp(arguments[1], "migrate") == 0)
        command_migrate_usage(stdout);
    else if (strcmp(arguments[1], "unread") == 0)
        command_unread_usage(stdout);
    else if (strcmp(arguments[1], "secrets") == 0)
        command_secrets_usage(stdout);
    else if (strcmp(arguments[1], "push") == 0)
        command_push_usage(stdout);
    else
        help_print();
    return true;
}

// Occupies descriptors 0 to 2 if the caller closed them; otherwise a connection would get one, and
// the log with it. Writing to them fails, as it should: lost output must not count as printed.
static void standard_descriptors_fill(void)
{
    while (true) {
        int fd = open("/dev/null", O_RDONLY);
        if (fd > STDERR_FILENO)
            close(fd);
        if (fd < 0 || fd > STDERR_FILENO)
            return;
    }
}

static enum log_level level_of(const char *name)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};

    for (int level = LOG_DEBUG; level <= LOG_ERROR; level++)
        if (strcmp(names[level], name) == 0)
            return (enum log_level)level;
    return LOG_INFO;
}

static int settings_load(struct settings *ret_settings)
{
    struct buffer errors;

    buffer_init(&errors, 65536);
    int r = settings_read(ret_settings, &errors);
    if (r < 0)
        fprintf(stderr, "%.*s", (int)errors.length, errors.data);
    buffer_done(&errors);
    return r;
}

static int command_run(const struct settings *settings, int count, char **arguments)
{
    const char *command = arguments[1];

    if (strcmp(command, "admin") == 0)
        return command_admin(settings, count - 2, arguments + 2);
    if (strcmp(command, "unread") == 0)
        return command_unread(settings, count - 2, arguments + 2);
    if (strcmp(command, "secrets") == 0)
        return command_secrets(settings, count - 2, arguments + 2);
    if (strcmp(command, "push") == 0)
        return command_push(settings, count - 2, arguments + 2);
    if (count == 2 && strcmp(command, "serve") == 0)
        return instance_run(settings);
    if (strcmp(command, "migrate") == 0)
        return command_migrate(settings, count - 2, arguments + 2);
    if (count == 2 && strcmp(command, "check") == 0)
        return command_check(settings);
    return usage_fail();
}

// Fails if output was lost: it may have been a token that is shown only once.
static int output_finish(int status)
{
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return status;
    fprintf(stderr, "tidings: cannot write the output: %s\n", strerror(errno));
    return status == EXIT_SUCCESS ? EXIT_FAILURE : status;
}

static int arguments_run(int argc, char **argv)
{
    struct settings settings;

    if (argc < 2)
        return usage_fail();
    if (strcmp(argv[1], "--help") == 0)
        return help_print();
    if (command_help(argc, argv))
        return EXIT_SUCCESS;
    if (strcmp(argv[1], "--version") == 0) {
        printf("tidings %s\n", TIDINGS_VERSION);
        return EXIT_SUCCESS;
    }
    if (settings_load(&settings) < 0)
        return 2;
    log_init(level_of(settings.log_level),
             settings.instance[0] != '\0' ? settings.instance : settings.listen);
    log_access_enable(settings.access_log);
    settings_log_unknown();
    return command_run(&settings, argc, argv);
}

int main(int argc, char **argv)
{
    standard_descriptors_fill();
    return output_finish(arguments_run(argc, argv));
}
