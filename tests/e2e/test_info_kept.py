# SPDX-License-Identifier: Apache-2.0
"""channels.info caches its objects. The cache must be invisible: after every change all instances answer as if uncached."""
import json
from contextlib import ExitStack

import pytest

from tests.support.environment import end_of, standing_still
from tests.support.raw import RawConnection


@pytest.fixture
def forgetful(environment):
    """An instance that keeps no object."""
    instance = environment.instance(objects_bytes=0)
    yield instance
    assert not end_of(instance)


def changes(ann, bob, channel):
    """Changes, one after the other, each of the channel's object or its latest message."""
    root = ann.post(channel, "root")
    yield "a post"
    ann.ok("chat.update", channel=channel, ts=root, text="edited")
    yield "an edit of the latest"
    bob.post(channel, "reply", thread_ts=root)
    yield "a reply to the latest"
    reply = bob.post(channel, "broadcast", thread_ts=root, reply_broadcast=True)
    yield "a broadcast reply"
    ann.ok("chat.update", channel=channel, ts=root, text="edited again")
    yield "an edit of the latest's root"
    bob.ok("chat.delete", channel=channel, ts=reply)
    yield "a delete"
    for method, args in (("setTopic", {"topic": "t"}), ("setPurpose", {"purpose": "p"}), ("rename", {"name": f"{channel}-x".lower()}),
                         ("setStrategy", {"strategy": "counter"}), ("mark", {"ts": root}), ("setNotifications", {"muted": True}),
                         ("markUnread", {"ts": root}), ("archive", {}), ("unarchive", {})):
        ann.ok(f"channels.{method}", channel=channel, **args)
        yield method
    bob.ok("channels.leave", channel=channel)
    yield "leave"
    ann.ok("channels.invite", channel=channel, users=bob.id)
    yield "invite"


@pytest.mark.parametrize("private", [False, True])
def test_all_that_can_change(environment, forgetful, workspace, private):
    ann, bob, cid = workspace.users(3)
    channel = workspace.channel(ann, bob, private=private)
    for what in changes(ann, bob, channel):
        for who in (ann, bob, cid):
            truth = who.at(forgetful.url).call("channels.info", channel=channel)
            for _ in range(2):
                for url in environment.urls:
                    assert who.at(url).call("channels.info", channel=channel) == truth, what


def test_direct_conversations(environment, forgetful, workspace):
    """Each of the two members sees the other one in it."""
    ann, bob = workspace.users(2)
    channel = ann.ok("conversations.open", users=bob.id)["channel"]["id"]
    for text in ("one", "two"):
        ann.post(channel, text)
        for who in (ann, bob, ann):
            for url in environment.urls:
                shown = who.at(url).ok("channels.info", channel=channel)
                assert shown == who.at(forgetful.url).ok("channels.info", channel=channel)
                assert shown["channel"]["user"] == (bob if who is ann else ann).id


def test_another_workspace_sees_nothing(environment, workspace):
    channel = workspace.channel(workspace.admin)
    workspace.admin.ok("channels.info", channel=channel)
    environment.workspace().admin.fails("channel_not_found", "channels.info", channel=channel)


def test_locale_is_told_to_who_asks(workspace):
    channel = workspace.channel(workspace.admin)
    for asked in (False, True, False):
        shown = workspace.admin.ok("channels.info", channel=channel, include_locale=asked)["channel"]
        assert ("locale" in shown) is asked


def request_of(who, channel):
    body = json.dumps({"channel": channel})
    return (f"POST /api/channels.info HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {who.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}")


def test_many_at_once_are_answered_each_for_itself(environment, workspace):
    """Simultaneous calls share one statement: of several users, channels and workspaces, some of them without access."""
    ann, bob, cid = workspace.users(3)
    stranger = environment.workspace().admin
    channels = [workspace.channel(ann, bob), workspace.channel(ann, bob, cid, private=True), workspace.channel(ann, private=True)]
    for number, channel in enumerate(channels):
        for _ in range(number + 1):
            ann.post(channel, "x")
    calls = 3 * [(who, channel) for channel in channels for who in (ann, bob, cid, stranger)]
    instance = environment.instance(loops=1)
    with ExitStack() as stack:
        alone = [dict(who.at(instance.url).call("channels.info", channel=channel)) for who, channel in calls]
        connections = [stack.enter_context(RawConnection(instance.url)) for _ in calls]
        with standing_still(instance):
            for connection, call in zip(connections, calls):
                connection.send(request_of(*call))
        assert [connection.reply().json for connection in connections] == alone
    assert not end_of(instance)
