// SPDX-License-Identifier: Apache-2.0
// TLS to Redis by OpenSSL: hiredis of Debian 12 has none. Files that have changed are read again at
// the next connect, so that new certificates are used without a restart.
#include "redis_tls.h"

#include "base/check.h"
#include "base/error.h"
#include "base/memory.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { PROBLEM_SIZE = 160 };

struct tls {
    uint32_t tag;
    int fd;
    SSL *ssl; // NULL: `problem` says why
    BIO_METHOD *method;
    short events;
    char problem[PROBLEM_SIZE];
};

static int tls_fail(struct tls *tls, const char *problem)
{
    snprintf(tls->problem, sizeof tls->problem, "%s", problem);
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
    // The system's: by its directory, of which only what is needed is read.
    if (url->cacert[0] ? SSL_CTX_load_verify_locations(context, url->cacert, NULL) != 1
                       : SSL_CTX_set_default_verify_dir(context) != 1)
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

// What a context was made of. All bytes are compared.
struct files {
    char paths[3][URL_TEXT_SIZE];
    struct {
        int64_t device, inode, size, changed_s, changed_ns;
    } stamps[3];
};

static void files_look(const struct url *url, struct files *ret_files)
{
    const char *const paths[] = {url->cacert, url->cert, url->key};
    memset(ret_files, 0, sizeof *ret_files);
    for (size_t i = 0; i < 3; i++) {
        struct stat found;
        memcpy(ret_files->paths[i], paths[i], strlen(paths[i]) + 1);
        if (!paths[i][0] || stat(paths[i], &found) != 0)
            continue;
        ret_files->stamps[i].device = (int64_t)found.st_dev;
        ret_files->stamps[i].inode = (int64_t)found.st_ino;
        ret_files->stamps[i].size = found.st_size;
        ret_files->stamps[i].changed_s = found.st_ctim.tv_sec;
        ret_files->stamps[i].changed_ns = found.st_ctim.tv_nsec;
    }
}

// The process' one context. A file of all the world's authorities takes OpenSSL tens of
// milliseconds, in which a loop would stand still at each connect.
static struct {
    pthread_mutex_t lock;
    SSL_CTX *context;
    struct files files;
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *shared_renew(const struct url *url, const struct files *files)
{
    SSL_CTX *context;
    const char *problem = context_new(url, &context);
    if (problem)
        return problem;
    SSL_CTX_free(shared.context);
    shared.context = context;
    shared.files = *files;
    return NULL;
}

// Returns what the URL must be and is not, or NULL and a reference for the caller.
static const char *context_share(const struct url *url, SSL_CTX **ret_context)
{
    struct files files;
    const char *problem = NULL;
    files_look(url, &files); // before they are read: what changes in between is read again
    pthread_mutex_lock(&shared.lock);
    if (!shared.context || memcmp(&files, &shared.files, sizeof files) != 0)
        problem = shared_renew(url, &files);
    if (!problem) {
        SSL_CTX_up_ref(shared.context);
        *ret_context = shared.context;
    }
    pthread_mutex_unlock(&shared.lock);
    return problem;
}

const char *tls_files_problem(const struct url *url)
{
    SSL_CTX *context = NULL;
    const char *problem = context_share(url, &context);
    SSL_CTX_free(context);
    return problem;
}

// The certificate must name the host, or its address where the URL has one.
static int host_expect(SSL *ssl, const char *host)
{
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1)
        return 0;
    ERR_clear_error();
    bool set = SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
    return set ? 0 : -ERROR_MEMORY;
}

// OpenSSL's own socket would end a process that does not ignore SIGPIPE.
static int socket_write(BIO *bio, const char *data, int length)
{
    const struct tls *tls = CAST(tls, BIO_get_data(bio));
    ssize_t sent = send(tls->fd, data, (size_t)length, MSG_NOSIGNAL);
    BIO_clear_retry_flags(bio);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(bio);
    return (int)sent;
}

static int socket_read(BIO *bio, char *data, int size)
{
    const struct tls *tls = CAST(tls, BIO_get_data(bio));
    ssize_t length = recv(tls->fd, data, (size_t)size, 0);
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

static int socket_dress(struct tls *tls, const char *host)
{
    tls->method = socket_method_new();
    BIO *bio = tls->method ? BIO_new(tls->method) : NULL;
    if (!bio)
        return -ERROR_MEMORY;
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio);
    SSL_set_connect_state(tls->ssl);
    return host_expect(tls->ssl, host);
}

static void tls_start(struct tls *tls, const struct url *url)
{
    SSL_CTX *context = NULL;
    const char *problem = context_share(url, &context);
    if (problem) {
        snprintf(tls->problem, sizeof tls->problem, "TIDINGS_REDIS_URL must be %s", problem);
        return;
    }
    tls->ssl = SSL_new(context);
    SSL_CTX_free(context);
    if (tls->ssl && socket_dress(tls, url->host) >= 0)
        return;
    (void)tls_fail(tls, "no memory");
    SSL_free(TAKE(tls->ssl));
}

struct tls *tls_new(int fd, const struct url *url)
{
    struct tls *tls = memory_must_new(sizeof *tls);
    *tls = (struct tls){.tag = TAG(tls), .fd = fd, .events = POLLOUT};
    tls_start(tls, url);
    return tls;
}

void tls_free(struct tls *tls)
{
    if (!tls)
        return;
    SSL_free(tls->ssl);
    BIO_meth_free(tls->method);
    TAGGED_FREE(tls);
}

// Why a call of OpenSSL came to nothing. 0: the socket is not ready. The thread's errors must have
// been cleared before the call: what else uses OpenSSL on this thread may have left some.
static int tls_result(struct tls *tls, int r)
{
    int error = SSL_get_error(tls->ssl, r);
    long verdict = SSL_get_verify_result(tls->ssl);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
        tls->events = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
        return 0;
    }
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    (void)tls_fail(tls, error == SSL_ERROR_SSL && reason ? reason : "connection closed");
    if (verdict != X509_V_OK)
        snprintf(tls->problem, sizeof tls->problem, "its certificate is refused: %s",
                 X509_verify_cert_error_string(verdict));
    ERR_clear_error();
    return -ERROR_UNAVAILABLE;
}

int tls_open(struct tls *tls)
{
    if (!tls->ssl)
        return -ERROR_UNAVAILABLE;
    ERR_clear_error();
    int r = SSL_do_handshake(tls->ssl);
    return r == 1 ? 1 : tls_result(tls, r);
}

short tls_events(const struct tls *tls)
{
    return tls->events;
}

ssize_t tls_read(struct tls *tls, char *data, size_t size)
{
    ERR_clear_error();
    int r = SSL_read(tls->ssl, data, (int)size);
    return r > 0 ? r : tls_result(tls, r);
}

// A call of OpenSSL writes one record.
ssize_t tls_write(struct tls *tls, const char *data, size_t length)
{
    size_t sent = 0;
    while (sent < length) {
        size_t part = length - sent < INT_MAX ? length - sent : INT_MAX;
        ERR_clear_error();
        int r = SSL_write(tls->ssl, data + sent, (int)part);
        if (r <= 0) {
            r = tls_result(tls, r);
            return r < 0 ? r : (ssize_t)sent;
        }
        sent += (size_t)r;
    }
    return (ssize_t)sent;
}

const char *tls_problem(const struct tls *tls)
{
    return tls->problem;
}
