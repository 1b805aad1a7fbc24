// SPDX-License-Identifier: Apache-2.0
// An invocation is one call of a method, with what every method needs: arguments that are checked
// before use, and statements whose failure is answered in one place. A method is a function that
// takes an invocation and, sooner or later, replies once through it. The reply frees the
// invocation.
#pragma once

#include "api/api.h"
#include "base/channel.h"
#include "base/error.h"
#include "base/id.h"

// Whose the operator's bodies are.
#define OPERATOR_OWNER "operator"

struct invocation;
struct method_alias;
typedef void method_fn(struct invocation *invocation);

// Which tokens may call a method.
enum method_access {
    ACCESS_OPEN,     // no token needed
    ACCESS_ANYONE,   // users, bots and apps
    ACCESS_MEMBER,   // users and bots
    ACCESS_APP,      // apps
    ACCESS_ADMIN,    // an admin of the workspace
    ACCESS_OPERATOR, // the operator's token alone
};

struct method {
    const char *name;
    enum method_access access;
    const char *scope; // NULL: none needed
    method_fn *fn;
};

typedef void invocation_rows_fn(struct invocation *invocation, const struct result *result);

struct invocation {
    uint32_t tag;
    struct api *api;
    struct request *request;
    const struct actor *actor;
    const struct method *method;
    const char *channel_id; // the argument, once it was taken; NULL: none
    const struct method_alias
        *alias;                  // the older name it was called by, if its reply differs; else NULL
    invocation_rows_fn *rows_fn; // gets the rows of the statement under way
    const struct store_outcome *outcome; // while it does
    invocation_rows_fn *done_fn; // gets the answer of a change once it was made; may be NULL
    bool wrote;                  // the statement under way answers error, reply, told
    char outbox_id[OUTBOX_ID_SIZE];
    void *state; // the method's own, freed (free()) with the invocation
};

struct api {
    struct loop *loop;
    struct api_options options;
    struct token_cache *tokens;
    struct limiter *limiter;
    struct limits *limits;
    struct channel_json_cache *objects;
    struct channel_states *channel_states;
};

// Runs `statement` (takes over `params`). If it fails, replies with the error; otherwise `fn` gets
// the rows. On STORE_WRITE, changes of one channel take turns; of no channel, those of one user.
void invocation_query(struct invocation *invocation, enum store_lane lane,
                      const struct statement *statement, struct params *params,
                      invocation_rows_fn *fn);

// Inside of `fn`: makes the rows the method's own, until result_free().
struct result *invocation_take_rows(struct invocation *invocation);

// Adds the first parameters of a change: id of its outbox row, workspace, caller.
void invocation_change_params(struct invocation *invocation, struct params *params);

// Runs a change and replies with its result. The statement's first columns are error, reply (a JSON
// object with the reply's members) and, if `tells`, whether it wrote its outbox row.
void invocation_change(struct invocation *invocation, const struct statement *statement,
                       struct params *params, bool tells);

// The same of a change that takes Postgres long, and tells: on STORE_MANY.
void invocation_change_many(struct invocation *invocation, const struct statement *statement,
                            struct params *params);

// Tells of what a change wrote. Where it is about many channels it has several outbox rows of at
// most INVOCATION_PART channels, named by the invocation's id, that id and ".1", and so on: those
// after the first are told between others' events.
enum { INVOCATION_PART = 500 };
void invocation_tell(const struct invocation *invocation, int64_t part);

// The base URL of this service for clients, with a '/' at its end (basics.c).
void invocation_base_url(const struct invocation *invocation, char *ret_url, size_t size);

// The name of the reply's member `key` ("channel" or "channels") under the name the method was
// called by.
const char *invocation_key(const struct invocation *invocation, const char *key);

