# SPDX-License-Identifier: Apache-2.0
"""Channels and their members. Every method is also called by its conversations.* name."""

import pytest

FAMILIES = pytest.mark.parametrize("family", ["channels", "conversations"])
NOBODYS = "C0000000000"


@pytest.fixture
def people(workspace):
    return workspace.users(3)


def names(client, method="channels.list", **args):
    return [channel["name"] for channel in client.ok(method, **args)["channels"]]


@FAMILIES
def test_create(workspace, people, family):
    ann = people[0]
    channel = ann.ok(f"{family}.create", name="team-chat_1")["channel"]
    assert channel["id"].startswith("C") and channel["name"] == "team-chat_1"
    assert channel["creator"] == ann.id and channel["is_member"] is True
    assert channel["is_channel"] is True and channel["is_private"] is False and channel["is_archived"] is False
    assert isinstance(channel["created"], int) and isinstance(channel["unlinked"], int)
    assert channel["topic"]["value"] == "" and channel["purpose"]["value"] == ""
    assert channel["context_team_id"] == workspace.id
    assert ann.ok(f"{family}.members", channel=channel["id"])["members"] == [ann.id]


@FAMILIES
def test_create_private(people, family):
    channel = people[0].ok(f"{family}.create", name="secret", is_private=True)["channel"]
    assert channel["is_private"] is True


@pytest.mark.parametrize("name, error", [
    ("", ("invalid_name_required", "invalid_arguments", "missing_argument")), ("a b", "invalid_name_specials"),
    ("Upper", ("invalid_name_specials", "invalid_name")), ("dot.dot", "invalid_name_specials"),
    ("x" * 81, "invalid_name_maxlength"), ("#room", "invalid_name_specials"),
    ("new\nline", "invalid_name_specials"), (["a"], ("invalid_arguments", "invalid_name")),
])
def test_bad_names(people, name, error):
    before = names(people[0])
    reply = people[0].fails(error, "channels.create", name=name)
    assert "name" in reply.messages
    assert names(people[0]) == before


@pytest.mark.parametrize("name", ["x", "x" * 80, "\u00e9t\u00e9", "\u65e5\u672c\u8a9e", "a-b_c-1", "\u00e9" * 80])
def test_good_names(people, name):
    assert people[0].ok("channels.create", name=name)["channel"]["name"] == name


def test_name_taken(people):
    people[0].ok("channels.create", name="twice")
    people[1].fails("name_taken", "channels.create", name="twice")


def test_name_of_another_workspace_is_free(environment, people):
    people[0].ok("channels.create", name="same")
    environment.workspace().user().ok("channels.create", name="same")


@FAMILIES
def test_list(workspace, people, family):
    ann, bob, _ = people
    public, private = workspace.channel(ann, name="public"), workspace.channel(ann, name="private", private=True)
    assert "private" not in names(ann, f"{family}.list")
    assert set(names(ann, f"{family}.list", types="public_channel,private_channel")) >= {"public", "private"}
    assert names(ann, f"{family}.list", types="private_channel") == ["private"]
    assert "private" not in names(bob, f"{family}.list", types="public_channel,private_channel")
    listed = {c["id"]: c for c in bob.ok(f"{family}.list")["channels"]}
    assert listed[public]["is_member"] is False and listed[public]["num_members"] == 1
    assert private not in listed


def test_list_without_archived(workspace, people):
    ann = people[0]
    workspace.channel(ann, name="alive")
    ann.ok("channels.archive", channel=workspace.channel(ann, name="old"))
    assert "old" in names(ann) and "old" in names(ann, exclude_archived=False)
    assert "old" not in names(ann, exclude_archived=True) and "alive" in names(ann, exclude_archived=True)


@FAMILIES
@pytest.mark.parametrize("limit", [1, 3, 1000, 3.0])
def test_list_paging(workspace, people, family, limit):
    ann = people[0]
    made = {workspace.channel(ann) for _ in range(7)}
    found, cursor = [], ""
    while True:
        reply = ann.ok(f"{family}.list", limit=limit, cursor=cursor)
        assert len(reply["channels"]) <= limit
        found += [channel["id"] for channel in reply["channels"]]
        cursor = reply["response_metadata"]["next_cursor"]
        if not cursor:
            break
    assert len(found) == len(set(found)) and made <= set(found)


