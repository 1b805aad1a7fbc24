// SPDX-License-Identifier: Apache-2.0
// Promise 1: an acknowledged post is never lost and never doubled.
//
// Two instances with a writer and a relay each, one Postgres, two clients. One client's post has a client_msg_id and is
// repeated, elsewhere too, until it is acknowledged; the other's has none and is never repeated, so that only the
// writers keep it from being there twice. Connections break and instances die at any step.
//
// Follows src/chat/writer.c, post_batch(), post_check() and post_batch_find() of sql/03_posting.sql, and what
// src/fanout/relay.c does to rows of the outbox.
//
// What can be taken out (-D):
//   NO_UNKNOWN_LOOKUP  a batch whose answer was lost runs again at once
//   NO_FENCE           looking a batch up leaves nothing behind that stops it when it comes later
//   NO_DONE_MARK       a row that another than its writer's relay finished is deleted, not marked: its writer misses it
//   NO_KEY             client_msg_id is not kept
//   NO_COMMIT_WAIT     acknowledged when sent, not when committed

#define KEYED 0   // the post with a client_msg_id
#define KEYLESS 1 // the one without
#define BATCHES 5 // at a time
#define BIT(n) (1 << (n))
#define HAS(set, n) (((set) >> (n)) & 1)

mtype:tx = { UNUSED, SENT, COMMITTED, REFUSED, ABORTED };
mtype:row = { NONE, THERE, DONE };
mtype:reply = { WAITING, ACKED, FAILED };

typedef Batch {
    mtype:tx tx = UNUSED;
    mtype:row row = NONE; // of the outbox
    byte items;           // bits of posts
    byte writer;
    bool wanted;    // its writer is not finished with it
    bool heard;     // and can hear the answer
    bool submitted; // its writer has told its relay of it
}

Batch batches[BATCHES];
byte stored[2]; // how many messages of each post there are

byte queue[2]; // by instance: posts that wait for the next batch
bool dying[2];
mtype:reply replies[4] = WAITING;
#define REPLY(post, i) replies[2 * (post) + (i)]

byte breaks = 2;  // connections that may still break
byte crashes = 1; // instances that may still die
bool acknowledged[2];

inline answer(items, i, what)
{
    if
    :: HAS(items, 0) -> REPLY(0, i) = what
    :: else
    fi;
    if
    :: HAS(items, 1) -> REPLY(1, i) = what
    :: else
    fi
}

inline acknowledge(items, i)
{
    assert(!HAS(items, 0) || stored[0] == 1); // what is acknowledged is there
    assert(!HAS(items, 1) || stored[1] == 1);
    answer(items, i, ACKED)
}

proctype Client(byte post)
{
    byte at;
again:
    atomic {
        if
        :: at = 0
        :: at = 1
        fi;
        REPLY(post, at) = WAITING;
        queue[at] = queue[at] | BIT(post);
        printf("client %d: posts at instance %d\n", post, at)
    }
    if
    :: atomic { REPLY(post, at) == ACKED -> acknowledged[post] = true }
    :: atomic { REPLY(post, at) == FAILED && post == KEYED -> goto again }
    :: atomic { REPLY(post, at) == FAILED && post == KEYLESS }
    fi
}

// A batch of which nothing can come any more is forgotten.
inline settle(b)
{
    if
    :: batches[b].tx != SENT && !batches[b].wanted && !batches[b].submitted && batches[b].row != THERE ->
        batches[b].tx = UNUSED;
        batches[b].row = NONE;
        batches[b].items = 0;
        batches[b].writer = 0
    :: else
    fi
}

inline commit(b)
{
    if
    :: batches[b].row != NONE -> // the id of its row is taken
        printf("Postgres: batch %d comes too late\n", b);
        batches[b].tx = ABORTED
#ifndef NO_KEY
    :: batches[b].row == NONE && HAS(batches[b].items, KEYED) && stored[KEYED] > 0 ->
        printf("Postgres: refuses batch %d, the key is there\n", b);
        batches[b].tx = REFUSED
    :: batches[b].row == NONE && !(HAS(batches[b].items, KEYED) && stored[KEYED] > 0) ->
#else
    :: batches[b].row == NONE ->
#endif
        printf("Postgres: commits batch %d\n", b);
        batches[b].tx = COMMITTED;
        batches[b].row = THERE;
        stored[0] = stored[0] + HAS(batches[b].items, 0);
        stored[1] = stored[1] + HAS(batches[b].items, 1);
        assert(stored[0] <= 1 && stored[1] <= 1) // never doubled
    fi;
    settle(b)
}

#ifdef NO_DONE_MARK
#define AFTER_POLLING NONE
#else
#define AFTER_POLLING DONE
#endif

