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

// Turns with a position after the last frame: at the first, it may not cover a mark yet.
enum { TURNS = 2 };

// False: no position covers all that was sent.
static bool position_send(struct positions *positions, struct connection *c,
                          const struct backlog *backlog)
{
    char position[PLACE_SIZE];
    char frame[PLACE_SIZE + 64];
    if (!backlog_position_own(backlog, position))
        return false;
    int length =
        snprintf(frame, sizeof frame, "{\"type\":\"position\",\"position\":\"%s\"}", position);
    socket_answer(c, frame, (size_t)length);
    positions->frames = 0;
    positions->ticks = 0;
    return true;
}

void positions_begin(struct positions *positions, struct connection *c,
                     const struct backlog *backlog)
{
    positions->is_catching_up = backlog->resume != NULL;
    positions->step = 1;
    positions->due = 0;
    (void)position_send(positions, c, backlog);
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
    (void)position_send(positions, c, backlog);
}

// Right after a watermark was reached, few channels have been sent further.
static bool is_due(const struct positions *positions, const struct connection *c,
                   const struct backlog *backlog)
{
    return positions->due > 0 && positions->ticks >= POSITION_TICKS && backlog->is_settled &&
           c->gateway->watermark->next.xid == 0;
}

void positions_settle(struct positions *positions, struct connection *c,
                      const struct backlog *backlog)
{
    if (positions->is_catching_up && !backlog->resume) {
        positions->is_catching_up = false;
        (void)position_send(positions, c, backlog);
    } else if (is_due(positions, c, backlog) && position_send(positions, c, backlog)) {
        positions->due--;
    }
}

void positions_tick(struct positions *positions)
{
    if (positions->ticks < POSITION_TICKS)
        positions->ticks++;
}