@pytest.mark.parametrize("limit", [-1, "x", 1.5])
@pytest.mark.parametrize("method", ["channels.list", "channels.members", "conversations.list"])
def test_bad_limits(workspace, people, method, limit):
    channel = workspace.channel(people[0])
    assert "limit" in people[0].fails("invalid_limit", method, channel=channel, limit=limit).messages


@pytest.mark.parametrize("cursor", ["*", "dGVzdA==", "AAAA", "\u00e9", "x" * 3000])
@pytest.mark.parametrize("method", ["channels.list", "channels.members", "channels.history", "users.list"])
def test_bad_cursors(workspace, people, method, cursor):
    channel = workspace.channel(people[0])
    assert "cursor" in people[0].fails("invalid_cursor", method, channel=channel, cursor=cursor).messages


def test_bad_types(people):
    assert "types" in people[0].fails("invalid_types", "channels.list", types="public_channel,nonsense").messages
    assert people[0].ok("channels.list", types="im,mpim")["channels"] == []


@pytest.mark.parametrize("types", [["public_channel", "private_channel"], '["public_channel","private_channel"]',
                                   "public_channel,private_channel", "public_channel, private_channel",
                                   "\tpublic_channel ,  private_channel\n"])
@pytest.mark.parametrize("encoding", ["json", "form", "get"])
def test_a_list_in_each_spelling(workspace, people, types, encoding):
    """As a JSON array, as a JSON string, or separated by commas; blanks around items, as in Slack's own examples, are ignored."""
    made = {workspace.channel(people[0]), workspace.channel(people[0], private=True)}
    assert {channel["id"] for channel in people[0].ok("channels.list", types=types, encoding=encoding)["channels"]} == made


def test_lists_with_blanks(environment, workspace, people):
    ann, bob, cid = people
    channel = workspace.channel(ann)
    assert ann.ok("channels.invite", encoding="form", channel=channel, users=f"{bob.id}, {cid.id} ")["channel"]["num_members"] == 3
    assert len(ann.ok("users.info", encoding="form", users=f"{bob.id} ,{cid.id}")["users"]) == 2
    read = [bob.post(channel) for _ in range(2)]
    assert ann.ok("channels.markMessages", encoding="form", channel=channel, ts=", ".join(read))["unread_count"] == 0
    token = workspace.admin.ok("admin.tokens.create", user_id=ann.id, scopes="users:read, chat:write")["token"]
    assert environment.client(token).ok("auth.test").headers["X-OAuth-Scopes"] == "users:read,chat:write"
    environment.client(token).post(channel)
    for types in ("public_channel private_channel", "public_channel, ,im", "public channel", ", im"):
        ann.fails("invalid_types", "channels.list", types=types)
    for users in (f"{bob.id} {cid.id}", f"{bob.id}, ,{cid.id}", " , "):
        ann.fails("user_not_found", "users.info", users=users)


@FAMILIES
def test_info(workspace, people, family):
    ann, bob, _ = people
    channel = workspace.channel(ann, bob)
    info = bob.ok(f"{family}.info", channel=channel)["channel"]
    assert info["num_members"] == 2 and info["is_member"] is True
    assert info["last_read"] and info["read_epoch"] == 0
    assert info["unread_count"] == 0 and info["has_unreads"] is False and info["unread_capped"] is False
    assert info["unread_count_display"] == 0 and info["mention_count"] == 0 and info["is_muted"] is False
    assert info["strategy"] in ("auto", "sequence")
    ts = ann.post(channel, "newest")
    info = bob.ok(f"{family}.info", channel=channel)["channel"]
    assert info["latest"]["ts"] == ts and info["latest"]["text"] == "newest"
    assert (info["unread_count"], info["has_unreads"], info["oldest_unread_ts"]) == (1, True, ts)


