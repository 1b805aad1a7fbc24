// SPDX-License-Identifier: Apache-2.0
#include "members.h"

#include "../load/input.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uthash.h>

#define EVENTS_MAX 64
#define FRAME_MAX 4096
#define HEAD_MAX 4

struct member {
    char *token; // key, borrowed
    int fd;      // -1: has no socket
    UT_hash_handle hh;
};

struct group {
    char *id; // key, borrowed
    const struct input_channel *channel;
    UT_hash_handle hh;
};

struct members {
    struct input input;
    struct member *list; // in the order of input.users
    struct member *by_token;
    struct group *groups; // in the order of input.channels
    struct group *by_id;
    struct server_watch watch; // of the epoll of all sockets
    int listener;
    uint16_t port;
};

static void epoll_add(struct members *members, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    if (epoll_ctl(members->watch.fd, EPOLL_CTL_ADD, fd, &event) < 0)
        tool_die("epoll_ctl: %s", strerror(errno));
}

static void listen_at_any(struct members *members)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);

    members->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bind(members->listener, (struct sockaddr *)&address, len) < 0 ||
        listen(members->listener, 1024) < 0 ||
        getsockname(members->listener, (struct sockaddr *)&address, &len) < 0)
        tool_die("cannot listen: %s", strerror(errno));
    members->port = ntohs(address.sin_port);
}

static void accept_all(struct members *members)
{
    int on = 1, fd;

    while ((fd = accept4(members->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        epoll_add(members, fd);
    }
}

static struct member *member_find(const struct members *members, const char *token)
{
    struct member *member;

    HASH_FIND_STR(members->by_token, token, member);
    if (!member)
        tool_die("a token that is not in the set-up");
    return member;
}

static struct member *member_of_fd(const struct members *members, int fd)
{
    for (size_t i = 0; i < members->input.user_count; i++)
        if (members->list[i].fd == fd)
            return &members->list[i];
    return NULL;
}

static void member_send(struct member *member, const char *bytes, size_t len)
{
    if (member->fd < 0 || send(member->fd, bytes, len, MSG_NOSIGNAL) == (ssize_t)len)
        return;
    close(member->fd);
    member->fd = -1;
}

// All the reader looks for in a handshake, and the hello.
static void member_greet(struct members *members, int fd, char *request)
{
    static const char answer[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                                 "Connection: Upgrade\r\n\r\n\x81\x10{\"type\":\"hello\"}";
    static const char path[] = "GET /rtm/";
    struct member *member;

    if (strncmp(request, path, sizeof(path) - 1) != 0)
        tool_die("no WebSocket: %s", request);
    request += sizeof(path) - 1;
    request[strcspn(request, " ")] = '\0';
    member = member_find(members, request);
    member->fd = fd;
    member_send(member, answer, sizeof(answer) - 1);
}

// A handshake is short: it comes in one piece on the loopback.
static void socket_read(struct members *members, int fd)
{
    struct member *member;
    char bytes[1024];
    ssize_t n = recv(fd, bytes, sizeof(bytes) - 1, 0);

    if (n < 0 && errno == EAGAIN)
        return;
    member = member_of_fd(members, fd);
    if (n <= 0) {
        close(fd);
        if (member)
            member->fd = -1;
    } else if (!member) {
        bytes[n] = '\0';
        member_greet(members, fd, bytes);
    }
}

static void on_ready(void *owner)
{
    struct members *members = owner;
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(members->watch.fd, events, EVENTS_MAX, 0);

    for (int i = 0; i < count; i++) {
        if (events[i].data.fd == members->listener)
            accept_all(members);
        else
            socket_read(members, events[i].data.fd);
    }
}

static void index_input(struct members *members)
{
    const struct input *input = &members->input;

    members->list = tool_alloc(input->user_count, sizeof(*members->list));
    for (size_t i = 0; i < input->user_count; i++) {
        struct member *member = &members->list[i];

        *member = (struct member){.token = input->users[i].token, .fd = -1};
        HASH_ADD_KEYPTR(hh, members->by_token, member->token, strlen(member->token), member);
    }
    members->groups = tool_alloc(input->channel_count, sizeof(*members->groups));
    for (size_t i = 0; i < input->channel_count; i++) {
        struct group *group = &members->groups[i];

        *group = (struct group){.id = input->channels[i].id, .channel = &input->channels[i]};
        HASH_ADD_KEYPTR(hh, members->by_id, group->id, strlen(group->id), group);
    }
}

struct members *members_new(const char *data_path, struct server *server)
{
    struct members *members = tool_alloc(1, sizeof(*members));

    input_read(&members->input, data_path, "small");
    index_input(members);
    members->watch = (struct server_watch){
        .fd = epoll_create1(EPOLL_CLOEXEC), .on_ready = on_ready, .owner = members};
    listen_at_any(members);
    epoll_add(members, members->listener);
    server_watch_add(server, &members->watch);
    return members;
}

void members_free(struct members *members)
{
    for (size_t i = 0; i < members->input.user_count; i++)
        if (members->list[i].fd >= 0)
            close(members->list[i].fd);
    close(members->listener);
    close(members->watch.fd);
    HASH_CLEAR(hh, members->by_token);
    HASH_CLEAR(hh, members->by_id);
    free(members->list);
    free(members->groups);
    input_done(&members->input);
    free(members);
}

size_t members_write_url(const struct members *members, const char *token, char *ret_url,
                         size_t room)
{
    int len = snprintf(ret_url, room, "ws:\\/\\/127.0.0.1:%u\\/rtm\\/%s", members->port, token);

    if (len < 0 || (size_t)len >= room)
        tool_die("the address of a socket is too long");
    return (size_t)len;
}

static size_t frame_make(char ret_frame[FRAME_MAX], const char *text, size_t len)
{
    size_t head = len < 126 ? 2 : HEAD_MAX;

    if (len > FRAME_MAX - HEAD_MAX)
        tool_die("a frame of %zu bytes", len);
    ret_frame[0] = (char)0x81;
    ret_frame[1] = len < 126 ? (char)len : 126;
    if (len >= 126) {
        ret_frame[2] = (char)(len >> 8);
        ret_frame[3] = (char)(len & 0xff);
    }
    memcpy(ret_frame + head, text, len);
    return head + len;
}

void members_send_channel(struct members *members, const char *channel, const char *text,
                          size_t len)
{
    char frame[FRAME_MAX];
    size_t frame_len = frame_make(frame, text, len);
    struct group *group;

    HASH_FIND_STR(members->by_id, channel, group);
    if (!group)
        tool_die("a channel that is not in the set-up: %s", channel);
    for (size_t i = 0; i < group->channel->member_count; i++)
        member_send(&members->list[group->channel->members[i]], frame, frame_len);
}

void members_send_user(struct members *members, const char *token, const char *text, size_t len)
{
    char frame[FRAME_MAX];

    member_send(member_find(members, token), frame, frame_make(frame, text, len));
}
