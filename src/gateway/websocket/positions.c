// SPDX-License-Identifier: Apache-2.0
// Sends positions to native sockets.
#include "positions.h"

#include "../connection/connection.h"
#include "../core.h"
#include "../position.h"
#include "../resume/backlog.h"
#include "../watermark.h"
#include "socket.h"

#include <stdio.h>

// Turns with a position after the last event: at the first, the watermark may not cover it yet.
enum { TURNS = 2 };

static void position_send(struct positions *positions, struct connection *c,
                          const struct backlog *backlog)
{
    char position[POSITION_SIZE];
    char frame[POSITION_SIZE + 64];
    backlog_position_own(backlog, position);
    int length =
        snprintf(frame, sizeof frame, "{\"type\":\"position\",\"position\":\"%s\"}", position);
    socket_answer(c, frame, (size_t)length);
    positions->serial = c->gateway->watermark->serial;
    positions->frames = 0;
    positions->ticks = 0;
}

void positions_begin(struct positions *positions, struct connection *c,
                     const struct backlog *backlog)
{
    positions->is_catching_up = backlog->resume != NULL;
    positions->step = 1;
    positions->due = 0;
    position_send(positions, c, backlog);
}

void positions_sent(struct positions *positions, struct connection *c,
                    const struct backlog *backlog)
{
    positions->due = TURNS;
    if (!positions->is_catching_up || ++positions->frames < positions->step)
        return;
    if (positions->step < POSITION_EVERY)
        positions->step =
            2 * positions->step < POSITION_EVERY ? 2 * positions->step : POSITION_EVERY;
    position_send(positions, c, backlog);
}

void positions_settle(struct positions *positions, struct connection *c,
                      const struct backlog *backlog)
{
    if (!positions->is_catching_up || backlog->resume)
        return;
    positions->is_catching_up = false;
    position_send(positions, c, backlog);
}

void positions_tick(struct positions *positions, struct connection *c,
                    const struct backlog *backlog)
{
    if (++positions->ticks < POSITION_TICKS)
        return;
    positions->ticks = 0;
    bool is_newer = backlog->is_settled && positions->serial != c->gateway->watermark->serial;
    if (positions->due == 0 || !is_newer)
        return;
    positions->due--;
    position_send(positions, c, backlog);
}