def test_info_of_a_public_channel_one_is_not_in(workspace, people):
    ann, bob, _ = people
    info = bob.ok("channels.info", channel=workspace.channel(ann))["channel"]
    assert info["is_member"] is False and info["num_members"] == 1


@FAMILIES
def test_members_paging(workspace, family):
    people = workspace.users(5)
    channel = workspace.channel(people[0], *people[1:])
    found, cursor = [], ""
    while True:
        reply = people[0].ok(f"{family}.members", channel=channel, limit=2, cursor=cursor)
        found += reply["members"]
        cursor = reply["response_metadata"]["next_cursor"]
        if not cursor:
            break
    assert sorted(found) == sorted(person.id for person in people)


def test_members_of_a_public_channel_are_no_secret(workspace, people):
    ann, bob, _ = people
    assert bob.ok("channels.members", channel=workspace.channel(ann))["members"] == [ann.id]


@FAMILIES
def test_join_and_leave(workspace, people, family):
    ann, bob, _ = people
    channel = workspace.channel(ann)
    assert bob.ok(f"{family}.join", channel=channel)["channel"]["is_member"] is True
    again = bob.ok(f"{family}.join", channel=channel)
    assert again["warning"] == "already_in_channel"
    assert again["response_metadata"]["warnings"] == ["already_in_channel"]
    assert set(ann.ok(f"{family}.members", channel=channel)["members"]) == {ann.id, bob.id}
    bob.ok(f"{family}.leave", channel=channel)
    assert bob.ok(f"{family}.leave", channel=channel)["not_in_channel"] is True
    assert ann.ok(f"{family}.members", channel=channel)["members"] == [ann.id]
    bob.fails("not_in_channel", "chat.postMessage", channel=channel, text="x")


def test_joins_and_leaves_are_messages_that_never_count(workspace, people):
    ann, bob, _ = people
    channel = workspace.channel(ann)
    bob.ok("channels.join", channel=channel)
    bob.ok("channels.leave", channel=channel)
    messages = ann.ok("channels.history", channel=channel)["messages"]
    assert [(m["subtype"], m["user"]) for m in messages] == [
        ("channel_leave", bob.id), ("channel_join", bob.id), ("channel_join", ann.id)]
    assert [m["seq"] for m in messages] == [3, 2, 1]
    assert ann.unread(channel) == 0


@FAMILIES
def test_invite(workspace, people, family):
    ann, bob, cid = people
    channel = workspace.channel(ann, private=True)
    reply = ann.ok(f"{family}.invite", channel=channel, users=[bob.id, cid.id])
    assert reply["channel"]["id"] == channel
    assert set(bob.ok(f"{family}.members", channel=channel)["members"]) == {ann.id, bob.id, cid.id}


def test_invite_errors(environment, workspace, people):
    ann, bob, cid = people
    channel = workspace.channel(ann, bob)
    stranger = environment.workspace().user()
    ann.fails("already_in_channel", "channels.invite", channel=channel, users=bob.id)
    ann.fails("cant_invite_self", "channels.invite", channel=channel, users=ann.id)
    ann.fails("user_not_found", "channels.invite", channel=channel, users="U0000000000")
    ann.fails("user_not_found", "channels.invite", channel=channel, users=stranger.id)
    ann.fails(("no_user", "invalid_arguments", "missing_argument"), "channels.invite", channel=channel)
    cid.fails("not_in_channel", "channels.invite", channel=channel, users=cid.id)
    assert len(ann.ok("channels.members", channel=channel)["members"]) == 2


def test_invite_of_one_good_and_one_bad_user(workspace, people):
    """All or nothing, and the reply lists each invalid user."""
    ann, bob, _ = people
    channel = workspace.channel(ann)
    reply = ann.call("channels.invite", channel=channel, users=[bob.id, "U0000000000"])
    assert reply["ok"] is False and reply["error"] == "user_not_found"
    assert any(entry["user"] == "U0000000000" and entry["error"] == "user_not_found" for entry in reply["errors"])
    assert ann.ok("channels.members", channel=channel)["members"] == [ann.id]


