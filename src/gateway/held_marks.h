// SPDX-License-Identifier: Apache-2.0
// Marks that came before their messages.
#pragma once

struct event;
struct gateway;
struct stream;
struct user;

// Sends an event about what the user has read in a channel, or holds it until the message before
// the cursor was sent.
void mark_offer(struct gateway *gateway, struct user *user, struct event *event);
void marks_release(struct stream *stream);      // the stream has sent something
void marks_tend(struct gateway *gateway);       // every second: those that waited too long
void marks_leave_stream(struct stream *stream); // sends those that wait for it: it ends
void marks_leave_user(struct user *user);       // drops the user's
