// SPDX-License-Identifier: Apache-2.0
// Promise 2, of what the strategy zset keeps in Redis for a member, the newest messages that are unread: what a reader answers
// from there was true at some moment of the asking, up to the cap ("at least" above it), whatever came late, half or not at all.
//
// One channel and one of its members, who asks. Others and the member post, a message is deleted, the cursor moves on and back,
// messages are read one by one, retention drops the first, the strategy changes and comes back, Redis is wiped. A worker
// brings events to Redis: the member, authors, the end; it may stop anywhere, and be followed by one that brings the same, an
// earlier or a later one. Marks are brought to Redis once, as late as may be, or never. A score is a ts, and that an ord here.
// Adding what is there, and taking out what is not, change nothing: that a chunk does not come twice is of no use here.
// (-DTWO_WORKERS: two at a time; takes five times as long. -DONE_WORKER: less of what may happen.)
//
// Follows zset_walk, zset_trim, zset_install, zset_read and zset_mark of lua/tidings.lua (the turns are in
// walks.inc), src/unread/strategies/strategy_zset.c, messages_ask() of src/unread/reader.c, mark_messages() of
// sql/09_strategies.sql, month_move() of sql/15_months.sql.
//
// What can be taken out (-D):
//   NO_SEQ_CHECK      an event is walked whatever was walked before it
//   NO_HOLE_CHECK     an event is walked also when the one before it was not
//   NO_BUILD          what was kept before a hole or a wipe is still believed
//   NO_WALKING_CHECK  a set is believed while a walk goes on
//   NO_FRESH_CHECK    a set of any seq is believed
//   NO_INSTALL_CHECK  a set read from Postgres is installed whatever was walked since
//   NO_UNKNOWN        where Redis has no key, nothing is unread
//   NO_FLOOR          a set from which the cap, or a mark, took is believed as if it were whole
//   NO_VERSION        a set is believed whatever was read one by one since
//   NO_STEP           what is read one by one is taken out of a set of any version, which then counts as that of today
//   NO_MARK_CHECK     what is read one by one is taken out of a set that does not have it yet
//   NO_EXPIRY         retention leaves the cursor as it is

#define CAP 1
#define KEEP CAP // of a walk that trims: with its one post there are CAP + 1
#define TRIMS(event) ((event) == 3)
#define EVENTS 3
#define MARKS 2
#define BIT(n) (1 << (n))
#define HAS(set, n) (((set) >> (n)) & 1)

mtype = { NOTHING, POST, OWN_POST, DELETE_1 };
mtype script[EVENTS + 1] = NOTHING;

// Postgres
byte seq, ord, cursor, gone; // the messages up to `gone` are dropped
byte version;                // single_version
byte generation;             // of an even one the strategy is zset, of an odd one sequence
byte own, deleted, singles;  // bits of ords
byte event_generation[EVENTS + 1];
// One of these happens, or one more mark.
byte changes; // of the strategy
bool expires; // retention drops message 1
bool wipes;
byte moves = 1; // marks, still to come

// The states after each mark, on their way to Redis.
typedef Mark {
    bool sent;
    byte generation, seq, version, cursor, singles
}
Mark marks[MARKS];
byte mark_count;

#define IS_ZSET(generation) ((generation) % 2 == 0)

// Redis: unread:{U}:C
bool built;          // of the build of today
byte set;            // bits of ords
byte of_floor, of_version;

// The reader: bits of the counts that were true since it began to ask.
bool asking;
byte were_true;

#define BITS(set, from) (((from) < 1 && HAS(set, 1)) + ((from) < 2 && HAS(set, 2)) + ((from) < 3 && HAS(set, 3)))
#define UP_TO(n) (BIT((n) + 1) - 1)
#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define STANDING (UP_TO(ord) & ~UP_TO(MAX(cursor, gone)) & ~(own | deleted | singles))
#define SHOWN(count) ((count) > CAP -> CAP + 1 : (count))
#define TRUTH SHOWN(BITS(STANDING, 0))

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
    :: script[1] = POST; script[2] = POST; script[3] = POST
    :: script[1] = POST; script[2] = DELETE_1; script[3] = OWN_POST
    fi;
    if
#ifdef ONE_WORKER
    :: script[3] == POST -> moves = 2
    :: script[3] == POST -> expires = true
    :: script[3] != POST -> changes = 2
