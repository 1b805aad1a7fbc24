// SPDX-License-Identifier: Apache-2.0
// The subcommand secrets rotate: re-encrypts every secret in Postgres with the first key, in
// batches.
#include "app/commands.h"

#include "base/error.h"
#include "base/secrets.h"
#include "chat/device_address.h"
#include "parts.h"
#include "store/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 100, SECRET_MAX = 65536, PLACE_SIZE = 1024 };

// A column of secrets. `stale` takes the current prefix, the key to start after, and a limit; `put`
// takes keys, old and new texts, and for devices the digests of their tokens.
struct column {
    const char *place; // prefix of the place that binds the secret; the row's key follows
    struct statement stale, put;
    bool has_digests;
};

static const struct column columns[] = {
    {APP_SECRET_PLACE,
     {"app_secrets_stale", "SELECT id, secret FROM app_secrets_stale($1, $2, $3)"},
     {"app_secrets_put", "SELECT changed FROM app_secrets_put($1, $2, $3)"},
     false},
    {PUSH_APP_SECRET_PLACE,
     {"push_app_secrets_stale", "SELECT id, secret FROM push_app_secrets_stale($1, $2, $3)"},
     {"push_app_secrets_put", "SELECT changed FROM push_app_secrets_put($1, $2, $3)"},
     false},
    {AUTH_PROVIDER_KEYS_PLACE,
     {"auth_provider_keys_stale", "SELECT id, secret FROM auth_provider_keys_stale($1, $2, $3)"},
     {"auth_provider_keys_put", "SELECT changed FROM auth_provider_keys_put($1, $2, $3)"},
     false},
    {DEVICE_ADDRESS_PLACE,
     {"device_addresses_stale", "SELECT id, secret FROM device_addresses_stale($1, $2, $3)"},
     {"device_addresses_put", "SELECT changed FROM device_addresses_put($1, $2, $3, $4)"},
     true},
};

struct rotation {
    const struct secrets *secrets;
    struct session *session;
    int64_t changed;
    int64_t refused; // not decrypted by any key
};

// A secret encrypted with the first key.
struct resealed {
    char *text; // NULL: could not be decrypted, and is unchanged
    char digest[DIGEST_HEX_SIZE];
};

static int digest_make(const struct secrets *secrets, const struct buffer *address,
                       char *ret_digest)
{
    CLEANUP(buffer_done) struct buffer token = BUFFER(SECRET_MAX);
    char digests[SECRETS_KEYS_MAX][DIGEST_HEX_SIZE];

    int r = device_address_token(address->data, address->length, &token);
    if (r < 0)
        return r;
    secrets_digests(secrets, token.data, token.length, digests);
    memcpy(ret_digest, digests[0], DIGEST_HEX_SIZE);
    return 0;
}

static int seal_anew(struct rotation *rotation, const struct column *column, const char *id,
                     const char *old, struct resealed *ret_new)
{
    CLEANUP(buffer_done) struct buffer plain = BUFFER(SECRET_MAX);
    CLEANUP(buffer_done) struct buffer sealed = BUFFER(2 * SECRET_MAX);
    char place[PLACE_SIZE];
    int r = 0;

    snprintf(place, sizeof place, "%s%s", column->place, id);
    if (secrets_is_sealed(old))
        r = secrets_open(rotation->secrets, place, old, &plain);
    else
        buffer_append_text(&plain, old);
    if (r >= 0 && column->has_digests)
        r = digest_make(rotation->secrets, &plain, ret_new->digest);
    if (r < 0 && r != -ERROR_MEMORY) {
        fprintf(stderr, "secrets: %s %s\n", r == -ERROR_REFUSED ? "no key decrypts" : "cannot read",
                place);
        rotation->refused++;
        return 0;
    }
    if (r < 0)
        return r;
    secrets_seal(rotation->secrets, place, plain.data, plain.length, &sealed);
    ret_new->text = buffer_take_text(&sealed);
    return ret_new->text ? 0 : -ERROR_MEMORY;
}

