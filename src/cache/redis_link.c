// SPDX-License-Identifier: Apache-2.0
// Opens sockets to Redis, and reads and writes them.
#include "redis_link.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/memory.h"
#include "command.h"
#include "redis_tls.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PROBLEM_SIZE = 200, GREETING_MAX = 8192 };

struct link {
    const struct url *url;
    int fd;
    struct tls *tls; // NULL: plain
    short events;
    bool connected;
    struct buffer greeting; // commands of the opening
    size_t sent;            // bytes of `greeting`
    int awaited;            // replies to them
    redisReader *reader;
    redisReply *answer; // to the last command
    char problem[PROBLEM_SIZE];
};

static int link_fail(struct link *link, const char *problem)
{
    snprintf(link->problem, sizeof link->problem, "%s", problem);
    return -ERROR_UNAVAILABLE;
}

void link_ask(struct link *link, int count, const char *const *texts)
{
    command_append(&link->greeting, "", count, texts, NULL);
    link->awaited++;
}

const redisReply *link_answer(const struct link *link)
{
    return link->answer;
}

struct link *link_new(int fd, const struct url *url)
{
    const char *login[URL_LOGIN_TEXTS];
    char database[24];
    int count = url_login(url, login);
    struct link *link = memory_must_new(sizeof *link);
    *link = (struct link){.url = url, .fd = fd, .events = POLLOUT};
    buffer_init(&link->greeting, GREETING_MAX);
    snprintf(database, sizeof database, "%lld", (long long)url->database);
    if (count > 0)
        link_ask(link, count, login);
    if (url->database > 0)
        link_ask(link, 2, (const char *[]){"SELECT", database});
    if (url->master[0])
        link_ask(link, 1, (const char *[]){"ROLE"});
    return link;
}

static void greeting_done(struct link *link)
{
    buffer_done(&link->greeting);
    if (link->reader)
        redisReaderFree(TAKE(link->reader));
}

static void answer_drop(struct link *link)
{
    if (link->answer)
        freeReplyObject(TAKE(link->answer));
}

void link_free(struct link *link)
{
    if (!link)
        return;
    greeting_done(link);
    answer_drop(link);
    tls_free(link->tls);
    close(link->fd);
    free(link);
}

int link_fd(const struct link *link)
{
    return link->fd;
}

static int socket_open(struct link *link)
{
    int error = 0;
    if (getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){sizeof error}) < 0 || error)
        return link_fail(link, error ? strerrordesc_np(error) : "connection refused");
    link->connected = true;
    if (link->url->tls)
        link->tls = tls_new(link->fd, link->url);
    return 1;
}

static int link_secure(struct link *link)
{
    int r = tls_open(link->tls);
    link->events = tls_events(link->tls);
    return r < 0 ? link_fail(link, tls_problem(link->tls)) : r;
}

// 1: all of it is sent.
static int greeting_send(struct link *link)
{
    const char *rest = link->greeting.data + link->sent;
    ssize_t length = link_write(link, rest, link->greeting.length - link->sent);
    if (length < 0)
        return (int)length;
    link->sent += (size_t)length;
    bool all = link->sent == link->greeting.length;
    link->events = all ? POLLIN : POLLOUT;
    return all;
}

static int greeting_receive(struct link *link)
{
    char data[LINK_READ_MIN];
    ssize_t length = link_read(link, data, sizeof data);
    if (length < 0)
        return (int)length;
    if (!link->reader)
        link->reader = redisReaderCreate();
    if (!link->reader || redisReaderFeed(link->reader, data, (size_t)length) != REDIS_OK)
        return link_fail(link, "no memory");
    return 0;
}

// A server that Sentinel named may be no master any more, or not yet.
static int role_check(struct link *link)
{
    const redisReply *role = link->answer;
    bool is_master = role->type == REDIS_REPLY_ARRAY && role->elements > 0 &&
                     role->element[0]->type == REDIS_REPLY_STRING &&
                     strcmp(role->element[0]->str, "master") == 0;
    return is_master ? 1 : link_fail(link, "the server that Sentinel names is no master");
}

// 1: all replies are here.
static int greeting_read(struct link *link)
{
    while (link->awaited > 0) {
        void *reply = NULL;
        if (redisReaderGetReply(link->reader, &reply) != REDIS_OK)
            return link_fail(link, "protocol error");
        if (!reply)
            return 0;
        answer_drop(link);
        link->answer = reply;
        link->awaited--;
        if (link->answer->type == REDIS_REPLY_ERROR)
            return link_fail(link, link->answer->str);
    }
    return link->url->master[0] ? role_check(link) : 1;
}

static int link_greet(struct link *link)
{
    if (link->awaited == 0)
        return 1;
    if (buffer_failed(&link->greeting))
        return link_fail(link, "no memory");
    int r = link->sent < link->greeting.length ? greeting_send(link) : 1;
    if (r == 1)
        r = greeting_receive(link);
    if (r == 0 && link->reader)
        r = greeting_read(link);
    if (r == 1)
        greeting_done(link);
    return r;
}

int link_open(struct link *link)
{
    int r = link->connected ? 1 : socket_open(link);
    if (r == 1 && link->tls)
        r = link_secure(link);
    return r == 1 ? link_greet(link) : r;
}

short link_events(const struct link *link)
{
    return link->events;
}

ssize_t link_read(struct link *link, char *data, size_t size)
{
    if (link->tls) {
        ssize_t length = tls_read(link->tls, data, size);
        return length < 0 ? link_fail(link, tls_problem(link->tls)) : length;
    }
    ssize_t length = recv(link->fd, data, size, 0);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return length > 0 ? length : link_fail(link, "connection closed");
}

ssize_t link_write(struct link *link, const char *data, size_t length)
{
    if (link->tls) {
        ssize_t sent = tls_write(link->tls, data, length);
        return sent < 0 ? link_fail(link, tls_problem(link->tls)) : sent;
    }
    // Not every process with a link ignores SIGPIPE.
    ssize_t sent = send(link->fd, data, length, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return sent >= 0 ? sent : link_fail(link, "connection broken");
}

const char *link_problem(const struct link *link)
{
    return link->problem;
}
