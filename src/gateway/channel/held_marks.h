// SPDX-License-Identifier: Apache-2.0
// Marks that arrive before their messages wait for them.
#pragma once

#include "unread/view.h"

struct event;
struct feed;
struct gateway;
struct user;

// Sends a mark event to the user, or holds it until the feed has sent the message at the cursor.
void held_marks_offer(struct gateway *gateway, struct user *user, struct event *event);
// Sends, or holds, what a user has read in a channel as read back from Postgres. Does nothing
// without connections of the user here.
void held_marks_offer_view(struct gateway *gateway, enum unread_frame type,
                           const struct unread_view *view);
void held_marks_release(struct feed *feed);    // the feed has sent an event
void held_marks_tick(struct gateway *gateway); // every second: sends those that waited too long
void held_marks_leave_feed(struct feed *feed); // the feed ends: sends those that wait for it
void held_marks_leave_user(struct user *user); // drops the user's
