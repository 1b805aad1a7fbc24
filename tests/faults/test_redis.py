# SPDX-License-Identifier: Apache-2.0
"""Redis that dies, loses data, is full or hangs under load. No post ever fails because of it."""
import signal

import pytest

from tests.faults.load import Load
from tests.faults.proxy import Proxy
from tests.support.raw import TEXT, RawFrames, request
from tests.support.wait import SOON_S, wait_until
from tests.support.workspace import Workspace
from tools.redis_library import HASH


@pytest.fixture
def steady(load):
    """A load in which every post must be acked at the first attempt."""
    yield load
    assert load.failed() == []


def kill_pubsub(parts):
    """Kills the connection as soon as it exists."""
    wait_until(lambda: int(parts.redis.cli("CLIENT", "KILL", "TYPE", "pubsub")), what="a subscriber")


@pytest.mark.parametrize("keeps_data", [True, False], ids=["with its data", "without its data"])
def test_kill_9_of_redis(parts, steady, keeps_data):
    for _ in range(2):
        parts.redis.kill()
        steady.works_for(1)
        if not keeps_data:
            parts.redis.wipe_data()
        parts.redis.start()
        steady.wait_acked(50)
    steady.finish()


def test_flushall_under_load(parts, steady):
    for _ in range(15):
        parts.redis.cli("FLUSHALL")
        steady.wait_acked(15)
    steady.finish()


def test_function_flush_under_load(parts, steady):
    for _ in range(10):
        parts.redis.cli("FUNCTION", "FLUSH")
        steady.wait_acked(15)
    steady.finish()


def test_the_library_in_use_is_dropped_under_load(parts, steady):
    """Dropped by an instance of another release that does not know it. Libraries loaded by other programs stay as they are."""
    theirs = "#!lua name=theirs_v1\nredis.register_function('heads_apply', function() return 'theirs' end)"
    parts.redis.cli("FUNCTION", "LOAD", theirs)
    for _ in range(10):
        parts.redis.cli("FUNCTION", "DELETE", f"tidings_{HASH}")
        steady.wait_acked(15)
    steady.finish()
    assert parts.redis.cli("FCALL", "heads_apply", 0) == "theirs"
    parts.redis.cli("FUNCTION", "DELETE", "theirs_v1")


def test_function_flush_and_flushall_at_the_end(parts, steady):
    """No later event could correct a wrong count."""
    steady.stop()
    steady.settle()
    parts.redis.cli("FUNCTION", "FLUSH")
    parts.redis.cli("FLUSHALL")
    steady.judge()


def test_pubsub_connections_killed(parts, steady):
    for _ in range(15):
        kill_pubsub(parts)
        steady.wait_acked(15)
    steady.finish()


def test_pubsub_connections_killed_just_before_the_last_posts(parts, steady):
    """No later event reveals a missing one."""
    steady.stop()
    kill_pubsub(parts)
    steady.finish()


def test_all_connections_killed(parts, steady):
    for _ in range(15):
        kill_pubsub(parts)
        parts.redis.cli("CLIENT", "KILL", "TYPE", "normal")
        steady.wait_acked(15)
    steady.finish()


def test_redis_stands_still(parts, steady):
    parts.redis.kill(signal.SIGSTOP)
    steady.works_for(4)
    parts.redis.kill(signal.SIGCONT)
    steady.wait_acked(50)
    steady.finish()


def test_redis_is_full(parts, steady):
    """All is right while it is full, and after."""
    parts.redis.cli("CONFIG", "SET", "maxmemory", "1mb")
    assert "OOM" in parts.redis.cli("SET", "one-more", "key")
    steady.works_for(2)
    steady.finish()
    parts.redis.cli("CONFIG", "SET", "maxmemory", "0")
    steady.judge()


def test_redis_starts_again_with_old_data(parts, steady):
    """The situation after a failover to a lagging replica: an older append-only file."""
    parts.redis.cli("CONFIG", "SET", "appendonly", "no")
    steady.wait_acked(100)
    parts.redis.kill()
    parts.redis.start()
    steady.wait_acked(50)
    steady.finish()


