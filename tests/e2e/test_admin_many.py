# SPDX-License-Identifier: Apache-2.0
"""admin.* of many users at a time, and the same from a shell."""
import json
import subprocess

import pytest

from tests.support.command import argv
from tests.support.wait import wait_until
from tests.support.workspace import fresh_name

ID_OF_NOBODY = "U0000000000"


def create_many(admin, *users, **args):
    return admin.ok("admin.users.createMany", users=list(users), **args)["results"]


def names(count):
    start = fresh_name("many")
    return [f"{start}-{number}" for number in range(count)]


def all_users(admin, **args):
    users, cursor = [], ""
    while True:
        reply = admin.ok("admin.users.list", cursor=cursor, **args)
        users += reply["users"]
        cursor = reply["response_metadata"]["next_cursor"]
        if not cursor:
            return users


def members(client, channel):
    return client.ok("channels.members", channel=channel, limit=1000)["members"]


def test_users_are_made_in_order(environment, workspace):
    ann, bot, boss = names(3)
    results = create_many(workspace.admin, {"name": ann, "real_name": "Ann \u00e9", "email": "ann@example.org"},
                          {"name": bot, "is_bot": True}, {"name": boss, "is_admin": True, "email": "", "real_name": ""})
    made = [result["user"] for result in results]
    assert [user["name"] for user in made] == [ann, bot, boss]
    assert (made[0]["real_name"], made[0]["profile"]["email"], made[0]["is_admin"]) == ("Ann \u00e9", "ann@example.org", False)
    assert made[1]["is_bot"] is True and made[1]["bot_id"].startswith("B")
    assert made[2]["is_admin"] is True and made[2]["real_name"] == boss
    for user in made:
        assert user == workspace.admin.ok("users.info", user=user["id"])["user"]
    token = workspace.admin.ok("admin.tokens.create", user_id=made[2]["id"])["token"]
    environment.client(token).ok("admin.users.list")


@pytest.mark.parametrize("encoding", ["json", "form", "query"])
def test_what_is_wrong_with_one_stops_no_other(workspace, encoding):
    first, last = names(2)
    results = create_many(workspace.admin, {"name": first}, {"name": first}, {"real_name": "nameless"}, {"name": "x" * 81}, "text", None,
                          {"name": " "}, {"name": last, "is_bot": "perhaps"}, {"name": last, "email": 7}, {"name": last}, encoding=encoding)
    assert results[0]["user"]["name"] == first and results[9]["user"]["name"] == last
    assert results[1] == {"error": "name_taken"}
    wanted = ["missing required field: name", "name: must", "users: must be objects", "users: must be objects", "name: must", "is_bot: must",
              "email: must"]
    for result, words in zip(results[2:9], wanted, strict=True):
        assert result["error"] == "invalid_arguments" and result["messages"][0].startswith(f"[ERROR] {words}"), result
    assert create_many(workspace.admin, {"name": last}) == [{"error": "name_taken"}]


@pytest.mark.parametrize("method", ["admin.users.createMany", "admin.channels.addMembers"])
@pytest.mark.parametrize("users", [None, "", [], {"name": "x"}, 7, ["x"] * 1001], ids=["absent", "empty", "none", "object", "number", "too-many"])
def test_what_is_no_list(workspace, method, users):
    channel = workspace.channel(workspace.user())
    reply = workspace.admin.fails("invalid_arguments", method, channel=channel, users=users)
    assert "users" in reply.messages


def test_the_most_that_there_may_be(workspace):
    wanted = names(1000)
    results = create_many(workspace.admin, *({"name": name, "real_name": name, "email": "a@example.org", "is_bot": False, "is_admin": False}
                                             for name in wanted))
    ids = [result["user"]["id"] for result in results]
    assert [result["user"]["name"] for result in results] == wanted
    listed = all_users(workspace.admin, limit=1000)
    assert [user["id"] for user in listed] == sorted(user["id"] for user in listed)
    assert {user["id"] for user in listed} == {workspace.admin.id, *ids}
    assert len(all_users(workspace.admin, limit=400)) == len(listed)
    ann = workspace.user()
    channel = workspace.channel(ann)
    reply = workspace.admin.ok("admin.channels.addMembers", channel=channel, users=ids)
    assert reply["added"] == 1000 and reply["results"] == [{"user": user, "ok": True} for user in ids]
    assert ann.ok("channels.info", channel=channel)["channel"]["num_members"] == 1001


