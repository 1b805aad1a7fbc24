// SPDX-License-Identifier: Apache-2.0
// Writes the payloads for APNs, FCM, browsers and Matrix push gateways, cut to fit.
#include "payload.h"

#include "base/error.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "base/unicode.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NUMBER_SIZE = 24 };

// How much of the text is sent.
struct cut {
    size_t body_length;
};

static const char *field_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

static void text_if_any(struct json_writer *w, const char *key, const char *text)
{
    if (text)
        json_key_string(w, key, text);
}

static void body_write(struct json_writer *w, const struct notify_message *message, struct cut cut)
{
    if (!message->body)
        return;
    json_key(w, "body");
    json_string_n(w, message->body, cut.body_length);
}

// FCM has no subtitle: who wrote it stands before the text.
static void fcm_body_write(struct json_writer *w, const struct notify_message *message,
                           struct cut cut)
{
    CLEANUP(buffer_done) struct buffer text = BUFFER(SIZE_MAX / 2);

    if (!message->subtitle || !message->body) {
        body_write(w, message, cut);
        return;
    }
    buffer_append_text(&text, message->subtitle);
    buffer_append_text(&text, ": ");
    buffer_append(&text, message->body, cut.body_length);
    json_key(w, "body");
    json_string_n(w, text.data, text.length);
}

static void number_text(struct json_writer *w, const char *key, int64_t number)
{
    char text[NUMBER_SIZE];

    snprintf(text, sizeof text, "%" PRId64, number);
    json_key_string(w, key, text);
}

static void alert_write(struct json_writer *w, const struct notify_message *message, struct cut cut)
{
    json_key(w, "alert");
    json_open_object(w);
    json_key_string(w, "title", message->title);
    text_if_any(w, "subtitle", message->subtitle);
    body_write(w, message, cut);
    json_close_object(w);
}

// Writes the message's location. FCM accepts strings only.
static void place_write(struct json_writer *w, const struct notify_message *message, bool is_text)
{
    text_if_any(w, "workspace", message->workspace_id);
    text_if_any(w, "channel", message->channel_id);
    text_if_any(w, "ts", message->ts);
    if (is_text)
        number_text(w, "seq", message->seq);
    else
        json_key_int(w, "seq", message->seq);
    text_if_any(w, "thread_ts", message->thread_ts);
    text_if_any(w, "position", message->position);
}

static void aps_rest_write(struct json_writer *w, const struct notify_message *message)
{
    if (message->badge >= 0)
        json_key_int(w, "badge", message->badge);
    if (!message->title)
        return;
    if (notify_message_rings(message))
        json_key_string(w, "sound", "default");
    else
        json_key_string(w, "interruption-level", "passive");
    text_if_any(w, "thread-id", message->channel_id);
    json_key_int(w, "mutable-content", 1);
}

static void apns_write(struct json_writer *w, const struct notify_push *push, struct cut cut)
{
    const struct notify_message *message = &push->message;

    json_open_object(w);
    json_key(w, "aps");
    json_open_object(w);
    if (message->title)
        alert_write(w, message, cut);
    aps_rest_write(w, message);
    json_close_object(w);
    json_key(w, "tidings");
    json_open_object(w);
    place_write(w, message, false);
    json_close_object(w);
    json_close_object(w);
}

// For an iPhone reached through FCM, which takes the badge from here.
static void fcm_apns_write(struct json_writer *w, const struct notify_message *message)
{
    json_key(w, "apns");
    json_open_object(w);
    json_key(w, "headers");
    json_open_object(w);
    json_key_string(w, "apns-priority", notify_message_rings(message) ? "10" : "5");
    text_if_any(w, "apns-collapse-id", message->collapse_id);
    json_close_object(w);
    json_key(w, "payload");
    json_open_object(w);
    json_key(w, "aps");
    json_open_object(w);
    aps_rest_write(w, message);
    json_close_object(w);
    json_close_object(w);
    json_close_object(w);
}

// The tag is what replaces a notification that is shown; the collapse key, one on its way. Since
// Android 8 the notification channel decides about sound: the app makes one that has none.
static void fcm_android_notification_write(struct json_writer *w,
                                           const struct notify_message *message)
{
    if (!message->title || (!message->collapse_id && !message->is_quiet))
        return;
    json_key(w, "notification");
    json_open_object(w);
    text_if_any(w, "tag", message->collapse_id);
    if (message->is_quiet) {
        json_key_string(w, "channel_id", "quiet");
        json_key_string(w, "notification_priority", "PRIORITY_LOW");
    }
    json_close_object(w);
}

