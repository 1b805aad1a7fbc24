// SPDX-License-Identifier: Apache-2.0
// Resolves Redis' address without blocking, and connects to it.
#include "redis_address.h"

#include "base/check.h"
#include "base/error.h"
#include "base/wait.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

// More lookups that name servers have not answered are not begun.
enum { RESOLVING_MAX = 32 };

struct lookup {
    uint32_t tag;
    struct url url;
    pthread_mutex_t lock; // guards what follows
    pthread_cond_t resolved;
    struct addrinfo *found;
    bool running; // in the thread
    bool left;    // by its owner: the thread frees it
};

static atomic_int resolving;

static void lookup_delete(struct lookup *lookup)
{
    if (lookup->found)
        freeaddrinfo(lookup->found);
    pthread_cond_destroy(&lookup->resolved);
    pthread_mutex_destroy(&lookup->lock);
    TAGGED_FREE(lookup);
}

static void *lookup_run(void *arg)
{
    struct lookup *lookup = CAST(lookup, arg);
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    struct addrinfo *found = NULL;

    (void)getaddrinfo(lookup->url.host, lookup->url.port, &hints, &found);
    atomic_fetch_sub(&resolving, 1);
    pthread_mutex_lock(&lookup->lock);
    lookup->found = found;
    lookup->running = false;
    pthread_cond_signal(&lookup->resolved);
    bool left = lookup->left;
    pthread_mutex_unlock(&lookup->lock);
    if (left)
        lookup_delete(lookup);
    return NULL;
}

static int lookup_start(struct lookup *lookup)
{
    pthread_t thread;

    if (atomic_fetch_add(&resolving, 1) >= RESOLVING_MAX)
        goto refuse;
    lookup->running = true;
    if (pthread_create(&thread, NULL, lookup_run, lookup) != 0)
        goto refuse;
    pthread_detach(thread);
    return 0;
refuse:
    atomic_fetch_sub(&resolving, 1);
    return -ERROR_UNAVAILABLE;
}

static void lookup_init(struct lookup *lookup, const struct url *url)
{
    lookup->url = *url;
    pthread_mutex_init(&lookup->lock, NULL);
    pthread_cond_init(&lookup->resolved, NULL);
}

int lookup_new(const struct url *url, struct lookup **ret_lookup)
{
    const struct addrinfo numeric = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    struct lookup *lookup = TAGGED_NEW(lookup);
    if (!lookup)
        return -ERROR_MEMORY;
    lookup_init(lookup, url);
    bool named = !url->path[0] && getaddrinfo(url->host, url->port, &numeric, &lookup->found) != 0;
    int r = named ? lookup_start(lookup) : 0;
    if (r < 0)
        lookup_delete(lookup);
    else
        *ret_lookup = lookup;
    return r;
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
    int count = 0;

    if (lookup->url.path[0])
        return unix_address(&lookup->url, ret_addresses);
    pthread_mutex_lock(&lookup->lock);
    bool running = lookup->running;
    for (struct addrinfo *ai = lookup->found; ai && count < ADDRESSES_MAX; ai = ai->ai_next) {
        struct address *address = &ret_addresses[count++];
        *address = (struct address){.length = ai->ai_addrlen};
        memcpy(&address->storage, ai->ai_addr, ai->ai_addrlen);
    }
    pthread_mutex_unlock(&lookup->lock);
    return count > 0 || running ? count : -ERROR_UNAVAILABLE;
}

int lookup_wait(struct lookup *lookup, int64_t timeout_ms, struct address *ret_addresses)
{
    int64_t until_ms = clock_monotonic_ms() + timeout_ms;

    pthread_mutex_lock(&lookup->lock);
    while (lookup->running && wait_until(&lookup->resolved, &lookup->lock, until_ms))
        continue;
    pthread_mutex_unlock(&lookup->lock);
    return lookup_poll(lookup, ret_addresses);
}

void lookup_free(struct lookup *lookup)
{
    if (!lookup)
        return;
    pthread_mutex_lock(&lookup->lock);
    bool running = lookup->running;
    lookup->left = true;
    pthread_mutex_unlock(&lookup->lock);
    if (!running)
        lookup_delete(lookup);
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
