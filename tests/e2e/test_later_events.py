# SPDX-License-Identifier: Apache-2.0
"""Events in the form of a later release, on every path between instances: known parts are processed, nothing is held up."""
import json
import re
import secrets

import pytest

from tests.support.wait import wait_until

TS = "1717200000.123456"


def counted(environment, metric):
    """The sum of a counter over all instances."""
    pages = [environment.client(url=url).page("/metrics").text for url in environment.urls]
    return sum(float(value) for page in pages for value in re.findall(rf"^{metric} (\S+)$", page, re.MULTILINE))


@pytest.fixture
def pair(workspace):
    ann, bob = workspace.users(2)
    return ann, bob, workspace.channel(ann, bob)


def header(channel, user, **fields):
    head = {"seq": 900, "ord": 900, "strategy": 0, "generation": 0}
    return {"v": 1, "kind": "post", "workspace": "T0000000001", "channel": channel, "counted": True, "user": user, "seq": 900,
            "event_ts": TS, "ts": TS, "head": head, "frame": {"type": "message", "text": "forged"}, **fields}


def test_messages_that_are_not_understood(environment, pair):
    """Sockets of both instances continue, and miss nothing."""
    ann, bob, channel = pair
    with bob.socket(native=True) as one, bob.at(environment.urls[1]).socket(native=True) as other:
        first = ann.post(channel)
        for socket in (one, other):
            socket.expect({"type": "message", "ts": first})
        before = counted(environment, "tidings_events_unknown_total")
        unknown = [json.dumps(header(channel, ann.id, v=2)), json.dumps(header(channel, ann.id, kind="sparkle")), "garbage", "{}",
                   json.dumps(header(channel, "nobody"))]
        for text in (*unknown, "!garbage", "![]", '!{"type":7}', "#later"):
            environment.redis.cli("SPUBLISH", f"channel-events:{{{channel}}}", text)
        for text in (*unknown, "!{}", "!"):
            environment.redis.cli("SPUBLISH", f"user-events:{{{bob.id}}}", text)
        environment.redis.cli("SPUBLISH", f"presence-events:{{{bob.id}}}", "v2 idle")
        # Each instance that has a socket there hears each, on one loop or more.
        wait_until(lambda: counted(environment, "tidings_events_unknown_total") >= before + 4 * len(unknown), what="all heard")
        last = ann.post(channel)
        for socket in (one, other):
            socket.expect({"type": "message", "ts": last})
            assert [frame["ts"] for frame in socket.matching({"type": "message"})] == [first, last]
            assert not socket.matching({"type": "gap"}) and socket.is_open


def test_a_message_in_another_order_with_more_fields(environment, pair):
    """A mark in the form of a later release."""
    ann, bob, channel = pair
    ann.post(channel)
    with bob.socket(native=True) as socket:
        member = {"epoch": 0, "ts": TS, "seq": 1, "ord": 1, "own": 0, "posts": 0, "member_seq": 1, "number": 1, "active": True,
                  "more": {}}
        frame = {"type": "channel_marked", "channel": channel, "ts": TS, "mark": secrets.token_hex(4)}
        event = {"frame": frame, "member": member, "more": [None], **header(channel, bob.id, kind="mark", seq=0, frame=frame)}
        del event["head"], event["counted"]
        environment.redis.cli("SPUBLISH", f"user-events:{{{bob.id}}}", json.dumps(event, indent=1))
        assert socket.expect({"type": "channel_marked", "mark": frame["mark"]}) == frame


def test_an_outbox_row_with_an_unknown_kind(environment, pair):
    """Left by an instance of a later release that died: known events are delivered, the others are counted."""
    ann, bob, channel = pair
    ann.post(channel)
    environment.wait_fanned_out(channel)
    unknown, poison = (counted(environment, f"tidings_events_{name}_total") for name in ("unknown", "poison"))
    with bob.socket(native=True) as socket, environment.database() as database:
        for kinds in (["sparkle", "mark"], ["sparkle"]):
            count = len(kinds)
            database.execute(
                "INSERT INTO outbox (id, created, channels, seqs, tss, kinds, users) VALUES (%s, now() - interval '1 hour', %s, %s, %s, %s, %s)",
                [f"later-{secrets.token_hex(8)}", [channel] * count, [7, 0][:count], [1, 1][:count], kinds, [ann.id, bob.id][:count]])
        socket.expect({"type": "channel_marked", "channel": channel})
        wait_until(lambda: database.execute("SELECT count(*) FROM outbox WHERE NOT done AND id LIKE 'later-%'").fetchone()[0] == 0,
                   what="the rows done")
        # Two at least: a row that was left over may be found by both instances.
        assert unknown + 2 <= counted(environment, "tidings_events_unknown_total") <= unknown + 4
        assert counted(environment, "tidings_events_poison_total") == poison
        ts = ann.post(channel)
        socket.expect({"type": "message", "ts": ts})
        assert bob.unread(channel) == 2
