// SPDX-License-Identifier: Apache-2.0
// Sockets to Redis, plain or with TLS. Certificates are read at each connect, so that new ones are
// used without a restart.
#include "redis_link.h"

#include "base/check.h"
#include "base/error.h"
#include "base/memory.h"
#include "cache/cache.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PROBLEM_SIZE = 160 };

struct link {
    uint32_t tag;
    const struct url *url;
    int fd;
    SSL *tls; // NULL: plain
    BIO_METHOD *method;
    short events;
    bool connected;
    char problem[PROBLEM_SIZE];
};

static int link_fail(struct link *link, const char *problem)
{
    snprintf(link->problem, sizeof link->problem, "%s", problem);
    return -ERROR_UNAVAILABLE;
}

// Nobody can enter the passphrase of a key.
static int passphrase_refuse(char *text, int size, int writing, void *arg)
{
    (void)text, (void)size, (void)writing, (void)arg;
    return -1;
}

static const char *context_fill(SSL_CTX *context, const struct url *url)
{
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_default_passwd_cb(context, passphrase_refuse);
    if (url->cacert[0] ? SSL_CTX_load_verify_locations(context, url->cacert, NULL) != 1
                       : SSL_CTX_set_default_verify_paths(context) != 1)
        return "a URL whose cacert is a readable file of certificates";
    if (!url->cert[0])
        return NULL;
    if (SSL_CTX_use_certificate_chain_file(context, url->cert) != 1)
        return "a URL whose cert is a readable file of certificates";
    if (SSL_CTX_use_PrivateKey_file(context, url->key, SSL_FILETYPE_PEM) != 1)
        return "a URL whose key is the readable private key of cert";
    return NULL;
}

// Returns what the URL must be and is not, or NULL.
static const char *context_new(const struct url *url, SSL_CTX **ret_context)
{
    ERR_clear_error();
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    const char *problem = context ? context_fill(context, url) : "one that OpenSSL can use";
    ERR_clear_error();
    if (problem)
        SSL_CTX_free(TAKE(context));
    *ret_context = context;
    return problem;
}

static const char *files_problem(const struct url *url)
{
    SSL_CTX *context;
    if (!url->tls)
        return NULL;
    const char *problem = context_new(url, &context);
    SSL_CTX_free(context);
    return problem;
}

const char *cache_url_problem(const char *redis_url)
{
    struct url url;
    if (strncmp(redis_url, "redis+", 6) == 0 || strncmp(redis_url, "rediss+", 7) == 0)
        return "one server's URL: Redis Cluster and Sentinel are not supported";
    if (url_parse(redis_url, &url) < 0)
        return "redis://[user:password@]host:port[/db], rediss://… (TLS) with "
               "?cacert=file&cert=file&"
               "key=file, or unix:///path, with special characters of a password or path as %XX";
    return files_problem(&url);
}

// The certificate must name the host, or its address where the URL has one.
static int host_expect(SSL *tls, const char *host)
{
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls), host) == 1)
        return 0;
    ERR_clear_error();
    bool set = SSL_set1_host(tls, host) == 1 && SSL_set_tlsext_host_name(tls, host) == 1;
    return set ? 0 : -ERROR_MEMORY;
}

// OpenSSL's own socket would end a process that does not ignore SIGPIPE.
static int socket_write(BIO *bio, const char *data, int length)
{
    const struct link *link = CAST(link, BIO_get_data(bio));
    ssize_t sent = send(link->fd, data, (size_t)length, MSG_NOSIGNAL);
    BIO_clear_retry_flags(bio);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(bio);
    return (int)sent;
}

static int socket_read(BIO *bio, char *data, int size)
{
    const struct link *link = CAST(link, BIO_get_data(bio));
    ssize_t length = recv(link->fd, data, (size_t)size, 0);
    BIO_clear_retry_flags(bio);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(bio);
    return (int)length;
}

