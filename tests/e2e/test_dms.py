# SPDX-License-Identifier: Apache-2.0
"""Direct conversations: of two, with oneself, of a group; their unread counts and frames."""

import threading

import pytest

from tests.support.wait import wait_until

FAMILIES = pytest.mark.parametrize("family", ["channels", "conversations"])


@pytest.fixture
def people(workspace):
    return workspace.users(4)


def open_dm(opener, *others, **args):
    return opener.ok("conversations.open", users=",".join(other.id for other in others), **args)["channel"]["id"]


def entry_of(client, channel, method="unread.sync", **args):
    """The entry of `channel` and the list it was in; (None, None) when it is in none."""
    reply = client.ok(method, **args)
    for kind in ("channels", "mpims", "ims"):
        for entry in reply[kind]:
            if entry["id"] == channel:
                return kind, entry
    return None, None


@FAMILIES
def test_open(workspace, people, family):
    ann, bob = people[:2]
    reply = ann.ok(f"{family}.open", users=bob.id)
    channel = reply["channel"]["id"]
    assert channel.startswith("D") and reply["channel"] == {"id": channel} and "already_open" not in reply
    again = ann.ok(f"{family}.open", users=[bob.id], return_im=True)
    assert again["already_open"] is True and again["no_op"] is True
    im = again["channel"]
    assert (im["id"], im["user"], im["is_im"], im["is_open"]) == (channel, bob.id, True, True)
    assert im["is_channel"] is False and im["is_mpim"] is False and im["is_private"] is True
    assert im["is_user_deleted"] is False and isinstance(im["created"], int) and "name" not in im
    assert ann.ok(f"{family}.open", channel=channel, return_im=True)["channel"] == im


def test_it_is_one_whoever_opens_it_and_however_they_name_it(people):
    ann, bob, cid, _ = people
    channel = open_dm(ann, bob)
    assert {open_dm(bob, ann), open_dm(ann, bob, ann), open_dm(bob, ann, ann, bob)} == {channel}
    group = open_dm(ann, bob, cid)
    assert group.startswith("G")
    assert {open_dm(cid, ann, bob), open_dm(bob, cid, ann, bob)} == {group}
    assert open_dm(ann, cid) not in (channel, group)
    himself = open_dm(cid, cid)
    assert himself.startswith("D") and open_dm(cid, cid) == himself
    assert cid.ok("conversations.info", channel=himself)["channel"]["user"] == cid.id


