# SPDX-License-Identifier: Apache-2.0
"""Late answers of Postgres to an instance: events meanwhile are newer than the answers."""
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.faults.proxy import Proxy
from tests.support.wait import wait_until
from tests.support.workspace import Workspace

LATE_S = 1.2


@pytest.fixture
def slow(parts):
    """(proxy, instance): the instance reaches Postgres through the proxy."""
    with Proxy("127.0.0.1", parts.postgres.port) as proxy:
        instance = parts.instance(database_url=proxy.of(parts.postgres.tcp_url))
        try:
            yield proxy, instance
        finally:
            proxy.let_go()
            assert instance.stop() == 0


@pytest.mark.parametrize("kind", ["socket", "stream"])
def test_a_kick_while_a_connection_is_opened(parts, slow, kind):
    """Its list of channels is from before the kick: it receives no later events."""
    proxy, instance = slow
    workspace = Workspace(parts.urls, parts.operator_token)
    author, staying, kicked = workspace.users(3)
    channel, other = (workspace.channel(author, staying, kicked) for _ in range(2))
    there = kicked.at(instance.url)
    statement = {"socket": "gateway_channels", "stream": "gateway_resume"}[kind]
    with staying.at(instance.url).socket() as heard, ThreadPoolExecutor(1) as pool:
        proxy.trap(statement, "hold")
        opening = pool.submit(there.socket if kind == "socket" else there.stream)
        wait_until(proxy.holds, what="the channels read")
        author.ok("channels.kick", channel=channel, user=kicked.id)
        heard.expect({"type": "member_left_channel", "channel": channel})
        proxy.let_go()
        with opening.result() as late:
            for place in (channel, other):
                ts = author.post(place, "after the kick")
                heard.expect({"type": "message", "channel": place, "ts": ts})
            late.expect({"type": "message", "channel": other})
            assert not late.matching({"channel": channel})


@pytest.mark.parametrize("method, statement", [("channels.markAll", "mark_all("), ("rtm.start", "rtm_lists(")])
def test_others_go_on_while_a_user_in_many_channels_waits(parts, slow, method, statement):
    """Statements over all channels of a user have a connection of their own."""
    proxy, instance = slow
    workspace = Workspace(parts.urls, parts.operator_token)
    author, many, other = workspace.users(3)
    channel = workspace.channel(author, many, other)
    author.post(channel)
    many, other = many.at(instance.url), other.at(instance.url)
    with ThreadPoolExecutor(1) as pool:
        proxy.trap(statement, "hold")
        waiting = pool.submit(many.ok, method)
        wait_until(proxy.holds, what="the answer of Postgres")
        assert other.ok("unread.sync")["totals"]["unread_count"] == 1
        other.ok("channels.setNotifications", channel=channel, muted=True)
        other.ok("conversations.list", types="im")
        other.ok("rtm.connect")
        ts = other.post(channel)
        other.ok("channels.mark", channel=channel, ts=ts)
        assert not waiting.done()
        proxy.let_go()
        waiting.result()


@pytest.fixture
def room(parts, slow):
    """(author, member, channel, native socket of the member on the instance, which has three messages unread there)."""
    _, instance = slow
    workspace = Workspace(parts.urls, parts.operator_token)
    author, member = workspace.users(2)
    channel = workspace.channel(author, member)
    with member.at(instance.url).socket(native=True) as socket:
        stamps = [author.post(channel, f"message {number}") for number in range(3)]
        socket.expect({"type": "message", "ts": stamps[-1]})
        yield author, member, channel, socket, stamps


def told(socket, channel):
    """The last count sent to a device."""
    return [frame["unread_count"] for frame in socket.matching({"type": "unread_changed", "channel": channel})][-1:]


def test_two_deletes_of_which_the_first_is_read_later(slow, room):
    """The last frame on a device has the final state."""
    proxy, _ = slow
    author, member, channel, socket, stamps = room
    proxy.trap("gateway_unread_changed", "hold")
    author.ok("chat.delete", channel=channel, ts=stamps[0])
    wait_until(proxy.holds, what="the count after the first delete read")
    with member.socket(native=True) as elsewhere:
        author.ok("chat.delete", channel=channel, ts=stamps[1])
        elsewhere.expect({"type": "unread_changed", "channel": channel, "unread_count": 1})
    socket.expect({"type": "message", "subtype": "message_deleted", "deleted_ts": stamps[1]})
    assert socket.request({"id": 1, "type": "ping"})["type"] == "pong"
    proxy.let_go()
    wait_until(lambda: len(socket.matching({"type": "unread_changed"})) == 2, what="both counts told")
    assert told(socket, channel) == [1]


