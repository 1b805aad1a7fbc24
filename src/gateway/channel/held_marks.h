// SPDX-License-Identifier: Apache-2.0
// Marks that came before their messages.
#pragma once

struct event;
struct gateway;
struct feed;
struct user;

// Sends an event about what the user has read in a channel, or holds it until the message before
// the cursor was sent.
void held_marks_offer(struct gateway *gateway, struct user *user, struct event *event);
void held_marks_release(struct feed *feed);    // the feed has sent something
void held_marks_tick(struct gateway *gateway); // every second: those that waited too long
void marks_leave_feed(struct feed *feed);      // sends those that wait for it: it ends
void held_marks_leave_user(struct user *user); // drops the user's