def test_many_open_it_at_once(environment, people):
    """On two instances at the same time: one conversation results, with each member once."""
    ann, bob, cid, _ = people
    callers = [member.at(url) for member in (ann, bob, cid) for url in environment.urls for _ in range(2)]
    users = [member.id for member in (ann, bob, cid)]
    found = []
    threads = [threading.Thread(target=lambda caller=caller: found.append(
        caller.ok("conversations.open", users=users)["channel"]["id"])) for caller in callers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(callers) and len(set(found)) == 1
    assert sorted(ann.ok("conversations.members", channel=found[0])["members"]) == sorted(users)
    assert [event["type"] for event in ann.ok("channels.events", channel=found[0], after_seq=0)["events"]] == (
        ["member_joined_channel"] * 3)


def test_group(workspace, people):
    ann, bob, cid, dan = people
    group = ann.ok("conversations.open", users=[bob.id, cid.id], return_im=True)["channel"]
    assert group["is_mpim"] is True and group["is_im"] is False and group["is_channel"] is False
    assert group["is_private"] is True and group["is_open"] is True and group["num_members"] == 3
    assert sorted(group["members"]) == sorted(member.id for member in (ann, bob, cid))
    names = sorted(member.name for member in (ann, bob, cid))
    assert group["name"] == "mpdm-" + "--".join(names) + "-1"
    dan.fails("channel_not_found", "conversations.info", channel=group["id"])
    dan.fails("channel_not_found", "chat.postMessage", channel=group["id"], text="x")
    dan.fails("channel_not_found", "chat.postMessage", channel=group["name"], text="x")


def test_group_whose_name_is_taken(people):
    ann, bob, cid, dan = people
    name = "mpdm-" + "--".join(sorted(member.name for member in (ann, bob, cid)))
    dan.ok("channels.create", name=f"{name}-1")
    assert ann.ok("conversations.open", users=[bob.id, cid.id], return_im=True)["channel"]["name"] == f"{name}-2"


def test_open_errors(environment, workspace, people):
    ann, bob, cid, dan = people
    stranger = environment.workspace().user()
    reply = ann.fails("users_list_not_supplied", "conversations.open")
    assert "users" in reply.messages
    assert "users" in ann.fails("invalid_arguments", "conversations.open", users=bob.id, channel="D0000000000").messages
    for users in ("U0000000000", stranger.id, f"{bob.id},U0000000000", "bob", f"{bob.id};{cid.id}", [[bob.id]]):
        ann.fails("user_not_found", "conversations.open", users=users)
    many = [member.id for member in workspace.users(9)]
    ann.fails("too_many_users", "conversations.open", users=many)
    assert open_dm(ann, *[ann.__class__(ann.url, None, user, "", None) for user in many[:8]]).startswith("G")
    ann.fails("channel_not_found", "conversations.open", users=bob.id, prevent_creation=True)
    channel = open_dm(ann, bob)
    assert open_dm(bob, ann, prevent_creation=True) == channel
    known = open_dm(ann, dan)
    workspace.admin.ok("admin.users.setActive", user_id=dan.id, active=False)
    for users in ([dan.id, bob.id], [dan.id, cid.id]):
        ann.fails("user_disabled", "conversations.open", users=users)
    cid.fails("user_disabled", "conversations.open", users=dan.id)
    for args in ({}, {"prevent_creation": True}):
        assert open_dm(ann, dan, **args) == known, "the existing one opens"
    assert ann.ok("chat.postMessage", channel=dan.id, text="bye")["channel"] == known
    cid.fails("channel_not_found", "conversations.open", channel=channel)
    ann.fails("method_not_supported_for_channel_type", "conversations.open", channel=workspace.channel(ann))
    ann.fails("invalid_arguments", "conversations.open", users=bob.id, return_im="perhaps")
    assert {listed["id"] for listed in ann.ok("conversations.list", types="im")["channels"]} == {channel, known}


@FAMILIES
def test_close_and_what_opens_it_again(people, family):
    ann, bob = people[:2]
    channel = open_dm(ann, bob)
    bob.post(channel, "hello")
    assert "no_op" not in ann.ok(f"{family}.close", channel=channel)
    reply = ann.ok(f"{family}.close", channel=channel)
    assert reply["no_op"] is True and reply["already_closed"] is True
    assert ann.ok("conversations.info", channel=channel)["channel"]["is_open"] is False
    assert entry_of(ann, channel) == (None, None)
    assert entry_of(bob, channel)[0] == "ims", "it is closed for ann alone"
    ts = bob.post(channel, "are you there?")
    kind, entry = entry_of(ann, channel)
    assert kind == "ims" and entry["unread_count"] == 2 and entry["latest"] == ts
    ann.ok(f"{family}.close", channel=channel)
    assert "already_open" not in ann.ok(f"{family}.open", users=bob.id)
    assert entry_of(ann, channel)[0] == "ims"


def test_nobody_sees_what_another_closed(people):
    ann, bob, cid = people[:3]
    direct, group = open_dm(ann, bob), open_dm(ann, bob, cid)
    for channel in (direct, group):
        bob.post(channel)
        ann.ok("conversations.close", channel=channel)

    def shown(client, **args):
        return {c["id"]: c["is_open"] for c in client.ok("users.conversations", types="im,mpim", **args)["channels"]}

    assert shown(ann) == {direct: False, group: False} and shown(bob, user=ann.id) == {direct: True, group: True}
    assert shown(ann, user=bob.id) == {direct: False, group: False}, "it is the caller's own view"


def is_open(client, channel):
    return client.ok("conversations.info", channel=channel)["channel"]["is_open"]


@FAMILIES
def test_close_leaves_open_what_has_a_message_that_was_not_seen(people, family):
    ann, bob = people[:2]
    channel = open_dm(ann, bob)
    seen, new = bob.post(channel, "seen"), bob.post(channel, "just arrived")
    with ann.socket() as socket:
        for ts in (seen, "0000000000.000000"):
            reply = ann.ok(f"{family}.close", channel=channel, ts=ts)
            assert reply["no_op"] is True and "already_closed" not in reply
            assert is_open(ann, channel) and entry_of(ann, channel)[1]["unread_count"] == 2
        assert "no_op" not in ann.ok(f"{family}.close", channel=channel, ts=new)
        socket.expect({"type": "im_close", "channel": channel})
        assert len(socket.matching({"type": "im_close"})) == 1 and not is_open(ann, channel)
        assert ann.ok(f"{family}.close", channel=channel, ts=new)["already_closed"] is True
    bob.post(channel, "and now?")
    assert is_open(ann, channel)
    for ts in ("9999999999.000000", None):
        ann.ok(f"{family}.close", channel=channel, **({"ts": ts} if ts else {}))
        assert not is_open(ann, channel)
        bob.post(channel, "again")


def test_close_hides_no_message_that_is_posted_meanwhile(environment, people):
    """The call waits for a lock; what commits before it gets the lock came after the caller asked."""
    ann, bob = people[:2]
    channel = open_dm(ann, bob)
    bob.post(channel, "seen")
    with environment.database() as database, database.transaction():
        database.execute("SELECT 1 FROM channel_members WHERE channel_id = %s AND user_id = %s FOR NO KEY UPDATE", [channel, ann.id])
        closing = threading.Thread(target=ann.ok, args=("conversations.close",), kwargs={"channel": channel})
        closing.start()
        pid = database.execute("SELECT pg_backend_pid()").fetchone()[0]
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))"
        wait_until(lambda: database.execute(waiting, [pid]).fetchone()[0], what="the call waiting for the lock")
        bob.post(channel, "unseen")
    closing.join()
    assert is_open(ann.at(ann.url), channel)


