// SPDX-License-Identifier: Apache-2.0
// The test program's own redis-server, on a socket in a directory of its own.
#pragma once

#include "redis_program.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    pid_t pid;
    char directory[64];
    char socket[80];
    char url[96];
} redis;

// Makes the directory, and with it the address. Once.
static int redis_prepare(void)
{
    (void)snprintf(redis.directory, sizeof redis.directory, "/tmp/tidings-redis-XXXXXX");
    if (!mkdtemp(redis.directory))
        return -1;
    (void)snprintf(redis.socket, sizeof redis.socket, "%s/s", redis.directory);
    (void)snprintf(redis.url, sizeof redis.url, "unix://%s", redis.socket);
    return 0;
}

// Starts an empty server there. It answers a little later.
static int redis_launch(void)
{
    redis.pid = fork();
    if (redis.pid == 0) {
        // It ends with this program, and holds no pipe of it open.
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int fd = 3; fd < 64; fd++)
            (void)close(fd);
        (void)execlp(redis_program(), redis_program(), "--port", "0", "--unixsocket", redis.socket,
                     "--save", "", "--dir", redis.directory, "--logfile", "/dev/null",
                     (char *)NULL);
        _exit(127);
    }
    return redis.pid < 0 ? -1 : 0;
}

static void redis_kill(void)
{
    kill(redis.pid, SIGKILL);
    (void)waitpid(redis.pid, NULL, 0);
}

static void redis_forget(void)
{
    (void)unlink(redis.socket);
    (void)rmdir(redis.directory);
}
