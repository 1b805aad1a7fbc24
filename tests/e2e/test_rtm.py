# SPDX-License-Identifier: Apache-2.0
"""The WebSocket of a user: its frames, posting over it, marks on all devices."""

import hashlib
import json

import pytest

from tests.support.raw import TEXT, RawWebSocket
from tests.support.reading import READ_STATE
from tests.support.sockets import Socket
from tests.support.wait import SOON_S, wait_until


def through(socket, poster, channel):
    """Posts a last message and waits for its frame: all earlier frames of the channel have arrived then."""
    ts = poster.post(channel, "the last")
    socket.expect({"type": "message", "ts": ts})
    return ts


def test_rtm_connect(workspace):
    ann = workspace.user("ann")
    reply = ann.ok("rtm.connect")
    assert reply["url"].startswith("ws://") and "/rtm/" in reply["url"] and "?" not in reply["url"]
    assert reply["self"] == {"id": ann.id, "name": "ann"}
    assert reply["team"] == {"id": workspace.id, "name": workspace.name, "domain": workspace.domain}


def test_hello_is_first(workspace):
    with Socket(workspace.user().ok("rtm.connect")["url"]) as socket:
        socket.expect({"type": "hello"})
        assert socket.frames[0]["type"] == "hello"


def test_ticket_is_good_once(workspace):
    url = workspace.user().ok("rtm.connect")["url"]
    with Socket(url) as socket:
        socket.expect({"type": "hello"})
        refused(url)


@pytest.mark.parametrize("ticket", ["none", "", "x" * 500, "%00", "../../etc"])
def test_unknown_ticket(environment, ticket):
    refused(environment.urls[0].replace("http", "ws", 1) + "/rtm/" + ticket)


def refused(url):
    """An invalid ticket: a plain HTTP error, or an error frame and close 1008."""
    with RawWebSocket(url) as raw:
        if raw.handshake.status == 101:
            assert json.loads(raw.read_until(TEXT))["type"] == "error", "and no hello"
            assert raw.close_code() == 1008
        else:
            assert raw.handshake.status in (401, 403, 404)


def test_ticket_ends_after_its_time(environment, extra_instance, workspace):
    """A ticket of an instance with a short lifetime; one of an instance with a longer lifetime is still valid."""
    lasting = workspace.user().ok("rtm.connect")["url"]
    short = workspace.user().at(extra_instance(ticket_ms=100).url).ok("rtm.connect")["url"]
    digest = hashlib.sha256(short.split("/rtm/")[1].encode()).hexdigest()
    with environment.database() as database:
        wait_until(lambda: database.execute("SELECT expires_at < now() FROM tickets WHERE digest = %s",
                                            [digest]).fetchone()[0], what="the end of the ticket")
    with RawWebSocket(short) as raw:
        assert json.loads(raw.read_until(TEXT))["error"] == {"code": 1, "msg": "Socket URL has expired"}
        assert raw.close_code() == 1008
    with Socket(lasting) as socket:
        socket.expect({"type": "hello"})


@pytest.mark.parametrize("end", ["revoked", "inactive", "expired"])
def test_a_ticket_is_no_better_than_its_token(environment, workspace, end):
    ann = workspace.user()
    made = workspace.admin.ok("admin.tokens.create", user_id=ann.id, **({"expires_in": 5} if end == "expired" else {}))
    client = environment.client(made["token"])
    url = client.ok("rtm.connect")["url"]
    if end == "revoked":
        workspace.admin.ok("admin.tokens.revoke", revoke_token=made["token"])
    elif end == "inactive":
        workspace.admin.ok("admin.users.setActive", user_id=ann.id, active=False)
    else:
        wait_until(lambda: client.call("auth.test").get("error") == "token_expired", what="the end of the token")
    refused(url)


def test_ticket_is_good_on_the_other_instance(environment, workspace):
    url = workspace.user().ok("rtm.connect")["url"]
    path = url.split("/rtm/")[1]
    with Socket(environment.urls[1].replace("http", "ws", 1) + "/rtm/" + path) as socket:
        socket.expect({"type": "hello"})


