# SPDX-License-Identifier: Apache-2.0
"""The functions of lua/tidings.lua. Stored data may be in a later release's form, or damaged: no function may fail because of it, run for
long, or leave data on which the next call fails. Arguments come only from this release: they are well-formed."""
import pytest
import redis
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tools.redis_library import function, library
from tools.services import Redis

CALLS = 100  # of each test
LATEST, WALK, MEMBERS, READ = "channel-latest:{C1}", "channel-walk:{C1}", "channel:members:{C1}", "channel:{C1}:read"
CURSOR, UNREAD, THREAD = "read_cursor:{C1}", "unread:{C1}:C1", "thread-read:{C1}:C1:1"
SESSION, PRESENCE, RATE = "session:{C1}:device", "presence:{C1}", "rate:{C1}:name"

number = st.integers(0, 2**53 - 1).map(str)
small = st.integers(0, 12).map(str)
seq = st.one_of(small, number)
user = st.sampled_from(["U1", "U2", "U3"])
flag = st.sampled_from(["0", "1"])
odd = st.one_of(seq, st.sampled_from(
    ["", "?", "!", "*3", "*0", "*999999999999999999", "-1", "nan", "inf", "-inf", "0x10", "1e999", "1.5", " 7 ", "7:U1 8:U2", "7:U1:x", "x:1",
     "1 2 3 4 5 6 1", "1 2 3 4 5 6 ?0", "1 2 3 4 5 6 1 9 9", "1 2 3", "99999999999999999999 1 1 1 1 1 1", "99999999999:2", "1:1", "1:1:x"]),
    st.text(st.characters(codec="ascii"), max_size=12))
lists = st.one_of(user, odd, st.sampled_from(["?", "*2", "*999999999999999999"]))
member = st.tuples(seq, seq, seq, seq, seq, seq, flag)
pairs = st.lists(st.tuples(seq, user), max_size=3).map(lambda found: [word for pair in found for word in pair])
tss = st.lists(st.tuples(seq, seq), max_size=3).map(lambda found: [word for pair in found for word in pair])


def words(*parts):
    """A flat list of texts from texts, tuples and lists."""
    return st.tuples(*parts).map(lambda found: [text for part in found for text in ([part] if isinstance(part, str) else part)])


