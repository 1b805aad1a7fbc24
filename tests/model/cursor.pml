// SPDX-License-Identifier: Apache-2.0
// Promise 3: a cursor never goes back except by markUnread, whatever the order in which devices, retries and instances
// arrive; not in Postgres, not in Redis, not on a device. When all is quiet, the copy in Redis is exact or unknown, and
// every device shows what Postgres has.
//
// One member of a channel of three messages. Devices mark (also late, with the epoch of then), mark unread, leave and join
// again. Each commit leaves an outbox row; its state is brought to Redis and told to devices by the marker, by relays that
// read it back, and by readers that mend the copy, each as late and as often as may be.
//
// Follows mark_batch() and mark_unread() of sql/04_reading.sql, channels_leave() and channels_join(),
// member_apply of lua/tidings.lua, src/unread/marker.c.
//
// What can be taken out (-D):
//   NO_MAX          a mark sets the cursor, it does not raise it
//   NO_READ_EPOCH   a mark that names an epoch counts in any
//   NO_EPOCH        Redis merges cursors by place alone
//   NO_MEMBER_SEQ   Redis takes membership from what comes last
//   NO_LOWER_BOUND  an event that finds nothing known is not kept
//   NO_COMPARE      a device shows what it heard last
//   NO_OUTBOX       commits are handed on in memory alone

#define HEAD 3
#define COMMITS 4

typedef Member {
    byte epoch;
    byte place;
    byte member_seq;
    bool joined = true
}

Member states[COMMITS + 1]; // Postgres after each commit
byte now;                   // the last of them
byte outbox;                // bits of commits

mtype = { UNKNOWN, LOWER_BOUND, KNOWN };
mtype is = UNKNOWN; // how much Redis knows
Member copy;
bool wiped;

byte device_epoch, device_place;

#define BIT(n) (1 << (n))
#define BEFORE(epoch_a, place_a, epoch_b, place_b) ((epoch_a) < (epoch_b) || ((epoch_a) == (epoch_b) && (place_a) < (place_b)))

inline copy_state(to, from)
{
    to.epoch = from.epoch;
    to.place = from.place;
    to.member_seq = from.member_seq;
    to.joined = from.joined
}

inline commit_begin()
{
    copy_state(states[now + 1], states[now])
}

inline committed()
{
    now++;
    outbox = outbox | BIT(now)
}

active proctype Devices()
{
    byte place, epoch;
    do
    :: atomic { now < COMMITS ->
        place = 0;
        do
        :: place < HEAD -> place++
        :: break
        od;
        commit_begin();
        if
        :: states[now].joined && place > 0 -> // channels.mark, in an epoch of now or of before
            epoch = 0;
            do
            :: epoch < states[now].epoch -> epoch++
            :: break
            od;
            if
#ifndef NO_MAX
            :: place <= states[now].place
#endif
#ifndef NO_READ_EPOCH
            :: epoch != states[now].epoch
#endif
            :: else ->
                printf("mark %d of epoch %d\n", place, epoch);
                assert(place >= states[now].place); // never back
                assert(epoch == states[now].epoch); // what was marked before a markUnread does not undo it
                states[now + 1].place = place;
                committed()
            fi
        :: states[now].joined && place < HEAD -> // channels.markUnread
            printf("mark unread after %d\n", place);
            states[now + 1].epoch = states[now].epoch + 1;
            states[now + 1].place = place;
            committed()
        :: states[now].joined && place == 0 ->
            printf("leave\n");
            states[now + 1].joined = false;
            states[now + 1].member_seq = states[now].member_seq + 1;
            committed()
        :: !states[now].joined ->
            printf("join\n");
            states[now + 1].joined = true;
            states[now + 1].member_seq = states[now].member_seq + 1;
            states[now + 1].epoch = states[now].epoch + 1;
            states[now + 1].place = HEAD;
            committed()
        fi;
        place = 0;
        epoch = 0 }
    od
}

// member_apply; `whole` without the 0 at the end.
inline member_apply(state, whole)
{
    if
    :: is == UNKNOWN && whole ->
        is = KNOWN;
        copy_state(copy, state)
    :: is == UNKNOWN && !whole ->
#ifndef NO_LOWER_BOUND
        is = LOWER_BOUND;
        copy_state(copy, state)
#else
        skip
#endif
    :: is != UNKNOWN ->
        if
#ifdef NO_EPOCH
        :: state.place > copy.place ->
#else
        :: BEFORE(copy.epoch, copy.place, state.epoch, state.place) ->
#endif
            assert(!BEFORE(state.epoch, state.place, copy.epoch, copy.place)); // never back
            copy.epoch = state.epoch;
            copy.place = state.place
        :: else
        fi;
        if
#ifndef NO_MEMBER_SEQ
        :: copy.member_seq > state.member_seq
#endif
        :: else ->
            copy.member_seq = state.member_seq;
            copy.joined = state.joined
        fi;
        if
        :: whole -> is = KNOWN
        :: else
        fi
    fi
}

// channel_marked: absolute; who gets it compares (read_epoch, last_read).
inline tell(state)
{
    if
#ifndef NO_COMPARE
    :: !BEFORE(device_epoch, device_place, state.epoch, state.place)
#endif
    :: else ->
        device_epoch = state.epoch;
        device_place = state.place
    fi
}

// Any state that ever was may be brought to Redis and told of at any time and any number of times, as an event or as a
// whole. A row of the outbox goes when the state of its commit, or a later one, was.
active proctype Instances()
{
    byte n, row;
    do
    :: atomic { now > 0 ->
        n = 0;
        do
        :: n < now -> n++
        :: break
        od;
        if
        :: printf("state %d is installed\n", n);
            member_apply(states[n], true)
        :: n > 0 -> // an event of row 1 … n
            row = 1;
            do
            :: row < n -> row++
            :: break
            od;
#ifdef NO_OUTBOX
            if
            :: printf("commit %d is lost, its instance dies\n", row);
                outbox = outbox & ~BIT(row);
                goto lost
            :: true
            fi;
#endif
            printf("commit %d is told of, with state %d\n", row, n);
            member_apply(states[n], false);
            tell(states[n]);
            outbox = outbox & ~BIT(row)
        fi;
lost:
        n = 0;
        row = 0 }
    od
}

active proctype Wipe()
{
    atomic {
        printf("FLUSHALL\n");
        wiped = true;
        is = UNKNOWN;
        copy.epoch = 0;
        copy.place = 0;
        copy.member_seq = 0;
        copy.joined = false }
}

#define SAME(state) (copy.epoch == state.epoch && copy.place == state.place && copy.member_seq == state.member_seq && \
                     copy.joined == state.joined)

init {
    do
    :: atomic { outbox == 0 ->
        assert(device_epoch == states[now].epoch && device_place == states[now].place);
        // What is installed late, after a wipe, may be old: readers compare it with the row that they have read.
        assert(is != KNOWN || wiped || SAME(states[now])) }
    od
}
