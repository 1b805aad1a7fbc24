// SPDX-License-Identifier: Apache-2.0
// Reads and validates the content of a message from a call's arguments: text, blocks, attachments,
// metadata.
#include "content.h"

#include "base/json.h"
#include "base/text.h"
#include "base/unicode.h"
#include "chat/blocks_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCKS_MAX = 50,
    ATTACHMENTS_MAX = 100,
    EXTRA_BYTES_MAX = 1024 * 1024,
    METADATA_BYTES_MAX = 16384,
    MARKDOWN_MAX = 12000,
    BLOCKS_TEXT_MAX = 3000, // bytes
    USERNAME_MAX = 80,
    ICON_MAX = 2048
};

// One member of `extra`: its argument and requirements.
struct part {
    const char *name;
    size_t items_max; // for an array; 0: an object
    int malformed;
    int too_many;
    const char *shape;              // for error messages
    bool (*correct)(json_t *value); // validates the value and corrects minor deviations
};

// Validates the type and id of a block: strict clients cannot parse others.
static bool block_is_good(const json_t *block)
{
    const json_t *id = json_object_get(block, "block_id");

    return json_is_string(json_object_get(block, "type")) &&
           (!id || json_is_null(id) || json_is_string(id));
}

static bool blocks_correct(json_t *blocks)
{
    size_t index;
    json_t *block;

    json_array_foreach(blocks, index, block)
    {
        if (!block_is_good(block))
            return false;
    }
    return json_is_array(blocks);
}

// {"event_type":"text","event_payload":{…}}, or {} to remove it.
static bool metadata_correct(json_t *metadata)
{
    return json_is_object(metadata) &&
           (json_object_size(metadata) == 0 ||
            (json_is_string(json_object_get(metadata, "event_type")) &&
             json_is_object(json_object_get(metadata, "event_payload"))));
}

// Converts a number or boolean member to text. False: a list or an object.
static bool text_correct(json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    if (!value || json_is_null(value) || json_is_string(value))
        return true;
    if (json_is_object(value) || json_is_array(value))
        return false;
    CLEANUP_FREE char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    return text && json_object_set_new(object, key, json_string(text)) == 0;
}

static bool fields_correct(json_t *fields)
{
    size_t index;
    json_t *field;

    json_array_foreach(fields, index, field)
    {
        if (!json_is_object(field) || !text_correct(field, "title") ||
            !text_correct(field, "value"))
            return false;
    }
    return !fields || json_is_null(fields) || json_is_array(fields);
}

// Numbers attachments from 1, like Slack. Members that clients in Go or Java expect as text are
// converted, otherwise these clients cannot parse the reply: scripts often send numbers.
static bool attachments_correct(json_t *attachments)
{
    static const char *const texts[] = {"fallback", "pretext", "title", "text", "footer"};
    size_t index;
    json_t *item;

    json_array_foreach(attachments, index, item)
    {
        if (!json_is_object(item))
            return false;
        json_object_set_new(item, "id", json_integer((json_int_t)index + 1));
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
            if (!text_correct(item, texts[i]))
                return false;
        if (!fields_correct(json_object_get(item, "fields")))
            return false;
    }
    return json_is_array(attachments);
}

static const struct part parts[] = {
    {"blocks", BLOCKS_MAX, -ERROR_INVALID_BLOCKS, -ERROR_MSG_BLOCKS_TOO_LONG,
     "array of objects that have a type", blocks_correct},
    {"attachments", ATTACHMENTS_MAX, -ERROR_INVALID_ATTACHMENTS, -ERROR_TOO_MANY_ATTACHMENTS,
     "array of objects", attachments_correct},
    {"metadata", 0, -ERROR_INVALID_METADATA_FORMAT, -ERROR_METADATA_TOO_LARGE,
     "object with event_type and event_payload", metadata_correct},
};

static size_t part_size(const struct part *part, const json_t *value, size_t length)
{
    if (part->items_max == 0)
        return length > METADATA_BYTES_MAX ? 1 : 0;
    return json_array_size(value);
}

// Adds an argument to `extra` if present. An empty value removes the member, which only an edit may
// do.
static bool take_part(struct invocation *invocation, const struct part *part, json_t *extra,
                      bool is_edit)
{
    const char *text = request_arg(invocation->request, part->name);
    CLEANUP_JSON json_t *value = NULL;

    if (!text || text[0] == '\0')
        return true;
    size_t length = strlen(text);
    int r = request_arg_json(invocation->request, part->name, JSON_DEPTH_MAX, &value);
    if (r == -ERROR_REQUEST_TOO_LARGE) {
        invocation_fail_message(invocation, part->malformed, "%s: must have fewer JSON values",
                                part->name);
        return false;
    }
    if (r < 0 || !part->correct(value)) {
        invocation_fail_message(invocation, part->malformed, "%s: must be a JSON %s", part->name,
                                part->shape);
        return false;
    }
    if (part_size(part, value, length) > part->items_max) {
        bool is_array = part->items_max > 0;
        invocation_fail_message(invocation, part->too_many, "%s: must have at most %zu %s",
                                part->name, is_array ? part->items_max : METADATA_BYTES_MAX,
                                is_array ? "members" : "bytes");
        return false;
    }
    if (is_edit || json_array_size(value) > 0 || json_object_size(value) > 0)
        json_object_set(extra, part->name, value);
    return true;
}

