# SPDX-License-Identifier: Apache-2.0
"""Limits of an instance, each at its bound and one beyond: there nothing is refused, here one thing is, and it is counted."""

import json
from contextlib import ExitStack

import pytest

from tests.support.client import Client
from tests.support.environment import standing_still
from tests.support.metrics import metric
from tests.support.raw import RawConnection, request
from tests.support.wait import wait_until

JSON = "application/json"


def call_in_one_turn(instance, calls):
    """The replies to calls (member, method, arguments) that the instance's only loop finds all at once."""
    with ExitStack() as stack:
        connections = [stack.enter_context(RawConnection(instance.url)) for _ in calls]
        for connection, (member, _, _) in zip(connections, calls):
            connection.send(request("POST", "/api/auth.test", member.token))
            assert connection.reply().json["ok"]
        with standing_still(instance):
            for connection, (member, method, arguments) in zip(connections, calls):
                connection.send(request("POST", f"/api/{method}", member.token, JSON, json.dumps(arguments)))
        return [connection.reply().json for connection in connections]


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("method, name", [("chat.postMessage", "tidings_post_queue_full_total"), ("channels.mark", "tidings_mark_queue_full_total"),
                                          ("channels.info", "tidings_info_queue_full_total")])
def test_what_waits_for_the_next_batch(room, extra_instance, method, name, more):
    ann, _, channel = room
    instance = extra_instance(queue_max=16, loops=1)
    arguments = {"chat.postMessage": {"text": "x"}, "channels.mark": {"ts": ann.post(channel)}, "channels.info": {}}[method]
    ann.at(instance.url).ok("channels.info", channel=channel)  # it is kept: what is read anew waits nowhere
    replies = call_in_one_turn(instance, [(ann, method, {"channel": channel, **arguments})] * (16 + more))
    assert [reply["error"] for reply in replies if not reply["ok"]] == ["service_unavailable"] * more
    assert metric(instance, name) == more


@pytest.mark.parametrize("more", [0, 1])
def test_counts_of_calls_for_rate_limits(room, extra_instance, more):
    """One entry per token and method; the least recently used ones are dropped."""
    instance = extra_instance(rate_buckets_max=16, loops=1)
    methods = [f"channels.{name}" for name in ("archive", "create", "history", "info", "invite", "join", "kick", "leave", "list", "mark",
                                               "members", "rename", "replies", "setPurpose", "setTopic", "unarchive", "markUnread")]
    for method in methods[:16 + more]:
        room[0].at(instance.url).call(method)
    assert metric(instance, "tidings_rate_buckets") == 16
    assert metric(instance, "tidings_rate_buckets_dropped_total") == more


@pytest.mark.parametrize("more", [0, 1])
def test_counts_that_are_read_for_redis_at_once(environment, workspace, extra_instance, more):
    """The others are left to a later read."""
    instance = extra_instance(loops=1)
    ann, bob = workspace.users(2)
    channels = [workspace.channel(ann, bob) for _ in range(16 + more)]
    for channel in channels:
        ann.ok("channels.setStrategy", channel=channel, strategy="zset")
        ann.post(channel)
        wait_until(lambda: bob.at(instance.url).unread(channel) == 1)
        environment.wait_fanned_out(channel)

    keys = [f"unread:{{{bob.id}}}:{channel}" for channel in channels]

    def built():
        return int(environment.redis.cli("EXISTS", *keys))

    def left():
        return metric(instance, "tidings_cache_rebuilds_left_total")

    def read():
        call_in_one_turn(instance, [(bob, "channels.info", {"channel": channel}) for channel in channels])
    wait_until(lambda: built() == len(keys) or read(), what="counts in Redis")
    before = left()
    environment.redis.cli("DEL", *keys)
    with environment.database() as database, database.transaction():
        database.execute("LOCK TABLE read_messages IN ACCESS EXCLUSIVE MODE")  # counts wait for it
        read()
        wait_until(lambda: left() == before + more)
    wait_until(lambda: built() == 16, what="those that were not left")
    assert left() == before + more
    wait_until(lambda: built() == len(keys) or read(), what="the one that was left")


