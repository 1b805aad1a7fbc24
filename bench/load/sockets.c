// SPDX-License-Identifier: Apache-2.0
#include "sockets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPENING_CLIENTS 32
#define OPENING_MAX_S 60

struct opening {
    struct sockets *sockets;
    struct setting *setting;
    size_t ready;
    char request[1024];
};

static const char *connect_request(void *owner, size_t n, uint64_t due_ns, size_t *ret_len)
{
    struct opening *opening = owner;
    size_t user = opening->sockets->list[n].user;

    (void)due_ns;
    *ret_len = setting_request(opening->setting, opening->request, sizeof(opening->request),
                               "rtm.connect", opening->setting->input.users[user].token, "{}");
    return opening->request;
}

static void remove_backslashes(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++)
        if (*from != '\\')
            *to++ = *from;
    *to = '\0';
}

// With the ticket of a WebSocket's address.
static void events_open(const struct opening *opening, size_t n, const char *socket_url)
{
    static const char path[] = "/rtm/";
    const char *ticket = strstr(socket_url, path);
    char url[256];

    if (!ticket)
        tool_die("no ticket in %s", socket_url);
    snprintf(url, sizeof(url), "%s/events?ticket=%s", opening->setting->input.url,
             ticket + sizeof(path) - 1);
    ws_socket_open_events(&opening->sockets->list[n], opening->setting->loop, url);
}

static void connect_reply(void *owner, size_t n, const char *body, size_t len)
{
    struct opening *opening = owner;
    char url[256];

    http_reply_check(body, len);
    http_reply_text(body, len, "url", url, sizeof(url));
    remove_backslashes(url);
    if (opening->sockets->are_events)
        events_open(opening, n, url);
    else
        ws_socket_open(&opening->sockets->list[n], opening->setting->loop, url);
}

static void hello_frame(struct ws_socket *socket, const char *text, size_t len)
{
    struct opening *opening = socket->owner;

    if (!memmem(text, len, "\"hello\"", 7))
        tool_die("the first frame is no hello: %.*s", (int)len, text);
    opening->ready++;
    socket->on_frame = NULL;
}

static void listen_for(struct sockets *sockets, ws_frame_fn on_frame, void *owner)
{
    for (size_t i = 0; i < sockets->count; i++) {
        sockets->list[i].on_frame = on_frame;
        sockets->list[i].owner = owner;
    }
}

static void wait_for_hellos(struct opening *opening)
{
    uint64_t end_ns = tool_now_ns() + OPENING_MAX_S * TOOL_NS_PER_S;

    while (opening->ready < opening->sockets->count) {
        if (tool_now_ns() > end_ns)
            tool_die("%zu of %zu sockets said hello", opening->ready, opening->sockets->count);
        net_loop_run(opening->setting->loop, tool_now_ns() + TOOL_NS_PER_S / 10);
    }
}

void sockets_open(struct sockets *sockets, struct setting *setting, ws_frame_fn on_frame,
                  void *owner)
{
    struct opening opening = {.sockets = sockets, .setting = setting};
    struct load_plan plan = {.url = setting->input.url,
                             .clients = OPENING_CLIENTS,
                             .run_ns = OPENING_MAX_S * TOOL_NS_PER_S,
                             .total = sockets->count,
                             .request = connect_request,
                             .reply = connect_reply,
                             .owner = &opening};
    struct load load;

    listen_for(sockets, hello_frame, &opening);
    load_run(&load, setting->loop, &plan);
    load_done(&load);
    wait_for_hellos(&opening);
    listen_for(sockets, on_frame, owner);
}

void sockets_close(struct sockets *sockets)
{
    for (size_t i = 0; i < sockets->count; i++)
        net_conn_close(&sockets->list[i].conn);
}

void sockets_of_channels(struct sockets *ret_sockets, const struct input *input)
{
    struct ws_socket *next;

    *ret_sockets = (struct sockets){0};
    for (size_t c = 0; c < input->channel_count; c++)
        ret_sockets->count += input->channels[c].member_count;
    next = ret_sockets->list = tool_alloc(ret_sockets->count, sizeof(struct ws_socket));
    for (size_t c = 0; c < input->channel_count; c++)
        for (size_t m = 0; m < input->channels[c].member_count; m++)
            *next++ = (struct ws_socket){
                .conn.fd = -1, .user = input->channels[c].members[m], .member = m};
}

size_t sockets_count_closed(const struct sockets *sockets)
{
    size_t closed = 0;

    for (size_t i = 0; i < sockets->count; i++)
        closed += sockets->list[i].is_closed || sockets->list[i].conn.fd < 0;
    return closed;
}
