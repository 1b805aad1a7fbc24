// SPDX-License-Identifier: Apache-2.0
// A link with TLS to a peer of the test's own, in the same thread.
#include "../../src/cache/redis_link.h"
#include "base/error.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { LARGE = 3 << 20, TURNS_MAX = 100000 };

static char authority[] = "/tmp/tidings-link-XXXXXX";
static SSL_CTX *context;

struct pair {
    struct url url;
    struct link *link;
    SSL *peer;
    int peer_fd;
};

static X509 *certificate_new(EVP_PKEY *key)
{
    X509 *certificate = X509_new();
    X509_NAME *name = X509_get_subject_name(certificate);
    X509V3_CTX v3;
    X509_set_version(certificate, X509_VERSION_3);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"peer", -1, -1, 0);
    X509_set_issuer_name(certificate, name);
    X509_set_pubkey(certificate, key);
    X509V3_set_ctx(&v3, certificate, certificate, NULL, NULL, 0);
    X509_EXTENSION *names =
        X509V3_EXT_conf_nid(NULL, &v3, NID_subject_alt_name, "DNS:peer.example");
    X509_add_ext(certificate, names, -1);
    X509_EXTENSION_free(names);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    return certificate;
}

static int group_setup(void **state)
{
    (void)state;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = certificate_new(key);
    FILE *file = fdopen(mkstemp(authority), "w");
    context = SSL_CTX_new(TLS_server_method());
    assert_int_equal(SSL_CTX_use_certificate(context, certificate), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(context, key), 1);
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return fclose(file);
}

static int group_teardown(void **state)
{
    (void)state;
    SSL_CTX_free(context);
    return unlink(authority);
}

static void pair_start(struct pair *pair, const char *host)
{
    int fds[2];
    *pair = (struct pair){.url = {.tls = true}};
    (void)snprintf(pair->url.host, sizeof pair->url.host, "%s", host);
    (void)snprintf(pair->url.cacert, sizeof pair->url.cacert, "%s", authority);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    pair->link = link_new(fds[0], &pair->url);
    pair->peer_fd = fds[1];
    pair->peer = SSL_new(context);
    SSL_set_fd(pair->peer, fds[1]);
    SSL_set_accept_state(pair->peer);
}

static void pair_end(struct pair *pair)
{
    link_free(pair->link);
    SSL_free(pair->peer);
    close(pair->peer_fd);
}

// As another user of OpenSSL on this thread may leave behind.
static void error_leave(void)
{
    ERR_raise(ERR_LIB_USER, ERR_R_INTERNAL_ERROR);
}

// What link_open() returns at last.
static int pair_open(struct pair *pair)
{
    int r = 0;
    for (int turn = 0; turn < TURNS_MAX && r == 0; turn++) {
        error_leave();
        r = link_open(pair->link);
        ERR_clear_error();
        if (r == 0)
            (void)SSL_do_handshake(pair->peer);
    }
    return r;
}

static void test_opens_whatever_errors_others_left(void **state)
{
    char data[LINK_READ_MIN];
    struct pair pair;
    (void)state;
    pair_start(&pair, "peer.example");
    assert_int_equal(pair_open(&pair), 1);
    error_leave();
    assert_int_equal(link_read(pair.link, data, sizeof data), 0);
    assert_int_equal(SSL_do_handshake(pair.peer), 1);
    assert_int_equal(SSL_write(pair.peer, "hello", 5), 5);
    error_leave();
    assert_int_equal(link_read(pair.link, data, sizeof data), 5);
    assert_memory_equal(data, "hello", 5);
    pair_end(&pair);
}

// Whether a link opens to a peer with the group's certificate, by the authority in the file now.
static bool opens(void)
{
    struct pair pair;
    pair_start(&pair, "peer.example");
    bool is_open = pair_open(&pair) == 1;
    pair_end(&pair);
    return is_open;
}

static void test_a_changed_file_is_read_again(void **state)
{
    char other[sizeof authority + 6];
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = certificate_new(key);
    (void)state;
    assert_true(opens());
    (void)snprintf(other, sizeof other, "%s.kept", authority);
    assert_int_equal(rename(authority, other), 0);
    FILE *file = fopen(authority, "w");
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    assert_int_equal(fclose(file), 0);
    assert_false(opens());
    assert_int_equal(unlink(authority), 0);
    assert_false(opens()); // it cannot be read
    assert_int_equal(rename(other, authority), 0);
    assert_true(opens());
    X509_free(certificate);
    EVP_PKEY_free(key);
}

static void test_the_name_is_checked(void **state)
{
    struct pair pair;
    (void)state;
    pair_start(&pair, "other.example");
    assert_int_equal(pair_open(&pair), -ERROR_UNAVAILABLE);
    assert_non_null(strstr(link_problem(pair.link), "hostname mismatch"));
    pair_end(&pair);
    pair_start(&pair, "127.0.0.1");
    assert_int_equal(pair_open(&pair), -ERROR_UNAVAILABLE);
    assert_non_null(strstr(link_problem(pair.link), "IP address mismatch"));
    pair_end(&pair);
}

// Reads all that there is; what it should be follows from its place.
static size_t peer_read(struct pair *pair, size_t at)
{
    char data[LINK_READ_MIN];
    int length;
    while ((length = SSL_read(pair->peer, data, sizeof data)) > 0)
        for (int i = 0; i < length; i++, at++)
            assert_int_equal((unsigned char)data[i], at * 7 % 251);
    return at;
}

// The buffer moves between writes that were not taken whole, and grows, as that of a wire does.
static void test_large_writes_arrive_in_order(void **state)
{
    size_t sent = 0, received = 0;
    char *data = malloc(LARGE);
    struct pair pair;
    (void)state;
    for (size_t i = 0; i < LARGE; i++)
        data[i] = (char)(i * 7 % 251);
    pair_start(&pair, "peer.example");
    assert_int_equal(pair_open(&pair), 1);
    for (int turn = 0; turn < TURNS_MAX && received < LARGE; turn++) {
        size_t known = LARGE / 3 + (size_t)turn * 5000;
        if (known > LARGE)
            known = LARGE;
        if (known > sent) {
            char *moved = malloc(known - sent);
            memcpy(moved, data + sent, known - sent);
            ssize_t length = link_write(pair.link, moved, known - sent);
            assert_true(length >= 0);
            sent += (size_t)length;
            free(moved);
        }
        received = peer_read(&pair, received);
    }
    assert_int_equal(received, LARGE);
    free(data);
    pair_end(&pair);
}

static void test_a_closed_peer_ends_no_process(void **state)
{
    char data[LINK_READ_MIN] = {0};
    struct pair pair;
    (void)state;
    signal(SIGPIPE, SIG_DFL);
    pair_start(&pair, "peer.example");
    assert_int_equal(pair_open(&pair), 1);
    shutdown(pair.peer_fd, SHUT_RDWR);
    assert_int_equal(link_write(pair.link, data, sizeof data), -ERROR_UNAVAILABLE);
    assert_string_equal(link_problem(pair.link), "connection closed");
    pair_end(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opens_whatever_errors_others_left),
        cmocka_unit_test(test_a_changed_file_is_read_again),
        cmocka_unit_test(test_the_name_is_checked),
        cmocka_unit_test(test_large_writes_arrive_in_order),
        cmocka_unit_test(test_a_closed_peer_ends_no_process),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