@FAMILIES
def test_close_errors(workspace, people, family):
    ann, bob, cid, _ = people
    cid.fails("channel_not_found", f"{family}.close", channel=open_dm(ann, bob))
    ann.fails("method_not_supported_for_channel_type", f"{family}.close", channel=workspace.channel(ann))
    assert "channel" in ann.fails("invalid_arguments", f"{family}.close").messages
    assert "ts" in ann.fails("invalid_timestamp", f"{family}.close", channel=open_dm(ann, bob), ts="yesterday").messages


def test_close_is_told_by_the_next_sync(people):
    ann, bob = people[:2]
    channel = open_dm(ann, bob)
    token = ann.ok("unread.sync")["sync_token"]
    ann.ok("conversations.close", channel=channel)
    reply = ann.ok("unread.sync", since=token)
    assert reply["full"] is False and reply["removed"] == [channel]
    bob.post(channel)
    reply = ann.ok("unread.sync", since=reply["sync_token"])
    assert [entry["id"] for entry in reply["ims"]] == [channel] and reply["removed"] == []


def test_it_is_closed_for_the_other_until_something_is_said(people):
    ann, bob = people[:2]
    channel = open_dm(ann, bob)
    assert entry_of(ann, channel)[0] == "ims" and entry_of(bob, channel) == (None, None)
    ann.post(channel)
    assert entry_of(bob, channel)[0] == "ims"


def test_unread_counts(people):
    """Every message counts as a mention."""
    ann, bob, cid, _ = people
    for channel, kind in ((open_dm(ann, bob), "ims"), (open_dm(ann, bob, cid), "mpims")):
        bob.post(channel, "one")
        ts = bob.post(channel, "two")
        ann.post(channel, "mine")
        found, entry = entry_of(ann, channel)
        assert found == kind
        assert (entry["unread_count"], entry["mention_count"], entry["has_unreads"]) == (2, 2, True)
        info = ann.ok("channels.info", channel=channel)["channel"]
        assert (info["unread_count"], info["mention_count"]) == (2, 2)
        reply = ann.ok("conversations.mark", channel=channel, ts=ts)
        assert (reply["unread_count"], reply["mention_count"]) == (0, 0)
        assert entry_of(ann, channel)[1]["mention_count"] == 0