#else
    :: changes = 2
    :: expires = true
    :: wipes = true
    :: moves = 2
#endif
    fi
}

// A state after which Redis is told, once.
inline marked(of_singles)
{
    marks[mark_count].generation = generation;
    marks[mark_count].seq = seq;
    marks[mark_count].version = version;
    marks[mark_count].cursor = cursor;
    marks[mark_count].singles = of_singles;
    mark_count++;
    now_true()
}

inline read_singly(k)
{
    printf("message %d is read by itself\n", k);
    singles = singles | BIT(k);
    version++;
    marked(BIT(k))
}

active proctype Postgres()
{
    do
    :: atomic { seq < EVENTS && script[seq + 1] != NOTHING ->
        if
        :: script[seq + 1] == POST ->
            ord++;
            printf("somebody posts message %d: event %d\n", ord, seq + 1)
        :: script[seq + 1] == OWN_POST ->
            ord++;
            own = own | BIT(ord);
            printf("the member posts message %d: event %d\n", ord, seq + 1)
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
        :: cursor < 1 && ord > 1 -> cursor = 1; printf("the cursor moves to 1\n"); marked(0)
        :: cursor < ord -> cursor = ord; printf("the cursor moves to %d\n", ord); marked(0)
        :: cursor > 0 -> cursor = 0; singles = 0; version++; printf("all is marked unread\n"); marked(0)
        :: HAS(STANDING, 1) -> read_singly(1)
        :: HAS(STANDING, 2) -> read_singly(2)
        :: HAS(STANDING, 3) -> read_singly(3)
        :: else
        fi }
    :: atomic { expires && ord > 1 ->
        expires = false;
        gone = 1;
        printf("message 1 is dropped by retention\n");
#ifndef NO_EXPIRY
        cursor = MAX(cursor, 1); // nobody tells Redis
#endif
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
    built = false;
    set = 0;
    of_floor = 0;
    of_version = 0
#else
    skip
#endif
}

inline bits_void(when)
{
    skip
}

#include "walks.inc"

inline raise_floor(to)
{
    of_floor = MAX(of_floor, to)
}

// Keeps the newest; by the set's bits.
inline trim()
{
    if
    :: HAS(set, 3) && BITS(set, 0) > KEEP -> raise_floor((HAS(set, 2) -> 2 : 1)); set = BIT(3)
    :: !HAS(set, 3) && BITS(set, 0) > KEEP -> raise_floor(1); set = BIT(2)
    :: else
    fi
}

#define IS_POST(event) (script[event] == POST || script[event] == OWN_POST)
#define ORD_OF(event) (script[event] == OWN_POST -> 2 : (event))

inline chunk_of_members(me, event)
{
    if
    :: TURN(me, event, 0) ->
        printf("worker %d: event %d to the member\n", me, event);
        next = 1;
        if
        :: built && TRIMS(event) -> trim()
        :: else
        fi;
        if
        :: built && IS_POST(event) -> set = set | BIT(ORD_OF(event))
        :: built && script[event] == DELETE_1 -> set = set & ~BIT(1)
        :: else // what has no build stays without: it is unknown
        fi
    :: else
    fi
}

inline chunk_of_authors(me, event)
{
    if
    :: TURN(me, event, 1) ->
        next = 2;
        if
        :: built && script[event] == OWN_POST -> set = set & ~BIT(ORD_OF(event))
        :: else
        fi
    :: else
    fi
}

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
        if
        :: IS_ZSET(gen) ->
            printf("worker %d: begins event %d, generation %d\n", me, event, gen);
            walk_begin(me, gen, event, true, false)
        :: else
        fi;
        gen = 0 }
        if
        :: atomic { walker_valid[me] -> chunk_of_members(me, event) }
            atomic {
                chunk_of_authors(me, event);
                walk_end(me, event, 2);
                event = 0;
                walker_valid[me] = false }
        :: atomic { true -> event = 0; walker_valid[me] = false } // it stops, or never began
        fi
    od
}

inline forget_set()
{
    built = false;
    set = 0;
    of_floor = 0;
    of_version = 0
}

#ifdef NO_MARK_CHECK
#define HAS_ALL(mark) true
#else
#define HAS_ALL(mark) WALK_AT(mark.generation, mark.seq)
#endif
#ifdef NO_STEP
#define IS_STEP(mark) true
#else
#define IS_STEP(mark) (of_version + 1 == mark.version)
#endif