def test_url_is_from_the_host_header(workspace):
    ann = workspace.user()
    reply = ann.ok("rtm.connect", headers={"Host": "chat.example.org:8443"})
    assert reply["url"].startswith("ws://chat.example.org:8443/rtm/")


def test_message_frame(room, sockets, workspace):
    ann, bob, channel = room
    socket = sockets(bob)
    reply = ann.ok("chat.postMessage", channel=channel, text="h\u00e9 \U0001f600", client_msg_id="c-1",
                   blocks=[{"type": "divider"}], metadata={"event_type": "e", "event_payload": {"a": [1]}})
    frame = socket.expect({"type": "message"})
    assert frame["seq"] == reply["seq"] and frame["ts"] == reply["ts"]
    assert (frame["channel"], frame["user"], frame["team"]) == (channel, ann.id, workspace.id)
    assert frame["text"] == "h\u00e9 \U0001f600" and frame["client_msg_id"] == "c-1"
    assert frame["blocks"][0]["type"] == "divider"
    assert frame["metadata"] == {"event_type": "e", "event_payload": {"a": [1]}}
    assert "subtype" not in frame


def test_the_authors_sockets_hear_a_post_over_http(room, sockets):
    ann, _, channel = room
    one, two = sockets(ann), sockets(ann)
    ts = ann.post(channel)
    one.expect({"type": "message", "ts": ts})
    two.expect({"type": "message", "ts": ts})


def test_thread_frames(room, sockets):
    ann, bob, channel = room
    socket = sockets(bob)
    root = ann.post(channel, "root")
    reply = ann.ok("chat.postMessage", channel=channel, text="quiet", thread_ts=root)
    frame = socket.expect({"type": "message", "ts": reply["ts"]})
    assert frame["thread_ts"] == root and "subtype" not in frame and frame["parent_user_id"] == ann.id
    loud = ann.ok("chat.postMessage", channel=channel, text="loud", thread_ts=root, reply_broadcast=True)
    frame = socket.expect({"type": "message", "ts": loud["ts"]})
    assert frame["subtype"] == "thread_broadcast" and frame["root"]["ts"] == root


def test_changed_and_deleted_frames(room, sockets):
    ann, bob, channel = room
    socket = sockets(bob)
    ts = ann.post(channel, "one")
    edit = ann.ok("chat.update", channel=channel, ts=ts, text="two")
    frame = socket.expect({"type": "message", "subtype": "message_changed"})
    assert frame["hidden"] is True and frame["channel"] == channel and frame["seq"] == edit["seq"]
    assert frame["message"]["text"] == "two" and frame["message"]["ts"] == ts
    assert frame["message"]["edited"]["user"] == ann.id
    delete = ann.ok("chat.delete", channel=channel, ts=ts)
    frame = socket.expect({"type": "message", "subtype": "message_deleted"})
    assert frame["hidden"] is True and frame["deleted_ts"] == ts and frame["seq"] == delete["seq"]


def test_the_previous_message_is_as_it_was(room, sockets, workspace):
    """Including the parts other than its text."""
    ann, bob, channel = room
    bot = workspace.bot()
    ann.ok("channels.invite", channel=channel, users=[bot.id])
    socket = sockets(bob)
    old, new = ([{"type": "section", "block_id": name, "text": {"type": "mrkdwn", "text": name}}] for name in ("old", "new"))
    posted = bot.ok("chat.postMessage", channel=channel, text="one", blocks=old, username="Robo",
                    attachments=[{"fallback": "f"}])["message"]
    bot.ok("chat.update", channel=channel, ts=posted["ts"], text="two", blocks=new, attachments=[])
    frame = socket.expect({"type": "message", "subtype": "message_changed"})
    assert frame["message"]["blocks"] == new and "attachments" not in frame["message"]
    assert frame["previous_message"] == posted
    bot.ok("chat.delete", channel=channel, ts=posted["ts"])
    gone = socket.expect({"type": "message", "subtype": "message_deleted"})["previous_message"]
    assert (gone["text"], gone["blocks"], gone["username"]) == ("two", new, "Robo")
    root = ann.post(channel, "root")
    reply = bot.ok("chat.postMessage", channel=channel, text="reply", username="Robo", thread_ts=root)
    bot.ok("chat.update", channel=channel, ts=reply["ts"], reply_broadcast=True)
    shown = socket.expect({"subtype": "message_changed", "message": {"ts": reply["ts"]}})["previous_message"]
    assert (shown["text"], shown["username"], shown["subtype"]) == ("reply", "Robo", "thread_broadcast")


