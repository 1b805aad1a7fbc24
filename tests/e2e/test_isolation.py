# SPDX-License-Identifier: Apache-2.0
"""Nobody sees or touches what belongs to another workspace: it answers as what does not exist."""

import pytest

NOBODYS_CHANNEL, NOBODYS_USER, NO_TS = "C0000000000", "U0000000000", "1700000000.000000"
NAMES = {"info": {}, "members": {}, "history": {}, "replies": {"ts": "TS"}, "events": {"after_seq": 0}, "join": {},
         "leave": {}, "invite": {"users": "OWN"}, "kick": {"user": "OWN"}, "mark": {"ts": "TS"},
         "markUnread": {"ts": "TS"}, "markMessages": {"ts": "TS"}, "setStrategy": {"strategy": "zset"}, "archive": {}}
CALLS = [(f"{family}.{name}", args) for family in ("channels", "conversations") for name, args in NAMES.items()]
CALLS += [("chat.postMessage", {"text": "x"}), ("chat.update", {"ts": "TS", "text": "x"}),
          ("chat.delete", {"ts": "TS"})]


@pytest.fixture(scope="module")
def worlds(plain_environment):
    """Two workspaces, each with a user and a channel with one message: [(user, channel, ts)] * 2, and the admins."""
    made = []
    for _ in range(2):
        workspace = plain_environment.workspace()
        user = workspace.user()
        channel = workspace.channel(user)
        made.append((user, channel, user.post(channel, "ours"), workspace.admin))
    return made


def same(real, real_id, missing, missing_id):
    """The two replies are the same bytes, except for the requested id."""
    assert real.body.replace(real_id.encode(), b"ID") == missing.body.replace(missing_id.encode(), b"ID")


@pytest.mark.parametrize("method, args", CALLS, ids=[method for method, _ in CALLS])
def test_channels_of_another_workspace(worlds, method, args):
    (ann, _, _, _), (bob, theirs, ts, _) = worlds
    given = {name: {"TS": ts, "OWN": ann.id}.get(value, value) for name, value in args.items()}
    for who in (ann, worlds[0][3]):
        real = who.fails("channel_not_found", method, channel=theirs, **given)
        same(real, theirs, who.call(method, channel=NOBODYS_CHANNEL, **given), NOBODYS_CHANNEL)
    assert [m["ts"] for m in bob.history(theirs)] == [ts]
    assert bob.ok("channels.info", channel=theirs)["channel"]["num_members"] == 1


@pytest.mark.parametrize("method, args", [
    ("users.info", {}), ("channels.invite", {"channel": "OWN"}), ("channels.kick", {"channel": "OWN"}),
    ("conversations.invite", {"channel": "OWN"}), ("conversations.kick", {"channel": "OWN"}),
])
def test_users_of_another_workspace(worlds, method, args):
    (ann, mine, _, _), (bob, _, _, _) = worlds
    argument = "users" if method.endswith("invite") else "user"
    given = {name: mine for name in args}
    real = ann.fails("user_not_found", method, **given, **{argument: bob.id})
    same(real, bob.id, ann.call(method, **given, **{argument: NOBODYS_USER}), NOBODYS_USER)
    assert ann.ok("channels.members", channel=mine)["members"] == [ann.id]


def test_lists_hold_ones_own_only(worlds):
    (ann, mine, _, admin), (bob, theirs, _, _) = worlds
    assert [channel["id"] for channel in ann.ok("channels.list")["channels"]] == [mine]
    assert {member["id"] for member in ann.ok("users.list")["members"]} == {ann.id, admin.id}
    assert [entry["id"] for entry in ann.ok("unread.sync")["channels"]] == [mine]
    assert bob.id not in ann.ok("users.list").body.decode() and theirs not in ann.ok("unread.sync").body.decode()


def test_a_ts_of_another_channel_is_none(worlds):
    (ann, mine, _, _), (_, _, ts, _) = worlds
    ann.fails("message_not_found", "chat.update", channel=mine, ts=ts, text="x")
    ann.fails("message_not_found", "chat.delete", channel=mine, ts=ts)
    ann.fails("thread_not_found", "channels.replies", channel=mine, ts=ts)
    ann.fails("thread_not_found", "chat.postMessage", channel=mine, text="x", thread_ts=ts)


def test_posting_by_the_name_of_another_workspaces_channel(worlds):
    (ann, _, _, _), (bob, theirs, ts, _) = worlds
    name = bob.ok("channels.info", channel=theirs)["channel"]["name"]
    ann.fails("channel_not_found", "chat.postMessage", channel=name, text="x")
    ann.fails("channel_not_found", "chat.postMessage", channel=f"#{name}", text="x")
    assert [m["ts"] for m in bob.history(theirs)] == [ts]


@pytest.mark.parametrize("method", ["channels.list", "channels.members", "users.list", "channels.history"])
def test_cursors_of_another_workspace_open_nothing(worlds, method):
    (ann, mine, _, _), (bob, theirs, _, _) = worlds
    for _ in range(2):
        bob.post(theirs)
    theirs_page = bob.ok(method, channel=theirs, limit=1)
    cursor = theirs_page["response_metadata"]["next_cursor"]
    if not cursor:
        assert method in ("channels.list", "channels.members"), "these have one page here"
        return
    reply = ann.call(method, channel=mine, limit=1000 if method != "channels.history" else 999, cursor=cursor)
    if reply["ok"]:
        text = reply.body.decode()
        assert bob.id not in text and theirs not in text
    else:
        assert reply["error"] == "invalid_cursor"


def test_sockets_hear_their_own_workspace_only(worlds, sockets):
    (ann, mine, _, _), (bob, theirs, _, _) = worlds
    socket = sockets(ann)
    for _ in range(3):
        bob.post(theirs, "theirs")
    ts = ann.post(mine, "mine")
    socket.expect({"type": "message", "ts": ts})
    assert not socket.matching({"channel": theirs})


def test_an_admin_of_one_is_nobody_in_the_other(worlds):
    (_, _, _, admin), (bob, _, _, _) = worlds
    admin.fails("user_not_found", "admin.users.setActive", user_id=bob.id, active=False)
    admin.fails("user_not_found", "admin.tokens.create", user_id=bob.id)
    admin.fails("user_not_found", "admin.tokens.list", user_id=bob.id)
    admin.fails("token_not_found", "admin.tokens.revoke", revoke_token=bob.token)
    bob.ok("auth.test")
