// SPDX-License-Identifier: Apache-2.0
// An invocation is one call of a method, with what all methods need: argument readers that
// validate, and statements whose failure is handled in one place. A method is a function that takes
// an invocation and, sooner or later, replies once through it. The reply frees the invocation.
#pragma once

#include "api/api.h"
#include "base/channel.h"
#include "base/error.h"
#include "base/id.h"
#include "call/streaming.h"

// Owner of the operator's request bodies.
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
    ACCESS_ADMIN,    // admins of the workspace
    ACCESS_OPERATOR, // the operator's token only
    ACCESS_WEBHOOK,  // the secret of an incoming webhook
};

enum { METHODS_MAX = 192 };

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
    const char *channel_id;              // the argument, once read; NULL: none
    unsigned types;                      // of channels in which the token has the method's scope
    const struct method_alias *alias;    // the alias called, if its reply differs; NULL: none
    invocation_rows_fn *rows_fn;         // receives the rows of the statement in flight
    const struct store_outcome *outcome; // set during rows_fn
    invocation_rows_fn *done_fn;         // receives the result of a successful change; may be NULL
    bool with_outbox; // the statement in flight returns the columns error, reply, told
    char outbox_id[OUTBOX_ID_SIZE];
    void *state; // the method's own; a struct is tagged; freed by free() with the invocation
};

struct api {
    uint32_t tag;
    struct loop *loop;
    struct api_options options;
    struct token_cache *tokens;
    struct token_cache *webhooks; // by their secrets
    struct limiter *limiter;
    struct limits *limits;
    struct channel_json_cache *objects;
    struct channel_states *channel_states;
};

// Runs `statement` (takes ownership of `params`). On failure, replies with the error; otherwise
// `fn` gets the rows. On STORE_WRITE, changes of one channel run one at a time; those without a
// channel, one at a time per user.
void invocation_query(struct invocation *invocation, enum store_lane lane,
                      const struct statement *statement, struct params *params,
                      invocation_rows_fn *fn);

// Only inside `fn`: transfers ownership of the rows to the method, until result_free().
struct result *invocation_take_rows(struct invocation *invocation);

// Adds the caller's workspace and id.
void invocation_caller_params(const struct invocation *invocation, struct params *params);
// Adds the first parameters of a change: id of its outbox row, workspace, caller.
void invocation_change_params(struct invocation *invocation, struct params *params);

// Runs a change and replies with its result. The statement's first columns are error, reply (a JSON
// object with the reply's members) and, with `with_outbox`, whether it wrote its outbox row.
void invocation_change(struct invocation *invocation, const struct statement *statement,
                       struct params *params, bool with_outbox);

// Runs a statement that only reads, with the columns error and reply, and replies with its result.
void invocation_read(struct invocation *invocation, enum store_lane lane,
                     const struct statement *statement, struct params *params);
// Whether the first row reports success: its first column, the error, is NULL. False: the error was
// replied; no row is -ERROR_INTERNAL.
NODISCARD bool invocation_succeeded(struct invocation *invocation, const struct result *result);

// Likewise for a change that takes long in Postgres, with `with_outbox`: on STORE_MANY.
void invocation_change_many(struct invocation *invocation, const struct statement *statement,
                            struct params *params);

// Submits an outbox row written by a change. A change of many channels has several rows of at most
// INVOCATION_PART channels, named by the invocation's id, that id and ".1", and so on; rows after
// the first are relayed in between other events.
enum { INVOCATION_PART = 500 };
void invocation_submit(const struct invocation *invocation, int64_t part);

// The base URL of this service for clients, ending in '/' (auth.c).
void invocation_base_url(const struct invocation *invocation, char *ret_url, size_t size);

// The reply's member `key` ("channel" or "channels") under the name of the alias that was called.
const char *invocation_key(const struct invocation *invocation, const char *key);

// Frees an invocation whose request was replied to.
void invocation_end(struct invocation *invocation);

// Replies; each ends the invocation.
struct json_writer *invocation_open(struct invocation *invocation);
void invocation_close(struct invocation *invocation);

// Ends a call from within the process with the message that was posted. False: the caller needs
// JSON.
NODISCARD bool invocation_posted(struct invocation *invocation, const struct posted *posted);
// Replies with a list of the objects in the first column.
void invocation_objects(struct invocation *invocation, const char *key,
                        const struct result *result);
