// SPDX-License-Identifier: Apache-2.0
// Tells unread counts after a delete, an edit or a change of preferences.
#pragma once

#include "events/event.h"
#include "store/store.h"

struct gateway;
struct stream;

void changed_tell(struct stream *stream, int64_t seq); // after the delete or edit `seq`
void changed_tell_all(struct stream *stream, const struct event *event); // after EVENT_STRATEGY
// The channel's row has this generation: if it has risen, EVENT_STRATEGY may have been missed.
void changed_generation(struct stream *stream, int64_t generation);
void changed_tend(struct gateway *gateway); // every CONNECTION_TICK_MS: retries what failed
void changed_hear(struct gateway *gateway, const char *channel_id,
                  const char *user_id); // tells the user's unread count there again
// After a mark: its frame has the count of its commit, but a later count may have been told
// already.
void changed_marked(struct gateway *gateway, const struct event *event, const char *user_id);
void changed_read(struct gateway *gateway, struct params *params,
                  store_fn *fn); // arrays of channels and users; `fn` gets gateway and views
void changed_send(struct gateway *gateway, const struct result *views); // to native sockets