def test_the_largest_message_and_its_edit(room, sockets, streams):
    """Their frames are larger than what may wait for a socket. Whoever reads gets them all the same."""
    ann, bob, channel = room
    opened = [sockets(bob), streams(bob)]
    ts = ann.post(channel, "y" * 40000, attachments=[{"text": "x" * 1040000}])
    ann.ok("chat.update", channel=channel, ts=ts, text="z" * 40000)
    for one in opened:
        assert len(one.expect({"type": "message", "ts": ts})["text"]) == 40000
        one.expect({"subtype": "message_changed"})


def test_joined_and_left_frames(room, sockets, workspace):
    ann, bob, channel = room
    cid = workspace.user()
    socket = sockets(bob)
    cid.ok("channels.join", channel=channel)
    frame = socket.expect({"type": "member_joined_channel", "user": cid.id})
    assert frame["channel"] == channel and frame["channel_type"] == "C" and frame["team"] == workspace.id
    assert frame["seq"] == 3
    cid.ok("channels.leave", channel=channel)
    assert socket.expect({"type": "member_left_channel", "user": cid.id})["seq"] == 4
    ann.ok("channels.invite", channel=channel, users=[cid.id])
    frame = socket.expect({"type": "member_joined_channel", "inviter": ann.id})
    assert frame["seq"] == 5 and frame["user"] == cid.id
    through(socket, ann, channel)
    assert not socket.matching({"subtype": "channel_join"}), "a join is one frame, and no message"


def test_frames_begin_with_a_join_and_end_with_a_kick(room, sockets, workspace):
    ann, bob, channel = room
    cid = workspace.user()
    home = workspace.channel(cid, ann)
    socket = sockets(cid)
    ann.post(channel, "before")
    cid.ok("channels.join", channel=channel)
    socket.expect({"type": "member_joined_channel", "user": cid.id, "channel": channel})
    ts = ann.post(channel, "inside")
    socket.expect({"type": "message", "ts": ts})
    ann.ok("channels.kick", channel=channel, user=cid.id)
    socket.expect({"type": "member_left_channel", "user": cid.id, "channel": channel})
    ann.post(channel, "after")
    bob_socket = sockets(bob)
    through(bob_socket, ann, channel)
    through(socket, ann, home)
    assert [f["text"] for f in socket.matching({"type": "message", "channel": channel})] == ["inside"]


@pytest.mark.parametrize("private, kind", [(False, "channel"), (True, "group")])
def test_who_comes_and_goes_hears_it_by_name(environment, room, sockets, workspace, private, kind):
    ann, bob, _ = room
    cid = workspace.user()
    channel = workspace.channel(ann, bob, private=private)
    here, there, others = sockets(cid), sockets(cid.at(environment.urls[1])), sockets(bob)
    ann.ok("channels.invite", channel=channel, users=cid.id)
    for socket in (here, there):
        joined = socket.expect({"type": f"{kind}_joined"})["channel"]
        assert joined == {**joined, "id": channel, "is_private": private, "is_member": True, "creator": ann.id}
    cid.ok("channels.leave", channel=channel)
    for socket in (here, there):
        assert socket.expect({"type": f"{kind}_left"})["channel"] == channel
    ann.ok("channels.invite", channel=channel, users=cid.id)
    here.expect(lambda _: len(here.matching({"type": f"{kind}_joined"})) == 2)
    ann.ok("channels.kick", channel=channel, user=cid.id)
    here.expect(lambda _: len(here.matching({"type": f"{kind}_left"})) == 2)
    through(others, ann, channel)
    assert not others.matching(lambda frame: frame["type"].endswith(("_joined", "_left")))


