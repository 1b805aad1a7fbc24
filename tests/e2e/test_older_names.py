# SPDX-License-Identifier: Apache-2.0
"""Methods under Slack's older names, as SDKs still have them; and those that there are not."""

import secrets
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.wait import wait_until
from tests.support.workspace import fresh_name


@pytest.fixture
def room(workspace):
    """Two members of a channel, a user who is not in any, and the channel."""
    ann, bob, cid = workspace.users(3)
    return ann, bob, cid, workspace.channel(ann, bob)


@pytest.mark.parametrize("verb", ["mark", "history", "replies"])
@pytest.mark.parametrize("family", ["groups", "im", "mpim"])
def test_older_names(workspace, room, family, verb):
    ann, bob, cid, _ = room
    if family == "groups":
        channel = workspace.channel(ann, bob, private=True)
    else:
        users = [bob.id] if family == "im" else [bob.id, cid.id]
        channel = ann.ok("conversations.open", users=users)["channel"]["id"]
    ts = bob.post(channel)
    reply = ann.ok(f"{family}.{verb}", channel=channel, **({} if verb == "history" else {"ts": ts}))
    if verb == "mark":
        assert reply["last_read"] == ts and ann.unread(channel) == 0
    else:
        assert reply["messages"][0]["ts"] == ts
    ann.fails("channel_not_found", f"{family}.{verb}", channel="C0000000000", ts=ts)


def test_older_names_of_changes(workspace, room):
    ann, bob, cid, _ = room
    channel = workspace.channel(ann, bob, cid, private=True)
    for method, args in (("kick", {"user": cid.id}), ("archive", {}), ("unarchive", {})):
        ann.fails("channel_not_found", f"groups.{method}", channel="G0000000000", **args)
        ann.ok(f"groups.{method}", channel=channel, **args)
    bob.ok("groups.leave", channel=channel)
    bob.fails("channel_not_found", "groups.leave", channel=channel)
    assert ann.ok("conversations.members", channel=channel)["members"] == [ann.id]
    for family, users in (("im", [bob.id]), ("mpim", [bob.id, cid.id])):
        direct = ann.ok("conversations.open", users=users)["channel"]["id"]
        ann.ok(f"{family}.close", channel=direct)
        ann.fails("channel_not_found", f"{family}.close", channel="D0000000000")
        assert ann.ok("conversations.info", channel=direct)["channel"]["is_open"] is False


@pytest.mark.parametrize("method", ["groups.members", "groups.", "im.mar", "im.ark", "mpim.mark close", "im", "im.create", "views.open",
                                    "search.messages", "files.upload", "stars.add", "channels.setRetention"])
def test_what_there_is_not(room, method):
    room[0].fails("unknown_method", method)


def test_groups(room):
    """Private channels have their own API there, and are called `group`."""
    ann, bob, cid, public = room
    name = fresh_name("group")
    group = ann.ok("groups.create", name=name)["group"]
    channel = group["id"]
    assert group["is_private"] is True and group["name"] == name and channel.startswith("G")
    ann.fails("name_taken", "groups.create", name=name)
    assert ann.ok("groups.invite", encoding="form", channel=channel, user=bob.id)["group"]["num_members"] == 2
    assert ann.ok("groups.invite", channel=channel, users=[cid.id])["group"]["num_members"] == 3
    ann.fails("already_in_channel", "groups.invite", channel=channel, users=[cid.id])
    ts = bob.post(channel)
    info = ann.ok("groups.info", channel=channel)["group"]
    assert info["unread_count"] == 1 and info["latest"]["ts"] == ts
    ann.fails("channel_not_found", "groups.info", channel="G0000000000")
    listed = ann.ok("groups.list", types="public_channel", exclude_members=True)
    assert [one["id"] for one in listed["groups"]] == [channel] and listed["response_metadata"]["next_cursor"] == ""
    ann.fails("invalid_limit", "groups.list", limit=-1)
    assert ann.ok("groups.rename", channel=channel, name=fresh_name("new"))["channel"]["id"] == channel
    assert ann.ok("groups.setTopic", channel=channel, topic="t")["channel"]["topic"]["value"] == "t"
    assert ann.ok("groups.setPurpose", channel=channel, purpose="p")["channel"]["purpose"]["value"] == "p"
    for method, args in (("rename", {"name": "x"}), ("setTopic", {"topic": "x"}), ("setPurpose", {"purpose": "x"})):
        ann.fails("channel_not_found", f"groups.{method}", channel="G0000000000", **args)


