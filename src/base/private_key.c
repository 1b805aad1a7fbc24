// SPDX-License-Identifier: Apache-2.0
// Parses private keys with OpenSSL.
#include "base/private_key.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>

static void bio_done(BIO **bio)
{
    BIO_free(*bio);
}

static int no_passphrase(char *buffer, int size, int writes, void *arg)
{
    (void)buffer;
    (void)size;
    (void)writes;
    (void)arg;
    return -1;
}

EVP_PKEY *private_key_parse(const char *pem)
{
    CLEANUP(bio_done) BIO *bio = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;

    ERR_clear_error();
    return key;
}
