# SPDX-License-Identifier: Apache-2.0
"""What is told again of threads, after nobody was heard for a while, is the user's to hear."""
from tests.support.wait import wait_until
from tests.support.workspace import Workspace

ROUNDS = 3


def test_no_threads_of_channels_one_left(parts):
    workspace = Workspace(parts.urls, parts.operator_token)
    ann, bob = workspace.users(2)
    stays = workspace.channel(ann, bob)
    root = ann.post(stays)
    marked = {"type": "thread_marked", "channel": stays}
    with bob.socket(native=True) as socket:
        marks = 0

        def told_again():
            nonlocal marks
            marks += 1
            bob.ok("threads.mark", channel=stays, thread_ts=root, ts=ann.post(stays, thread_ts=root))
            parts.redis.cli("CLIENT", "KILL", "TYPE", "pubsub")
            return len(socket.matching(marked)) > marks

        for _ in range(ROUNDS):
            left = workspace.channel(ann, bob)
            thread = ann.post(left)
            bob.ok("threads.follow", channel=left, thread_ts=thread)
            socket.expect({"type": "thread_subscribed", "channel": left})
            bob.post(left, thread_ts=thread)  # of whom there are replies stays in the tables
            bob.ok("channels.leave", channel=left)
            end = socket.expect({"type": "channel_left", "channel": left}, timeout=10)
            wait_until(told_again, 20, interval=0.1, what="a thread told of once more")
            behind = socket.frames[socket.frames.index(end) + 1:]
            assert [f for f in behind if f["type"].startswith("thread_") and f["channel"] == left] == []