void invocation_file(struct invocation *invocation, const struct reply_file *file);
void invocation_object(struct invocation *invocation, const char *json, size_t length);
void invocation_fail(struct invocation *invocation, int r);
// The arguments could not be read.
void invocation_unread(struct invocation *invocation, int r);
// -ERROR_RATELIMITED, with `seconds` to wait.
void invocation_fail_for(struct invocation *invocation, int64_t seconds);
void invocation_fail_message(struct invocation *invocation, int r, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// The user charged for the body's bytes; "" without a token.
const char *invocation_body_owner(const struct invocation *invocation);

// Whether the argument is present and not empty.
bool invocation_has(const struct invocation *invocation, const char *name);

// Whether a text is valid as the name of a user or workspace: 1 to LABEL_MAX_CODE_POINTS
// characters, not blank.
enum { LABEL_MAX_CODE_POINTS = 80 };
bool invocation_label_is_valid(const char *text, size_t length);

// Adds a name of a channel or user, and its folded form. (Without memory for that NULL, which is
// filled in later.)
void params_name(struct params *params, const char *name);

// Argument readers. False: an error that names the argument was replied.
NODISCARD bool take_text(struct invocation *invocation, const char *name,
                         const char **ret_text); // required, not empty
NODISCARD bool take_id(struct invocation *invocation, const char *name, const char *prefixes,
                       int error, const char **ret_id);
NODISCARD bool take_channel(struct invocation *invocation, const char **ret_channel_id);
NODISCARD bool take_user(struct invocation *invocation, const char *name, const char **ret_user_id);
// See invocation_label_is_valid().
NODISCARD bool take_label(struct invocation *invocation, const char *name, const char **ret_text);
NODISCARD bool take_user_name(struct invocation *invocation, const char **ret_name);
NODISCARD bool take_ts(struct invocation *invocation, const char *name, int error, int64_t *ret_ts);
// Optional arguments: *value keeps the default if the argument is absent or empty.
NODISCARD bool take_optional_text(struct invocation *invocation, const char *name,
                                  const char **value); // "" if empty
NODISCARD bool take_optional_word(struct invocation *invocation, const char *name,
                                  const char **value);
NODISCARD bool take_optional_label(struct invocation *invocation, const char *name,
                                   const char **value);
NODISCARD bool take_optional_ts(struct invocation *invocation, const char *name, int error,
                                int64_t *value);
NODISCARD bool take_optional_moment(struct invocation *invocation, const char *name, int error,
                                    int64_t *value);
NODISCARD bool take_optional_bool(struct invocation *invocation, const char *name, bool *value);
// Parses a boolean like take_optional_bool(), case-insensitively. -ERROR_INVALID_ARGUMENTS: not a
// boolean.
NODISCARD int invocation_flag_parse(const char *text, bool *ret_flag);
NODISCARD bool take_optional_int(struct invocation *invocation, const char *name, int error,
                                 int64_t min, int64_t max, int64_t *value);
// The argument `limit`: above `max` means `max`, 0 the default that *limit has.
NODISCARD bool take_limit(struct invocation *invocation, int64_t max, int64_t *limit);
// A list: "a,b" or "a, b", or a JSON array of strings (in a JSON body, or as text). Adds its
// members to an open text array of `params`; each must be an id with one of `prefixes`.
NODISCARD bool take_ids(struct invocation *invocation, const char *name, const char *prefixes,
                        int error, int max, struct params *params);
// A JSON array (in a JSON body, or as text) of 1 to `max` values of any type; owned by the caller.
NODISCARD bool take_array(struct invocation *invocation, const char *name, int max,
                          json_t **ret_array);
// A list in the same forms, of 1 to `max` ts.
NODISCARD bool take_tss(struct invocation *invocation, const char *name, int64_t *ret_tss, int max,
                        int *ret_count);
// A list in the same forms, returned as "a,b"; "": absent. `ret_text` has `size` bytes.
NODISCARD bool take_list(struct invocation *invocation, const char *name, char *ret_text,
                         size_t size);
// types=public_channel,private_channel,mpim,im as bits 1 << enum channel_type.
enum { TYPES_ALL = (1 << CHANNEL_TYPE_MAX) - 1, TYPES_PUBLIC = 1 << CHANNEL_PUBLIC };
NODISCARD bool take_optional_types(struct invocation *invocation, unsigned *value);
// A paging cursor "<kind>.<text>" from an earlier reply; *ret_text is unchanged if absent.
NODISCARD bool take_cursor(struct invocation *invocation, const char *kind, const char **ret_text);

// Writes response_metadata.next_cursor; `text` NULL or "": the last page.
void invocation_write_next_cursor(struct json_writer *w, const char *kind, const char *text);