// Adds an argument for a message's appearance, of at most `max` characters.
static bool take_appearance_text(struct invocation *invocation, const char *name, size_t max,
                                 json_t *object, const char *key)
{
    const char *text = NULL;

    if (!take_optional_word(invocation, name, &text))
        return false;
    if (!text)
        return true;
    if (text_code_points(text, strlen(text)) > max) {
        invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                                "%s: must have at most %zu characters", name, max);
        return false;
    }
    json_object_set_new(object, key, json_string(text));
    return true;
}

// Reads the name and picture that a bot chose for its message. People cannot choose.
static bool take_appearance(struct invocation *invocation, const struct content *content,
                            json_t *extra)
{
    CLEANUP_JSON json_t *icons = json_object();
    bool as_user = false;
    size_t before = json_object_size(extra);

    if (invocation->actor->bot_id[0] == '\0' || content->is_edit)
        return true;
    if (!take_optional_bool(invocation, "as_user", &as_user))
        return false;
    if (as_user)
        return true;
    if (!take_appearance_text(invocation, "icon_emoji", ICON_MAX, icons, "emoji") ||
        !take_appearance_text(invocation, "icon_url", ICON_MAX, icons, "image_48") ||
        !take_appearance_text(invocation, "username", USERNAME_MAX, extra, "username"))
        return false;
    if (json_object_size(icons) > 0)
        json_object_set(extra, "icons", icons);
    if (json_object_size(extra) > before && !content->is_broadcast)
        json_object_set_new(extra, "subtype", json_string("bot_message"));
    return true;
}

static int mentions_max(const struct invocation *invocation)
{
    return (int)invocation->api->options.settings.mentions_max;
}

// Replies with an error if the search for mentions failed.
static bool mentions_are_good(struct invocation *invocation, const char *name, int r)
{
    if (r >= 0)
        return true;
    if (r == -ERROR_INVALID_ARGUMENTS)
        invocation_fail_message(invocation, r, "%s: must mention at most %d users", name,
                                mentions_max(invocation));
    else
        invocation_fail(invocation, r);
    return false;
}

static bool take_extra(struct invocation *invocation, struct content *content)
{
    CLEANUP_JSON json_t *extra = json_object();

    if (content->fixed_extra) {
        content->extra = content->is_broadcast ? NULL : strdup(content->fixed_extra);
        return true;
    }
    if (content->files) {
        json_object_set_new(extra, "files", json_loads(content->files, 0, NULL));
        json_object_set_new(extra, "upload", json_true());
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!take_part(invocation, &parts[i], extra, content->is_edit))
            return false;
    content->has_blocks = json_object_get(extra, "blocks") != NULL;
    content->shows = json_array_size(json_object_get(extra, "blocks")) > 0 ||
                     json_array_size(json_object_get(extra, "attachments")) > 0 || content->files;
    if (!take_appearance(invocation, content, extra))
        return false;
    if (content->files && !content->is_broadcast)
        json_object_set_new(extra, "subtype", json_string("file_share"));
    if (json_object_size(extra) == 0)
        return true;
    int r = mentions_find_in_blocks(&content->mentions, json_object_get(extra, "blocks"),
                                    mentions_max(invocation));
    if (!mentions_are_good(invocation, "blocks", r))
        return false;
    content->extra = json_dumps(extra, JSON_COMPACT);
    if (content->extra && strlen(content->extra) <= EXTRA_BYTES_MAX)
        return true;
    invocation_fail_message(invocation, -ERROR_MSG_TOO_LONG,
                            "blocks, attachments, metadata: must have at most %d bytes",
                            EXTRA_BYTES_MAX);
    return false;
}

bool content_find_mentions(struct invocation *invocation, struct content *content)
{
    int r = mentions_find(&content->mentions, content->text, content->text_length, MENTION_IN_TEXT,
                          mentions_max(invocation));

    return mentions_are_good(invocation, "text", r);
}

static bool take_links(struct invocation *invocation, struct content *content)
{
    const char *parse = NULL;

    if (!take_optional_bool(invocation, "link_names", &content->links_names) ||
        !take_optional_text(invocation, "parse", &parse))
        return false;
    if (parse && strcmp(parse, "full") == 0)
        content->links_names = true;
    return true;
}