static void fcm_android_write(struct json_writer *w, const struct notify_message *message)
{
    char ttl[NUMBER_SIZE];

    snprintf(ttl, sizeof ttl, "%" PRId64 "s", message->ttl_s);
    json_key(w, "android");
    json_open_object(w);
    text_if_any(w, "collapse_key", message->collapse_id);
    json_key_string(w, "priority", notify_message_rings(message) ? "high" : "normal");
    json_key_string(w, "ttl", ttl);
    fcm_android_notification_write(w, message);
    json_close_object(w);
}

static void fcm_write(struct json_writer *w, const struct notify_push *push, struct cut cut)
{
    const struct notify_message *message = &push->message;

    json_open_object(w);
    json_key(w, "message");
    json_open_object(w);
    json_key_string(w, "token", field_of(push->address, "push_token"));
    if (message->title) {
        json_key(w, "notification");
        json_open_object(w);
        json_key_string(w, "title", message->title);
        fcm_body_write(w, message, cut);
        json_close_object(w);
    }
    json_key(w, "data");
    json_open_object(w);
    place_write(w, message, true);
    if (message->badge >= 0)
        number_text(w, "badge", message->badge);
    json_close_object(w);
    fcm_android_write(w, message);
    fcm_apns_write(w, message);
    json_close_object(w);
    json_close_object(w);
}

static void matrix_device_write(struct json_writer *w, const struct notify_push *push)
{
    const char *slash = strchr(push->app_id, '/');

    json_key(w, "devices");
    json_open_array(w);
    json_open_object(w);
    json_key_string(w, "app_id", slash ? slash + 1 : push->app_id);
    json_key_string(w, "pushkey", field_of(push->address, "pushkey"));
    json_key_int(w, "pushkey_ts", push->registered_s);
    if (notify_message_rings(&push->message)) {
        json_key(w, "tweaks");
        json_open_object(w);
        json_key_string(w, "sound", "default");
        json_close_object(w);
    }
    json_close_object(w);
    json_close_array(w);
}

static void matrix_content_write(struct json_writer *w, const struct notify_message *message,
                                 struct cut cut)
{
    json_key_string(w, "type", "m.room.message");
    json_key_string(w, "sender_display_name", message->title);
    text_if_any(w, "room_name", message->subtitle);
    if (!message->body)
        return;
    json_key(w, "content");
    json_open_object(w);
    json_key_string(w, "msgtype", "m.text");
    body_write(w, message, cut);
    json_close_object(w);
}

// https://spec.matrix.org/v1.11/push-gateway-api/
static void matrix_write(struct json_writer *w, const struct notify_push *push, struct cut cut)
{
    const struct notify_message *message = &push->message;

    json_open_object(w);
    json_key(w, "notification");
    json_open_object(w);
    text_if_any(w, "room_id", message->channel_id);
    text_if_any(w, "event_id", message->ts);
    if (message->title)
        matrix_content_write(w, message, cut);
    json_key_string(w, "prio", notify_message_rings(message) ? "high" : "low");
    if (message->badge >= 0) {
        json_key(w, "counts");
        json_open_object(w);
        json_key_int(w, "unread", message->badge);
        json_close_object(w);
    }
    matrix_device_write(w, push);
    json_close_object(w);
    json_close_object(w);
}

static size_t write_cut(const struct notify_push *push, struct cut cut, struct buffer *out)
{
    struct json_writer w = json_writer_to(out);
    size_t before = out->length;

    if (push->platform == PUSH_FCM)
        fcm_write(&w, push, cut);
    else if (push->platform == PUSH_MATRIX)
        matrix_write(&w, push, cut);
    else
        apns_write(&w, push, cut);
    return out->length - before;
}

// The longest body, in bytes, with which the payload has at most `max` bytes.
static struct cut cut_find(const struct notify_push *push, size_t max)
{
    const char *body = push->message.body;
    size_t length = strlen(body);
    size_t fits = 0;
    size_t most = text_code_points(body, length);

    while (fits < most) {
        CLEANUP(buffer_done) struct buffer tried = BUFFER(SIZE_MAX / 2);
        size_t half = fits + (most - fits + 1) / 2;
        struct cut cut = {text_prefix_length(body, length, half)};
        if (write_cut(push, cut, &tried) <= max && !buffer_failed(&tried))
            fits = half;
        else
            most = half - 1;
    }
    return (struct cut){unicode_prefix_length(body, length, fits)};
}

int payload_write(const struct notify_push *push, size_t max, struct buffer *out)
{
    struct cut whole = {push->message.body ? strlen(push->message.body) : 0};
    size_t before = out->length;
    size_t length = write_cut(push, whole, out);

    if (length > max && push->message.body) {
        out->length = before;
        length = write_cut(push, cut_find(push, max), out);
    }
    return buffer_failed(out) ? -ERROR_MEMORY : length > max ? -ERROR_TOO_LONG : 0;
}