def test_sessions_end_without_redis(parts):
    """On other instances, too, within a second: events that Redis cannot carry are read from Postgres."""
    workspace = parts.workspace()
    ann, bob = workspace.users(2)
    for client in (ann.at(parts.urls[1]), bob.at(parts.urls[1])):
        client.ok("auth.test")
    with ann.at(parts.urls[1]).socket() as there, bob.socket() as here:
        parts.redis.kill()
        wait_until(lambda: ann.page("/readyz").status_code == 503, what="Redis away")
        wait_until(lambda: ann.at(parts.urls[1]).page("/readyz").status_code == 503, what="Redis away")
        ann.ok("auth.revoke")
        ann.fails("token_revoked", "auth.test")
        wait_until(lambda: ann.at(parts.urls[1]).call("auth.test").get("error") == "token_revoked", timeout=1)
        workspace.admin.ok("admin.users.setActive", user_id=bob.id, active=False)
        bob.fails("account_inactive", "auth.test")
        wait_until(lambda: bob.at(parts.urls[1]).call("auth.test").get("error") == "account_inactive", timeout=1)
        assert there.wait_closed(SOON_S)[0] == here.wait_closed(SOON_S)[0] == 4001


@pytest.mark.parametrize("mode", ["cut", "blackhole", "drop-reply"])
def test_one_instance_loses_its_way_to_redis(parts, mode):
    """Its posts continue; its sockets receive missed events when the connection works again."""
    with Proxy("127.0.0.1", parts.redis.port) as proxy:
        instance = parts.instance(redis_url=f"redis://127.0.0.1:{proxy.port}")
        try:
            with Load(parts, urls=[instance.url, parts.urls[0]]) as load:
                load.wait_acked(50)
                proxy.set_mode(mode)
                load.works_for(3)
                proxy.set_mode("pass")
                load.wait_acked(50)
                load.finish()
                assert load.failed() == []
        finally:
            proxy.set_mode("pass")
            assert instance.stop() == 0


def hello_waits(proxy, member):
    """Whether a socket receives its hello only after Redis has confirmed the subscription to its user's topic."""
    proxy.trap(f"user-events:{{{member.id}}}", "hold")
    path = "/rtm/" + member.ok("rtm.connect")["url"].split("/rtm/")[1]
    with RawFrames(member.url) as raw:
        raw.send(request("GET", path, headers=["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
                                               "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]))
        wait_until(proxy.holds, what="a confirmation that is held")
        member.ok("auth.test")  # answered after whatever the socket was sent
        early = raw.has_come()
        proxy.let_go()
        assert raw.reply(head_only=True).status == 101
        assert b"hello" in raw.read_until(TEXT)
    return not early


def test_who_has_a_hello_is_heard(parts):
    """Otherwise marks, and messages that are not stored, could be published before there is a subscriber."""
    with Proxy("127.0.0.1", parts.redis.port) as proxy:
        there = parts.instance(redis_url=f"redis://127.0.0.1:{proxy.port}", loops=1)
        try:
            # A connection that is held for seconds, on a busy machine, counts as lost; not each time.
            workspace = Workspace(parts.urls, parts.operator_token)
            assert any(hello_waits(proxy, member.at(there.url)) for member in workspace.users(5))
        finally:
            there.stop()


def test_a_count_that_postgres_tells_does_not_wait_for_redis(parts):
    """Redis' copy of the same state is compared after the reply."""
    with Proxy("127.0.0.1", parts.redis.port) as proxy:
        there = parts.instance(redis_url=f"redis://127.0.0.1:{proxy.port}", redis_timeout_ms=60000, loops=1)
        try:
            workspace = Workspace(parts.urls, parts.operator_token)
            ann, bob = workspace.users(2)
            channel = workspace.channel(ann, bob)
            ann.ok("channels.setStrategy", channel=channel, strategy="zset")
            ann.post(channel)
            bob = bob.at(there.url)
            proxy.trap(f"unread:{{{bob.id}}}:{channel}", "hold")
            for _ in range(2):
                assert bob.ok("channels.info", channel=channel)["channel"]["unread_count"] == 1
                wait_until(proxy.holds, what="a comparison that is held")
            proxy.let_go()
        finally:
            there.stop()