def test_invite_of_those_who_can_be(workspace, people):
    ann, bob, cid = people
    channel = workspace.channel(ann, cid)
    reply = ann.ok("channels.invite", channel=channel, users=["U0000000000", bob.id, cid.id], force=True)
    assert [(entry["user"], entry["error"]) for entry in reply["errors"]] == [("U0000000000", "user_not_found"),
                                                                             (cid.id, "already_in_channel")]
    assert reply["channel"]["num_members"] == 3
    assert "errors" not in ann.ok("channels.invite", channel=workspace.channel(ann), users=bob.id, force=True)
    assert ann.fails("already_in_channel", "channels.invite", channel=channel, users=bob.id, force=True)["errors"]


@FAMILIES
def test_kick(workspace, people, family):
    ann, bob, cid = people
    channel = workspace.channel(ann, bob)
    ann.ok(f"{family}.kick", channel=channel, user=bob.id)
    assert ann.ok(f"{family}.members", channel=channel)["members"] == [ann.id]
    ann.fails("not_in_channel", f"{family}.kick", channel=channel, user=bob.id)
    ann.fails("cant_kick_self", f"{family}.kick", channel=channel, user=ann.id)
    ann.fails("user_not_found", f"{family}.kick", channel=channel, user="U0000000000")
    cid.fails("not_in_channel", f"{family}.kick", channel=channel, user=ann.id)


@FAMILIES
def test_archive(workspace, people, family):
    ann, bob, _ = people
    channel = workspace.channel(ann, bob)
    ts = ann.post(channel, "before")
    ann.ok(f"{family}.archive", channel=channel)
    assert ann.ok(f"{family}.info", channel=channel)["channel"]["is_archived"] is True
    ann.fails("already_archived", f"{family}.archive", channel=channel)
    for method, args in (("chat.postMessage", {"text": "x"}), ("chat.update", {"ts": ts, "text": "x"}),
                         ("channels.invite", {"users": people[2].id})):
        ann.fails("is_archived", method, channel=channel, **args)
    people[2].fails("is_archived", f"{family}.join", channel=channel)
    assert [m["ts"] for m in bob.history(channel) if "subtype" not in m] == [ts]


def test_archive_by_a_stranger(workspace, people):
    people[1].fails("not_in_channel", "channels.archive", channel=workspace.channel(people[0]))


# Every method that names a channel, with arguments that are good otherwise.
METHODS = {
    "info": {}, "members": {}, "history": {}, "replies": {"ts": "1700000000.000000"}, "events": {"after_seq": 0},
    "join": {}, "leave": {}, "invite": {"users": "U0000000000"}, "kick": {"user": "U0000000000"},
    "mark": {"ts": "1700000000.000000"}, "markUnread": {"ts": "1700000000.000000"}, "archive": {},
    "unarchive": {}, "rename": {"name": "other"}, "setTopic": {"topic": "x"}, "setPurpose": {"purpose": "x"}, "open": {},
    "close": {},
}
CALLS = [(f"{family}.{name}", args) for family in ("channels", "conversations") for name, args in METHODS.items()]
CALLS += [("chat.postMessage", {"text": "x"}), ("chat.update", {"ts": "1700000000.000000", "text": "x"}),
          ("chat.delete", {"ts": "1700000000.000000"})]


@pytest.mark.parametrize("method, args", CALLS, ids=[method for method, _ in CALLS])
def test_private_channels_look_like_none(workspace, people, method, args):
    ann, bob, _ = people
    private = workspace.channel(ann, private=True)
    hidden = bob.fails("channel_not_found", method, channel=private, **args)
    missing = bob.fails("channel_not_found", method, channel=NOBODYS, **args)
    assert hidden.body.replace(private.encode(), b"") == missing.body.replace(NOBODYS.encode(), b"")
    assert ann.ok("channels.members", channel=private)["members"] == [ann.id]


