# SPDX-License-Identifier: Apache-2.0
"""Thread events that are repeated after an outage go only to users who may receive them."""
from tests.support.wait import wait_until
from tests.support.workspace import Workspace


def test_no_threads_of_channels_one_left(parts):
    workspace = Workspace(parts.urls, parts.operator_token)
    ann, bob = workspace.users(2)
    stays, left = workspace.channel(ann, bob), workspace.channel(ann, bob)
    root, thread = ann.post(stays), ann.post(left)
    with bob.socket(native=True) as socket:
        bob.ok("threads.follow", channel=left, thread_ts=thread)
        socket.expect({"type": "thread_subscribed", "channel": left})
        bob.post(left, thread_ts=thread)  # of whom there are replies stays in the tables
        bob.ok("channels.leave", channel=left)
        end = socket.expect({"type": "channel_left", "channel": left})

        def told_again():
            """Whether a mark was sent twice: when it happened, and again after an outage."""
            marks = [frame["last_read"] for frame in socket.matching({"type": "thread_marked", "channel": stays})]
            if len(marks) > len(set(marks)):
                return True
            ts = ann.post(stays, thread_ts=root)
            bob.ok("threads.mark", channel=stays, thread_ts=root, ts=ts)
            socket.expect({"type": "thread_marked", "channel": stays, "last_read": ts})
            parts.redis.cli("CLIENT", "KILL", "TYPE", "pubsub")
            return False

        wait_until(told_again, 60, interval=0.3, what="a thread told of once more")
        behind = socket.frames[socket.frames.index(end) + 1:]
    assert [f for f in behind if f["type"].startswith("thread_") and f["channel"] == left] == []
