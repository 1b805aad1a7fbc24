// SPDX-License-Identifier: Apache-2.0
// The error table: constant, HTTP status (used with `X-Tidings-Errors: http`) and wire code.
// Functions return 0 or a positive number on success and -ERROR_X on failure.
#pragma once

#define ERROR_TABLE(X)                                                                             \
    X(INTERNAL, 500, "internal_error")                                                             \
    X(MEMORY, 503, "service_unavailable")                                                          \
    X(UNAVAILABLE, 503, "service_unavailable")                                                     \
    X(BUSY, 503, "service_unavailable")                                                            \
    X(REFUSED, 500, "internal_error")                                                              \
    X(NOT_AUTHED, 401, "not_authed")                                                               \
    X(INVALID_AUTH, 401, "invalid_auth")                                                           \
    X(TOKEN_REVOKED, 401, "token_revoked")                                                         \
    X(TOKEN_EXPIRED, 401, "token_expired")                                                         \
    X(ACCOUNT_INACTIVE, 403, "account_inactive")                                                   \
    X(NOT_ALLOWED_TOKEN_TYPE, 403, "not_allowed_token_type")                                       \
    X(NO_PERMISSION, 403, "no_permission")                                                         \
    X(MISSING_SCOPE, 403, "missing_scope")                                                         \
    X(RESTRICTED_ACTION, 403, "restricted_action")                                                 \
    X(UNKNOWN_METHOD, 404, "unknown_method")                                                       \
    X(CHANNEL_NOT_FOUND, 404, "channel_not_found")                                                 \
    X(MESSAGE_NOT_FOUND, 404, "message_not_found")                                                 \
    X(THREAD_NOT_FOUND, 404, "thread_not_found")                                                   \
    X(MESSAGE_NOT_OWNED_BY_APP, 403, "message_not_owned_by_app")                                   \
    X(MESSAGE_NOT_IN_STREAMING_STATE, 409, "message_not_in_streaming_state")                       \
    X(USER_NOT_FOUND, 404, "user_not_found")                                                       \
    X(USER_NOT_IN_CHANNEL, 403, "user_not_in_channel")                                             \
    X(MARKDOWN_TEXT_CONFLICT, 400, "markdown_text_conflict")                                       \
    X(USER_DISABLED, 403, "user_disabled")                                                         \
    X(USERS_LIST_NOT_SUPPLIED, 400, "users_list_not_supplied")                                     \
    X(TOO_MANY_USERS, 400, "too_many_users")                                                       \
    X(WRONG_CHANNEL_TYPE, 400, "method_not_supported_for_channel_type")                            \
    X(NOT_AUTHORIZED, 403, "not_authorized")                                                       \
    X(CANT_LEAVE_GENERAL, 403, "cant_leave_general")                                               \
    X(CANT_ARCHIVE_GENERAL, 403, "cant_archive_general")                                           \
    X(CANT_KICK_FROM_GENERAL, 403, "cant_kick_from_general")                                       \
    X(NOT_ARCHIVED, 409, "not_archived")                                                           \
    X(TOO_LONG, 413, "too_long")                                                                   \
    X(TOKEN_NOT_FOUND, 404, "token_not_found")                                                     \
    X(APP_NOT_FOUND, 404, "app_not_found")                                                         \
    X(PROVIDER_NOT_FOUND, 404, "provider_not_found")                                               \
    X(BOT_NOT_FOUND, 404, "bot_not_found")                                                         \
    X(USERS_NOT_FOUND, 404, "users_not_found")                                                     \
    X(EMOJI_NOT_FOUND, 404, "emoji_not_found")                                                     \
    X(EMOJI_LIMIT_REACHED, 409, "emoji_limit_reached")                                             \
    X(NOT_ADMIN, 403, "not_admin")                                                                 \
    X(DEVICE_NOT_FOUND, 404, "device_not_found")                                                   \
    X(FILE_NOT_FOUND, 404, "file_not_found")                                                       \
    X(FILE_TOO_LARGE, 413, "file_too_large")                                                       \
    X(FILES_DISABLED, 409, "files_disabled")                                                       \
    X(STORAGE_LIMIT_REACHED, 409, "storage_limit_reached")                                         \
    X(TOO_MANY_FILES, 400, "too_many_files")                                                       \
    X(CANT_DELETE_FILE, 403, "cant_delete_file")                                                   \
    X(WEBHOOK_NOT_FOUND, 404, "webhook_not_found")                                                 \
    X(TOO_MANY_WEBHOOKS, 409, "too_many_webhooks")                                                 \
    X(TOO_MANY_DEVICES, 409, "too_many_devices")                                                   \
    X(SECRET_KEY_MISSING, 409, "secret_key_missing")                                               \
    X(SNOOZE_NOT_ACTIVE, 409, "snooze_not_active")                                                 \
    X(NOT_IN_CHANNEL, 403, "not_in_channel")                                                       \
    X(CANT_UPDATE_MESSAGE, 403, "cant_update_message")                                             \
    X(CANT_DELETE_MESSAGE, 403, "cant_delete_message")                                             \
    X(CANT_BROADCAST_MESSAGE, 403, "cant_broadcast_message")                                       \
    X(NO_DUAL_BROADCAST, 400, "no_dual_broadcast_content_update")                                  \
    X(CANT_KICK_SELF, 403, "cant_kick_self")                                                       \
    X(CANT_INVITE_SELF, 403, "cant_invite_self")                                                   \
    X(IS_ARCHIVED, 409, "is_archived")                                                             \
    X(ALREADY_ARCHIVED, 409, "already_archived")                                                   \
    X(ALREADY_IN_CHANNEL, 409, "already_in_channel")                                               \
    X(NAME_TAKEN, 409, "name_taken")                                                               \
    X(IDEMPOTENCY_KEY_REUSED, 409, "idempotency_key_reused")                                       \
    X(INVALID_ARGUMENTS, 400, "invalid_arguments")                                                 \
    X(INVALID_JSON, 400, "invalid_json")                                                           \
    X(JSON_NOT_OBJECT, 400, "json_not_object")                                                     \
    X(INVALID_FORM_DATA, 400, "invalid_form_data")                                                 \
    X(INVALID_POST_TYPE, 415, "invalid_post_type")                                                 \
    X(MISSING_POST_TYPE, 415, "missing_post_type")                                                 \
    X(INVALID_CHARSET, 400, "invalid_charset")                                                     \
    X(INVALID_ARRAY_ARG, 400, "invalid_array_arg")                                                 \
    X(INVALID_TIMESTAMP, 400, "invalid_timestamp")                                                 \
    X(INVALID_TS_OLDEST, 400, "invalid_ts_oldest")                                                 \
    X(INVALID_TS_LATEST, 400, "invalid_ts_latest")                                                 \
    X(INVALID_CURSOR, 400, "invalid_cursor")                                                       \
    X(INVALID_POSITION, 400, "invalid_position")                                                   \
    X(INVALID_PRESENCE, 400, "invalid_presence")                                                   \
    X(INVALID_KEY, 400, "invalid_key")                                                             \
    X(INVALID_TOKEN, 400, "invalid_token")                                                         \
    X(BAD_TIMESTAMP, 400, "bad_timestamp")                                                         \
    X(NO_ITEM_SPECIFIED, 400, "no_item_specified")                                                 \
    X(INVALID_NAME, 400, "invalid_name")                                                           \
    X(INVALID_LIMIT, 400, "invalid_limit")                                                         \
    X(INVALID_TYPES, 400, "invalid_types")                                                         \
    X(INVALID_PROFILE, 400, "invalid_profile")                                                     \
    X(INVALID_NAME_REQUIRED, 400, "invalid_name_required")                                         \
    X(INVALID_NAME_SPECIALS, 400, "invalid_name_specials")                                         \
    X(INVALID_NAME_PUNCTUATION, 400, "invalid_name_punctuation")                                   \
    X(INVALID_NAME_MAXLENGTH, 400, "invalid_name_maxlength")                                       \
    X(INVALID_BLOCKS, 400, "invalid_blocks")                                                       \
    X(INVALID_ATTACHMENTS, 400, "invalid_attachments")                                             \
    X(INVALID_METADATA_FORMAT, 400, "invalid_metadata_format")                                     \
    X(NO_TEXT, 400, "no_text")                                                                     \
    X(NO_USER, 400, "no_user")                                                                     \
    X(MSG_TOO_LONG, 413, "msg_too_long")                                                           \
    X(MSG_BLOCKS_TOO_LONG, 413, "msg_blocks_too_long")                                             \
    X(TOO_MANY_ATTACHMENTS, 413, "too_many_attachments")                                           \
    X(METADATA_TOO_LARGE, 413, "metadata_too_large")                                               \
    X(REQUEST_TOO_LARGE, 413, "request_too_large")                                                 \
    X(METHOD_NOT_ALLOWED, 405, "method_not_allowed")                                               \
    X(ALREADY_REACTED, 409, "already_reacted")                                                     \
    X(NO_REACTION, 404, "no_reaction")                                                             \
    X(TOO_MANY_EMOJI, 409, "too_many_emoji")                                                       \
    X(TOO_MANY_REACTIONS, 409, "too_many_reactions")                                               \
    X(ALREADY_PINNED, 409, "already_pinned")                                                       \
    X(NO_PIN, 404, "no_pin")                                                                       \
    X(NOT_PINNABLE, 400, "not_pinnable")                                                           \
    X(TOO_MANY_PINS, 409, "too_many_pins")                                                         \
    X(STRATEGY_UNSUPPORTED, 409, "strategy_unsupported")                                           \
    X(TOO_MANY_READ_MESSAGES, 409, "too_many_read_messages")                                       \
    X(RATELIMITED, 429, "ratelimited")

enum error {
    ERROR_NONE = 0,
#define ERROR_ENUM(name, status, code) ERROR_##name,
    ERROR_TABLE(ERROR_ENUM)
#undef ERROR_ENUM
        ERROR_MAX
};

// The wire code ("channel_not_found") of `error`, positive or negative. Static text, never NULL.
const char *error_code(int error);

// The HTTP status of `error`, positive or negative.
int error_http_status(int error);

// The negative error for wire code `code`; -ERROR_INTERNAL if the code is unknown.
int error_from_code(const char *code);
