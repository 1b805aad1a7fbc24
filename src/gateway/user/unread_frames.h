// SPDX-License-Identifier: Apache-2.0
// Sends unread counts (unread_changed) after a delete, an edit or a change of preferences.
#pragma once

#include "events/event.h"
#include "store/store.h"

struct gateway;
struct feed;

void unread_frames_after(struct feed *feed, int64_t seq); // after the delete or edit `seq`
void unread_frames_refresh_all(struct feed *feed,
                               const struct event *event); // after EVENT_STRATEGY
// The channel's row has this generation. If it rose, EVENT_STRATEGY may have been missed.
void unread_frames_on_generation(struct feed *feed, int64_t generation);
void unread_frames_retry(struct gateway *gateway); // every CONNECTION_TICK_MS
void unread_frames_refresh(struct gateway *gateway, const char *channel_id,
                           const char *user_id); // sends the user's count there again
// After a mark: its frame has the count at its commit, but a later count may have been sent
// already; sends it again then.
void unread_frames_on_mark(struct gateway *gateway, const struct event *event, const char *user_id);
void unread_frames_read(struct gateway *gateway, struct params *params,
                        store_fn *fn); // params: arrays of channels and users; fn: gateway, views
void unread_frames_send(struct gateway *gateway, const struct result *views); // to native sockets
