// SPDX-License-Identifier: Apache-2.0
// Promise 2, of a channel's head and what was deleted: what a reader answers from the copy in Redis was true at some
// moment of the asking, whatever came late, twice, out of order or not at all; a missing key is unknown, never zero; and
// when all is quiet, the copy is exact or unknown.
//
// One channel. Others post, edit and delete; the reader posts too and moves the cursor. Each commit leaves an outbox row.
// Redis is wiped at any step. The reader asks twice, and mends the copy.
//
// Follows head_apply (of heads_apply and channel_apply) and channel_install of lua/tidings.lua, src/unread/redis/effects.c, src/unread/reader.c,
// src/fanout/load.c.
//
// What can be taken out (-D):
//   NO_SEQ_CHECK      an event that the copy has already is applied again
//   NO_HOLE_CHECK     an event is applied also when the one before it was not
//   NO_FRESH_CHECK    a reader believes a copy of any seq
//   NO_UNKNOWN        where Redis has no key, nothing was deleted
//   NO_FLOOR          a copy is believed about deletes older than it knows of
//   NO_INSTALL_CHECK  a state read from Postgres replaces a newer copy
//   NO_LEAST          an event that finds nothing known leaves no trace, so that an older state may be installed after it
//   NO_OWN_HEAD       the reader takes the head's ord from Redis, not from the row that it has read
//   NO_OUTBOX         events are handed on in memory alone

#define EVENTS 6
#define BIT(n) (1 << (n))
#define HAS(set, n) (((set) >> (n)) & 1)

mtype = { NOTHING, POST, OWN_POST, EDIT, DELETE_1, DELETE_2 };
mtype script[EVENTS + 1] = NOTHING;

// Postgres
byte seq, ord, cursor, deleted_ord;
byte own, deleted;              // bits of ords
byte event_ord[EVENTS + 1];     // the head's ord just after the event
byte event_deletes[EVENTS + 1]; // the ord that it deletes, 0: none
byte outbox;                    // bits of events
byte moves = 1;                 // of the cursor, still to come

// Redis
bool known;
byte copy_seq, copy_floor, copy_deleted;
byte copy_ord;
byte least; // the highest event that found nothing known: what is older is not installed

// The reader
bool asking;
byte were_true; // bits of the counts that were true since it began to ask
bool busy;
bool wiped_under_reader; // what it installs then may be old, until the next reader or event finds that out

// How many of `set` are bits of ords after `from`.
#define BITS(set, from) (((from) < 1 && HAS(set, 1)) + ((from) < 2 && HAS(set, 2)) + ((from) < 3 && HAS(set, 3)))
#define TRUTH (ord - cursor - BITS(own | deleted, cursor))

inline now_true()
{
    if
    :: asking -> were_true = were_true | BIT(TRUTH)
    :: else
    fi
}

inline committed()
{
    seq++;
    event_ord[seq] = ord;
    outbox = outbox | BIT(seq);
    now_true()
}

// What happens in the channel: one of these.
inline choose_script()
{
    if
    :: script[1] = POST; script[2] = DELETE_1; script[3] = POST; script[4] = DELETE_2; script[5] = EDIT; script[6] = OWN_POST
    :: script[1] = POST; script[2] = POST; script[3] = DELETE_1; script[4] = DELETE_2
    :: script[1] = OWN_POST; script[2] = POST; script[3] = DELETE_2; script[4] = EDIT; script[5] = POST
    fi
}

inline delete_message(k)
{
    printf("message %d is deleted\n", k);
    deleted = deleted | BIT(k);
    deleted_ord = (k > deleted_ord -> k : deleted_ord);
    event_deletes[seq + 1] = k
}

active proctype Postgres()
{
    do
    :: atomic { seq < EVENTS && script[seq + 1] != NOTHING ->
        if
        :: script[seq + 1] == POST ->
            ord++;
            printf("somebody posts message %d\n", ord)
        :: script[seq + 1] == OWN_POST ->
            ord++;
            own = own | BIT(ord);
            printf("the reader posts message %d\n", ord)
        :: script[seq + 1] == EDIT ->
            printf("a message is edited\n")
        :: script[seq + 1] == DELETE_1 -> delete_message(1)
        :: script[seq + 1] == DELETE_2 -> delete_message(2)
        fi;
        committed() }
    :: atomic { moves > 0 && ord > 0 ->
        moves--;
        cursor = 1;
        printf("the reader's cursor moves to 1\n");
        now_true() }
    od
}

inline forget()
{
    known = false;
    copy_seq = 0;
    copy_ord = 0;
    copy_floor = 0;
    copy_deleted = 0;
    least = 0
}

inline leave_least(event)
{
#ifndef NO_LEAST
    least = (event > least -> event : least)
#else
    skip
#endif
}

