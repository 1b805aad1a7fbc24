// SPDX-License-Identifier: Apache-2.0
// Promise 2, of what channels of the strategies counter and bitmap keep in Redis for a member: what a reader answers from
// there was true at some moment of the asking, whatever came late, twice, half or not at all, while the channel moves from
// one strategy to the other and Redis is wiped.
//
// One channel and one of its members, who asks. Others and the member post, messages are deleted, the cursor moves on and
// back, the strategy changes. Two workers at a time bring events to Redis: a walk of a counter is a begin, a chunk of the
// member, a last chunk for authors, an end, each a call that may come twice; it may stop anywhere. (-DONE_WORKER: one, and one
// change of the strategy.)
//
// Who finds that the event before, or its walk, is still missing may wait, and begin again or not.
//
// Follows counter_walk, counter_install, counter_read, bitmap_install and bitmap_read of lua/tidings.lua (the turns
// are in walks.inc), src/unread/redis/walk.c, src/unread/strategies/strategy_counter.c, src/unread/strategies/strategy_bitmap.c.
//
// What can be taken out (-D):
//   NO_SEQ_CHECK      an event is walked whatever was walked before it
//   NO_HOLE_CHECK     an event is walked also when the one before it was not
//   NO_TURN           a chunk counts also when it comes twice
//   NO_BUILD          what was counted before a hole, a delete or a wipe is still believed
//   NO_GENERATION     what was counted before the strategy changed is still believed
//   NO_WALKING_CHECK  a count is believed while a walk goes on
//   NO_FRESH_CHECK    a count of any seq is believed
//   NO_CURSOR_CHECK   a count from before the cursor moved is believed
//   NO_INSTALL_CHECK  a count read from Postgres is installed whatever was walked since
//   NO_FORGET         a delete leaves counts as they are
//   NO_UNKNOWN        where Redis has no key, nothing is unread

#define EVENTS 3
#define BIT(n) (1 << (n))
#define HAS(set, n) (((set) >> (n)) & 1)

mtype = { NOTHING, POST, OWN_POST, EDIT, DELETE_1 };
mtype script[EVENTS + 1] = NOTHING;

// Postgres
byte seq, ord, cursor, epoch;
byte generation;         // of an even one the strategy is counter, of an odd one bitmap
byte own, deleted;       // bits of ords
byte event_generation[EVENTS + 1];
byte moves = 1;   // of the cursor, still to come
#ifdef ONE_WORKER
byte changes = 1; // of the strategy
#else
byte changes = 2;
#endif

#define IS_COUNTER(generation) ((generation) % 2 == 0)

// Redis: unread:{U}:C
bool counted;         // of the build of today
short number;
byte of_cursor, of_epoch;
bool bit_set;         // channel:{C}:read

// The reader: bits of the counts that were true since it began to ask.
bool asking;
byte were_true;

#define BITS(set, from) (((from) < 1 && HAS(set, 1)) + ((from) < 2 && HAS(set, 2)) + ((from) < 3 && HAS(set, 3)))
#define TRUTH (ord - cursor - BITS(own | deleted, cursor))

inline now_true()
{
    if
    :: asking -> were_true = were_true | BIT(TRUTH)
    :: else
    fi
}

inline choose_script()
{
    if
    :: script[1] = POST; script[2] = POST; script[3] = DELETE_1
    :: script[1] = POST; script[2] = OWN_POST; script[3] = EDIT
    fi
}

active proctype Postgres()
{
    do
    :: atomic { seq < EVENTS && script[seq + 1] != NOTHING ->
        if
        :: script[seq + 1] == POST ->
            ord++;
            printf("somebody posts: event %d\n", seq + 1)
        :: script[seq + 1] == OWN_POST ->
            ord++;
            own = own | BIT(ord);
            printf("the member posts: event %d\n", seq + 1)
        :: script[seq + 1] == EDIT ->
            printf("a message is edited: event %d\n", seq + 1)
        :: script[seq + 1] == DELETE_1 ->
            deleted = deleted | BIT(1);
            printf("message 1 is deleted: event %d\n", seq + 1)
        fi;
        seq++;
        event_generation[seq] = generation;
        now_true() }
    :: atomic { moves > 0 && ord > 0 ->
        moves--;
        if
        :: cursor = 1; printf("the cursor moves to 1\n")
        :: IS_COUNTER(generation) -> epoch++; cursor = 0; printf("all is marked unread\n")
        :: !IS_COUNTER(generation) -> epoch++; cursor = 0; generation = generation + 2; printf("all is marked unread\n")
        fi;
        now_true() }
    :: atomic { changes > 0 && seq > 0 ->
        changes--;
        generation++;
        printf("the strategy changes, generation %d\n", generation) }
    od
}

inline void_builds()
{
#ifndef NO_BUILD
    counted = false;
    number = 0;
    of_cursor = 0;
    of_epoch = 0
#else
    skip
#endif
}

