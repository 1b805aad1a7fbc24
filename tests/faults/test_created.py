# SPDX-License-Identifier: Apache-2.0
"""Sockets receive every new channel once, even if their instance missed the event when it was created."""
import contextlib

import pytest

from tests.support.wait import wait_until
from tests.support.workspace import Workspace, fresh_name

ROUNDS = 10


class Lobby:
    """A user who creates channels, with a socket on each instance, and an observer with two more."""

    def __init__(self, parts):
        workspace = Workspace(parts.urls, parts.operator_token)
        self.maker, self.watcher = workspace.users(2)
        self.own = [self.maker.at(url).socket() for url in workspace.urls]
        self.others = [self.watcher.at(url).socket() for url in workspace.urls]

    def make(self, private=False):
        """Returns the expected frame."""
        name = fresh_name("new")
        made = self.maker.ok("channels.create", name=name, is_private=private)["channel"]
        return {"type": "channel_created", "channel": {
            "id": made["id"], "name": name, "name_normalized": name, "is_channel": not private, "is_private": private,
            "created": made["created"], "creator": self.maker.id}, "event_ts": f"{made['created']}.000000"}

    def close(self):
        for socket in self.own + self.others:
            socket.close()


def expect(sockets, wanted):
    """Checks that the sockets receive these frames, each once, and no other of the kind."""
    wanted = sorted(wanted, key=str)
    for socket in sockets:
        wait_until(lambda s=socket: len(s.matching({"type": "channel_created"})) >= len(wanted),
                   what=f"{len(wanted)} channels")
        assert sorted(socket.matching({"type": "channel_created"}), key=str) == wanted


@pytest.fixture
def lobby(parts):
    lobby = Lobby(parts)
    yield lobby
    lobby.close()


def test_channels_made_while_redis_is_dead(parts, lobby):
    before = lobby.make()
    expect(lobby.own + lobby.others, [before])
    parts.redis.kill()
    public, private = lobby.make(), lobby.make(private=True)
    expect(lobby.own, [before, public, private])
    expect(lobby.others, [before, public])
    parts.redis.start()
    after = lobby.make()
    expect(lobby.own, [before, public, private, after])
    expect(lobby.others, [before, public, after])


def test_channels_made_while_pubsub_connections_die(parts, lobby):
    """Each is announced once, whether by the topic or by the sweep."""
    made = []
    for _ in range(ROUNDS):
        wait_until(lambda: int(parts.redis.cli("CLIENT", "KILL", "TYPE", "pubsub")), what="a subscriber")
        made.append(lobby.make())
    expect(lobby.own + lobby.others, made)
    last = lobby.make(private=True)
    expect(lobby.own, [*made, last])
    expect(lobby.others, made)


def test_conversations_begun_while_redis_is_dead(parts):
    """Both users receive the conversation, whichever join is found first."""
    workspace = Workspace(parts.urls, parts.operator_token)
    ann, *others = workspace.users(9)
    with contextlib.ExitStack() as stack:
        sockets = {member.id: stack.enter_context(member.socket()) for member in (ann, *others)}
        parts.redis.kill()
        begun = {other.id: ann.ok("conversations.open", users=other.id)["channel"]["id"] for other in others}
        parts.redis.start()
        for other, channel in begun.items():
            sockets[other].expect({"type": "im_created", "user": ann.id, "channel": {"id": channel}})
            sockets[ann.id].expect({"type": "im_created", "user": other, "channel": {"id": channel}})
        for socket in sockets.values():
            told = [frame["channel"]["id"] for frame in socket.matching({"type": "im_created"})]
            assert len(told) == len(set(told)), told
