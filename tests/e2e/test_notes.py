# SPDX-License-Identifier: Apache-2.0
"""Notes: events about a message that count for nobody. They are read everywhere, whatever their name."""
import pytest

from tests.support.catch_up import CatchUp
from tests.support.notes import note
from tests.support.recorder import Silence

STRATEGIES = ("sequence", "zset", "counter", "bitmap")

@pytest.fixture
def room(workspace):
    ann, bob = workspace.users(2)
    ann.recorder = bob.recorder = Silence()  # the API document describes no sparkling
    return ann, bob, workspace.channel(ann, bob)


def notes(frames):
    return [(frame["type"], frame["seq"]) for frame in frames if frame["type"] in ("reaction_added", "sparkled")]


@pytest.mark.parametrize("log", ["in-process", pytest.param("kafka", marks=pytest.mark.kafka)])
def test_every_reader_gets_notes_in_order(environment, room, sockets, log):
    ann, bob, channel = room
    later = CatchUp(bob)
    native = [sockets(bob.at(url), native=True) for url in environment.urls]
    plain = sockets(bob)
    with bob.stream() as stream:
        ts = ann.post(channel)
        first = note(environment, channel, ts, ann.id)
        second = note(environment, channel, ts, ann.id, name="sparkled", data='{"by":"magic"}')
        last = ann.ok("chat.postMessage", channel=channel, text="after")
        expected = [("reaction_added", first), ("sparkled", second)]
        for reader in (*native, stream, plain):
            reader.expect({"type": "message", "seq": last["seq"]})
        for reader in (*native, stream):
            assert notes(reader.frames) == expected
        assert notes(plain.frames) == expected[:1]  # Slack's clients would take the other for an error
        frame = native[0].expect({"type": "reaction_added"})
    assert frame == {"type": "reaction_added", "user": ann.id, "reaction": "thumbsup", "channel": channel, "channel_type": "channel",
                     "item": {"type": "message", "channel": channel, "ts": ts}, "event_ts": frame["event_ts"], "seq": first}
    for events in (bob.ok("channels.events", channel=channel, after_seq=first - 1)["events"], later.all()):
        assert notes(events) == expected and frame in events
    assert bob.unread(channel) == 2


def test_a_socket_that_comes_back_gets_missed_notes(environment, room, sockets):
    ann, bob, channel = room
    position = bob.ok("unread.sync")["position"]
    ts = ann.post(channel)
    seqs = [note(environment, channel, ts, ann.id, name=name) for name in ("reaction_added", "sparkled")]
    native, plain = sockets(bob, native=True, since=position), sockets(bob, since=position)
    last = ann.ok("chat.postMessage", channel=channel, text="after")
    for reader in (native, plain):
        reader.expect({"type": "message", "seq": last["seq"]})
    assert notes(native.frames) == [("reaction_added", seqs[0]), ("sparkled", seqs[1])]
    assert notes(plain.frames) == [("reaction_added", seqs[0])]
    assert not native.matching({"type": "gap"})


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_count_order_or_preview_changes(environment, workspace, strategy):
    ann, bob = workspace.users(2)
    channel = ann.ok("channels.create", name=f"notes-{strategy}", strategy=strategy)["channel"]["id"]
    ann.ok("channels.invite", channel=channel, users=bob.id)
    other = workspace.channel(ann, bob)
    ts = ann.post(channel, "one")
    ann.post(other)

    def shown():
        return [{**entry, "seq": 0} for entry in bob.ok("unread.sync")["channels"]], bob.ok("channels.info", channel=channel)["channel"]["has_unreads"]

    environment.wait_fanned_out(channel)
    before = shown()
    note(environment, channel, ts, ann.id)
    environment.wait_fanned_out(channel)
    assert shown() == before
    for _ in range(2):
        ann.post(channel)
    info = bob.ok("channels.info", channel=channel)["channel"]
    assert info["has_unreads"] and info.get("unread_count", 3) == 3
    environment.wait_fanned_out(channel)
    assert bob.ok("channels.mark", channel=channel, ts=ts).get("unread_count", 2) == 2


@pytest.mark.parametrize("data", ["", "[]", "{", '"text"', '{"seq":7}x', "{}"])
def test_data_that_is_no_object_leaves_the_frame_whole(environment, room, sockets, data):
    ann, bob, channel = room
    socket = sockets(bob, native=True)
    ts = ann.post(channel)
    seq = note(environment, channel, ts, ann.id, data=data)
    frame = socket.expect({"type": "reaction_added"})
    assert frame == {"type": "reaction_added", "channel": channel, "channel_type": "channel", "event_ts": frame["event_ts"], "seq": seq}
    assert bob.ok("channels.events", channel=channel, after_seq=seq - 1)["events"] == [frame]


def test_a_note_whose_message_is_gone(environment, room, sockets):
    """Deleted, or dropped by retention: the note is still an event of its seq."""
    ann, bob, channel = room
    socket = sockets(bob, native=True)
    ts = ann.post(channel)
    ann.ok("chat.delete", channel=channel, ts=ts)
    seqs = [note(environment, channel, at, ann.id) for at in (ts, "1000000000.000001")]
    for seq in seqs:
        assert socket.expect({"seq": seq})["type"] == "reaction_added"
    assert [event["type"] for event in bob.ok("channels.events", channel=channel, after_seq=seqs[0] - 1)["events"]] == ["reaction_added"] * 2