static long socket_control(BIO *bio, int what, long number, void *arg)
{
    (void)bio, (void)number, (void)arg;
    return what == BIO_CTRL_FLUSH; // nothing is held back here
}

static BIO_METHOD *socket_method_new(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "Redis");
    if (!method)
        return NULL;
    BIO_meth_set_write(method, socket_write);
    BIO_meth_set_read(method, socket_read);
    BIO_meth_set_ctrl(method, socket_control);
    return method;
}

static int tls_dress(struct link *link)
{
    link->method = socket_method_new();
    BIO *bio = link->method ? BIO_new(link->method) : NULL;
    if (!bio)
        return -ERROR_MEMORY;
    BIO_set_data(bio, link);
    BIO_set_init(bio, 1);
    SSL_set_bio(link->tls, bio, bio);
    SSL_set_connect_state(link->tls);
    return host_expect(link->tls, link->url->host);
}

static int tls_new(struct link *link)
{
    SSL_CTX *context;
    const char *problem = context_new(link->url, &context);
    if (problem) {
        snprintf(link->problem, sizeof link->problem, "TIDINGS_REDIS_URL must be %s", problem);
        return -ERROR_UNAVAILABLE;
    }
    link->tls = SSL_new(context);
    SSL_CTX_free(context);
    if (!link->tls || tls_dress(link) < 0)
        return link_fail(link, "no memory");
    return 0;
}

// Why a call of OpenSSL came to nothing. 0: the socket is not ready.
static int tls_result(struct link *link, int r)
{
    int error = SSL_get_error(link->tls, r);
    long verdict = SSL_get_verify_result(link->tls);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
        link->events = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
        return 0;
    }
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    link_fail(link, error == SSL_ERROR_SSL && reason ? reason : "connection closed");
    if (verdict != X509_V_OK)
        snprintf(link->problem, sizeof link->problem, "its certificate is refused: %s",
                 X509_verify_cert_error_string(verdict));
    ERR_clear_error();
    return -ERROR_UNAVAILABLE;
}

struct link *link_new(int fd, const struct url *url)
{
    struct link *link = memory_must_new(sizeof *link);
    *link = (struct link){.tag = TAG(link), .url = url, .fd = fd, .events = POLLOUT};
    return link;
}

void link_free(struct link *link)
{
    if (!link)
        return;
    SSL_free(link->tls);
    BIO_meth_free(link->method);
    close(link->fd);
    TAGGED_FREE(link);
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
    return link->url->tls ? tls_new(link) : 0;
}

int link_open(struct link *link)
{
    if (!link->connected) {
        int r = socket_open(link);
        if (r < 0)
            return r;
    }
    if (!link->tls)
        return 1;
    int r = SSL_do_handshake(link->tls);
    return r == 1 ? 1 : tls_result(link, r);
}

short link_events(const struct link *link)
{
    return link->events;
}

ssize_t link_read(struct link *link, char *data, size_t size)
{
    if (link->tls) {
        int r = SSL_read(link->tls, data, (int)size);
        return r > 0 ? r : tls_result(link, r);
    }
    ssize_t length = recv(link->fd, data, size, 0);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return length > 0 ? length : link_fail(link, "connection closed");
}

// A call of OpenSSL writes one record.
static ssize_t tls_write(struct link *link, const char *data, size_t length)
{
    size_t sent = 0;
    while (sent < length) {
        size_t part = length - sent < INT_MAX ? length - sent : INT_MAX;
        int r = SSL_write(link->tls, data + sent, (int)part);
        if (r <= 0) {
            r = tls_result(link, r);
            return r < 0 ? r : (ssize_t)sent;
        }
        sent += (size_t)r;
    }
    return (ssize_t)sent;
}

ssize_t link_write(struct link *link, const char *data, size_t length)
{
    if (link->tls)
        return tls_write(link, data, length);
    ssize_t sent = send(link->fd, data, length, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return sent >= 0 ? sent : link_fail(link, "connection broken");
}

const char *link_problem(const struct link *link)
{
    return link->problem;
}
