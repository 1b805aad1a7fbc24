// SPDX-License-Identifier: Apache-2.0
// Logs users in by the JWTs of their workspace's identity providers: for a good JWT it stores a
// token of Tidings, so that all that holds for tokens holds for its bearer.
#pragma once

#include "base/digest.h"
#include "invocation.h"

struct jwt_login_options {
    const char *jwt;
    const char *workspace;        // id or domain; "": whichever the JWT is for
    char digest[DIGEST_HEX_SIZE]; // of the token to store
};

// r: 0 with a row of `reply` (an object with expires_at, user and workspace); or
// -ERROR_INVALID_TOKEN, -ERROR_TOKEN_EXPIRED, -ERROR_INVALID_ARGUMENTS (it is for several
// workspaces), -ERROR_USER_NOT_FOUND, -ERROR_ACCOUNT_INACTIVE, or of the store. `is_genuine`: the
// provider issued it. Called inside jwt_login() or on a later turn.
struct jwt_login_outcome {
    int r;
    bool is_genuine;
    const struct result *result;
    const char *reply;
};
typedef void jwt_login_fn(void *arg, const struct jwt_login_outcome *outcome);
void jwt_login(struct api *api, const struct jwt_login_options *options, jwt_login_fn *fn,
               void *arg);
