# SPDX-License-Identifier: Apache-2.0
"""rtm.start: a ticket, and all that old clients want to know at once."""

from tests.support.sockets import Socket

LISTS = ("users", "channels", "groups", "mpims", "ims", "bots")


def ids(reply, name):
    return [entry["id"] for entry in reply[name]]


def test_a_ticket(environment, workspace):
    environment.client().fails("not_authed", "rtm.start")
    ann = workspace.user()
    reply = ann.ok("rtm.start")
    assert reply["self"] == {"id": ann.id, "name": ann.name} and reply["team"]["id"] == workspace.id
    with Socket(reply["url"]) as socket:
        socket.expect({"type": "hello"})


def test_the_lists(workspace):
    ann, bob, cid = workspace.users(3)
    bot = workspace.bot()
    public, private = workspace.channel(bob, ann), workspace.channel(bob, ann, private=True)
    workspace.channel(bob, cid, private=True)
    others = workspace.channel(bob)
    workspace.channel(bob, name="gone")
    bob.ok("channels.archive", channel=workspace.channel(bob))
    ann.ok("channels.leave", channel=(left := workspace.channel(bob, ann)))
    im = ann.ok("conversations.open", users=bob.id)["channel"]["id"]
    group = ann.ok("conversations.open", users=[bob.id, cid.id])["channel"]["id"]
    bob.ok("conversations.open", users=cid.id)
    reply = ann.ok("rtm.start")
    assert reply["truncated"] == reply["subteams"] == []
    assert reply["users"] == ann.ok("users.list")["members"]
    assert ids(reply, "channels")[0] == public and {public, others, left} <= set(ids(reply, "channels"))
    assert {c["id"]: c["is_member"] for c in reply["channels"]} == {
        c["id"]: c["is_member"] for c in ann.ok("conversations.list", exclude_archived=True)["channels"]}
    assert (ids(reply, "groups"), ids(reply, "mpims"), ids(reply, "ims")) == ([private], [group], [im])
    assert reply["ims"][0]["user"] == bob.id and reply["ims"][0]["is_open"] is True
    assert [(b["id"], b["name"], b["user_id"], b["deleted"]) for b in reply["bots"]] == [(bot.bot_id, bot.name, bot.id, False)]
    assert reply["dnd"]["dnd_enabled"] is False and isinstance(reply["cache_ts"], int)


def test_what_is_unread_in_own_channels(workspace):
    ann, bob = workspace.users(2)
    channel, quiet = workspace.channel(ann, bob), workspace.channel(ann, bob)
    other = workspace.channel(ann)
    first = ann.post(channel)
    ann.post(channel, f"<@{bob.id}>")
    ann.post(other)
    bob.ok("channels.mark", channel=channel, ts=first)
    shown = {c["id"]: c for c in bob.ok("rtm.start")["channels"]}
    assert list(shown)[:2] == [channel, quiet], "own ones first, the newest posts first"
    info = bob.ok("channels.info", channel=channel)["channel"]
    assert info.pop("latest")["text"] == f"<@{bob.id}>"
    assert shown[channel] == info and (info["last_read"], info["unread_count"], info["mention_count"]) == (first, 1, 1)
    assert shown[quiet]["unread_count"] == 0
    assert shown[other]["is_member"] is False and "unread_count" not in shown[other]


def test_each_list_is_bounded(extra_instance, workspace):
    """Each list has its first entries up to the limit, and a field that says that there are more."""
    ann = workspace.user().at(extra_instance(start_max=3).url)
    channels = [workspace.channel(ann) for _ in range(3)]
    groups = [workspace.channel(ann, private=True) for _ in range(4)]
    assert ann.ok("rtm.start")["truncated"] == ["groups"]
    bob, _ = workspace.users(2)
    workspace.bot()
    workspace.channel(bob)
    bob.ok("channels.join", channel=channels[0])
    bob.post(channels[0])
    ann.ok("channels.invite", channel=groups[3], users=bob.id)
    bob.post(groups[3])
    reply = ann.ok("rtm.start")
    assert reply["truncated"] == ["users", "channels", "groups"]
    assert [len(reply[name]) for name in LISTS] == [3, 3, 3, 0, 0, 1]
    assert ids(reply, "channels")[0] == channels[0] and set(ids(reply, "channels")) == set(channels)
    assert ids(reply, "groups")[0] == groups[3]


def test_lists_that_take_several_turns(environment, workspace):
    """Turns of the event loop: nothing is missing between the end of one and the start of the next."""
    ann = workspace.user()
    with environment.database() as database:
        database.execute("INSERT INTO users (id, workspace_id, name, real_name) SELECT 'UTURN' || %s || lpad(n::text, 3, '0'), %s, 'turn' || n, ''"
                         " FROM generate_series(1, 700) n", [workspace.id[-3:], workspace.id])
    channels = [workspace.channel(ann) for _ in range(3)]
    reply = ann.ok("rtm.start")
    assert len(reply["users"]) > 700 and reply["users"] == ann.ok("users.list")["members"]
    assert set(ids(reply, "channels")) == set(channels) and reply["truncated"] == []


def test_another_workspace_is_not_listed(environment, workspace):
    other = environment.workspace()
    stranger = other.user()
    other.channel(stranger)
    other.bot()
    replies = [workspace.user().ok("rtm.start"), stranger.ok("rtm.start")]
    listed, theirs = ({entry["id"] for name in LISTS for entry in reply[name]} for reply in replies)
    assert theirs and not listed & theirs
