// SPDX-License-Identifier: Apache-2.0
// The test program's own Postgres server: postgres_server.py in a child process.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    pid_t pid;
    FILE *commands;
    FILE *answers;
    char url[512];
} postgres;

static void postgres_child(int input, int output)
{
    dup2(input, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    for (int fd = 3; fd < 64; fd++)
        close(fd);
    execlp("python3", "python3", TIDINGS_UNIT_DIRECTORY "/postgres_server.py", (char *)NULL);
    _exit(127);
}

// 0, or -1 when the server does not start.
static int postgres_launch(void)
{
    int to[2], from[2];
    if (pipe(to) < 0 || pipe(from) < 0)
        return -1;
    postgres.pid = fork();
    if (postgres.pid == 0)
        postgres_child(to[0], from[1]);
    close(to[0]);
    close(from[1]);
    postgres.commands = fdopen(to[1], "w");
    postgres.answers = fdopen(from[0], "r");
    if (!fgets(postgres.url, sizeof postgres.url, postgres.answers))
        return -1;
    postgres.url[strcspn(postgres.url, "\n")] = '\0';
    return 0;
}

static inline int postgres_do(const char *command)
{
    char answer[8] = "";
    fprintf(postgres.commands, "%s\n", command);
    fflush(postgres.commands);
    return fgets(answer, sizeof answer, postgres.answers) && strcmp(answer, "ok\n") == 0 ? 0 : -1;
}

static int postgres_end(void)
{
    int status = 0;
    fclose(postgres.commands);
    waitpid(postgres.pid, &status, 0);
    fclose(postgres.answers);
    return status;
}
