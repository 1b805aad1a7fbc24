# SPDX-License-Identifier: Apache-2.0
"""Kafka delivers nothing: sockets on other instances still receive events, once and in order, and operators are alerted."""
import signal

import pytest
import requests

from tests.support.environment import end_of, standing_still
from tests.support.reading import is_event
from tests.support.wait import wait_until

pytestmark = pytest.mark.kafka
HEARD_S = 2.0  # so late events come then, at most
ROUNDS, POSTS = 3, 5  # on a busy machine not each may be in time
NEVER_MS = 600000  # no check of heads in the test's time but for the one that is tested


@pytest.fixture
def two(parts):
    """Two instances that compare no heads by themselves."""
    made = [parts.instance(tail_check_ms=NEVER_MS) for _ in range(2)]
    yield made
    parts.kafka.kill(signal.SIGCONT)
    trouble = [line for instance in made for line in end_of(instance)]
    assert not trouble, "\n".join(trouble)


def log_of(instance):
    """The state of the log in /readyz; posts are accepted in any state, so the status stays 200."""
    page = requests.get(f"{instance.url}/readyz", timeout=30)
    assert page.status_code == 200, page.text
    return page.json()["log"]


def seqs(socket, channel):
    return [frame["seq"] for frame in socket.frames if is_event(frame) and frame["channel"] == channel]


def is_heard_in_time(ann, channel, socket, text):
    """Whether a post arrives within HEARD_S of its reply; it must arrive eventually."""
    ann.post(channel, text)
    try:
        socket.expect({"type": "message", "text": text}, HEARD_S)
    except AssertionError:
        socket.expect({"type": "message", "text": text})
        return False
    return True


def test_others_hear_while_kafka_standing_still(parts, two):
    here, there = two
    ann, bob = parts.workspace().users(2)
    ann, bob = ann.at(here.url), bob.at(there.url)
    channel = ann.ok("channels.create", name="room")["channel"]["id"]
    ann.ok("channels.invite", channel=channel, users=[bob.id])
    with bob.socket(native=True) as socket:
        ann.post(channel, "before")
        socket.expect({"type": "message", "text": "before"})
        first = seqs(socket, channel)[-1]
        with standing_still(parts.kafka):
            ts = [ann.post(channel, f"meanwhile {number}") for number in range(20)]
            socket.expect({"type": "message", "text": "meanwhile 19"})
            ann.ok("chat.update", channel=channel, ts=ts[0], text="other")
            ann.ok("chat.delete", channel=channel, ts=ts[1])
            socket.expect({"type": "message", "subtype": "message_deleted"})
            later = ann.ok("channels.create", name="later")["channel"]["id"]
            ann.ok("channels.invite", channel=later, users=[bob.id])
            ann.post(later, "in a channel made meanwhile")
            socket.expect({"type": "message", "text": "in a channel made meanwhile"})
            assert any(all(is_heard_in_time(ann, channel, socket, f"round {number}, post {post}") for post in range(POSTS))
                       for number in range(ROUNDS)), f"events that are later than {HEARD_S} s, in each round"
            wait_until(lambda: {log_of(instance) for instance in two} == {"unreachable"}, what="a word of it in /readyz")
        wait_until(lambda: {log_of(instance) for instance in two} == {"ok"}, what="a log that is well")
        parts.wait_fanned_out(channel)
        ann.post(channel, "after")
        ann.post(later, "after")
        last = socket.expect({"type": "message", "channel": channel, "text": "after"})["seq"]
        socket.expect({"type": "message", "channel": later, "text": "after"})
        heard = seqs(socket, channel)
        assert heard[heard.index(first):] == list(range(first, last + 1))
        assert seqs(socket, later) == sorted(set(seqs(socket, later)))
        assert not socket.matching({"type": "gap"})
