# SPDX-License-Identifier: Apache-2.0
"""Postgres that dies, loses connections, loses replies or hangs under load."""
import contextlib
import os
import signal
import time

import pytest

from tests.faults.load import Load
from tests.faults.proxy import Proxy
from tests.support.wait import wait_until
from tests.support.workspace import Workspace

OF_A_SOCKET = 16  # posts that may wait there
REQUEST_LIMIT_S = 10  # each request is answered or closed by then
STALL_S = 5  # a loop that waited for Postgres would wait for longer
BACKENDS = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"


def test_kill_9_of_postgres(parts, load):
    for _ in range(2):
        parts.postgres.kill()
        parts.postgres.start()
        load.wait_acked(50)
    load.finish()
    assert load.slowest() < REQUEST_LIMIT_S


def test_snapshots_that_come_and_go(parts, load):
    """Channels become hot and cool again on both instances, under load."""
    hot = "SELECT count(*) FROM channels WHERE is_hot"
    for _ in range(3):
        with parts.held_snapshot(), parts.database() as database:
            wait_until(lambda: database.execute(hot).fetchone()[0] > 0, what="a hot channel")
            load.wait_acked(50)
        with parts.database() as database:
            wait_until(lambda: database.execute(hot).fetchone()[0] == 0, what="no hot channel")
        load.wait_acked(20)
    assert load.failed() == []
    load.finish()


def test_postgres_stays_away_for_a_while(parts, load):
    """Posts are refused with service_unavailable, readiness reports it, and everything recovers by itself."""
    parts.postgres.kill()
    wait_until(lambda: all(not instance.ready() for instance in parts.instances), what="not ready")
    for url in parts.urls:
        page = load.people[0][0].at(url).page("/healthz")
        assert page.status_code == 200
        down = load.people[0][0].at(url).page("/readyz")
        assert down.status_code == 503 and "postgres" in down.text.lower(), down.text
    parts.postgres.start()
    load.wait_acked(50)
    wait_until(lambda: all(instance.ready() for instance in parts.instances), what="ready again")
    load.finish()
    assert load.slowest() < REQUEST_LIMIT_S


def test_ready_means_all_loops(parts):
    """A connection goes to any loop; one of them still waits for an answer of Postgres."""
    with Proxy("127.0.0.1", parts.postgres.port) as proxy:
        proxy.trap("eras_begin", "hold")
        instance = parts.instance(start=False, database_url=proxy.of(parts.postgres.tcp_url), loops=4)
        try:
            instance.start(wait=False)
            wait_until(proxy.holds, what="a first answer of Postgres")
            assert not any(instance.ready() for _ in range(40))
            assert proxy.holds()
            proxy.let_go()
            instance.wait_ready()
        finally:
            instance.stop()


def test_a_database_that_was_brought_back(parts):
    """The situation after a restore from a backup: the content differs from the kept sidebars, and nothing in it reports a change."""
    instance = parts.instance(sidebar_min=0)
    try:
        workspace = Workspace([instance.url], parts.operator_token)
        [ann] = workspace.users(1)
        channel = workspace.channel(ann)
        assert ann.ok("unread.sync")["channels"][0]["id"] == channel
        parts.postgres.kill()
        parts.postgres.start()
        with parts.database() as database:
            database.execute("UPDATE channels SET name = 'as-it-was' WHERE id = %s", [channel])
        first = wait_until(lambda: [reply for reply in [ann.call("unread.sync")] if reply["ok"]], what="Postgres back")[0]
        assert first["channels"][0]["name"] == "as-it-was"
    finally:
        assert instance.stop() == 0


def post_waiting(socket, channel, texts):
    """Posts, and returns when all posts wait."""
    for number, text in enumerate(texts):
        socket.send({"id": number + 1, "type": "message", "channel": channel, "text": text})
    socket.send({"id": 1000, "type": "ping"})
    socket.expect({"type": "pong"})


def test_who_posts_much_waits_behind_themselves(parts):
    with Proxy("127.0.0.1", parts.postgres.port) as proxy, contextlib.ExitStack() as open_sockets:
        instance = parts.instance(database_url=proxy.of(parts.postgres.tcp_url), loops=1, batch_max=10)
        open_sockets.callback(lambda: instance.stop())
        workspace = Workspace([instance.url], parts.operator_token)
        ann, bob = workspace.users(2)
        channel = workspace.channel(ann, bob)
        *much, little = [open_sockets.enter_context(user.socket()) for user in [ann] * 8 + [bob]]
        proxy.trap("post_", "hold")
        for number, socket in enumerate(much):
            post_waiting(socket, channel, [f"{number}: {n}" for n in range(OF_A_SOCKET)])
        post_waiting(little, channel, ["little"])
        proxy.let_go()
        for socket in much:
            socket.expect({"reply_to": OF_A_SOCKET, "ok": True})
        little.expect({"reply_to": 1, "ok": True})
        texts = [message["text"] for message in ann.history(channel, limit=200) if "subtype" not in message][::-1]
        assert len(texts) == 8 * OF_A_SOCKET + 1 and texts.index("little") < 30


