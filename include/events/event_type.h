// SPDX-License-Identifier: Apache-2.0
// The types of events, as the member "type" of their frames names them. An event's record holds
// what decides its type, so nobody looks into a frame for it. Static text, unless noted; any
// thread.
#pragma once

#include "base/channel.h"
#include "events/event.h"

// The longest type.
enum { EVENT_TYPE_MAX = 32 };

// "message", "channel_archive" …: of an event with a seq, a new channel or an ephemeral message.
const char *event_type(enum event_kind kind, enum channel_type channel_type);

// "channel_marked" …, or "unread_changed" if only unread state or settings changed.
const char *event_type_of_mark(enum channel_type channel_type, bool unread_only);

// "thread_marked", "thread_subscribed" or "thread_unsubscribed".
const char *event_type_of_thread(enum event_kind kind, bool is_followed);

// Whether Slack has frames of the type that the note names. Its clients take others for errors.
bool event_note_is_slacks(const char *name);

// The same of any event with a seq, whose frame has `type`: direct conversations have no joins and
// leaves there.
bool event_is_slacks(enum event_kind kind, enum channel_type channel_type, const char *type);

// The type of the event's frame. STRATEGY has none: "". Of a NOTE it is the event's own text.
const char *event_type_of(const struct event *event);