def test_entries_name_the_other(people):
    ann, bob, cid, _ = people
    channel = open_dm(ann, bob)
    bob.post(channel, "hi")
    assert entry_of(ann, channel)[1]["user"] == bob.id
    assert entry_of(bob, channel)[1]["user"] == ann.id
    own = open_dm(cid, cid)
    assert entry_of(cid, own)[1]["user"] == cid.id
    group = open_dm(ann, bob, cid)
    assert entry_of(ann, group)[1]["name"].startswith("mpdm-")


def test_totals_and_badges(workspace, people):
    ann, bob = people[:2]
    channel = workspace.channel(ann, bob)
    direct = open_dm(ann, bob)
    bob.post(channel)
    bob.post(direct)
    bob.post(direct)
    totals = ann.ok("unread.sync")["totals"]
    assert (totals["unread_channels"], totals["unread_count"], totals["mention_count"]) == (2, 3, 2)
    counts = ann.ok("client.counts")
    assert (counts["channel_badges"]["channels"], counts["channel_badges"]["dms"]) == (1, 1)
    assert entry_of(ann, direct, "client.counts")[1]["mention_count"] == 2
    ann.ok("channels.setNotifications", channel=direct, muted=True)
    totals = ann.ok("unread.sync")["totals"]
    assert (totals["unread_channels"], totals["unread_count"], totals["mention_count"]) == (1, 1, 0)
    assert totals["muted_unread_count"] == 2


@pytest.mark.parametrize("text, mentions", [("<@{}> look", 1), ("<!channel>", 1), ("hello", 0)])
def test_what_mentions_in_a_muted_conversation_stays(people, sockets, text, mentions):
    """In a muted conversation, messages do not count as mentions by themselves, but real mentions do."""
    ann, bob, cid = people[:3]
    group = open_dm(ann, bob, cid)
    device = sockets(ann, native=True)
    ann.ok("channels.setNotifications", channel=group, muted=True)
    bob.post(group)
    ts = bob.post(group, text.format(ann.id))
    assert ann.ok("unread.sync")["totals"]["mention_count"] == mentions
    for method in ("unread.sync", "client.counts"):
        assert entry_of(ann, group, method)[1]["mention_count"] == mentions
    assert ann.ok("channels.info", channel=group)["channel"]["mention_count"] == mentions
    reply = ann.ok("channels.markUnread", channel=group, ts=ts)
    assert reply["mention_count"] == mentions
    device.expect({"type": "mpim_marked", "read_epoch": reply["read_epoch"], "mention_count": mentions})
    ann.ok("channels.setNotifications", channel=group, muted=False)
    device.expect({"type": "unread_changed", "channel": group, "is_muted": False, "mention_count": 1})
    assert ann.ok("unread.sync")["totals"]["mention_count"] == entry_of(ann, group)[1]["mention_count"] == 1


@pytest.mark.parametrize("types, kinds", [
    ("im", {"ims"}), ("mpim", {"mpims"}), ("im,mpim", {"ims", "mpims"}), ("public_channel", {"channels"}),
    ("private_channel,im", {"ims"}), (["public_channel", "mpim"], {"channels", "mpims"})])
def test_sync_by_types(workspace, people, types, kinds):
    ann, bob, cid, _ = people
    workspace.channel(ann)
    open_dm(ann, bob)
    open_dm(ann, bob, cid)
    reply = ann.ok("unread.sync", types=types)
    assert {kind for kind in ("channels", "mpims", "ims") if reply[kind]} == kinds