def test_terminated_sessions(parts, load):
    for _ in range(20):
        parts.postgres.sql(f"SELECT pg_terminate_backend(pid) FROM ({BACKENDS}) backends")
        load.wait_acked(10)
    load.finish()


def test_one_backend_killed_in_the_middle(parts, load):
    """The postmaster then ends all sessions, without an SQLSTATE: outcomes are unknown."""
    for _ in range(3):
        backends = parts.postgres.sql(BACKENDS).split()
        os.kill(int(backends[0]), signal.SIGKILL)
        load.wait_acked(40)
    load.finish()


def test_postgres_stands_still(parts, load):
    parts.postgres.kill(signal.SIGSTOP)
    until = time.monotonic() + 4
    healthy = load.people[0][0].at(parts.urls[0])
    while time.monotonic() < until:
        started = time.monotonic()
        assert healthy.page("/healthz").status_code == 200
        assert time.monotonic() - started < STALL_S, "an instance stalls with its Postgres"
        time.sleep(0.2)  # the pace of the questions
    parts.postgres.kill(signal.SIGCONT)
    load.wait_acked(50)
    load.finish()
    assert load.slowest() < REQUEST_LIMIT_S


def test_what_is_measured_is_soon_measured_again(parts):
    """Also if a measurement took long because Postgres hung."""
    waits = "SELECT pid FROM pg_locks WHERE relation = 'month_expiring'::regclass AND now() - waitstart > '2 s'"
    slow = set()
    with parts.database() as database:
        database.autocommit = False
        database.execute("LOCK TABLE month_expiring")
        wait_until(lambda: slow.update(parts.postgres.sql(waits).split()) or len(slow) == len(parts.instances),
                   what="a slow measure of each instance")
        database.rollback()
    with parts.held_snapshot():
        pass


def test_it_ends_while_an_audit_waits_for_its_answer(parts):
    """Which may take a minute."""
    with Proxy("127.0.0.1", parts.postgres.port) as proxy:
        proxy.trap("repair_", "hold")
        instance = parts.instance(database_url=proxy.of(parts.postgres.tcp_url), audit_pairs=1, audit_interval_s=1)
        wait_until(proxy.holds, what="an audit under way")
        assert instance.stop() == 0


@pytest.fixture
def proxied(parts):
    """A third instance that reaches Postgres through a proxy, and a load on it and the first one."""
    with Proxy("127.0.0.1", parts.postgres.port) as proxy:
        instance = parts.instance(database_url=proxy.of(parts.postgres.tcp_url))
        try:
            with Load(parts, urls=[instance.url, parts.urls[0]]) as load:
                load.wait_acked(50)
                yield instance, proxy, load
        finally:
            proxy.set_mode("pass")
            assert instance.stop() == 0


@pytest.mark.parametrize("keyed", [True, False], ids=["with a key", "without a key"])
@pytest.mark.parametrize("action", ["drop-reply", "cut"])
def test_the_commit_or_its_reply_is_lost(proxied, action, keyed):
    """The writer finds out by itself what became of its batch; the client sees one message, acked once."""
    _, proxy, load = proxied
    member = load.posters[0].members[0]
    member = member.at(member.url)
    for number in range(15):
        text = f"{action} number {number}"
        proxy.trap(text, action)
        args = {"client_msg_id": text} if keyed else {}
        load.post(member, load.channels[number % len(load.channels)], text, **args)
    assert proxy.sprung == 15
    load.finish()


def test_a_batch_that_was_looked_for_comes_late(proxied):
    """It reaches Postgres after its writer had not found it there and had run its posts again."""
    _, proxy, load = proxied
    member = load.posters[0].members[0]
    member = member.at(member.url)
    for number in range(5):
        text = f"late number {number}"
        proxy.trap(text, "late")
        load.post(member, load.channels[number % len(load.channels)], text)
        proxy.deliver_late()
    assert proxy.sprung == 5
    load.finish()


@pytest.mark.parametrize("mode", ["cut", "blackhole", "drop-reply"])
def test_the_way_to_postgres_is_bad_for_a_while(parts, proxied, mode):
    instance, proxy, load = proxied
    proxy.set_mode(mode)
    load.works_on(parts.urls[0], 3)
    proxy.set_mode("cut")
    proxy.set_mode("pass")
    wait_until(instance.ready, what="ready again")
    load.wait_acked(50)
    load.finish()
    assert load.slowest() < REQUEST_LIMIT_S


def test_a_month_that_was_not_prepared(parts):
    """Postgres' clock leapt past the last partition of messages: posts are refused, for a while."""
    with parts.apart("leapt") as instance:
        workspace = Workspace([instance.url], parts.operator_token)
        [ann] = workspace.users(1)
        channel = workspace.channel(ann)
        partitions = parts.postgres.sql("SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'messages'::regclass", "leapt")
        parts.postgres.sql("".join(f"DROP TABLE {name}; " for name in partitions.split()), "leapt")
        ann.fails("service_unavailable", "chat.postMessage", channel=channel, text="too early")
        assert instance.stop() == 0
        instance.start()
        wait_until(lambda: ann.call("chat.postMessage", channel=channel, text="in time")["ok"], what="a post")
        assert [message["text"] for message in ann.history(channel)] == ["in time"]