@st.composite
def zset_walk(draw):
    added, deleted = draw(tss), draw(st.lists(seq, max_size=3))
    return [*draw(words(seq, seq, user, small)), draw(small), str(len(added) // 2), *added, str(len(deleted)), *deleted]


FUNCTIONS = {
    "heads_apply": ([LATEST], words(seq, seq, seq)),
    "channel_apply": ([LATEST], words(seq, seq, seq, pairs)),
    "channel_install": ([LATEST], words(seq, seq, seq, pairs.map(lambda found: " ".join(map(":".join, zip(found[::2], found[1::2])))))),
    "member_apply": ([CURSOR], words(st.just("C1"), member, st.sampled_from([[], ["0"]]))),
    "members_apply": ([CURSOR], words(st.just("C1"), member)),
    "thread_apply": ([THREAD], words(seq, st.just("60"))),
    "walk_begin": ([WALK, READ], words(small, seq, seq, user, flag, flag, flag)),
    "walk_forget": ([WALK], words(small, seq)),
    "walk_end": ([WALK], words(seq, seq, user, small)),
    "counter_walk": ([WALK, UNREAD], words(seq, seq, user, small, small)),
    "zset_walk": ([WALK, UNREAD], zset_walk()),
    "members_change": ([MEMBERS, UNREAD], words(user, small, flag)),
    "members_open": ([MEMBERS], words(small)),
    "members_close": ([MEMBERS], words(small)),
    "counter_install": ([WALK, MEMBERS, UNREAD], words(small, seq, user, small, small, small, small, seq)),
    "counter_read": ([WALK, MEMBERS, UNREAD], words(small, seq, user, small, small, small, seq)),
    "zset_install": ([WALK, MEMBERS, UNREAD], words(small, seq, user, small, small, seq, tss)),
    "zset_read": ([WALK, MEMBERS, UNREAD], words(small, seq, user, small, small, seq, small)),
    "zset_mark": ([WALK, MEMBERS, UNREAD], words(small, seq, user, small, small, seq, st.lists(seq, max_size=2))),
    "bitmap_install": ([WALK, MEMBERS, READ], words(small, seq, user, small)),
    "bitmap_read": ([WALK, MEMBERS, READ], words(small, seq, user, small)),
    "presence_apply": ([SESSION, PRESENCE], words(st.sampled_from(["on", "off", "look", "manual"]), user, small, st.just("60"), flag)),
    "limit_take": ([RATE], words(seq)),
}
# The fields that the functions read; what is stored under them is anything.
FIELDS = {LATEST: ["seq", "ord", "deleted", "deleted_floor", "least"], CURSOR: ["C1"], UNREAD: ["n", "b", "v", "e", "ts"],
          WALK: ["gen", "seq", "walking", "walker", "next", "build"], SESSION: ["U1", "U2"], PRESENCE: ["manual", "shown"]}
MERGES = ("heads_apply", "channel_apply", "channel_install", "member_apply", "members_apply", "thread_apply")
MERGED = (LATEST, CURSOR, THREAD)
TEXTS, SETS = (THREAD, RATE), (MEMBERS,)


@st.composite
def stored(draw):
    """Commands that store something odd."""
    commands = []
    for key, fields in FIELDS.items():
        for field in draw(st.lists(st.sampled_from(fields), unique=True)):
            # A count is made by HINCRBY, and `next` too: never anything but a number.
            commands.append(("HSET", key, field, draw(seq if field in ("n", "next") else odd)))
    for key in TEXTS:
        commands += [("SET", key, draw(odd))] if draw(st.booleans()) else []
    for key in SETS:
        commands += [("SADD", key, draw(lists)) for _ in range(draw(st.integers(0, 3)))]
    return commands


call = st.sampled_from(sorted(FUNCTIONS)).flatmap(lambda name: st.tuples(st.just(name), FUNCTIONS[name][1]))


@pytest.fixture(scope="module")
def link(tmp_path_factory):
    server = Redis(tmp_path_factory.mktemp("lua") / "redis", options={"appendonly": "no"})
    server.start()
    link = redis.Redis.from_url(server.url, socket_timeout=10)
    link.execute_command("FUNCTION", "LOAD", library())
    yield link
    link.close()
    server.stop()


def run(link, commands, calls):
    """Runs `commands` in an empty database, then `calls`, none of which may fail; returns the merged keys after each call."""
    pipe = link.pipeline(transaction=False)
    for command in (("FLUSHALL",), *commands):
        pipe.execute_command(*command)
    for name, arguments in calls:
        keys = FUNCTIONS[name][0]
        pipe.execute_command("FCALL", function(name), len(keys), *keys, *arguments)
        for key in MERGED:
            pipe.execute_command("DUMP", key)
    answers = pipe.execute()[1 + len(commands):]
    return [answers[at + 1:at + 1 + len(MERGED)] for at in range(0, len(answers), 1 + len(MERGED))]


often = settings(max_examples=CALLS, deadline=None, database=None, suppress_health_check=list(HealthCheck))


@often
@example([("SADD", MEMBERS, "*999999999999999999")], [("members_change", ["U1", "0", "0"])])
@example([("SET", RATE, "nan")], [("limit_take", ["1"])])
@example([], [("limit_take", ["0"])])
@given(stored(), st.lists(call, min_size=1, max_size=6))
def test_no_stored_value_makes_a_function_fail(link, commands, calls):
    run(link, commands, calls)


@often
@given(stored(), st.lists(call.filter(lambda found: found[0] in MERGES), min_size=1, max_size=4))
def test_a_merge_twice_is_a_merge_once(link, commands, calls):
    kept = run(link, commands, [again for one in calls for again in (one, one)])
    assert kept[0::2] == kept[1::2]