bool take_markdown_text(struct invocation *invocation, const char **ret_text)
{
    if (!take_text(invocation, "markdown_text", ret_text))
        return false;
    if (text_code_points(*ret_text, strlen(*ret_text)) <= MARKDOWN_MAX)
        return true;
    invocation_fail_message(invocation, -ERROR_MSG_TOO_LONG,
                            "markdown_text: must have at most %d characters", MARKDOWN_MAX);
    return false;
}

// Reads markdown_text instead of text and blocks. Sets *name to the argument that supplies the
// text.
static bool take_markdown(struct invocation *invocation, struct content *content, const char **name)
{
    if (!invocation_has(invocation, "markdown_text"))
        return true;
    if (invocation_has(invocation, "text") ||
        (invocation_has(invocation, "blocks") && !content->is_stream_end)) {
        invocation_fail_message(invocation, -ERROR_MARKDOWN_TEXT_CONFLICT,
                                "markdown_text: must not be given together with text or blocks");
        return false;
    }
    if (content->is_stream_end)
        content->text = request_arg(invocation->request, "markdown_text");
    else if (!take_markdown_text(invocation, &content->text))
        return false;
    content->is_markdown = true;
    *name = "markdown_text";
    return true;
}

bool take_content(struct invocation *invocation, struct content *content)
{
    int64_t text_max = invocation->api->options.settings.text_max;
    const char *name = "text";

    if (!take_optional_text(invocation, "text", &content->text) ||
        !take_markdown(invocation, content, &name) || !take_links(invocation, content) ||
        !take_extra(invocation, content))
        return false;
    if (!content->text)
        return true;
    content->text_length = request_arg_length(invocation->request, name);
    if (unicode_is_blank(content->text, content->text_length)) {
        content->text = ""; // the only blank text that Postgres is to know
        content->text_length = 0;
        if (content->shows)
            return true;
        invocation_fail_message(invocation, -ERROR_NO_TEXT, "%s: must have visible characters",
                                name);
        return false;
    }
    if (text_code_points(content->text, content->text_length) > (size_t)text_max) {
        invocation_fail_message(invocation, -ERROR_MSG_TOO_LONG,
                                "text: must have at most %" PRId64 " characters", text_max);
        return false;
    }
    return content_find_mentions(invocation, content);
}

static int blocks_text_make(struct content *content)
{
    CLEANUP_JSON json_t *extra = NULL;
    CLEANUP(buffer_done) struct buffer text = BUFFER(BLOCKS_TEXT_MAX + 1);

    int r =
        json_read(content->extra, strlen(content->extra), JSON_DEPTH_ANY, JSON_VALUES_ANY, &extra);
    if (r < 0 || json_array_size(json_object_get(extra, "blocks")) == 0)
        return r;
    blocks_text_append(json_object_get(extra, "blocks"), BLOCKS_TEXT_MAX, &text);
    if (unicode_is_blank(text.data ? text.data : "", text.length))
        buffer_clear(&text);
    content->text_length = text.length;
    content->blocks_text = buffer_take_text(&text);
    content->text = content->blocks_text;
    return content->blocks_text ? 0 : -ERROR_MEMORY;
}

static int markdown_block_make(struct content *content)
{
    CLEANUP_JSON json_t *extra = NULL;
    CLEANUP_JSON json_t *block = json_pack("[{s:s, s:s, s:s%}]", "type", "markdown", "block_id",
                                           "markdown", "text", content->text, content->text_length);
    const char *text = content->extra ? content->extra : "{}";
    int r = json_read(text, strlen(text), JSON_DEPTH_ANY, JSON_VALUES_ANY, &extra);
    if (r < 0)
        return r;
    free(TAKE(content->extra));
    json_array_extend(block, json_object_get(extra, "blocks")); // those at the end of a stream
    if (content->is_stream_end)
        json_object_set_new(extra, "streaming_state", json_string("completed"));
    if (json_object_set(extra, "blocks", block) == 0)
        content->extra = json_dumps(extra, JSON_COMPACT);
    content->has_blocks = true;
    return content->extra ? 0 : -ERROR_MEMORY;
}

bool content_complete(struct invocation *invocation, struct content *content)
{
    bool has_text = content->text && content->text_length > 0;
    int r = 0;

    if (content->is_markdown && has_text)
        r = markdown_block_make(content);
    else if (!has_text && content->shows && content->has_blocks)
        r = blocks_text_make(content);
    if (r < 0)
        invocation_fail(invocation, r);
    return r >= 0;
}

void content_done(struct content *content)
{
    free(content->extra);
    free(content->linked);
    free(content->blocks_text);
    mentions_done(&content->mentions);
}