inline channel_apply(event, head_ord)
{
    if
    :: !known -> leave_least(event)
#ifndef NO_SEQ_CHECK
    :: known && copy_seq >= event
#endif
#ifndef NO_HOLE_CHECK
    :: known && copy_seq + 1 < event ->
        forget();
        leave_least(event)
#endif
    :: else ->
        copy_seq = event;
        copy_ord = head_ord;
        if
        :: event_deletes[event] > copy_floor -> copy_deleted = copy_deleted | BIT(event_deletes[event])
        :: else
        fi
    fi
}

inline channel_install(at_seq, at_ord, at_floor)
{
    if
#ifndef NO_INSTALL_CHECK
    :: known && copy_seq > at_seq
#endif
    :: !known && least > at_seq
    :: else ->
        forget();
        known = true;
        copy_seq = at_seq;
#ifdef NO_OWN_HEAD
        copy_ord = at_ord;
#endif
        copy_floor = at_floor
    fi
}

// Relays and workers of any number of instances. Any event that was committed may be brought to Redis at any time and any
// number of times: handed on at once, read back after a crash, taken by two at the same time, or by one that slept.
// Once at least it is, before its row is deleted.
active proctype Relays()
{
    byte event, head_ord;
    do
    :: atomic { seq > 0 ->
        event = 1;
        do
        :: event < seq -> event++
        :: break
        od;
#ifdef NO_OUTBOX
        if
        :: HAS(outbox, event) ->
            printf("event %d is lost, its instance dies\n", event);
            outbox = outbox & ~BIT(event);
            goto next
        :: true
        fi;
#endif
#ifdef NO_OWN_HEAD
        head_ord = event_ord[event]; // or, read back, that of then
        do
        :: head_ord < ord -> head_ord++
        :: break
        od;
#endif
        printf("event %d is brought to Redis\n", event);
        channel_apply(event, head_ord);
        outbox = outbox & ~BIT(event);
next:
        event = 0;
        head_ord = 0 }
    od
}

active proctype Wipe()
{
    atomic {
        printf("FLUSHALL\n");
        wiped_under_reader = busy;
        forget() }
}

inline read_row()
{
    at_seq = seq;
    at_ord = ord;
    at_cursor = cursor;
    at_own = own;
    at_floor = deleted_ord
}

// channels.info, then unread_read() where the row alone does not tell.
active proctype Reader()
{
    byte at_seq, at_ord, at_cursor, at_own, at_floor;
    short count;
    bool believed;
    byte rounds = 3;
    do
    :: atomic { rounds > 0 && seq > 0 ->
        rounds--;
        read_row();
        asking = true;
        busy = true;
        were_true = BIT(TRUTH);
        printf("reader: the row has seq %d, ord %d, cursor %d\n", seq, ord, cursor);
        if
        :: at_floor <= at_cursor ->
            count = at_ord - at_cursor - BITS(at_own, at_cursor);
            believed = true;
            goto answer
        :: else
        fi }
        atomic {
            believed = known;
#ifdef NO_UNKNOWN
            believed = true;
#endif
#ifndef NO_FRESH_CHECK
            believed = believed && (!known || copy_seq == at_seq);
#endif
#ifndef NO_FLOOR
            believed = believed && at_cursor >= copy_floor;
#endif
#ifdef NO_OWN_HEAD
            at_ord = (known -> copy_ord : at_ord);
#endif
            count = at_ord - at_cursor - BITS(at_own, at_cursor) - BITS(copy_deleted & ~at_own, at_cursor);
            if
            :: believed -> printf("reader: Redis knows seq %d\n", copy_seq); goto answer
            :: else -> printf("reader: Redis does not know\n")
            fi }
        atomic {
            read_row();
            count = TRUTH;
            printf("reader: Postgres counts at seq %d\n", seq) }
answer:
        atomic {
            count = (count < 0 -> 0 : count);
            printf("reader: answers %d\n", count);
            assert(HAS(were_true, count)); // it was so at some moment of the asking
            asking = false;
            were_true = 0;
            count = 0;
            if
            :: believed -> goto done
            :: else
            fi }
        atomic {
            channel_install(at_seq, at_ord, at_floor);
            printf("reader: installs seq %d\n", at_seq) }
done:
        atomic {
            at_seq = 0; at_ord = 0; at_cursor = 0; at_own = 0; at_floor = 0;
            believed = false;
            busy = false }
    od
}

init {
    atomic { choose_script() };
    do
    :: atomic { outbox == 0 && !busy && known && !wiped_under_reader ->
        // All is quiet: the copy is exact, where it is one.
        assert(copy_seq == seq && BITS(deleted & ~copy_deleted, copy_floor) == 0) }
    od
}