@pytest.mark.parametrize("method, args", CALLS, ids=[method for method, _ in CALLS])
@pytest.mark.parametrize("channel", ["c0000000000", "X0000000000", "C", "C00 00", "C0000000000\n", "C" + "0" * 500,
                                     "../etc", "C000000000\u00e9", 5, True])
def test_malformed_channels(workspace, method, args, channel):
    reply = workspace.admin.fails(("channel_not_found", "invalid_arguments"), method, channel=channel, **args)
    if reply["error"] == "invalid_arguments":
        assert "channel" in reply.messages


@pytest.mark.parametrize("name, args", [row for row in METHODS.items() if row[0] not in ("info", "members", "join", "leave",
                                                                                         "history", "replies")])
def test_membership_is_needed(workspace, people, name, args):
    ann, bob, _ = people
    bob.fails("not_in_channel", f"channels.{name}", channel=workspace.channel(ann), **args)


def test_users_info(workspace):
    ann = workspace.user("ann", real_name="Ann A.", email="ann@example.org")
    user = workspace.user().ok("users.info", user=ann.id)["user"]
    assert (user["id"], user["team_id"], user["name"], user["real_name"]) == (ann.id, workspace.id, "ann", "Ann A.")
    assert user["deleted"] is False and user["is_bot"] is False and user["is_admin"] is False
    assert user["profile"]["real_name"] == "Ann A." and isinstance(user["updated"], int)
    ann.fails("user_not_found", "users.info", user="U0000000000")
    assert workspace.admin.ok("users.info", user=workspace.admin.id)["user"]["is_admin"] is True
    workspace.admin.ok("admin.users.setActive", user_id=ann.id, active=False)
    assert workspace.admin.ok("users.info", user=ann.id)["user"]["deleted"] is True


def test_users_info_of_several(environment, workspace):
    ann, bob, cid = workspace.users(3)
    wanted = [cid.id, ann.id, bob.id]
    for encoding, users in (("json", wanted), ("form", ",".join(wanted)), ("get", wanted)):
        reply = ann.ok("users.info", encoding=encoding, users=users)
        assert [user["id"] for user in reply["users"]] == wanted and "user" not in reply
    assert ann.ok("users.info", user=bob.id, users=ann.id)["user"]["id"] == bob.id
    ann.fails("user_not_found", "users.info", users=[ann.id, "U0000000000"])
    ann.fails("user_not_found", "users.info", users=[ann.id, environment.workspace().admin.id])
    ann.fails("user_not_found", "users.info", users="ann")


def test_locale_where_it_is_asked_for(workspace):
    ann, bot = workspace.user(), workspace.bot()
    channel = workspace.channel(ann)
    for asked in ({"include_locale": True}, {"include_locale": "1", "encoding": "form"}):
        assert ann.ok("users.info", user=bot.id, **asked)["user"]["locale"] == "en-US"
        assert {user["locale"] for user in ann.ok("users.list", **asked)["members"]} == {"en-US"}
        assert ann.ok("users.info", users=ann.id, **asked)["users"][0]["locale"] == "en-US"
        assert ann.ok("conversations.info", channel=channel, **asked)["channel"]["locale"] == "en-US"
    assert "locale" not in ann.ok("users.info", user=ann.id, include_locale=False)["user"]
    assert "locale" not in ann.ok("channels.info", channel=channel)["channel"]
    for method in ("users.info", "users.list", "channels.info"):
        assert "include_locale" in ann.fails("invalid_arguments", method, channel=channel, user=ann.id, include_locale="x").messages


def test_users_list(workspace):
    people = workspace.users(5)
    everybody = {person.id for person in people} | {workspace.admin.id}
    for limit in (0, 1, 2, 1000):
        found, cursor = [], ""
        while True:
            reply = people[0].ok("users.list", limit=limit, cursor=cursor)
            assert isinstance(reply["cache_ts"], int)
            found += [member["id"] for member in reply["members"]]
            cursor = reply["response_metadata"]["next_cursor"]
            if not cursor:
                break
        assert len(found) == len(everybody) and set(found) == everybody
    for limit in (-1, "x"):
        people[0].fails("invalid_limit", "users.list", limit=limit)