inline bits_void(when)
{
    bit_set = bit_set && !(when)
}

#include "walks.inc"

inline chunk(me, event, place, by)
{
    if
    :: TURN(me, event, place) ->
        printf("worker %d: chunk %d of event %d, by %d\n", me, place, event, by);
        next = place + 1;
        if
        :: counted -> number = number + by // what has no build stays without: it is unknown
        :: else
        fi
    :: else
    fi
}

#define IS_POST(event) (script[event] == POST || script[event] == OWN_POST)

proctype Worker(byte me)
{
    byte event, gen;
    do
    :: atomic { seq > 0 ->
        event = 1;
        do
        :: event < seq -> event++
        :: break
        od;
        gen = event_generation[event];
        do
        :: gen < generation -> gen++ // what is read back has the strategy and generation of then
        :: break
        od;
        walker_valid[me] = false;
        printf("worker %d: begins event %d, generation %d\n", me, event, gen);
        if
#ifndef NO_FORGET
        :: IS_COUNTER(gen) && script[event] == DELETE_1 -> walk_forget(gen, event)
#endif
        :: else -> walk_begin(me, gen, event, IS_COUNTER(gen) && IS_POST(event), IS_POST(event))
        fi;
        gen = 0 }
        if
        :: atomic { walker_valid[me] -> chunk(me, event, 0, 1) }
            atomic {
                if
                :: chunk(me, event, 0, 1) // it comes twice
                :: true
                fi;
                if
                :: script[event] == OWN_POST -> chunk(me, event, 1, -1)
                :: else -> chunk(me, event, 1, 0)
                fi }
            atomic {
                walk_end(me, event, 2);
                event = 0;
                walker_valid[me] = false }
        :: atomic { true -> event = 0; walker_valid[me] = false } // it stops, or never began
        fi
    od
}

active proctype Wipe()
{
    atomic {
        printf("FLUSHALL\n");
        walks_wipe();
        bit_set = false;
        counted = false; number = 0; of_cursor = 0; of_epoch = 0 }
}

// Where something is unread, a bitmap keeps nothing.
inline install(gen, at, count, row_cursor, row_epoch)
{
    if
    :: !IS_COUNTER(gen) && (!known || (at_generation < gen && at_seq <= at)) -> bit_set = false
    :: else
    fi;
    walk_open(gen, at);
    if
#ifndef NO_INSTALL_CHECK
    :: !WALK_AT(gen, at) -> printf("refused\n")
#endif
    :: else ->
        if
        :: IS_COUNTER(gen) ->
            counted = true;
            number = count;
            of_cursor = row_cursor;
            of_epoch = row_epoch
        :: else -> bit_set = true
        fi
    fi
}

inline read_row()
{
    row_generation = generation;
    row_seq = seq;
    row_cursor = cursor;
    row_epoch = epoch
}

active proctype Reader()
{
    byte row_generation, row_seq, row_cursor, row_epoch;
    short count;
    bool believed;
    byte rounds = 2;
    do
    :: atomic { rounds > 0 && seq > 0 ->
        rounds--;
        read_row();
        asking = true;
        were_true = BIT(TRUTH);
        printf("reader: the row has generation %d, seq %d, cursor %d of epoch %d\n", generation, seq, cursor, epoch) }
        atomic {
            believed = known && SAME_GENERATION(row_generation);
#ifndef NO_FRESH_CHECK
            believed = believed && at_seq == row_seq;
#endif
#ifndef NO_WALKING_CHECK
            believed = believed && walking == at_seq;
#endif
            if
            :: IS_COUNTER(row_generation) ->
                believed = believed && counted;
#ifndef NO_CURSOR_CHECK
                believed = believed && of_cursor == row_cursor && of_epoch == row_epoch;
#endif
                count = number
            :: else ->
                believed = believed && bit_set;
                count = 0
            fi;
#ifdef NO_UNKNOWN
            if
            :: !known -> believed = true; count = 0
            :: else
            fi;
#endif
            if
            :: believed -> printf("reader: Redis knows\n"); goto answer
            :: else
            fi }
        atomic {
            read_row();
            count = TRUTH;
            printf("reader: Postgres counts at seq %d\n", seq) }
answer:
        atomic {
            printf("reader: answers %d\n", count);
            assert(count >= 0 && HAS(were_true, count)); // it was so at some moment of the asking
            asking = false;
            were_true = 0;
            if
            :: believed -> goto done
            :: else
            fi }
        atomic {
            if
            :: IS_COUNTER(row_generation) || count == 0 ->
                printf("reader: installs %d at seq %d\n", count, row_seq);
                install(row_generation, row_seq, count, row_cursor, row_epoch)
            :: else
            fi }
done:
        atomic { row_generation = 0; row_seq = 0; row_cursor = 0; row_epoch = 0; count = 0; believed = false }
    od
}

init {
    atomic {
        choose_script();
        run Worker(0);
#ifndef ONE_WORKER
        run Worker(1)
#endif
    }
}
