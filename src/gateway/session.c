// SPDX-License-Identifier: Apache-2.0
// A connection's place among its user's connections and in its channels.
#include "session.h"

#include "connection.h"
#include "core.h"
#include "login.h"
#include "people.h"
#include "stream.h"

#include "base/error.h"

const struct statement session_channels = {"gateway_channels",
                                           "SELECT c.id, c.seq, c.last_ts FROM channel_members m "
                                           "JOIN channel_heads c ON c.id = m.channel_id"
                                           " WHERE m.user_id = $1 AND m.active"};

// What the snapshot holds was there before hello; what a stream has sent already, too.
int session_enter(struct connection *c, const struct result *channels)
{
    int r = user_enter(c);
    for (int row = 0; r >= 0 && row < result_rows(channels); row++) {
        int64_t seq = result_int(channels, row, 1);
        struct stream *stream =
            stream_follow(c->gateway, c->actor.workspace_id, result_text(channels, row, 0), seq);
        if (!stream)
            return -ERROR_MEMORY;
        if (stream->sent_ts == 0)
            stream->sent_ts = result_int(channels, row, 2);
        r = stream_enter(stream, c, seq, seq);
    }
    return r;
}

void session_leave(struct connection *c)
{
    login_forget(c);
    if (!c->user)
        return;
    stream_unseat_all(c);
    user_leave(c);
}