@pytest.mark.parametrize("more", [0, 1])
def test_channel_lists_that_are_kept(workspace, extra_instance, more):
    """A list that exceeds the limit by one byte is read anew each time."""
    ann = workspace.user()
    workspace.channel(ann)

    def synced(**settings):
        instance = extra_instance(sidebar_min=0, loops=1, **settings)
        ann.at(instance.url).ok("unread.sync")
        return instance
    large = synced()
    size = wait_until(lambda: metric(large, "tidings_sidebars_bytes"), what="a list that is kept")
    small = synced(sidebar_bytes=int(size) - more)
    assert metric(small, "tidings_sidebars_bytes") == (0 if more else size)
    assert metric(small, "tidings_sidebars_dropped_total") == more


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("most, settings, name, error", [(64, {}, "tidings_tokens_waited_total", "invalid_auth"),
                                                         (2, {"tokens_max": 2}, "tidings_tokens_refused_total", "service_unavailable")])
def test_tokens_that_are_asked_for_at_once(environment, extra_instance, most, settings, name, error, more):
    instance = extra_instance(loops=1, **settings)
    with ExitStack() as stack:
        connections = [stack.enter_context(RawConnection(instance.url)) for _ in range(most + more)]
        with environment.database() as database, database.transaction():
            database.execute("LOCK TABLE tokens IN ACCESS EXCLUSIVE MODE")
            for number, connection in enumerate(connections):
                connection.send(request("POST", "/api/auth.test", f"xoxp-nobody-{number}"))
                wait_until(lambda n=number: metric(instance, "tidings_tokens") + metric(instance, "tidings_tokens_refused_total") == n + 1)
            assert metric(instance, name) == more
        assert [connection.reply().json["error"] for connection in connections] == ["invalid_auth"] * most + [error] * more


@pytest.mark.parametrize("more", [0, 1])
def test_users_whose_presence_a_socket_asks_for(room, workspace, extra_instance, sockets, more):
    ann, bob, _ = room
    instance = extra_instance()
    socket = sockets(ann.at(instance.url))
    socket.send({"type": "presence_sub", "ids": [bob.id] * (1000 + more)})
    socket.expect({"type": "error"} if more else {"type": "presence_change", "user": bob.id})
    assert metric(instance, "tidings_presence_refused_total") == more


@pytest.mark.parametrize("more", [0, 1])
def test_users_of_one_query_for_presence(room, extra_instance, sockets, more):
    ann, bob, _ = room
    instance = extra_instance()
    socket = sockets(ann.at(instance.url))
    socket.send({"type": "presence_query", "ids": [bob.id] * (500 + more)})
    socket.expect({"type": "error"} if more else {"type": "presence_change", "user": bob.id})
    assert metric(instance, "tidings_presence_refused_total") == more


@pytest.mark.parametrize("more", [0, 1])
def test_channels_that_a_socket_has_in_focus(room, workspace, extra_instance, sockets, more):
    ann, _, _ = room
    channels = [workspace.channel(ann) for _ in range(16 + more)]
    instance = extra_instance()
    socket = sockets(ann.at(instance.url))
    replies = [socket.request({"id": number, "type": "channel_focus", "channel": channel}) for number, channel in enumerate(channels)]
    assert [reply["ok"] for reply in replies] == [True] * 16 + [False] * more
    assert metric(instance, "tidings_socket_requests_refused_total", 'reason="focus"') == more


@pytest.mark.parametrize("more", [0, 1])
def test_calls_of_a_socket_at_once(room, extra_instance, sockets, more):
    ann, _, channel = room
    instance = extra_instance()
    socket = sockets(ann.at(instance.url))
    socket.send_at_once(*({"id": number, "type": "message", "channel": channel, "text": "x"} for number in range(16 + more)))
    replies = [socket.expect({"reply_to": number}) for number in range(16 + more)]
    assert [reply["ok"] for reply in replies] == [True] * 16 + [False] * more
    assert metric(instance, "tidings_socket_requests_refused_total", 'reason="calls"') == more


@pytest.mark.parametrize("more", [0, 1])
def test_headers_of_a_request(workspace, extra_instance, more):
    instance = extra_instance()
    with RawConnection(instance.url) as connection:
        connection.send(request("GET", "/api/auth.test", workspace.admin.token, headers=[f"X-{n}: x" for n in range(98 + more)]))  # and two others
        assert connection.reply().status == (400 if more else 200)
    assert metric(instance, "tidings_http_bad_requests_total") == more


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("encoding", ["form", "json"])
def test_arguments_of_a_call(workspace, encoding, more):
    reply = Client(workspace.admin.url, workspace.admin.token).call("auth.test", encoding=encoding, **{f"a{n}": "x" for n in range(512 + more)})
    assert reply["ok"] is (more == 0) and ("more than 512 arguments" in reply.messages) is (more == 1)