@pytest.mark.parametrize("change", ["delete", "strategy"])
def test_a_count_that_could_not_be_read(slow, room, change):
    """It is read again when Postgres is back, and the device receives it."""
    proxy, _ = slow
    author, _, channel, socket, stamps = room
    proxy.trap({"delete": "gateway_unread_changed", "strategy": "gateway_unread_state"}[change], "cut")
    if change == "delete":
        author.ok("chat.delete", channel=channel, ts=stamps[0])
    else:
        author.ok("channels.setStrategy", channel=channel, strategy="zset")
    frame = socket.expect({"type": "unread_changed", "channel": channel})
    assert proxy.sprung == 1 and frame["unread_count"] == (2 if change == "delete" else 3)


def test_a_mark_that_is_told_after_a_later_delete(parts):
    """Its frame has the count of its commit; the device ends with that of now."""
    workspace = Workspace(parts.urls, parts.operator_token)
    author, member = workspace.users(2)
    channel = workspace.channel(author, member)
    stamps = [author.post(channel, f"message {number}") for number in range(4)]
    with Proxy("127.0.0.1", parts.redis.port) as proxy:
        instance = parts.instance(redis_url=f"redis://127.0.0.1:{proxy.port}", redis_timeout_ms=60_000)
        with member.socket(native=True) as device, ThreadPoolExecutor(1) as pool:
            there = member.at(instance.url)
            there.ok("channels.info", channel=channel)
            proxy.trap("members_apply", "hold")
            marking = pool.submit(there.ok, "channels.mark", channel=channel, ts=stamps[0])
            wait_until(proxy.holds, what="the mark committed")
            author.ok("chat.delete", channel=channel, ts=stamps[1])
            device.expect({"type": "unread_changed", "channel": channel, "unread_count": 2})
            before = len(states(device))
            proxy.let_go()
            assert marking.result()["unread_count"] == 3
            after = wait_until(lambda: told_since(device, before), what="the mark and the count of now")
            assert after[-1]["unread_count"] == 2 and after[-1]["last_read"] == stamps[0]
        assert instance.stop() == 0


def test_a_mark_that_is_told_late(parts):
    """Its frame does not cover later posts; the device ends with the current count."""
    workspace = Workspace(parts.urls, parts.operator_token)
    author, member = workspace.users(2)
    channel = workspace.channel(author, member)
    first = author.post(channel, "first")
    with Proxy("127.0.0.1", parts.redis.port) as proxy:
        instance = parts.instance(redis_url=f"redis://127.0.0.1:{proxy.port}", redis_timeout_ms=60_000)
        with member.socket(native=True) as device, ThreadPoolExecutor(1) as pool:
            proxy.trap("members_apply", "hold")
            marking = pool.submit(member.at(instance.url).ok, "channels.mark", channel=channel, ts=first)
            wait_until(proxy.holds, what="the mark committed")
            late = time.monotonic() + LATE_S
            last = author.post(channel, "last")
            device.expect({"type": "message", "ts": last})
            wait_until(lambda: time.monotonic() > late, what="a mark that is late")
            before = len(states(device))  # a sweep may have told what was so then
            proxy.let_go()
            assert marking.result()["unread_count"] == 0
            after = wait_until(lambda: told_since(device, before), what="the mark and the count of now")
            assert after[-1]["unread_count"] == 1 and after[-1]["last_read"] == first
        assert instance.stop() == 0


def states(device):
    """The frames with a read state, in their order."""
    return device.matching(lambda frame: frame["type"] in ("channel_marked", "unread_changed"))


def told_since(device, before):
    """The read states since so many; empty until a mark is among them and another read state last."""
    since = states(device)[before:]
    types = [frame["type"] for frame in since]
    return since if "channel_marked" in types and types[-1] == "unread_changed" else []


WAITS = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ 'unread_rows|sidebar_few_rows'"


def test_syncs_at_once_of_which_the_first_fails(parts):
    """The others have all channels, whatever became of the first."""
    workspace = Workspace(parts.urls, parts.operator_token)
    user = workspace.user()
    channels = {workspace.channel(user) for _ in range(3)}
    with psycopg.connect(parts.postgres.url) as keeper, parts.database() as database, ThreadPoolExecutor(4) as pool:
        keeper.execute("LOCK TABLE channel_members IN ACCESS EXCLUSIVE MODE")
        calls = [pool.submit(user.at(user.url).call, "unread.sync") for _ in range(4)]
        pid = wait_until(lambda: database.execute(WAITS).fetchone(), what="the first one, which waits")[0]
        for _ in range(10):
            user.ok("auth.test")  # by then the others are there, too
        database.execute("SELECT pg_cancel_backend(%s)", [pid])
        wait_until(lambda: any(call.done() for call in calls), what="the first one's end")
        keeper.rollback()
        replies = [call.result() for call in calls]
    assert [reply.get("error") for reply in replies if not reply["ok"]] == ["service_unavailable"]
    for reply in filter(lambda reply: reply["ok"], replies):
        assert {entry["id"] for entry in reply["channels"]} == channels