// The replies; each ends the invocation.
struct json_writer *invocation_open(struct invocation *invocation);
void invocation_close(struct invocation *invocation);
void invocation_object(struct invocation *invocation, const char *json, size_t length);
void invocation_fail(struct invocation *invocation, int r);
// The arguments could not be read.
void invocation_unread(struct invocation *invocation, int r);
// -ERROR_RATELIMITED, for so many seconds.
void invocation_fail_for(struct invocation *invocation, int64_t seconds);
void invocation_complain(struct invocation *invocation, int r, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Whose bytes those of the body are: the user's; "" for who has no token.
const char *invocation_body_owner(const struct invocation *invocation);

// Whether the argument is there, and not empty.
bool invocation_has(const struct invocation *invocation, const char *name);

// Whether a text can name people or workspaces: 1 to LABEL_MAX_CODE_POINTS characters, not blank.
enum { LABEL_MAX_CODE_POINTS = 80 };
bool invocation_label_is_valid(const char *text, size_t length);

// Read arguments. Each returns false after it has replied with an error that names the argument.
NODISCARD bool take_text(struct invocation *invocation, const char *name,
                         const char **ret_text); // required, not empty
NODISCARD bool take_id(struct invocation *invocation, const char *name, const char *prefixes,
                       int error, const char **ret_id);
NODISCARD bool take_channel(struct invocation *invocation, const char **ret_channel_id);
NODISCARD bool take_user(struct invocation *invocation, const char *name, const char **ret_user_id);
NODISCARD bool take_ts(struct invocation *invocation, const char *name, int error, int64_t *ret_ts);
// Optional ones: the default stays in *value when the argument is absent, or empty.
NODISCARD bool take_optional_text(struct invocation *invocation, const char *name,
                                  const char **value); // "" when it is empty
NODISCARD bool take_optional_word(struct invocation *invocation, const char *name,
                                  const char **value);
NODISCARD bool take_optional_ts(struct invocation *invocation, const char *name, int error,
                                int64_t *value);
NODISCARD bool take_optional_moment(struct invocation *invocation, const char *name, int error,
                                    int64_t *value);
NODISCARD bool take_optional_bool(struct invocation *invocation, const char *name, bool *value);
// What that takes for true and false, in any case. -ERROR_INVALID_ARGUMENTS: neither.
NODISCARD int invocation_flag_parse(const char *text, bool *ret_flag);
NODISCARD bool take_optional_int(struct invocation *invocation, const char *name, int error,
                                 int64_t min, int64_t max, int64_t *value);
// A list: "a,b" or "a, b", or a JSON array of strings (in a JSON body, or as text). Adds its
// members to an open text array of params; each must be an id with one of `prefixes`.
NODISCARD bool take_ids(struct invocation *invocation, const char *name, const char *prefixes,
                        int error, int max, struct params *params);
// A JSON array (in a JSON body, or as text) of 1 to `max` of anything; the caller owns it.
NODISCARD bool take_array(struct invocation *invocation, const char *name, int max,
                          json_t **ret_array);
// A list in the same forms, of at least one and at most `max` ts.
NODISCARD bool take_tss(struct invocation *invocation, const char *name, int64_t *ret_tss, int max,
                        int *ret_count);
// A list in the same forms, returned as "a,b"; "" when absent. `ret_text` has `size` bytes.
NODISCARD bool take_list(struct invocation *invocation, const char *name, char *ret_text,
                         size_t size);
// types=public_channel,private_channel,mpim,im as bits 1 << enum channel_type.
enum { TYPES_ALL = (1 << CHANNEL_TYPE_MAX) - 1, TYPES_PUBLIC = 1 << CHANNEL_PUBLIC };
NODISCARD bool take_optional_types(struct invocation *invocation, unsigned *value);
// A paging cursor "<kind>.<text>", as a reply gave it; *ret_text is left alone when absent.
NODISCARD bool take_cursor(struct invocation *invocation, const char *kind, const char **ret_text);

// Writes response_metadata.next_cursor; `text` NULL or "" is the last page.
void invocation_write_next_cursor(struct json_writer *w, const char *kind, const char *text);
