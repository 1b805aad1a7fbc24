// SPDX-License-Identifier: Apache-2.0
// Collects the text of blocks. block_text() in SQL does the same for previews of stored messages.
#include "chat/blocks_text.h"

#include <string.h>

struct collecting {
    struct buffer *out;
    size_t start; // of the text in `out`
    size_t max_bytes;
    const char *gap; // before the next text
};

static void part_append(struct collecting *collecting, const json_t *part);

static const char *string_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

static bool is_full(const struct collecting *collecting)
{
    return collecting->out->length - collecting->start >= collecting->max_bytes;
}

// As much of it as there is room for, cut between code points; then nothing more.
static void bytes_append(struct collecting *collecting, const char *text, size_t length)
{
    size_t room = collecting->max_bytes - (collecting->out->length - collecting->start);

    if (length > room) {
        length = room;
        while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80)
            length--;
        collecting->max_bytes = collecting->out->length - collecting->start + length;
    }
    buffer_append(collecting->out, text, length);
}

static void text_append(struct collecting *collecting, const char *text)
{
    if (text[0] == '\0')
        return;
    bytes_append(collecting, collecting->gap, strlen(collecting->gap));
    collecting->gap = "";
    bytes_append(collecting, text, strlen(text));
}

static void wrapped_append(struct collecting *collecting, const char *before, const char *text,
                           const char *after)
{
    text_append(collecting, before);
    text_append(collecting, text);
    text_append(collecting, after);
}

// What follows stands apart from what was appended since `from`, if anything was.
static void gap_set(struct collecting *collecting, size_t from, const char *gap)
{
    if (collecting->out->length > from && gap[0] != '\0')
        collecting->gap = gap;
}

static void array_append(struct collecting *collecting, const json_t *parts, const char *gap)
{
    size_t from = collecting->out->length;
    size_t index;
    json_t *part;

    json_array_foreach(parts, index, part)
    {
        gap_set(collecting, from, gap);
        part_append(collecting, part);
    }
}

static bool is_one_of(const char *type, const char *const *types)
{
    while (*types && strcmp(type, *types) != 0)
        types++;
    return *types != NULL;
}

// A mention, link or emoji in a rich text. False: it is none.
static bool leaf_append(struct collecting *collecting, const json_t *part, const char *type)
{
    if (strcmp(type, "emoji") == 0)
        wrapped_append(collecting, ":", string_of(part, "name"), ":");
    else if (strcmp(type, "user") == 0)
        wrapped_append(collecting, "<@", string_of(part, "user_id"), ">");
    else if (strcmp(type, "channel") == 0)
        wrapped_append(collecting, "<#", string_of(part, "channel_id"), ">");
    else if (strcmp(type, "broadcast") == 0)
        wrapped_append(collecting, "<!", string_of(part, "range"), ">");
    else if (strcmp(type, "link") == 0)
        text_append(collecting,
                    string_of(part, "text")[0] ? string_of(part, "text") : string_of(part, "url"));
    else
        return false;
    return true;
}

static void image_append(struct collecting *collecting, const json_t *part)
{
    size_t before = collecting->out->length;

    part_append(collecting, json_object_get(part, "title"));
    if (collecting->out->length == before)
        text_append(collecting, string_of(part, "alt_text"));
}

static void list_append(struct collecting *collecting, const json_t *list, size_t from,
                        const char *gap)
{
    if (!list)
        return;
    gap_set(collecting, from, " ");
    array_append(collecting, list, gap);
}

static void members_append(struct collecting *collecting, const json_t *part, const char *type)
{
    static const char *const joined[] = {"rich_text_section", "rich_text_quote",
                                         "rich_text_preformatted", NULL};
    size_t from = collecting->out->length;
    const json_t *text = json_object_get(part, "text");

    if (json_is_string(text))
        text_append(collecting, json_string_value(text));
    else
        part_append(collecting, text);
    list_append(collecting, json_object_get(part, "fields"), from, " ");
    list_append(collecting, json_object_get(part, "elements"), from,
                is_one_of(type, joined) ? "" : " ");
}

// The depth of parts is bounded by the parser's.
static void part_append(struct collecting *collecting, const json_t *part)
{
    static const char *const silent[] = {"actions", "input", NULL};
    const char *type = string_of(part, "type");

    if (is_full(collecting) || is_one_of(type, silent) || leaf_append(collecting, part, type))
        return;
    if (strcmp(type, "image") == 0)
        image_append(collecting, part);
    else if (json_is_array(part))
        array_append(collecting, part, " ");
    else if (json_is_object(part))
        members_append(collecting, part, type);
}

void blocks_text_append(const json_t *blocks, size_t max_bytes, struct buffer *out)
{
    struct collecting collecting = {out, out->length, max_bytes, ""};

    array_append(&collecting, blocks, "\n");
}