def test_list(workspace, people):
    ann, bob, cid, _ = people
    channel, direct, group = workspace.channel(ann), open_dm(ann, bob), open_dm(ann, bob, cid)
    everything = "public_channel,private_channel,mpim,im"

    def listed(client, types, method="conversations.list"):
        return {entry["id"] for entry in client.ok(method, types=types)["channels"]}

    assert listed(ann, "im") == {direct} and listed(ann, "mpim") == {group}
    assert listed(ann, "im,mpim") == {direct, group} and listed(ann, everything) == {channel, direct, group}
    assert listed(cid, everything) == {channel, group}
    assert listed(cid, "im") == set()
    assert listed(ann, everything, "users.conversations") == {channel, direct, group}
    im = ann.ok("conversations.list", types="im")["channels"][0]
    assert im["user"] == bob.id and bob.ok("conversations.list", types="im")["channels"][0]["user"] == ann.id


def test_posting_to_a_user(people):
    """The id of a user as `channel` means the conversation with them, which is made when there is none."""
    ann, bob = people[:2]
    with bob.socket() as socket:
        reply = ann.ok("chat.postMessage", channel=bob.id, text="hi")
        frame = socket.expect({"type": "message", "text": "hi"})
    assert reply["channel"].startswith("D") and frame["channel"] == reply["channel"]
    assert frame["channel_type"] == "im"
    assert open_dm(ann, bob) == reply["channel"]
    assert bob.ok("chat.postMessage", channel=ann.id, text="you too")["channel"] == reply["channel"]
    assert ann.ok("chat.postMessage", channel=ann.id, text="note")["channel"] not in ("", reply["channel"])
    assert [m["text"] for m in bob.ok("conversations.history", channel=reply["channel"])["messages"]] == ["you too", "hi"]


def test_posting_to_nobody(environment, workspace, people):
    ann, bob = people[:2]
    stranger = environment.workspace().user()
    workspace.admin.ok("admin.users.setActive", user_id=bob.id, active=False)
    for user in ("U0000000000", stranger.id, bob.id):
        ann.fails("channel_not_found", "chat.postMessage", channel=user, text="hi")
    assert ann.ok("conversations.list", types="im")["channels"] == []


def test_a_post_to_a_user_is_safe_to_repeat(people):
    ann, bob = people[:2]
    first = ann.ok("chat.postMessage", channel=bob.id, text="once", client_msg_id="m1")
    again = ann.ok("chat.postMessage", channel=bob.id, text="once", client_msg_id="m1")
    assert again["is_duplicate"] is True and again["ts"] == first["ts"]


def test_posting_to_a_user_by_socket(people):
    ann, bob = people[:2]
    with ann.socket() as socket:
        assert socket.request({"id": 1, "type": "message", "channel": bob.id, "text": "by socket"})["ok"] is True
    assert bob.history(open_dm(bob, ann))[0]["text"] == "by socket"


def test_frames(people, workspace):
    """Sockets of both users receive new conversations, posts in them, and marks."""
    ann, bob, cid, _ = people
    with ann.socket() as hers, bob.socket() as his, cid.socket() as other:
        for channel, kind, letter, marked in ((open_dm(ann, bob), "im", "D", "im_marked"),
                                              (open_dm(ann, bob, cid), "mpim", "G", "mpim_marked"),
                                              (workspace.channel(ann, bob, private=True), "group", "G", "group_marked")):
            if kind == "group":
                joined = his.expect({"type": "member_joined_channel", "channel": channel, "user": bob.id})
                assert joined["channel_type"] == letter
            ts = ann.post(channel, "hello")
            assert his.expect({"type": "message", "channel": channel, "ts": ts})["channel_type"] == kind
            reply = bob.ok("conversations.mark", channel=channel, ts=ts)
            frame = his.expect({"type": marked, "channel": channel})
            assert frame["last_read"] == reply["last_read"] == ts and frame["mention_count_display"] == 0
            assert ("dm_count" in frame) is (kind == "im")
            assert not hers.matching({"type": marked})
        other.expect({"type": "message", "text": "hello"})
        assert len(other.matching({"type": "message"})) == 1