// What becomes of a statement on its way, whether anybody still listens or not; and of its row of the outbox, when its
// effects are done. (A relay that dies in between leaves all as it was.)
#define STATEMENT(b) \
    :: atomic { batches[b].tx == SENT -> commit(b) } \
    :: atomic { batches[b].tx == SENT && !batches[b].heard -> /* the server saw that its client is gone */ \
        printf("Postgres: drops batch %d\n", b); \
        batches[b].tx = ABORTED; \
        settle(b) } \
    :: atomic { batches[b].row == THERE -> \
        printf("a relay: is done with batch %d, which it had polled\n", b); \
        batches[b].row = AFTER_POLLING; \
        settle(b) } \
    :: atomic { batches[b].submitted -> \
        printf("its writer's relay: is done with batch %d\n", b); \
        batches[b].submitted = false; \
        batches[b].row = NONE; \
        settle(b) }

active proctype Postgres()
{
    do
    STATEMENT(0)
    STATEMENT(1)
    STATEMENT(2)
    STATEMENT(3)
    STATEMENT(4)
    od
}

inline finish(b)
{
    batches[b].wanted = false;
    batches[b].heard = false;
    settle(b);
    items = 0;
    b = 0
}

// batch_send(), batch_committed(), batch_look(), batch_found(), batch_check()
proctype Writer(byte i)
{
    byte b, items;
    do
    :: {
        do
        :: atomic { queue[i] != 0 ->
                do
                :: batches[b].tx == UNUSED -> break
                :: else -> b++
                od;
                assert(b < BATCHES);
                items = queue[i];
                queue[i] = 0;
                batches[b].items = items;
                batches[b].writer = i;
                batches[b].wanted = true;
                batches[b].heard = true;
                batches[b].tx = SENT;
                printf("instance %d: sends batch %d, posts 0:%d 1:%d\n", i, b, HAS(items, 0), HAS(items, 1));
#ifdef NO_COMMIT_WAIT
                acknowledge(items, i)
#endif
            }
            if
            :: atomic { batches[b].heard && batches[b].tx == COMMITTED ->
                printf("instance %d: batch %d is committed, acknowledges\n", i, b);
                batches[b].submitted = true;
                acknowledge(items, i);
                finish(b) }
            :: atomic { batches[b].heard && batches[b].tx == REFUSED ->
                // Whose key is there is answered with what it made; the others go again.
                printf("instance %d: batch %d is refused, acknowledges what is there\n", i, b);
                acknowledge(items & BIT(KEYED), i);
                queue[i] = queue[i] | (items & BIT(KEYLESS));
                finish(b) }
            :: atomic { breaks > 0 && batches[b].heard ->
                breaks--;
                batches[b].heard = false;
                printf("instance %d: loses its connection before the answer to batch %d\n", i, b) }
                if
#ifdef NO_UNKNOWN_LOOKUP
                :: atomic { true ->
                    queue[i] = queue[i] | items;
                    finish(b) }
#else
                :: atomic { batches[b].tx == COMMITTED && batches[b].row != NONE ->
                    printf("instance %d: finds batch %d, acknowledges\n", i, b);
                    batches[b].submitted = true;
                    acknowledge(items, i);
                    finish(b) }
                :: atomic { batches[b].row == NONE ->
                    printf("instance %d: does not find batch %d, runs its posts again\n", i, b);
#ifndef NO_FENCE
                    batches[b].row = DONE;
#endif
                    queue[i] = queue[i] | items;
                    finish(b) }
                :: atomic { true ->
                    printf("instance %d: gives the search for batch %d up\n", i, b);
                    answer(items, i, FAILED);
                    finish(b) }
#endif
                fi
            fi
        od
    } unless { dying[i] };
    atomic {
        // What it had in memory is gone; clients see their connections close; it is started again.
        printf("instance %d: dies\n", i);
        answer(items | queue[i], i, FAILED);
        if
        :: items != 0 -> finish(b)
        :: else
        fi;
        queue[i] = 0;
        for (b : 0 .. BATCHES - 1) {
            if
            :: batches[b].submitted && batches[b].writer == i ->
                batches[b].submitted = false;
                settle(b)
            :: else
            fi
        }
        b = 0;
        dying[i] = false
    }
    od
}

// When all has come to rest: the post with a key was acknowledged, and what was committed was told of.
init {
    byte b;
    atomic {
        run Writer(0); run Writer(1);
        run Client(0); run Client(1)
    }
    do
    :: atomic { crashes > 0 ->
        crashes--;
        if
        :: dying[0] = true
        :: dying[1] = true
        fi }
    :: atomic { timeout -> break }
    od;
    atomic {
        assert(acknowledged[KEYED] && stored[KEYED] == 1);
        for (b : 0 .. BATCHES - 1) {
            assert(batches[b].row != THERE)
        }
    }
}
