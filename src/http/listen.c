// SPDX-License-Identifier: Apache-2.0
// Parses listen addresses and opens the listening sockets.
#include "listen.h"

#include "base/error.h"
#include "base/log.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LISTEN_BACKLOG = 4096 };

struct listen_address {
    char host[256]; // "": all addresses
    char port[8];
};

// Parses "host:port", "[v6]:port" or ":port".
static int address_split(const char *address, struct listen_address *ret_split)
{
    const char *colon = strrchr(address, ':');
    if (!colon)
        return -ERROR_INVALID_ARGUMENTS;
    const char *host = address;
    size_t length = (size_t)(colon - address);
    if (length >= 2 && host[0] == '[' && host[length - 1] == ']') {
        host++;
        length -= 2;
    }
    size_t port_length = strlen(colon + 1);
    if (length >= sizeof ret_split->host || port_length == 0 ||
        port_length >= sizeof ret_split->port)
        return -ERROR_INVALID_ARGUMENTS;
    memcpy(ret_split->host, host, length);
    ret_split->host[length] = '\0';
    memcpy(ret_split->port, colon + 1, port_length + 1);
    return 0;
}

static void option_set(int fd, int level, int option, int value)
{
    (void)setsockopt(fd, level, option, &value, sizeof value);
}

// Returns a listening socket, or -errno.
static int listen_try(const struct addrinfo *info)
{
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    option_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    option_set(fd, SOL_SOCKET, SO_REUSEPORT, 1);
    option_set(fd, IPPROTO_TCP, TCP_NODELAY, 1); // accepted sockets inherit it
    if (info->ai_family == AF_INET6)
        option_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    if (bind(fd, info->ai_addr, info->ai_addrlen) < 0 || listen(fd, LISTEN_BACKLOG) < 0) {
        int r = -errno;
        close(fd);
        return r;
    }
    return fd;
}

static int listen_family(const struct addrinfo *infos, int family, int *ret_fd)
{
    int r = -EADDRNOTAVAIL;
    for (const struct addrinfo *info = infos; info; info = info->ai_next) {
        if (info->ai_family != family)
            continue;
        r = listen_try(info);
        if (r >= 0) {
            *ret_fd = r;
            return 0;
        }
    }
    return r;
}

int listen_on(const char *address, int *ret_fd)
{
    struct listen_address split;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *infos = NULL;
    int r = address_split(address, &split);
    if (r < 0 ||
        getaddrinfo(split.host[0] == '\0' ? NULL : split.host, split.port, &hints, &infos) != 0) {
        log_write(LOG_ERROR, "http", "cannot listen on %s: not an address", address);
        return -ERROR_INVALID_ARGUMENTS;
    }
    // Without a host, an IPv6 socket serves both families. If IPv6 is unavailable, IPv4 must do.
    r = listen_family(infos, AF_INET6, ret_fd);
    if (r < 0) {
        int other = listen_family(infos, AF_INET, ret_fd);
        r = other == -EADDRNOTAVAIL ? r : other;
    }
    freeaddrinfo(infos);
    if (r >= 0)
        return 0;
    log_write(LOG_ERROR, "http", "cannot listen on %s: %s", address, strerror(-r));
    return -ERROR_UNAVAILABLE;
}