// Columns of the rows that were decrypted, and of their new values.
enum { ROW_ID, ROW_OLD, NEW_TEXT, NEW_DIGEST };

static void texts_add(struct params *params, const struct result *result, int column,
                      const struct resealed *values)
{
    params_open_text_array(params);
    for (int row = 0; row < result_rows(result); row++)
        if (values[row].text)
            params_element_text(params, column == NEW_TEXT     ? values[row].text
                                        : column == NEW_DIGEST ? values[row].digest
                                                               : result_text(result, row, column));
    params_close_array(params);
}

static int piece_put(struct rotation *rotation, const struct column *column,
                     const struct result *result, const struct resealed *values)
{
    CLEANUP_RESULT struct result *changed = NULL;
    struct params params = {0};

    for (int i = ROW_ID; i <= (column->has_digests ? NEW_DIGEST : NEW_TEXT); i++)
        texts_add(&params, result, i, values);
    int r = session_call(rotation->session, &column->put, &params, &changed);
    if (r >= 0)
        rotation->changed += result_int(changed, 0, 0);
    return r;
}

static int piece_rotate(struct rotation *rotation, const struct column *column,
                        const struct result *result)
{
    struct resealed values[PIECE] = {0};
    int r = 0;

    for (int row = 0; row < result_rows(result) && r >= 0; row++)
        r = seal_anew(rotation, column, result_text(result, row, 0), result_text(result, row, 1),
                      &values[row]);
    if (r >= 0)
        r = piece_put(rotation, column, result, values);
    for (int row = 0; row < PIECE; row++)
        free(values[row].text);
    return r;
}

static int column_rotate(struct rotation *rotation, const struct column *column)
{
    char after[PLACE_SIZE] = "";
    int rows = PIECE;
    int r = 0;

    while (rows == PIECE && r >= 0) {
        CLEANUP_RESULT struct result *result = NULL;
        struct params params = {0};
        params_text(&params, rotation->secrets->keys[0].prefix);
        params_text(&params, after);
        params_int(&params, PIECE);
        r = session_call(rotation->session, &column->stale, &params, &result);
        rows = r < 0 ? 0 : result_rows(result);
        if (rows > 0) {
            snprintf(after, sizeof after, "%s", result_text(result, rows - 1, 0));
            r = piece_rotate(rotation, column, result);
        }
    }
    return r;
}

static int rotate(const struct settings *settings, struct rotation *rotation)
{
    int r = parts_check_database(settings);

    if (r >= 0)
        r = session_new(settings->database_url, settings->statement_timeout_ms, &rotation->session);
    for (size_t i = 0; i < sizeof columns / sizeof columns[0] && r >= 0; i++)
        r = column_rotate(rotation, &columns[i]);
    session_free(rotation->session);
    return r;
}

void command_secrets_usage(FILE *out)
{
    fputs(
        "usage: tidings secrets rotate\n"
        "\n"
        "Encrypts all secrets in Postgres with the first key of TIDINGS_SECRET_KEY: those under\n"
        "the second key, and those stored in plain text. Instances keep running. Can be repeated.\n"
        "Exits with 1 if some secrets cannot be decrypted with either key (they stay unchanged),\n"
        "and with 2 on any other failure.\n",
        out);
}

int command_secrets(const struct settings *settings, int count, char *const *arguments)
{
    struct secrets secrets;
    struct rotation rotation = {.secrets = &secrets};

    if (count != 1 || strcmp(arguments[0], "rotate") != 0) {
        command_secrets_usage(stderr);
        return 2;
    }
    parts_secrets(settings, &secrets);
    if (secrets.count == 0) {
        fputs("secrets: TIDINGS_SECRET_KEY is not set\n", stderr);
        return 2;
    }
    int r = rotate(settings, &rotation);
    printf("%" PRId64 " encrypted, %" PRId64 " undecryptable\n", rotation.changed,
           rotation.refused);
    if (r < 0)
        fprintf(stderr, "secrets: %s\n", error_code(r));
    return r < 0 ? 2 : rotation.refused > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