def created(channel):
    return {"type": "channel_created", "channel": {"id": channel}}


def test_channel_created_frame(room, sockets):
    ann, bob, _ = room
    socket = sockets(bob)
    made = ann.ok("channels.create", name="brand-new")["channel"]
    frame = socket.expect(created(made["id"]))  # the room's own may still be on its way
    assert frame["channel"]["name"] == frame["channel"]["name_normalized"] == "brand-new"
    assert frame["channel"]["creator"] == ann.id and isinstance(frame["channel"]["created"], int)


def test_private_channels_are_created_in_silence(room, sockets, workspace):
    ann, bob, _ = room
    socket = sockets(bob)
    private = workspace.channel(ann, private=True)
    public = workspace.channel(ann)
    socket.expect(created(public))
    assert not socket.matching(created(private))
    assert len(socket.matching(created(public))) == 1


def test_archive_frame(room, sockets):
    ann, bob, channel = room
    socket = sockets(bob)
    ann.ok("channels.archive", channel=channel)
    frame = socket.expect({"type": "channel_archive", "channel": channel})
    assert frame["seq"] == 3 and frame["user"] == ann.id


def test_nobody_else_hears(room, sockets, workspace, environment):
    ann, bob, channel = room
    cid, stranger = workspace.user(), environment.workspace().user()
    workspace.channel(cid, ann)
    outsiders = [sockets(cid), sockets(stranger)]
    inside = sockets(bob)
    through(inside, ann, channel)
    home = workspace.channel(cid)
    outsiders[0].expect({"type": "channel_created", "channel": {"id": home}})
    for socket in outsiders:
        assert not socket.matching({"channel": channel})


def test_channel_marked_on_all_devices(environment, room, sockets):
    ann, bob, channel = room
    devices = [sockets(bob), sockets(bob.at(environment.urls[1])), sockets(bob, native=True)]
    others = sockets(ann)
    ts = [ann.post(channel) for _ in range(3)]
    reply = bob.ok("channels.mark", channel=channel, ts=ts[1])
    for device in devices:
        frame = device.expect({"type": "channel_marked"})
        for name in READ_STATE:
            assert frame[name] == reply[name], name
        assert frame["ts"] == ts[1]
        assert frame["num_mentions"] == frame["num_mentions_display"] == frame["mention_count_display"] == 0
    through(others, ann, channel)
    assert not others.matching({"type": "channel_marked"}), "whose mark it is, is nobody else's business"


def test_channel_marked_after_mark_unread(room, sockets):
    ann, bob, channel = room
    ts = [ann.post(channel) for _ in range(3)]
    bob.ok("channels.mark", channel=channel, ts=ts[2])
    socket = sockets(bob)
    bob.ok("channels.markUnread", channel=channel, ts=ts[1])
    frame = socket.expect({"type": "channel_marked", "read_epoch": 1})  # the one before may still be on its way
    assert (frame["unread_count"], frame["last_read"]) == (2, ts[0])


def test_a_mark_that_changes_nothing_is_not_told(room, sockets):
    ann, bob, channel = room
    ts = [ann.post(channel) for _ in range(3)]
    socket = sockets(bob)
    bob.ok("channels.mark", channel=channel, ts=ts[2])
    bob.ok("channels.mark", channel=channel, ts=ts[2])
    bob.ok("channels.mark", channel=channel, ts=ts[0])
    bob.ok("channels.markUnread", channel=channel, ts=ts[2])
    socket.expect({"type": "channel_marked", "read_epoch": 1})
    assert [f["read_epoch"] for f in socket.matching({"type": "channel_marked"})] == [0, 1]


