// SPDX-License-Identifier: Apache-2.0
// Resolves Redis' address without blocking, and connects to it.
#include "redis_address.h"

#include "base/error.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

struct lookup {
    struct url url;
    struct addrinfo hints;
    struct gaicb request;
    bool running;
};

int lookup_new(const struct url *url, struct lookup **ret_lookup)
{
    CLEANUP_FREE struct lookup *lookup = calloc(1, sizeof *lookup);
    if (!lookup)
        return -ERROR_MEMORY;
    lookup->url = *url;
    lookup->hints = (struct addrinfo){.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    lookup->request = (struct gaicb){
        .ar_name = lookup->url.host, .ar_service = lookup->url.port, .ar_request = &lookup->hints};
    bool named = !url->path[0] &&
                 getaddrinfo(url->host, url->port, &lookup->hints, &lookup->request.ar_result) != 0;
    if (named) {
        lookup->hints.ai_flags = AI_ADDRCONFIG;
        struct gaicb *list[] = {&lookup->request};
        if (getaddrinfo_a(GAI_NOWAIT, list, 1, NULL) != 0)
            return -ERROR_UNAVAILABLE;
        lookup->running = true;
    }
    *ret_lookup = TAKE(lookup);
    return 0;
}

static int unix_address(const struct url *url, struct address *ret_address)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    memcpy(local.sun_path, url->path, strlen(url->path) + 1);
    *ret_address = (struct address){.length = sizeof local};
    memcpy(&ret_address->storage, &local, sizeof local);
    return 1;
}

int lookup_poll(struct lookup *lookup, struct address *ret_addresses)
{
    if (lookup->url.path[0])
        return unix_address(&lookup->url, ret_addresses);
    if (lookup->running) {
        int r = gai_error(&lookup->request);
        if (r == EAI_INPROGRESS)
            return 0;
        lookup->running = false;
        if (r != 0)
            return -ERROR_UNAVAILABLE;
    }
    int count = 0;
    for (struct addrinfo *ai = lookup->request.ar_result; ai && count < ADDRESSES_MAX;
         ai = ai->ai_next) {
        struct address *address = &ret_addresses[count++];
        *address = (struct address){.length = ai->ai_addrlen};
        memcpy(&address->storage, ai->ai_addr, ai->ai_addrlen);
    }
    return count > 0 ? count : -ERROR_UNAVAILABLE;
}

int lookup_wait(struct lookup *lookup, int64_t timeout_ms, struct address *ret_addresses)
{
    const struct gaicb *list[] = {&lookup->request};
    struct timespec limit = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000};
    if (lookup->running)
        (void)gai_suspend(list, 1, &limit);
    return lookup_poll(lookup, ret_addresses);
}

void lookup_free(struct lookup *lookup)
{
    if (!lookup)
        return;
    const struct gaicb *list[] = {&lookup->request};
    if (lookup->running && gai_cancel(&lookup->request) == EAI_NOTCANCELED)
        while (gai_error(&lookup->request) == EAI_INPROGRESS)
            (void)gai_suspend(list, 1, NULL);
    if (lookup->request.ar_result)
        freeaddrinfo(lookup->request.ar_result);
    free(lookup);
}

// The kernel also gives up on a peer that stops answering (TCP_USER_TIMEOUT).
static void socket_tune(int fd, int family)
{
    if (family == AF_UNIX)
        return;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &(unsigned){5000}, sizeof(unsigned));
}

int address_connect(const struct address *address)
{
    int family = address->storage.ss_family;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -ERROR_UNAVAILABLE;
    socket_tune(fd, family);
    const struct sockaddr *to = (const void *)&address->storage;
    if (connect(fd, to, address->length) < 0 && errno != EINPROGRESS) {
        close(fd);
        return -ERROR_UNAVAILABLE;
    }
    return fd;
}
