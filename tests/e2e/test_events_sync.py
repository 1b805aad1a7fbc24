# SPDX-License-Identifier: Apache-2.0
"""events.sync: the events in all of a user's channels since a position, in as few calls as possible."""

import pytest

from tests.support.catch_up import CatchUp, channel_of
from tests.support.streams import Stream


@pytest.fixture
def people(workspace):
    return workspace.users(2)


@pytest.fixture
def catch_up(environment):
    """Begins to catch up: from now on, or from a position; the calls go to one instance after the other."""
    return lambda member, since=None: CatchUp(*[member.at(url) for url in environment.urls], since=since)


def texts(frames):
    return [frame["text"] for frame in frames if frame["type"] == "message"]


def test_nothing_happened(people, workspace, catch_up):
    workspace.channel(*people)
    later = catch_up(people[1])
    reply = later.step()
    assert isinstance(reply.pop("users_changed"), list)
    assert reply == {"ok": True, "events": [], "position": later.position, "has_more": False, "gaps": []}
    assert later.all() == []


def test_events_are_the_frames_of_sockets(people, workspace, catch_up, sockets):
    ann, bob = people
    room = workspace.channel(ann, bob)
    later, socket = catch_up(bob), sockets(bob, native=True)
    ts = ann.post(room, "one")
    ann.ok("chat.update", channel=room, ts=ts, text="two")
    ann.post(room, "reply", thread_ts=ts)
    ann.ok("channels.setTopic", channel=room, topic="weather")
    ann.ok("chat.delete", channel=room, ts=ts)
    socket.expect({"subtype": "message_deleted"})
    frames = later.all()
    own = ann.ok("channels.events", channel=room, after_seq=frames[0]["seq"] - 1)["events"]
    assert [frame for frame in frames if "seq" in frame] == own
    sent = [(f["type"], f.get("subtype"), f["seq"]) for f in socket.frames if f.get("channel") == room and "seq" in f]
    assert [(f["type"], f.get("subtype"), f["seq"]) for f in own[1:]] == sent[1:], "what is read back is as it now is"


@pytest.mark.parametrize("limit", [1, 7, 1000])
def test_page_by_page_on_two_instances(people, workspace, catch_up, limit):
    """No omissions, no duplicates, and each channel's events in order, wherever a page ends."""
    ann, bob = people
    rooms = [workspace.channel(ann, bob) for _ in range(5)]
    later = catch_up(bob)
    wanted = {room: [ann.post(room, f"{n}") for n in range(6)] for room in rooms}
    bob.ok("channels.mark", channel=rooms[2], ts=wanted[rooms[2]][3])
    last = None
    while not last or last["has_more"]:
        last = later.step(limit=limit)
        assert len(last["events"]) <= limit
    for room in rooms:
        assert [frame["ts"] for frame in later.frames if frame["type"] == "message" and frame["channel"] == room] == wanted[room]
        assert later.seqs(room) == sorted(set(later.seqs(room)))
    assert [frame["unread_count"] for frame in later.frames if frame["type"] == "channel_marked"] == [2]
    assert not later.gaps and later.all() == []


def test_the_first_limit(people, workspace, catch_up):
    ann, bob = people
    room = workspace.channel(ann, bob)
    later = catch_up(bob)
    for n in range(201):
        ann.post(room, f"{n}")
    first, second = later.step(), later.step()
    assert [(len(reply["events"]), reply["has_more"]) for reply in (first, second)] == [(200, True), (1, False)]


def test_as_many_as_may_be_asked_for_are_all(people, workspace, catch_up):
    ann, bob = people
    room = workspace.channel(ann, bob)
    later = catch_up(bob)
    for n in range(5):
        ann.post(room, f"{n}")
    reply = later.step(limit=5)
    assert (len(reply["events"]), reply["has_more"]) == (5, False)


