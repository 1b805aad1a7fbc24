# SPDX-License-Identifier: Apache-2.0
"""Settings of a channel, its events and frames; the conversations that a user can see."""

import pytest

FAMILIES = pytest.mark.parametrize("family", ["channels", "conversations"])


@pytest.fixture
def people(workspace):
    return workspace.users(3)


def last_event(client, channel):
    return client.ok("channels.events", channel=channel, after_seq=0, limit=1000)["events"][-1]


@FAMILIES
@pytest.mark.parametrize("method, what", [("setTopic", "topic"), ("setPurpose", "purpose")])
def test_setting(workspace, people, family, method, what):
    ann, bob, _ = people
    channel = workspace.channel(ann, bob)
    value = 'caf\u00e9 <@U1> & "tea" \U0001f600'
    with ann.socket() as socket:
        set_to = bob.ok(f"{family}.{method}", channel=channel, **{what: value})["channel"]
        frame = socket.expect({"type": "message", "subtype": f"channel_{what}", "channel": channel})
    assert set_to[what]["value"] == value and set_to[what]["creator"] == bob.id and set_to[what]["last_set"] > 1700000000
    assert isinstance(set_to[what]["last_set"], int)
    assert ann.ok(f"{family}.info", channel=channel)["channel"][what] == set_to[what]
    assert frame[what] == value and frame["user"] == bob.id and value in frame["text"]
    assert last_event(ann, channel) == {**frame, "seq": frame["seq"]}
    message = ann.ok(f"{family}.history", channel=channel)["messages"][0]
    assert message["subtype"] == f"channel_{what}" and message[what] == value
    assert ann.unread(channel) == 0, "it does not count"


@pytest.mark.parametrize("method, what", [("setTopic", "topic"), ("setPurpose", "purpose")])
def test_setting_again_and_taking_it_away(workspace, people, method, what):
    ann = people[0]
    channel = workspace.channel(ann)
    ann.ok(f"conversations.{method}", channel=channel, **{what: "x" * 250})
    seq = last_event(ann, channel)["seq"]
    ann.ok(f"conversations.{method}", channel=channel, **{what: "x" * 250})
    assert last_event(ann, channel)["seq"] == seq, "the same again is no event"
    assert ann.ok(f"conversations.{method}", channel=channel, **{what: ""})["channel"][what]["value"] == ""
    assert last_event(ann, channel)["seq"] == seq + 1


@pytest.mark.parametrize("method, what", [("setTopic", "topic"), ("setPurpose", "purpose")])
def test_setting_errors(workspace, people, method, what):
    ann, bob, _ = people
    channel = workspace.channel(ann)
    before = last_event(ann, channel)
    assert what in ann.fails("too_long", f"conversations.{method}", channel=channel, **{what: "\u00e9" * 251}).messages
    assert what in ann.fails("invalid_arguments", f"conversations.{method}", channel=channel).messages
    assert what in ann.fails("invalid_arguments", f"conversations.{method}", channel=channel, **{what: ["x"]}).messages
    bob.fails("not_in_channel", f"conversations.{method}", channel=channel, **{what: "x"})
    ann.ok(f"conversations.{method}", channel=channel, **{what: "\u00e9" * 250})
    ann.ok("channels.archive", channel=channel)
    ann.fails("is_archived", f"conversations.{method}", channel=channel, **{what: "x"})
    assert before["type"] == "member_joined_channel"