// What is brought at any time: marks; a wipe; the sweep after the channel left the strategy.
inline mark_bring(k)
{
    printf("mark %d is brought to Redis\n", k);
    marks[k].sent = true;
    if
    :: built ->
        set = set & ~UP_TO(marks[k].cursor);
        raise_floor(marks[k].cursor);
        if
        :: marks[k].singles != 0 && HAS_ALL(marks[k]) && IS_STEP(marks[k]) ->
            set = set & ~marks[k].singles;
            of_version = marks[k].version
        :: else
        fi
    :: else
    fi;
    marks[k].generation = 0;
    marks[k].seq = 0;
    marks[k].version = 0;
    marks[k].cursor = 0;
    marks[k].singles = 0
}

active proctype Redis()
{
    do
    :: atomic { mark_count > 0 && !marks[0].sent -> mark_bring(0) }
    :: atomic { mark_count > 1 && !marks[1].sent -> mark_bring(1) }
    :: atomic { wipes ->
        printf("FLUSHALL\n");
        wipes = false;
        walks_wipe();
        forget_set() }
    :: atomic { generation > 0 && built -> forget_set() }
    od
}

inline read_row()
{
    row_generation = generation;
    row_seq = seq;
    row_cursor = cursor;
    row_version = version
}

// The newest CAP + 1 that are unread.
inline read_messages()
{
    row_set = STANDING;
    row_floor = row_cursor;
    if
    :: BITS(row_set, 0) > CAP + 1 -> row_set = row_set & ~BIT(1)
    :: else
    fi;
    if
    :: BITS(row_set, 0) > CAP -> row_floor = (HAS(row_set, 1) -> 0 : (HAS(row_set, 2) -> 1 : 2))
    :: else
    fi
}

inline install()
{
    walk_open(row_generation, row_seq);
    if
#ifndef NO_INSTALL_CHECK
    :: !WALK_AT(row_generation, row_seq) -> printf("refused\n")
#endif
    :: else ->
        built = true;
        set = row_set;
        of_floor = row_floor;
        of_version = row_version
    fi
}

// Asks once: an answer changes nothing. Whoever finds nothing in Redis brings there what Postgres says, and may be late.
active proctype Reader()
{
    byte row_generation, row_seq, row_cursor, row_version, row_set, row_floor;
    byte count;
    bool believed;
    byte asks = 1;
#ifdef ONE_WORKER
    byte installs = 1;
#else
    byte installs = 2;
#endif
    do
    :: atomic { asks > 0 && seq > 0 && IS_ZSET(generation) ->
        asks--;
        read_row();
        asking = true;
        were_true = BIT(TRUTH);
        printf("reader: the row has generation %d, seq %d, cursor %d, version %d\n", generation, seq, cursor, version) }
        atomic {
            believed = built && known && SAME_GENERATION(row_generation);
#ifndef NO_FRESH_CHECK
            believed = believed && at_seq == row_seq;
#endif
#ifndef NO_WALKING_CHECK
            believed = believed && walking == at_seq;
#endif
#ifndef NO_VERSION
            believed = believed && of_version == row_version;
#endif
            count = SHOWN(BITS(set, row_cursor));
#ifndef NO_FLOOR
            believed = believed && (count > CAP || of_floor <= row_cursor);
#endif
#ifdef NO_UNKNOWN
            if
            :: !known -> believed = true; count = 0
            :: else
            fi;
#endif
            if
            :: believed ->
                printf("reader: answers %d\n", count);
                assert(HAS(were_true, count)) // it was so at some moment of the asking
            :: else
            fi;
            asking = false;
            were_true = 0;
            count = 0;
            believed = false;
            row_generation = 0; row_seq = 0; row_cursor = 0; row_version = 0 }
    :: atomic { asks > 0 && installs > 0 && seq > 0 && IS_ZSET(generation) ->
        installs--;
        read_row();
        read_messages();
        printf("reader: Postgres says what is unread at seq %d\n", seq) }
        atomic {
            printf("reader: installs what was unread at seq %d\n", row_seq);
            install();
            row_generation = 0; row_seq = 0; row_cursor = 0; row_version = 0; row_set = 0; row_floor = 0 }
    od
}

init {
    atomic {
        choose_script();
        run Worker(0)
#ifdef TWO_WORKERS
        ; run Worker(1)
#endif
    }
}