def test_unread_changed_for_native_sockets_only(room, sockets):
    ann, bob, channel = room
    native, slack = sockets(bob, native=True), sockets(bob)
    keep, gone = ann.post(channel), ann.post(channel)
    wait_until(lambda: bob.unread(channel) == 2)
    ann.ok("chat.delete", channel=channel, ts=gone)
    frame = native.expect({"type": "unread_changed", "channel": channel, "unread_count": 1})
    for name in READ_STATE:
        assert name in frame, name
    through(slack, ann, channel)
    assert not slack.matching({"type": "unread_changed"})
    assert keep == bob.ok("channels.info", channel=channel)["channel"]["oldest_unread_ts"]


def test_post_over_the_socket(room, sockets):
    ann, bob, channel = room
    socket, second, other = sockets(ann), sockets(ann), sockets(bob)
    ack = socket.request({"id": 7, "type": "message", "channel": channel, "text": "by socket"})
    assert ack["ok"] is True and ack["text"] == "by socket" and isinstance(ack["seq"], int) and "type" not in ack
    frame = other.expect({"type": "message", "ts": ack["ts"]})
    assert frame["text"] == "by socket" and frame["user"] == ann.id and frame["seq"] == ack["seq"]
    second.expect({"type": "message", "ts": ack["ts"]})
    through(socket, bob, channel)
    assert not socket.matching({"type": "message", "ts": ack["ts"]}), "the posting socket gets the ack only"
    assert ann.history(channel)[1]["text"] == "by socket"


def test_post_over_the_socket_is_idempotent(room, sockets):
    ann, bob, channel = room
    socket = sockets(ann)
    frame = {"type": "message", "channel": channel, "text": "x", "client_msg_id": "k"}
    first = socket.request({"id": 1, **frame})
    again = socket.request({"id": 2, **frame})
    assert (again["ok"], again["ts"], again["seq"]) == (True, first["ts"], first["seq"])
    assert ann.post(channel, "x", client_msg_id="k") == first["ts"]
    other = socket.request({"id": 3, **frame, "text": "y"})
    assert other["ok"] is False and other["error"]["msg"]
    assert bob.unread(channel) == 1


def test_posts_with_one_key_at_once_are_one(room, sockets):
    ann, bob, channel = room
    socket = sockets(ann)
    frame = {"type": "message", "channel": channel, "text": "x", "client_msg_id": "k"}
    socket.send_at_once({"id": 1, **frame}, {"id": 2, **frame}, {"id": 3, **frame, "text": "y"}, {"id": 4, **frame})
    first, second, other, last = [socket.expect({"reply_to": number}) for number in (1, 2, 3, 4)]
    assert first["ok"] and first["ts"] == second["ts"] == last["ts"] and other["ok"] is False
    assert bob.unread(channel) == 1


def test_more_posts_at_once_than_a_socket_may_have_in_work(room, sockets):
    ann, _, channel = room
    socket = sockets(ann)
    socket.send_at_once(*({"id": number, "type": "message", "channel": channel, "text": str(number)} for number in range(1, 18)))
    acks = [socket.expect({"reply_to": number}) for number in range(1, 18)]
    assert [ack["ok"] for ack in acks] == [True] * 16 + [False]
    assert acks[16]["error"]["msg"].startswith("slow down")


def test_post_of_a_reply_over_the_socket(room, sockets):
    ann, bob, channel = room
    root = ann.post(channel)
    socket = sockets(ann)
    socket.request({"id": 1, "type": "message", "channel": channel, "text": "q", "thread_ts": root})
    socket.request({"id": 2, "type": "message", "channel": channel, "text": "l", "thread_ts": root,
                    "reply_broadcast": True})
    assert [m["text"] for m in ann.ok("channels.replies", channel=channel, ts=root)["messages"]][1:] == ["q", "l"]
    assert [m["text"] for m in bob.history(channel)][0] == "l"
    assert bob.unread(channel) == 2