@FAMILIES
def test_rename(workspace, people, family):
    ann, bob, _ = people
    channel = workspace.channel(ann, bob, name="before")
    with bob.socket() as socket, bob.stream() as stream:
        renamed = ann.ok(f"{family}.rename", channel=channel, name="after")["channel"]
        frame = socket.expect({"type": "channel_rename"})
        stream.expect(frame)
    assert renamed["name"] == "after" and renamed["name_normalized"] == "after" and renamed["previous_names"] == ["before"]
    assert frame["channel"] == {"id": channel, "name": "after", "name_normalized": "after", "old_name": "before",
                                "is_channel": True, "is_group": False, "created": renamed["created"]}
    assert frame["user"] == ann.id
    assert last_event(ann, channel) == frame
    message = ann.ok(f"{family}.history", channel=channel)["messages"][0]
    assert (message["subtype"], message["name"], message["old_name"]) == ("channel_name", "after", "before")
    assert bob.unread(channel) == 0
    assert next(c["name"] for c in bob.ok("unread.sync")["channels"] if c["id"] == channel) == "after"
    assert ann.ok("chat.postMessage", channel="#after", text="x")["channel"] == channel
    ann.fails("channel_not_found", "chat.postMessage", channel="#before", text="x")
    workspace.channel(bob, name="before")


def test_rename_errors(workspace, people):
    ann, bob, cid = people
    channel = workspace.channel(ann, bob, name="mine")
    workspace.channel(bob, name="theirs")
    ann.fails("name_taken", "conversations.rename", channel=channel, name="theirs")
    for name, error in (("Upper", "invalid_name_specials"), ("x" * 81, "invalid_name_maxlength"),
                        ("", ("invalid_name_required", "invalid_arguments"))):
        assert "name" in ann.fails(error, "conversations.rename", channel=channel, name=name).messages
    bob.fails("not_authorized", "conversations.rename", channel=channel, name="other")
    cid.fails("not_in_channel", "conversations.rename", channel=channel, name="other")
    seq = last_event(ann, channel)["seq"]
    assert ann.ok("conversations.rename", channel=channel, name="mine")["channel"]["previous_names"] == []
    assert last_event(ann, channel)["seq"] == seq
    workspace.admin.ok("channels.join", channel=channel)
    assert workspace.admin.ok("conversations.rename", channel=channel, name="ours")["channel"]["name"] == "ours"
    ann.ok("channels.archive", channel=channel)
    ann.fails("is_archived", "conversations.rename", channel=channel, name="late")


def test_rename_of_a_private_channel(workspace, people):
    ann, bob, _ = people
    channel = workspace.channel(ann, bob, private=True)
    with bob.socket() as socket:
        ann.ok("conversations.rename", channel=channel, name="quiet")
        frame = socket.expect({"type": "group_rename", "channel": {
            "id": channel, "name": "quiet", "name_normalized": "quiet", "is_channel": False, "is_group": True}})
        assert "created" not in frame["channel"], "Slack's Go client wants it as text"


@FAMILIES
@pytest.mark.parametrize("private", [False, True])
def test_unarchive(workspace, people, family, private):
    ann, bob, cid = people
    channel = workspace.channel(ann, bob, private=private)
    ann.fails("not_archived", f"{family}.unarchive", channel=channel)
    ann.ok(f"{family}.archive", channel=channel)
    token = ann.ok("unread.sync")["sync_token"]
    bob.fails("restricted_action", f"{family}.unarchive", channel=channel)
    cid.fails("channel_not_found" if private else "not_in_channel", f"{family}.unarchive", channel=channel)
    with bob.socket() as socket:
        ann.ok(f"{family}.unarchive", channel=channel)
        kind = "group" if private else "channel"
        frame = socket.expect({"type": f"{kind}_unarchive", "channel": channel, "user": ann.id})
    assert last_event(ann, channel) == frame
    assert ann.ok(f"{family}.info", channel=channel)["channel"]["is_archived"] is False
    assert [c["id"] for c in ann.ok("unread.sync", since=token)["channels"]] == [channel]
    bob.post(channel, "back")
    assert ann.unread(channel) == 1


