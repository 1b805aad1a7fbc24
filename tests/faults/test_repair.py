# SPDX-License-Identifier: Apache-2.0
"""Wrong data in Redis is found and corrected; lost data is restored automatically, and no caller sees a wrong number meanwhile."""
import itertools
import os
import pty
import re
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.faults.proxy import Proxy
from tests.support.environment import BINARY, Environment, running
from tests.support.wait import wait_until
from tests.support.workspace import fresh_name

COUNTED = ("zset", "counter", "bitmap")
MORE_SESSIONS = 8  # of what builds Redis again on each instance, and of who verifies, which may take a while to end


def is_built(parts):
    return parts.redis.cli("EXISTS", "unread-built").strip() == "1"


class Rooms:
    """A channel of each strategy that counts in Redis, with something unread (nothing, where a bit says so), known to Redis."""

    def __init__(self, parts):
        self.parts = parts
        self.workspace = parts.workspace()
        self.ann, self.bob = self.workspace.users(2)
        self.channels = {}
        for strategy in COUNTED:
            made = self.ann.ok("channels.create", name=fresh_name("room"), strategy=strategy)["channel"]["id"]
            self.ann.ok("channels.invite", channel=made, users=[self.bob.id])
            if strategy != "bitmap":
                for number in range(3):
                    self.ann.ok("chat.postMessage", channel=made, text=f"number {number}")
            self.channels[strategy] = made
        # What is at work at the start would mend what a test breaks.
        wait_until(lambda: is_built(parts), what="Redis built")
        wait_until(self.is_known, what="counts known to Redis")

    def tool(self, *arguments, database_url=None, codes=(0, 1)):
        """tidings unread …: its exit code and the numbers that it prints."""
        environment = self.parts.instances[0].full_environment()
        if database_url:
            environment["TIDINGS_DATABASE_URL"] = database_url
        done = subprocess.run([BINARY, "unread", *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode in codes, done.stderr
        numbers = [int(number) for number in re.findall(r"\d+", done.stdout)]
        return done.returncode, dict(zip(("pairs", "known", "wrong", "written"), numbers)), done.stderr

    def rebuild(self):
        code, told, _ = self.tool("rebuild", "--workspace", self.workspace.id)
        assert code == 0
        return told

    def verify(self, *scope):
        return self.tool("verify", *(scope or ("--workspace", self.workspace.id)))

    def is_known(self):
        """All but ann's bit in channels with data per member (her own posts clear it)."""
        self.rebuild()
        return self.verify()[1]["known"] == 2 * len(COUNTED)

    def corrupt(self, strategy):
        redis, channel, bob = self.parts.redis, self.channels[strategy], self.bob.id
        key = f"unread:{{{bob}}}:{channel}"
        if strategy == "counter":
            assert redis.cli("HINCRBY", key, "n", "4").strip() == "7"
        elif strategy == "zset":
            redis.cli("ZADD", key, "1717200000000001", "1")  # before the cursor: of no harm
            redis.cli("ZADD", key, "9717200000000000", "77")
        else:
            self.ann.ok("chat.postMessage", channel=channel, text="not read")
            wait_until(lambda: redis.cli("EXISTS", f"channel:{{{channel}}}:read").strip() == "0", what="bits deleted")
            number = self.parts.postgres.sql(
                f"SELECT number FROM channel_members WHERE channel_id = '{channel}' AND user_id = '{bob}'").strip()
            redis.cli("SETBIT", f"channel:{{{channel}}}:read", number, "1")

    def shows(self, strategy):
        info = self.bob.ok("channels.info", channel=self.channels[strategy])["channel"]
        assert info["has_unreads"]
        assert strategy == "bitmap" or info["unread_count"] == 3, info


@pytest.fixture
def rooms(parts):
    return Rooms(parts)


@pytest.mark.parametrize(("scope", "unknown"), [("--workspace", "T0"), ("--channel", "C0"), ("--user", "U0")])
def test_a_scope_of_nothing_is_no_success(rooms, scope, unknown):
    unknown = unknown.ljust(11, "0")
    for command in ("verify", "rebuild"):
        _, _, said = rooms.tool(command, scope, unknown, codes=(2,))
        assert f"there is no {unknown}" in said


@pytest.mark.parametrize("strategy", COUNTED)
def test_what_is_wrong_is_found_and_mended(rooms, strategy):
    assert rooms.verify()[0] == 0
    rooms.corrupt(strategy)
    code, told, _ = rooms.verify()
    assert (code, told["wrong"]) == (1, 1)
    assert rooms.verify("--channel", rooms.channels[strategy])[0] == 1
    assert rooms.verify("--user", rooms.bob.id)[0] == 1
    assert rooms.verify("--user", rooms.ann.id)[0] == 0
    assert rooms.rebuild()["wrong"] == 1
    assert rooms.verify()[0] == 0
    rooms.shows(strategy)


@pytest.mark.parametrize("by_audit", (False, True))
def test_deletes_that_are_wrong_are_found_and_mended(parts, rooms, by_audit):
    """The data of `sequence` in Redis."""
    channel = rooms.ann.ok("channels.create", name=fresh_name("room"), strategy="sequence")["channel"]["id"]
    rooms.ann.ok("channels.invite", channel=channel, users=[rooms.bob.id])
    ts = [rooms.ann.post(channel) for _ in range(3)]
    rooms.rebuild()  # so that Redis has the head, and adds to it
    rooms.ann.ok("chat.delete", channel=channel, ts=ts[1])
    key = f"channel-latest:{{{channel}}}"
    wait_until(lambda: parts.redis.cli("HGET", key, "deleted").strip() == f"2:{rooms.ann.id}", what="the delete")
    wait_until(lambda: rooms.verify("--channel", channel)[1]["known"] == 2, what="counts known to Redis")
    parts.redis.cli("HSET", key, "deleted", "")
    code, told, _ = rooms.verify("--channel", channel)
    assert (code, told["wrong"]) == (1, 1)
    if by_audit:
        auditing = parts.instance(audit_interval_s=1, audit_pairs=1000)
        wait_until(lambda: rooms.verify("--channel", channel)[0] == 0, what="no drift")
        assert auditing.stop() == 0
    else:
        assert rooms.rebuild()["wrong"] == 1
    assert rooms.verify("--channel", channel)[0] == 0
    assert rooms.bob.unread(channel) == 2


def test_a_mark_while_bits_are_compared_is_no_drift(parts, rooms):
    """Postgres was read before the mark, Redis after it."""
    channel = rooms.channels["bitmap"]
    ts = rooms.ann.post(channel)
    bits = f"channel:{{{channel}}}:read"
    wait_until(lambda: parts.redis.cli("EXISTS", bits).strip() == "0", what="bits deleted")
    with Proxy("127.0.0.1", parts.postgres.port) as proxy, ThreadPoolExecutor(1) as pool:
        proxy.trap("repair_page_channel", "hold")
        verifying = pool.submit(rooms.tool, "verify", "--channel", channel, database_url=proxy.of(parts.postgres.tcp_url))
        wait_until(proxy.holds, what="the statement prepared")
        proxy.trap("repair_page_channel", "hold")
        proxy.let_go()
        wait_until(proxy.holds, what="the page read")
        rooms.bob.ok("channels.mark", channel=channel, ts=ts)
        wait_until(lambda: parts.redis.cli("EXISTS", bits).strip() == "1", what="bob's bit")
        proxy.let_go()
        code, told, _ = verifying.result()
    assert (code, told["wrong"]) == (0, 0)


def test_a_mark_while_a_bit_is_read_is_no_drift(parts, rooms):
    """The same of who calls channels.info on one device and channels.mark on another."""
    channel = rooms.channels["bitmap"]
    ts = rooms.ann.post(channel)
    bits = f"channel:{{{channel}}}:read"
    wait_until(lambda: parts.redis.cli("EXISTS", bits).strip() == "0", what="bits deleted")

    def compared():
        """The number of counts in Redis that the instance found right, and wrong."""
        text = page.page("/metrics").text
        return [int(re.search(rf"^tidings_unread_{name}_total (\d+)", text, re.MULTILINE)[1]) for name in ("from_redis", "drift")]

    with Proxy("127.0.0.1", parts.postgres.port) as proxy, ThreadPoolExecutor(1) as pool:
        instance = parts.instance(database_url=proxy.of(parts.postgres.tcp_url))
        try:
            page, bob = parts.client(url=instance.url), rooms.bob.at(instance.url)
            assert bob.ok("channels.info", channel=channel)["channel"]["has_unreads"]  # all but the state is known from now on
            proxy.trap("channel_state", "hold")
            reading = pool.submit(bob.ok, "channels.info", channel=channel)
            wait_until(proxy.holds, what="the rows read")
            rooms.bob.ok("channels.mark", channel=channel, ts=ts)
            wait_until(lambda: parts.redis.cli("EXISTS", bits).strip() == "1", what="bob's bit")
            before = compared()
            proxy.let_go()
            assert reading.result()["channel"]["has_unreads"]
            wait_until(lambda: compared() != before, what="the comparison")
            assert compared() == [before[0] + 1, 0]
        finally:
            proxy.let_go()
            assert instance.stop() == 0


def test_what_is_missing_is_unknown_and_comes_back(rooms):
    channel = rooms.channels["counter"]
    rooms.parts.redis.cli("DEL", f"unread:{{{rooms.bob.id}}}:{channel}")
    code, told, _ = rooms.verify("--channel", channel)
    assert (code, told["pairs"], told["known"]) == (0, 2, 1)
    rooms.rebuild()
    assert rooms.verify("--channel", channel)[1]["known"] == 2


def test_bad_arguments_are_named(rooms):
    for arguments in ((), ("count",), ("verify", "--team", "T1"), ("verify", "--user"), ("rebuild", "--user", "U1", "x")):
        done = subprocess.run([BINARY, "unread", *arguments], env=rooms.parts.instances[0].full_environment(),
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2 and "usage: tidings unread" in done.stderr


def test_a_terminal_sees_a_bar(rooms):
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        code = subprocess.run([BINARY, "unread", "verify"], env=rooms.parts.instances[0].full_environment(), stderr=theirs,
                              stdout=subprocess.DEVNULL, timeout=60, check=False).returncode
        os.close(theirs)
        shown = terminal.read(65536).decode()
    assert code == 0 and re.search(r"\r\[#+ *\] \d+ of \d+, 0 wrong", shown), shown


@pytest.mark.parametrize("strategy", COUNTED)
def test_the_audit_mends_and_counts(parts, rooms, strategy):
    auditing = parts.instance(audit_interval_s=1, audit_pairs=1000)
    try:
        rooms.corrupt(strategy)
        page = parts.client(url=auditing.url)
        wait_until(lambda: re.search(r"tidings_unread_drift_total [1-9]", page.page("/metrics").text), what="drift counted")
        wait_until(lambda: rooms.verify()[0] == 0, what="no drift")
        rooms.shows(strategy)
    finally:
        assert auditing.stop() == 0


@pytest.fixture
def alone(tmp_path_factory):
    """Rooms on separate servers, so that an audit has few other pairs to draw."""
    for parts in running(Environment(tmp_path_factory.mktemp("alone"), settings={"TIDINGS_AUDIT_PAIRS": "0"})):
        yield Rooms(parts)


def test_the_audit_comes_to_direct_conversations(alone):
    """Also for members other than the first, with one pair at a time. The draw is random, so many are wrong."""
    rooms, parts = alone, alone.parts
    ann, *others = sorted(rooms.workspace.users(5), key=lambda client: client.id)
    groups = [group for size in (2, 3, 4) for group in itertools.combinations(others, size)]
    made = [ann.ok("conversations.open", users=",".join(user.id for user in group))["channel"]["id"] for group in groups]
    stamps = [ann.post(channel) for channel in made]
    rooms.rebuild()
    for channel, ts, group in zip(made, stamps, groups):
        ann.ok("chat.delete", channel=channel, ts=ts)
        key = f"channel-latest:{{{channel}}}"
        wait_until(lambda k=key: parts.redis.cli("HGET", k, "deleted").strip(), what="the delete")
        wait_until(lambda c=channel, g=group: rooms.verify("--channel", c)[1]["known"] == len(g) + 1, what="counts known to Redis")
        parts.redis.cli("HSET", key, "deleted", "")
        assert rooms.verify("--channel", channel)[1]["wrong"] == len(group)
    auditing = parts.instance(audit_interval_s=1, audit_pairs=1)
    try:
        wait_until(lambda: any(rooms.verify("--channel", channel)[0] == 0 for channel in made), 120, 0.2, "a channel without drift")
    finally:
        assert auditing.stop() == 0


def test_flushall_under_reads(parts, rooms):
    """Right answers throughout, few sessions at Postgres, and all of it is there again by itself."""
    stop, wrong, sessions = threading.Event(), [], []

    def read():
        reader = rooms.bob.at(rooms.bob.url)
        while not stop.is_set():
            for strategy in ("zset", "counter"):
                info = reader.ok("channels.info", channel=rooms.channels[strategy])["channel"]
                if info["unread_count"] != 3:
                    wrong.append(info)

    readers = [threading.Thread(target=read) for _ in range(2 * MORE_SESSIONS)]
    open_now = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tidings%'"
    before = int(parts.postgres.sql(open_now))
    for reader in readers:
        reader.start()
    try:
        for _ in range(3):
            parts.redis.cli("FLUSHALL")

            def is_built_again():
                sessions.append(int(parts.postgres.sql(open_now)))
                return is_built(parts)
            wait_until(is_built_again, what="Redis built again")
            assert rooms.verify()[1]["known"] >= 2 * len(COUNTED) - 1
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert not wrong
    assert max(sessions) <= before + MORE_SESSIONS, (before, max(sessions))


def test_a_rebuild_that_failed_goes_on(parts, rooms):
    """The instance that began it and failed retries, and does not wait for its own lock to expire."""
    parts.redis.cli("ACL", "SETUSER", "default", "-fcall")
    try:
        parts.redis.cli("FLUSHALL")
        wait_until(lambda: parts.redis.cli("EXISTS", "unread-building").strip() == "1", what="a rebuild")
    finally:
        parts.redis.cli("ACL", "SETUSER", "default", "+fcall")
    wait_until(lambda: is_built(parts), what="Redis built again")
    assert rooms.verify()[1]["wrong"] == 0


def test_a_rebuild_that_is_cut_short_is_not_done(parts, rooms):
    """The instance that runs it stops between two pages; the next one starts over."""
    with parts.database() as database:
        database.execute("INSERT INTO channel_members (channel_id, user_id, member_seq) SELECT %s, 'U' || n + 1000000, 0"
                         " FROM generate_series(1, 600) n", (rooms.channels["zset"],))
    for instance in parts.instances:
        assert instance.stop() == 0
    slow = parts.instance(rebuild_pairs_per_s=1)
    parts.redis.cli("FLUSHALL")
    wait_until(lambda: parts.redis.cli("EXISTS", "unread-building").strip() == "1", what="a rebuild")
    assert slow.stop() == 0
    assert not is_built(parts)
    for instance in parts.instances:
        instance.start()
    wait_until(lambda: is_built(parts), what="Redis built again")
    assert rooms.verify()[1]["known"] >= 2 * len(COUNTED) - 1
