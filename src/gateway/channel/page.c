// SPDX-License-Identifier: Apache-2.0
// Reads a channel's events back from Postgres, a page at a time.
#include "page.h"

#include "../core.h"

#include "chat/frame.h"
#include "events/event_type.h"

#define PAGE_FROM                                                                                  \
    " FROM channel_events($1, $2, $3::integer) e JOIN channels c ON c.id = "                       \
    "$1" MESSAGE_OF_EVENT_JOIN("$1") " ORDER BY e.seq"
static const struct statement PAGE = {
    "gateway_events",
    "SELECT e.seq, e.kind, e.event_ts, e.actor, e.message_ts, c.type, c.created, e.note, "
    "e.note_data, " MESSAGE_OF_EVENT_SELECT("''") PAGE_FROM,
};

// The same for several channels. OFFSET 0 keeps each look-up of a channel, or of a message, a
// look-up: the planner cannot turn it into a join.
static const struct statement PAGES = {
    "gateway_pages",
    "SELECT e.seq, e.kind, e.event_ts, e.actor, e.message_ts, c.type, c.created, e.note, "
    "e.note_data, " MESSAGE_OF_EVENT_SELECT(
        "$4") ", a.number FROM unnest($1, $2) WITH ORDINALITY AS a (id, after_seq, number)"
              " CROSS JOIN LATERAL (SELECT w.id, w.type, w.created FROM channels w WHERE w.id = "
              "a.id OFFSET 0) c CROSS JOIN LATERAL (SELECT * FROM channel_events(a.id, a.after_seq,"
              " $3::integer) OFFSET 0) e" MESSAGE_OF_EVENT_JOIN("a.id") " ORDER BY a.number, e.seq",
};

enum {
    COLUMN_SEQ,
    COLUMN_KIND,
    COLUMN_EVENT_TS,
    COLUMN_ACTOR,
    COLUMN_MESSAGE_TS,
    COLUMN_TYPE,
    COLUMN_CREATED,
    COLUMN_NOTE,
    COLUMN_NOTE_DATA,
    COLUMN_MESSAGE,
    COLUMN_NUMBER = COLUMN_MESSAGE + MESSAGE_COLUMNS // of PAGES
};

void page_ask(struct gateway *gateway, enum store_lane lane, const char *channel_id,
              int64_t after_seq, int count, store_fn *fn, void *arg)
{
    CLEANUP_PARAMS struct params params = {0};
    params_text(&params, channel_id);
    params_int(&params, after_seq);
    params_int(&params, count);
    store_call(gateway->store, lane, &PAGE, &params, fn, arg);
}

void pages_read(struct gateway *gateway, enum store_lane lane, const struct page_start *starts,
                int start_count, int count, const char *viewer, store_fn *fn, void *arg)
{
    CLEANUP_PARAMS struct params params = {0};
    params_open_text_array(&params);
    for (int i = 0; i < start_count; i++)
        params_element_text(&params, starts[i].channel_id);
    params_close_array(&params);
    params_open_int_array(&params);
    for (int i = 0; i < start_count; i++)
        params_element_int(&params, starts[i].after_seq);
    params_close_array(&params);
    params_int(&params, count);
    params_text(&params, viewer);
    store_call(gateway->store, lane, &PAGES, &params, fn, arg);
}

void page_next(struct page *page, int64_t number)
{
    int rows = result_rows(page->result);
    while (page->end < rows && result_int(page->result, page->end, COLUMN_NUMBER) < number)
        page->end++;
    page->first = page->end;
    while (page->end < rows && result_int(page->result, page->end, COLUMN_NUMBER) == number)
        page->end++;
}

int page_row_read(const struct result *result, int row, struct page_row *ret_row)
{
    enum event_kind kind;
    int r = event_kind_parse(result_text(result, row, COLUMN_KIND), &kind);
    if (r < 0)
        return r;
    if (kind != EVENT_NOTE && result_is_null(result, row, COLUMN_MESSAGE))
        kind = EVENT_DELETE; // retention dropped the message
    *ret_row =
        (struct page_row){.seq = result_int(result, row, COLUMN_SEQ),
                          .event_ts = result_int(result, row, COLUMN_EVENT_TS),
                          .kind = kind,
                          .note = result_text(result, row, COLUMN_NOTE),
                          .channel_type = channel_type_of(result_int(result, row, COLUMN_TYPE)),
                          .actor = result_text(result, row, COLUMN_ACTOR),
                          .result = result,
                          .row = row};
    return 0;
}

const char *page_row_type(const struct page_row *row)
{
    return row->kind == EVENT_NOTE ? row->note : event_type(row->kind, row->channel_type);
}

void page_frame_write(const struct page_row *row, const char *workspace_id, const char *channel_id,
                      struct buffer *out)
{
    struct message message;
    struct frame_context context = {
        .workspace_id = workspace_id,
        .channel_id = channel_id,
        .type = row->channel_type,
        .seq = row->seq,
        .event_ts = row->event_ts,
        .actor = row->actor,
        .created = result_int(row->result, row->row, COLUMN_CREATED),
        .note = result_text(row->result, row->row, COLUMN_NOTE),
        .note_data = result_text(row->result, row->row, COLUMN_NOTE_DATA),
        .note_data_length = result_length(row->result, row->row, COLUMN_NOTE_DATA),
    };
    message_read(row->result, row->row, COLUMN_MESSAGE, &message);
    message.ts = result_int(row->result, row->row, COLUMN_MESSAGE_TS);
    frame_write(out, row->kind, &context, &message);
}
