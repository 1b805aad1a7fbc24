# SPDX-License-Identifier: Apache-2.0
"""chat.startStream, appendStream and stopStream: one message, told as it is written."""
import time

import pytest


@pytest.fixture
def room(workspace):
    ann, bob = workspace.users(2)
    return ann, bob, workspace.channel(ann, bob)


def test_a_message_is_written(environment, room):
    ann, bob, channel = room
    root = bob.post(channel, "question")
    with bob.at(environment.urls[1]).socket(native=True) as native, bob.socket() as plain, bob.stream() as stream:
        begun = ann.ok("chat.startStream", channel=channel, thread_ts=root)
        assert begun["message"]["streaming_state"] == "in_progress" and begun["message"]["text"] == "\u2026"
        place = {"channel": channel, "ts": begun["ts"]}
        ann.ok("chat.appendStream", **place, markdown_text="**Hel")
        for socket in (native, stream):
            frame = socket.expect({"type": "message_stream", "ts": begun["ts"]})
            assert (frame["text"], frame["offset"], frame["thread_ts"], frame["user"]) == ("**Hel", 0, root, ann.id)
        ended = ann.ok("chat.stopStream", **place, markdown_text="lo**", blocks=[{"type": "divider"}])
        edit = plain.expect({"subtype": "message_changed", "message": {"ts": begun["ts"]}})["message"]
        assert not plain.matching({"type": "message_stream"}), "Slack's clients do not know it"
    for message in (ended["message"], edit, bob.ok("conversations.replies", channel=channel, ts=root)["messages"][-1]):
        assert message["text"] == "**Hello**" and message["streaming_state"] == "completed"
        assert [block["type"] for block in message["blocks"]] == ["markdown", "divider"]
    assert ended["seq"] == begun["seq"] + 1, "one edit, whatever was appended"
    for method in ("chat.appendStream", "chat.stopStream"):
        ann.fails("message_not_in_streaming_state", method, **place, markdown_text="x")
    with environment.database() as database:
        assert database.execute("SELECT count(*) FROM streams WHERE channel_id = %s", [channel]).fetchone()[0] == 0


def test_at_most_ten_frames_a_second(room):
    ann, bob, channel = room
    place = {"channel": channel, "ts": ann.ok("chat.startStream", channel=channel, markdown_text="a")["ts"]}
    with bob.socket(native=True) as socket:
        start, count = time.monotonic(), 0
        while time.monotonic() - start < 1.5:
            ann.ok("chat.appendStream", **place, markdown_text="x")
            count += 1
        took = time.monotonic() - start
        ann.ok("chat.stopStream", **place, markdown_text="!")
        message = socket.expect({"subtype": "message_changed"})["message"]
        frames = socket.matching({"type": "message_stream"})
    assert message["text"] == "a" + "x" * count + "!"
    assert 1 <= len(frames) <= 10 * took + 1
    told = 1
    for frame in frames:
        assert frame["offset"] == told
        told += len(frame["text"])


def test_one_message_counts_once(room):
    ann, bob, channel = room
    position = bob.ok("unread.sync")["position"]
    place = {"channel": channel, "ts": ann.ok("chat.startStream", channel=channel, client_msg_id="once")["ts"]}
    again = ann.ok("chat.startStream", channel=channel, client_msg_id="once")
    assert (again["ts"], again["is_duplicate"]) == (place["ts"], True)
    assert [event["streaming_state"] for event in bob.ok("events.sync", since=position)["events"]] == ["in_progress"]
    ann.ok("chat.appendStream", **place, markdown_text="x")
    assert bob.unread(channel) == 1
    ann.ok("chat.stopStream", **place)
    assert bob.unread(channel) == 1 and bob.history(channel)[0]["text"] == "x"


def test_refusals(room):
    ann, bob, channel = room
    begun = ann.ok("chat.startStream", channel=channel)["ts"]
    place = {"channel": channel, "ts": begun}
    for method in ("chat.appendStream", "chat.stopStream"):
        bob.fails("message_not_owned_by_app", method, **place, markdown_text="x")
        ann.fails("message_not_in_streaming_state", method, channel=channel, ts=ann.post(channel), markdown_text="x")
        ann.fails("message_not_found", method, channel=channel, ts="1700000000.000000", markdown_text="x")
        ann.fails("msg_too_long", method, **place, markdown_text="x" * 12001)
    ann.fails("invalid_arguments", "chat.appendStream", **place)
    for _ in range(3):
        ann.ok("chat.appendStream", **place, markdown_text="x" * 12000)
    ann.ok("chat.appendStream", **place, markdown_text="x" * 4000)
    ann.fails("msg_too_long", "chat.appendStream", **place, markdown_text="x")
    assert len(ann.ok("chat.stopStream", **place)["text"]) == 40000
    ann.ok("chat.delete", **place)
    ann.fails("message_not_found", "chat.appendStream", **place, markdown_text="x")
    empty = ann.ok("chat.startStream", channel=channel)["ts"]
    assert ann.ok("chat.stopStream", channel=channel, ts=empty)["text"] == "\u2026"


def test_status(room):
    ann, bob, channel = room
    with bob.socket(native=True) as socket:
        for status in ("is thinking\u2026", ""):
            ann.ok("assistant.threads.setStatus", channel_id=channel, thread_ts="1700000000.000000", status=status)
            assert socket.expect({"type": "assistant_status", "status": status})["user"] == ann.id
    for status in ("x" * 201, None):
        ann.fails("invalid_arguments", "assistant.threads.setStatus", channel_id=channel, thread_ts="1700000000.000000", status=status)
    ann.ok("assistant.threads.setStatus", channel_id=channel, thread_ts="1700000000.000000", status="x" * 200)
