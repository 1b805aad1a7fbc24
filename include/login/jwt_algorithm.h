// SPDX-License-Identifier: Apache-2.0
// The algorithms that JWTs may be signed with (RFC 7518, 3.1 and RFC 8037, 3.1). Any thread.
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

enum jwt_algorithm {
    JWT_HS256,
    JWT_HS384,
    JWT_HS512,
    JWT_RS256,
    JWT_RS384,
    JWT_RS512,
    JWT_PS256,
    JWT_PS384,
    JWT_PS512,
    JWT_ES256,
    JWT_ES384,
    JWT_EDDSA,
    JWT_ALGORITHM_MAX
};

// Sets of algorithms, as bits 1 << enum jwt_algorithm.
enum {
    JWT_ALGORITHMS_HMAC = 1 << JWT_HS256 | 1 << JWT_HS384 | 1 << JWT_HS512,
    JWT_ALGORITHMS_RSA = 1 << JWT_RS256 | 1 << JWT_RS384 | 1 << JWT_RS512 | 1 << JWT_PS256 |
                         1 << JWT_PS384 | 1 << JWT_PS512,
    JWT_ALGORITHMS_ALL = (1 << JWT_ALGORITHM_MAX) - 1
};

// By its name, in exactly that spelling ("RS256"); JWT_ALGORITHM_MAX: there is none. "none" is
// none.
enum jwt_algorithm jwt_algorithm_find(const char *name);

// Reads a list of names, "RS256,ES256". False: there are unknown ones, which are left out.
bool jwt_algorithms_parse(const char *list, unsigned *ret_algorithms);

const char *jwt_algorithm_name(enum jwt_algorithm algorithm);

// The name of the algorithm's digest for OpenSSL; NULL: EdDSA, which has its own.
const char *jwt_algorithm_digest(enum jwt_algorithm algorithm);

bool jwt_algorithm_is_in(enum jwt_algorithm algorithm, unsigned algorithms);