def test_every_seq_is_one_event(workspace, people):
    ann, bob, _ = people
    channel = workspace.channel(ann, bob)
    ann.ok("conversations.setTopic", channel=channel, topic="t")
    ann.ok("conversations.setPurpose", channel=channel, purpose="p")
    ann.ok("conversations.rename", channel=channel, name="r")
    ann.ok("conversations.archive", channel=channel)
    ann.ok("conversations.unarchive", channel=channel)
    ann.post(channel, "x")
    events = bob.ok("channels.events", channel=channel, after_seq=0)["events"]
    assert [event["seq"] for event in events] == list(range(1, 9))
    assert [event.get("subtype", event["type"]) for event in events] == [
        "member_joined_channel", "member_joined_channel", "channel_topic", "channel_purpose", "channel_rename",
        "channel_archive", "channel_unarchive", "message"]
    assert bob.unread(channel) == 1


def test_the_general_channel_stays(workspace, people):
    ann, bob, _ = people
    channel = workspace.channel(ann, bob, name="general")
    bob.fails("cant_leave_general", "conversations.leave", channel=channel)
    ann.fails("cant_kick_from_general", "conversations.kick", channel=channel, user=bob.id)
    ann.fails("cant_archive_general", "conversations.archive", channel=channel)
    assert len(ann.ok("conversations.members", channel=channel)["members"]) == 2


def test_users_conversations(workspace, people):
    ann, bob, cid = people
    public, private = workspace.channel(ann, bob), workspace.channel(ann, bob, private=True)
    workspace.channel(cid)
    both = "public_channel,private_channel"

    def listed(client, **args):
        return {channel["id"] for channel in client.ok("users.conversations", **args)["channels"]}

    assert listed(ann) == {public} and listed(ann, types=both) == {public, private}
    assert listed(ann, types="private_channel") == {private}
    assert listed(bob, user=ann.id, types=both) == {public, private}
    assert listed(cid, user=ann.id, types=both) == {public}, "another's private channels are theirs"
    assert all("is_member" not in channel for channel in ann.ok("users.conversations")["channels"])
    ann.ok("channels.setNotifications", channel=public, muted=True)
    assert listed(ann, types=both, exclude_muted=True) == {private}
    assert listed(bob, user=ann.id, types=both, exclude_muted=True) == {public, private}, "nobody else sees what one muted"
    ann.ok("channels.archive", channel=public)
    assert listed(ann) == {public} and listed(ann, exclude_archived=True) == set()
    bob.ok("channels.leave", channel=private)
    assert listed(bob, types=both) == {public}


def test_users_conversations_errors(environment, workspace, people):
    ann = people[0]
    stranger = environment.workspace().user()
    for user in ("U0000000000", stranger.id, "bob", ["x"]):
        ann.fails("user_not_found", "users.conversations", user=user)
    ann.fails("invalid_types", "users.conversations", types="public")
    ann.fails("invalid_limit", "users.conversations", limit=-1)
    ann.fails("invalid_cursor", "users.conversations", cursor="x")


@pytest.mark.parametrize("method, args", [
    ("conversations.list", {"types": "public_channel,private_channel,mpim,im"}),
    ("users.conversations", {"types": "public_channel,private_channel,mpim,im"})])
@pytest.mark.parametrize("limit", [1, 3])
def test_pages_are_stable_while_others_write(workspace, people, method, args, limit):
    """Each page continues after the last one, whatever is written meanwhile: no duplicates, no omissions."""
    ann, bob, cid = people
    expected = {workspace.channel(ann), workspace.channel(ann, private=True), workspace.channel(ann, bob)}
    expected |= {ann.ok("conversations.open", users=bob.id)["channel"]["id"],
                 ann.ok("conversations.open", users=[bob.id, cid.id])["channel"]["id"]}
    found, cursor = [], ""
    while True:
        reply = ann.ok(method, limit=limit, cursor=cursor, **args)
        assert len(reply["channels"]) <= limit
        found += [channel["id"] for channel in reply["channels"]]
        cursor = reply["response_metadata"]["next_cursor"]
        if not cursor:
            break
        workspace.channel(cid)
        workspace.channel(ann)
    assert len(found) == len(set(found)) and expected <= set(found)