def test_frames_of_what_is_shown(environment, people):
    """The user's own sockets, on every instance, receive creating, opening and closing a conversation; other members' sockets only its
    creation."""
    ann, bob, cid, _ = people
    with ann.socket() as here, ann.at(environment.urls[1]).socket() as there, bob.socket() as his:
        channel = open_dm(ann, bob)
        for socket in (here, there):
            created = socket.expect({"type": "im_created"})
            assert created["channel"]["id"] == channel and created["channel"]["is_im"] is True
            assert created["user"] == created["channel"]["user"] == bob.id
            socket.expect({"type": "im_open", "channel": channel, "user": bob.id})
        assert his.expect({"type": "im_created"})["user"] == ann.id
        for _ in range(2):
            ann.ok("conversations.close", channel=channel)
        here.expect({"type": "im_close", "channel": channel, "user": bob.id})
        ann.ok("conversations.open", channel=channel)
        there.expect(lambda frame: there.matching({"type": "im_close"}) and len(there.matching({"type": "im_open"})) == 2)
        group = open_dm(ann, bob, cid)
        assert there.expect({"type": "group_joined", "channel": {"id": group}})["channel"]["is_mpim"] is True
        there.expect({"type": "group_open", "channel": group})
        ann.ok("conversations.close", channel=group)
        there.expect({"type": "group_close", "channel": group})
        assert len(there.matching({"type": "im_close"})) == 1
        ann.post(channel, "end")
        his.expect({"type": "message", "text": "end"})
        assert not his.matching(lambda frame: frame["type"] in ("im_open", "im_close", "group_open", "group_close"))


def test_seq_of_a_conversation(people):
    """A conversation begins with its members; the notices of that are no messages."""
    ann, bob = people[:2]
    channel = open_dm(ann, bob)
    assert ann.ok("conversations.history", channel=channel)["messages"] == []
    seq = ann.ok("chat.postMessage", channel=channel, text="first")["seq"]
    events = ann.ok("channels.events", channel=channel, after_seq=0)["events"]
    assert [event["seq"] for event in events] == [1, 2, 3] and seq == 3
    assert [event["type"] for event in events] == ["member_joined_channel", "member_joined_channel", "message"]
    joined = events[0]["event_ts"]
    bob.fails("thread_not_found", "chat.postMessage", channel=channel, text="x", thread_ts=joined)


@pytest.mark.parametrize("method, args", [
    ("join", {}), ("leave", {}), ("invite", {"users": "U0000000000"}), ("kick", {"user": "U0000000000"}), ("archive", {}),
    ("unarchive", {}), ("rename", {"name": "other"}), ("setTopic", {"topic": "x"}), ("setPurpose", {"purpose": "x"}),
    ("setStrategy", {"strategy": "zset"})])
def test_what_is_for_channels_only(people, method, args):
    ann, bob, cid, dan = people
    for channel in (open_dm(ann, bob), open_dm(ann, bob, cid)):
        ann.fails("method_not_supported_for_channel_type", f"conversations.{method}", channel=channel, **args)
        dan.fails("channel_not_found", f"conversations.{method}", channel=channel, **args)


def test_threads_edits_and_deletes(people):
    ann, bob = people[:2]
    channel = open_dm(ann, bob)
    root = ann.post(channel, "root")
    ann.ok("chat.postMessage", channel=channel, text="reply", thread_ts=root)
    messages = bob.ok("conversations.replies", channel=channel, ts=root)["messages"]
    assert [message["text"] for message in messages] == ["root", "reply"]
    other = ann.post(channel, "other")
    assert bob.unread(channel) == 2
    ann.ok("chat.update", channel=channel, ts=root, text="edited")
    ann.ok("chat.delete", channel=channel, ts=other)
    assert bob.unread(channel) == 1
    bob.ok("channels.markUnread", channel=channel, ts=root)
    assert entry_of(bob, channel)[1]["mention_count"] == 1


def test_with_a_bot(workspace, people):
    ann, bot = people[0], workspace.bot()
    channel = bot.ok("chat.postMessage", channel=ann.id, text="beep")["channel"]
    assert ann.ok("conversations.info", channel=channel)["channel"]["user"] == bot.id
    assert ann.unread(channel) == 1
    workspace.admin.ok("admin.users.setActive", user_id=bot.id, active=False)
    assert ann.ok("conversations.info", channel=channel)["channel"]["is_user_deleted"] is True