def test_direct_conversations(room):
    ann, bob, cid, _ = room
    channel = ann.ok("im.open", encoding="form", user=bob.id)["channel"]["id"]
    again = ann.ok("im.open", users=bob.id, return_im=True)
    assert again["already_open"] is True and again["channel"]["id"] == channel and again["channel"]["user"] == bob.id
    assert [(im["id"], im["user"]) for im in ann.ok("im.list")["ims"]] == [(channel, bob.id)]
    group = ann.ok("mpim.open", users=f"{bob.id},{cid.id}")["group"]["id"]
    again = ann.ok("mpim.open", users=[bob.id, cid.id], return_im=True)
    assert again["no_op"] is True and again["already_open"] is True and again["group"]["is_mpim"] is True
    assert [mpim["id"] for mpim in ann.ok("mpim.list")["groups"]] == [group]
    ann.fails("user_not_found", "im.open", user="U0000000000")
    ann.fails("user_not_found", "mpim.open", users="U0000000000")
    for family in ("im", "mpim"):
        ann.fails("invalid_cursor", f"{family}.list", cursor="x")


def test_arguments_under_older_names(room):
    ann, bob, cid, channel = room
    root = ann.post(channel, "one")
    bob.post(channel, "re", thread_ts=root)
    two, three = bob.post(channel, "two"), bob.post(channel, "three")
    reply = ann.ok("channels.history", encoding="form", channel=channel, count=1, unreads=1)
    assert [message["ts"] for message in reply["messages"]] == [three] and reply["has_more"] is True
    assert reply["unread_count_display"] == 2
    assert "unread_count_display" not in ann.ok("channels.history", channel=channel)
    assert len(ann.ok("channels.history", channel=channel, count=1, limit=2)["messages"]) == 2
    assert len(ann.ok("conversations.history", channel=channel, count=1)["messages"]) > 2, "newer names know no older ones"
    ann.fails("invalid_limit", "channels.history", channel=channel, count=-1)
    replies = ann.ok("channels.replies", encoding="form", channel=channel, thread_ts=root)["messages"]
    assert [message["text"] for message in replies] == ["one", "re"] and two < three
    assert ann.ok("channels.invite", encoding="form", channel=channel, user=cid.id)["channel"]["num_members"] == 3


def test_joining_by_name(workspace, room):
    """A channel that does not exist is created."""
    ann, bob, cid, channel = room
    name = ann.ok("channels.info", channel=channel)["channel"]["name"]
    for given, encoding in ((name, "form"), (f"#{name}", "json")):
        joined = cid.ok("channels.join", encoding=encoding, name=given)
        assert joined["channel"]["id"] == channel and joined["channel"]["is_member"] is True
    assert joined["warning"] == "already_in_channel"
    name = fresh_name("new")
    made = cid.ok("channels.join", encoding="form", name=name)["channel"]
    assert made["name"] == name and made["creator"] == cid.id and made["is_private"] is False
    assert bob.ok("channels.join", encoding="form", name=name)["channel"]["id"] == made["id"]
    secret = ann.ok("groups.create", name=fresh_name("secret"))["group"]
    bob.fails("name_taken", "channels.join", name=secret["name"])
    bob.fails("invalid_name_specials", "channels.join", name="A B")
    bob.fails("invalid_arguments", "conversations.join", name=name)


def test_joining_by_a_name_that_another_makes_a_channel_of_just_now(environment, workspace, room):
    ann, bob, *_ = room
    name, new_id = fresh_name("new"), "C" + secrets.token_hex(5).upper()
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%channels_join_by_name%'"
    with environment.database() as database, environment.database() as watch, ThreadPoolExecutor(1) as pool:
        with database.transaction():
            database.execute("SELECT channels_create(%s, %s, %s, %s, %s, %s, false, 'auto', '{0,0,0}')",
                             [fresh_name("row"), workspace.id, ann.id, new_id, name, name])
            reply = pool.submit(bob.ok, "channels.join", encoding="form", name=name)
            wait_until(lambda: watch.execute(waiting).fetchone()[0], what="bob waits for ann")
        assert reply.result()["channel"]["id"] == new_id and reply.result()["channel"]["num_members"] == 2