@pytest.mark.parametrize("change, name", [
    ({"channel": None}, "channel"), ({"channel": 5}, "channel"), ({"text": ["x"]}, "text"), ({"thread_ts": "x"}, "timestamp"),
    ({"client_msg_id": "x" * 129}, "client_msg_id"), ({"reply_broadcast": "x"}, "reply_broadcast"),
])
def test_a_bad_post_over_the_socket_is_told_what_is_bad(room, sockets, change, name):
    ann, _, channel = room
    ack = sockets(ann).request({"id": 3, "type": "message", "channel": channel, "text": "x", **change})
    assert ack["ok"] is False and name in ack["error"]["msg"]


@pytest.mark.parametrize("number", [1.5, True, ["x"], "x" * 100])
def test_a_post_with_an_id_that_cannot_be_echoed(room, sockets, number):
    """It is refused with an error frame, not posted."""
    ann, _, channel = room
    socket = sockets(ann)
    socket.send({"id": number, "type": "message", "channel": channel, "text": "x"})
    assert socket.expect({"type": "error"})["error"]["msg"].startswith("id: ")
    assert ann.history(channel) == []


@pytest.mark.parametrize("change", [
    {"text": " "}, {"text": "x" * 40_001}, {"channel": "C0000000000"}, {"channel": 5}, {"text": ["x"]},
    {"thread_ts": "x"}, {"client_msg_id": "x" * 129}, {"channel": None},
])
def test_bad_posts_over_the_socket(room, sockets, change):
    ann, bob, channel = room
    socket = sockets(ann)
    ack = socket.request({"id": 3, "type": "message", "channel": channel, "text": "x", **change})
    assert ack["ok"] is False and isinstance(ack["error"]["code"], int) and ack["error"]["msg"]
    assert ann.history(channel) == [] and bob.unread(channel) == 0
    assert socket.is_open


def test_a_post_without_text_says_what_slack_says(room, sockets):
    socket = sockets(room[0])
    ack = socket.request({"id": 3, "type": "message", "channel": room[2], "text": ""})
    assert ack["error"] == {"code": 2, "msg": "message text is missing"}


def test_ping_and_pong(workspace, sockets):
    socket = sockets(workspace.user())
    pong = socket.request({"id": 5, "type": "ping", "timestamp": 1700000012, "extra": {"a": [1, "b"]}})
    assert pong == {"type": "pong", "reply_to": 5, "timestamp": 1700000012, "extra": {"a": [1, "b"]}}


@pytest.mark.parametrize("frame", [{"type": "typing", "id": 1, "channel": "C1"}, {"type": "presence_sub", "ids": []},
                                   {"type": "who knows"}, {"id": 4}, {}])
def test_unknown_frames_do_no_harm(workspace, sockets, frame):
    socket = sockets(workspace.user())
    socket.send(frame)
    socket.request({"id": 99, "type": "ping"})


def test_close_is_answered(workspace):
    socket = Socket(workspace.user().ok("rtm.connect")["url"])
    socket.close()
    assert socket.wait_closed()[0] in (1000, 1005)


def test_sockets_of_a_revoked_token_close(workspace, sockets):
    ann = workspace.user()
    socket = sockets(ann)
    workspace.admin.ok("admin.tokens.revoke", revoke_token=ann.token)
    socket.wait_closed(SOON_S)


def test_sockets_of_an_inactive_user_close(environment, workspace, sockets):
    ann = workspace.user()
    here, there = sockets(ann), sockets(ann.at(environment.urls[1]))
    workspace.admin.ok("admin.users.setActive", user_id=ann.id, active=False)
    here.wait_closed(SOON_S)
    there.wait_closed(SOON_S)


def test_many_posts_come_in_order_and_once(room, sockets):
    ann, bob, channel = room
    devices = [sockets(bob) for _ in range(5)]
    for i in range(300):
        ann.post(channel, f"m{i}")
    for device in devices:
        device.expect({"type": "message", "text": "m299"})
        frames = device.matching({"type": "message"})
        assert [f["text"] for f in frames] == [f"m{i}" for i in range(300)]
        assert [f["seq"] for f in frames] == list(range(3, 303))