def test_what_happens_between_two_pages(people, workspace, catch_up):
    """In channels that were already sent, and in those not sent yet."""
    ann, bob = people
    rooms = sorted(workspace.channel(ann, bob) for _ in range(3))
    later = catch_up(bob)
    wanted = {room: [ann.post(room) for _ in range(4)] for room in rooms}
    later.step(limit=6)
    for room in rooms:
        wanted[room] += [ann.post(room) for _ in range(3)]
    later.all(limit=2)
    for room in rooms:
        assert later.seqs(room) == list(range(later.seqs(room)[0], later.seqs(room)[0] + 7)), "once each"
        assert [frame["ts"] for frame in later.frames if channel_of(frame) == room] == wanted[room]


def test_joins_leaves_and_new_channels(people, workspace, catch_up):
    ann, bob = people
    stays, left, secret = workspace.channel(ann, bob), workspace.channel(ann, bob), workspace.channel(ann, bob, private=True)
    later = catch_up(bob)
    ann.post(left, "before")
    ann.post(secret, "before")
    bob.ok("channels.leave", channel=left)
    ann.ok("channels.kick", channel=secret, user=bob.id)
    ann.post(secret, "hidden")
    new = workspace.channel(ann, bob)
    ann.post(new, "in the new one")
    ann.post(stays, "in the old one")
    frames = later.all()
    assert sorted(texts(f for f in frames if f.get("subtype") is None)) == ["in the new one", "in the old one"]
    for room in (left, secret):
        assert [frame["type"] for frame in frames if channel_of(frame) == room] == ["member_left_channel"], "only the leave"
    kinds = [frame["type"] for frame in frames if channel_of(frame) == new]
    assert "channel_created" in kinds and "member_joined_channel" in kinds


def test_what_the_user_did_elsewhere(people, workspace, catch_up):
    ann, bob = people
    room = workspace.channel(ann, bob)
    root, last = ann.post(room, "root"), ann.post(room, "last")
    later = catch_up(bob)
    bob.ok("channels.mark", channel=room, ts=last)
    bob.ok("threads.follow", channel=room, thread_ts=root)
    kinds = {frame["type"]: frame for frame in later.all()}
    assert (kinds["channel_marked"]["last_read"], kinds["channel_marked"]["unread_count"]) == (last, 0)
    assert kinds["thread_subscribed"]["thread_ts"] == root
    bob.ok("channels.markUnread", channel=room, ts=root)
    [frame] = [frame for frame in later.all() if frame["type"] == "channel_marked"]
    assert (frame["read_epoch"], frame["unread_count"]) == (1, 2)


def test_one_position_for_all_ways(people, workspace, catch_up, streams):
    """A stream continues from the position of unread.sync, and calls continue from the id of a stream's event."""
    ann, bob = people
    room = workspace.channel(ann, bob)
    position = bob.ok("unread.sync")["position"]
    ann.post(room, "one")
    stream = streams(bob, position)
    stream.expect({"text": "one"})
    ann.post(room, "two")
    stream.expect({"text": "two"})
    last_id = stream.close()
    ann.post(room, "three")
    later = catch_up(bob, since=last_id)
    assert texts(later.all())[-1] == "three"
    ann.post(room, "four")
    stream = streams(bob, later.position)
    stream.expect({"text": "four"})
    assert not stream.matching({"text": "three"})
    assert bob.ok("unread.sync", since=bob.ok("unread.sync")["sync_token"])["position"]
    assert bob.ok("client.counts")["position"]


def test_of_an_older_page_of_the_sidebar(people, workspace, catch_up):
    """Pages of one unread.sync are of several moments: the position is that of the first."""
    ann, bob = people
    rooms = [workspace.channel(ann, bob) for _ in range(2)]
    first = bob.ok("unread.sync", limit=1)
    ann.post(rooms[0], "between")
    second = bob.ok("unread.sync", limit=1, cursor=first["response_metadata"]["next_cursor"])
    assert second["position"] == first["position"]
    assert texts(catch_up(bob, since=second["position"]).all()) == ["between"]


def test_positions_of_others(people, workspace):
    ann, bob = people
    workspace.channel(ann, bob)
    position = ann.ok("unread.sync")["position"]
    reply = bob.fails("invalid_position", "events.sync", since=position)
    assert "since" in reply.messages
    assert Stream(bob.url, bob.token, position).status == 400
    bob.fails("invalid_position", "events.sync", since=ann.ok("events.sync", since=position)["position"])