def test_a_list_has_everybody_with_addresses(workspace):
    ann, bob = (result["user"] for result in create_many(workspace.admin, *({"name": name, "email": f"{name}@example.org"} for name in names(2))))
    workspace.admin.ok("admin.users.setActive", user_id=bob["id"], active=False)
    listed = {user["id"]: user for user in all_users(workspace.admin, limit=1)}
    assert listed[ann["id"]] == ann and listed[bob["id"]]["deleted"] is True
    assert listed[bob["id"]]["profile"]["email"] == bob["profile"]["email"]
    workspace.admin.fails("invalid_limit", "admin.users.list", limit=-1)
    workspace.admin.fails("invalid_cursor", "admin.users.list", cursor="u1.U0000000000")


@pytest.mark.parametrize("private", [False, True])
def test_members_are_added_by_who_is_none(environment, workspace, sockets, private):
    ann, bob, cid, dan, gone = workspace.users(5)
    channel = workspace.channel(ann, private=private)
    ann.post(channel)
    workspace.admin.ok("admin.users.setActive", user_id=gone.id, active=False)
    stranger = environment.workspace().admin
    here, there = sockets(ann), sockets(bob.at(environment.urls[1]))
    users = [bob.id, ann.id, ID_OF_NOBODY, cid.id, bob.id, "nonsense", stranger.id, gone.id, 7]
    reply = workspace.admin.ok("admin.channels.addMembers", channel=channel, users=users)
    assert reply["added"] == 2
    assert [result.get("error", "ok") for result in reply["results"]] == [
        "ok", "ok", "user_not_found", "ok", "ok", "user_not_found", "user_not_found", "user_disabled", "user_not_found"]
    assert [result["user"] for result in reply["results"][:8]] == users[:8]
    assert sorted(members(ann, channel)) == sorted([ann.id, bob.id, cid.id])
    here.expect({"type": "member_joined_channel", "user": cid.id})
    assert [frame["user"] for frame in here.matching({"type": "member_joined_channel"})] == [bob.id, cid.id]
    joined = there.expect({"type": "group_joined" if private else "channel_joined"})
    assert joined["channel"]["id"] == channel
    assert bob.unread(channel) == 0
    seq = ann.ok("channels.events", channel=channel, after_seq=0)["through_seq"]
    again = workspace.admin.ok("admin.channels.addMembers", channel=channel, users=[bob.id, cid.id])
    assert again["added"] == 0 and all(result["ok"] for result in again["results"])
    assert ann.ok("channels.events", channel=channel, after_seq=0)["through_seq"] == seq
    joins = [m for m in ann.ok("channels.history", channel=channel)["messages"] if m.get("subtype") == "channel_join" and m["user"] == bob.id]
    assert [join["inviter"] for join in joins] == [workspace.admin.id]
    assert dan.id not in members(ann, channel)


def from_shell(environment, *arguments, lines):
    done = subprocess.run(argv("admin", *arguments), env=environment.instances[0].full_environment(), capture_output=True, text=True,
                          timeout=120, input=lines, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_from_a_shell(environment, workspace):
    """More than fit into one call. (More than 1,000 joins at once are sent to a socket as a gap.)"""
    wanted = names(1203)
    lines = "\n".join(json.dumps({"name": name}) for name in wanted) + "\n\n"
    code, results, _ = from_shell(environment, "users.createMany", f"workspace={workspace.id}", "-", lines=lines)
    assert code == 0 and [result["user"]["name"] for result in results] == wanted
    ids = [result["user"]["id"] for result in results][-300:]
    ann = workspace.user()
    channel = workspace.channel(ann, private=True)
    with ann.at(environment.urls[1]).socket() as socket:
        code, results, _ = from_shell(environment, "channels.addMembers", f"workspace={workspace.id}", f"channel={channel}", "-",
                                      lines="\n".join(json.dumps(user) for user in [*ids, ID_OF_NOBODY]))
        assert code == 1 and results[-1] == {"user": ID_OF_NOBODY, "error": "user_not_found"}
        assert results[:-1] == [{"user": user, "ok": True} for user in ids]
        socket.expect({"type": "member_joined_channel", "user": ids[-1]})
        assert [frame["user"] for frame in socket.matching({"type": "member_joined_channel"})] == ids
    wait_until(lambda: ann.ok("channels.info", channel=channel)["channel"]["num_members"] == 301)
    joins = ann.ok("channels.history", channel=channel, limit=10)["messages"]
    assert all("inviter" not in join for join in joins)


@pytest.mark.parametrize("lines, words", [('{"name":"x"}\n{"name"\n', "line 2"), ("x\n", "line 1"), ("", "")])
def test_a_shell_without_json(environment, workspace, lines, words):
    code, results, complaint = from_shell(environment, "users.createMany", f"workspace={workspace.id}", "-", lines=lines)
    assert (code != 0) == bool(words) and words in complaint and results == []
