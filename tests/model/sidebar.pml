// SPDX-License-Identifier: Apache-2.0
// Promise 2, of all channels of a user as unread.sync tells them: two walks that meet read them in chunks, each of its own
// snapshot, while transactions that began before commit after. What is kept then has every channel that was there, once; and
// brought up to date by what changed since its token, it is what Postgres has.
//
// Four places for rows of a member, of which any may be missing at first. Two transactions write a row each, one that is there
// or a new one (a join; who leaves keeps the row). Each statement runs in Postgres at some moment after it was asked for, and is
// answered at some moment after that. (-DONE_WORKER: one transaction.)
//
// Follows walk_ask, walk_is_past, walk_take and on_chunk of src/unread/sidebar.c, sidebar_rows_apply(), sync_candidates() of
// sql/10_bulk.sql.
//
// What can be taken out (-D):
//   NO_TOKEN_FIRST  the token is taken when the walks have met
//   NO_XMIN         the token is the next transaction's, whatever is still under way
//   NO_PAST         a walk keeps also what the other one has read already

#define IDS 4
#define CHUNK 2
#define BIT(n) (1 << (n))
#define HAS(set, n) (((set) >> (n)) & 1)

// Postgres: the transaction that wrote a row last, 1 for those that were there.
byte changed[IDS + 1];
byte next_xid = 2;
byte under_way; // bits of transactions

// What is kept of it.
byte kept[IDS + 1];
byte token;
bool has_met;
byte asked;
byte at_first; // bits of the rows that were there when it began

// A walk: what it has read up to; what Postgres answered it.
typedef Walk {
    byte last;
    byte after, before; // between these it asks
    byte ids[CHUNK];
    byte xids[CHUNK];
    byte count
}
Walk walks[2];
#define UP 0
#define DOWN 1

inline xmin_read(to)
{
#ifdef NO_XMIN
    to = next_xid
#else
    to = (under_way == 0 -> next_xid : (HAS(under_way, 2) -> 2 : 3))
#endif
}

proctype Writer()
{
    byte xid, id;
    atomic {
        xid = next_xid;
        next_xid++;
        under_way = under_way | BIT(xid) }
    atomic {
        id = 1;
        do
        :: id < IDS -> id++
        :: break
        od;
        printf("transaction %d commits channel %d\n", xid, id);
        changed[id] = xid;
        under_way = under_way & ~BIT(xid) }
}

inline ask(w)
{
    walks[w].after = walks[UP].last;
    walks[w].before = walks[DOWN].last;
    asked++
}

// In Postgres.
inline execute(w)
{
    walks[w].count = 0;
    id = (w == UP -> walks[w].after + 1 : walks[w].before - 1);
    do
    :: id > walks[w].after && id < walks[w].before && walks[w].count < CHUNK ->
        if
        :: changed[id] > 0 ->
            walks[w].ids[walks[w].count] = id;
            walks[w].xids[walks[w].count] = changed[id];
            walks[w].count++
        :: else
        fi;
        id = (w == UP -> id + 1 : id - 1)
    :: else -> break
    od;
    printf("walk %d: reads %d channels between %d and %d\n", w, walks[w].count, walks[w].after, walks[w].before);
    id = 0
}

#define LAST_OF(w) walks[w].ids[walks[w].count - 1]
#ifdef NO_PAST
#define IS_PAST(w) false
#else
#define IS_PAST(w) ((w) == UP -> LAST_OF(w) >= walks[DOWN].last : LAST_OF(w) <= walks[UP].last)
#endif

inline take(w)
{
    if
    :: has_met -> walks[w].count = 0
    :: else
    fi;
    has_met = has_met || walks[w].count < CHUNK;
    do
    :: walks[w].count > 0 ->
        if
        :: IS_PAST(w) -> walks[w].count--; has_met = true
        :: else -> break
        fi
    :: else -> break
    od;
    if
    :: walks[w].count > 0 -> walks[w].last = LAST_OF(w)
    :: else
    fi;
    id = 0;
    do
    :: id < walks[w].count ->
        assert(kept[walks[w].ids[id]] == 0); // once
        kept[walks[w].ids[id]] = walks[w].xids[id];
        id++
    :: else -> break
    od;
    id = 0;
    walks[w].count = 0
}

proctype Walker(byte w)
{
    byte id;
    do
    :: atomic { !has_met -> ask(w) }
        atomic { execute(w) }
        atomic { take(w); asked-- }
    :: has_met -> break
    od
}

init {
    byte id;
    atomic {
        id = 1;
        do
        :: id <= IDS ->
            if
            :: changed[id] = 1
            :: true
            fi;
            id++
        :: else -> break
        od;
        id = 0;
        walks[DOWN].last = IDS + 1;
#ifndef ONE_WORKER
        run Writer();
#endif
        run Writer() }
    atomic {
#ifndef NO_TOKEN_FIRST
        xmin_read(token);
#endif
        for (id : 1 .. IDS) {
            at_first = at_first | (changed[id] > 0 -> BIT(id) : 0)
        }
        id = 0;
        printf("the reader begins\n");
        run Walker(UP);
        run Walker(DOWN) }
    atomic { has_met && asked == 0 ->
#ifdef NO_TOKEN_FIRST
        xmin_read(token);
#endif
        for (id : 1 .. IDS) {
            assert(!HAS(at_first, id) || kept[id] > 0) // all that was there
        }
        id = 0;
        printf("the walks have met\n") }
    // What changed since, at any time.
    atomic {
        printf("the reader asks what changed since %d\n", token);
        for (id : 1 .. IDS) {
            if
            :: changed[id] >= token && changed[id] > 0 -> kept[id] = changed[id]
            :: else
            fi
        }
        for (id : 1 .. IDS) {
            assert(kept[id] == changed[id])
        } }
}