def test_a_position_that_is_too_old(people, workspace, catch_up):
    ann, bob = people
    room = workspace.channel(ann, bob)
    later = catch_up(bob, since="e1.1.1.1.0")
    reply = later.step()
    assert (reply["events"], reply["gaps"], reply["has_more"]) == ([], [None], False)
    ann.post(room, "after")
    assert texts(later.all()) == ["after"] and later.gaps == [None]


def test_more_than_is_kept_ready_is_a_gap(environment, people, workspace, extra_instance):
    ann, bob = people
    room, other = workspace.channel(ann, bob), workspace.channel(ann, bob)
    instance = extra_instance(resume_max_events=5)
    later = CatchUp(bob.at(instance.url))
    for n in range(9):
        ann.post(room, f"{n}")
    ann.post(other, "other")
    later.all()
    assert later.gaps == [room] and texts(frame for frame in later.frames if frame["channel"] == other) == ["other"]
    assert len(later.seqs(room)) <= 5


@pytest.mark.parametrize("limit", [1, 2])
def test_a_leave_is_told_once(people, workspace, catch_up, limit):
    """Also if a page ends with the leave: the next call continues after it."""
    ann, bob = people
    rooms = [workspace.channel(ann, bob) for _ in range(4)]
    later = catch_up(bob)
    for room in rooms:
        ann.post(room, "before")
        bob.ok("channels.leave", channel=room)
        ann.post(room, "not for bob")
    frames = later.all(calls_max=20, limit=limit)
    left = [channel_of(frame) for frame in frames if frame["type"] == "member_left_channel"]
    assert sorted(left) == sorted(rooms) and texts(frames) == []


def test_all_that_an_event_may_have(people, workspace, catch_up):
    """All optional fields of a message, a mark and a renamed channel are the same as on a socket."""
    ann, bob = people
    bot, room, private = workspace.bot(), workspace.channel(ann, bob), workspace.channel(ann, bob, private=True)
    ann.ok("channels.invite", channel=room, users=bot.id)
    direct = ann.ok("conversations.open", users=bob.id)["channel"]["id"]
    later = catch_up(bob)
    blocks = [{"type": "section", "text": {"type": "plain_text", "text": "b"}}]
    rich = ann.ok("chat.postMessage", channel=room, text="rich", blocks=blocks, attachments=[{"text": "a"}], client_msg_id="mine",
                  metadata={"event_type": "e", "event_payload": {"k": 1}})["ts"]
    ann.ok("chat.update", channel=room, ts=rich, text="richer", blocks=blocks, attachments=[{"text": "a"}])
    bot.ok("chat.postMessage", channel=room, text="beep", username="Beep", icon_emoji=":robot_face:")
    ann.post(room, "to all", thread_ts=rich, reply_broadcast=True)
    ann.ok("channels.setPurpose", channel=room, purpose="talk")
    ann.ok("channels.rename", channel=private, name="renamed-" + private.lower())
    bob.ok("channels.mark", channel=direct, ts=ann.post(direct, "psst"))

    frames = later.all()
    post = next(frame for frame in frames if frame.get("ts") == rich)
    assert post["blocks"][0]["type"] == "section" and post["attachments"][0]["text"] == "a" and post["client_msg_id"] == "mine"
    assert post["metadata"]["event_payload"] == {"k": 1} and post["text"] == "richer" and post["edited"]["user"] == ann.id
    beep = next(frame for frame in frames if frame.get("text") == "beep")
    assert (beep["username"], beep["icons"]["emoji"], beep["bot_id"]) == ("Beep", ":robot_face:", bot.bot_id)
    assert next(frame for frame in frames if frame.get("subtype") == "thread_broadcast")["root"]["ts"] == rich
    assert next(frame for frame in frames if frame["type"] == "channel_purpose" or frame.get("purpose"))["purpose"] == "talk"
    assert next(frame for frame in frames if frame["type"] == "group_rename")["channel"]["name"] == "renamed-" + private.lower()
    assert next(frame for frame in frames if frame["type"] == "im_marked")["dm_count"] == 0
