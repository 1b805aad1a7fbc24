# SPDX-License-Identifier: Apache-2.0
"""Slack's names of scopes: `groups:`, `im:` and `mpim:` restrict a token to a type of channel; unknown ones are ignored."""
import pytest

KINDS = ("public", "groups", "im", "mpim")
TYPES = {"public": "public_channel", "groups": "private_channel", "im": "im", "mpim": "mpim"}


@pytest.fixture(scope="module")
def stage(plain_environment):
    """The workspace, ann, and her channel of each kind, with a message."""
    workspace = plain_environment.workspace()
    ann, bob, cid = workspace.users(3)
    channels = {"public": workspace.channel(ann, bob), "groups": workspace.channel(ann, bob, private=True),
                "im": ann.ok("conversations.open", users=[bob.id])["channel"]["id"],
                "mpim": ann.ok("conversations.open", users=[bob.id, cid.id])["channel"]["id"]}
    for channel in channels.values():
        bob.post(channel)
    return plain_environment, workspace, ann, channels


def with_scopes(stage, scopes):
    environment, workspace, ann, _ = stage
    return environment.client(workspace.admin.ok("admin.tokens.create", user_id=ann.id, scopes=scopes)["token"])


@pytest.mark.parametrize("allowed", KINDS)
@pytest.mark.parametrize("method, action", [("conversations.history", "history"), ("channels.events", "history"), ("conversations.info", "read"),
                                            ("conversations.members", "read"), ("conversations.mark", "write")])
def test_by_type(stage, allowed, method, action):
    channels = stage[3]
    family = "channels" if allowed == "public" else allowed
    client = with_scopes(stage, f"{family}:{action}")
    for kind, channel in channels.items():
        args = {"channel": channel, "after_seq": 0, "ts": "9999999999.000000"}
        if kind == allowed or allowed == "public":
            client.ok(method, **args)
        else:
            refused = client.fails("missing_scope", method, **args)
            assert refused["needed"] == f"channels:{action}" and refused["provided"] == f"{family}:{action}"
    assert client.call(method, channel="C0000000000", after_seq=0, ts="9999999999.000000")["error"] == "channel_not_found"


def test_what_is_not_there_is_answered_first(stage):
    """A private channel that one is not in looks like none, whatever the scopes."""
    environment, workspace = stage[:2]
    hidden = workspace.channel(workspace.user(), private=True)
    for client in (with_scopes(stage, "im:history"), with_scopes(stage, "groups:history")):
        client.fails("channel_not_found", "conversations.history", channel=hidden)
    environment.client().fails("not_authed", "conversations.history", channel=hidden)


def test_lists(stage):
    channels = stage[3]
    client = with_scopes(stage, "groups:read,im:read")
    for method in ("conversations.list", "users.conversations"):
        client.fails("missing_scope", method)
        client.fails("missing_scope", method, types="public_channel,im")
        found = {channel["id"] for channel in client.ok(method, types="im,private_channel")["channels"]}
        assert found == {channels["im"], channels["groups"]}
    assert {c["id"] for c in with_scopes(stage, "mpim:read").ok("conversations.list", types="mpim")["channels"]} == {channels["mpim"]}


@pytest.mark.parametrize("method, scopes", [("unread.sync", "groups:read,im:read"), ("client.counts", "mpim:read"), ("threads.list", "im:read"),
                                            ("events.sync", "groups:history"), ("channels.markAll", "groups:write"),
                                            ("conversations.create", "groups:history")])
def test_what_spans_all_types_needs_all(stage, method, scopes):
    with_scopes(stage, scopes).fails("missing_scope", method, since="x", name="x")


def test_opening_groups(stage):
    workspace, channels = stage[1], stage[3]
    client = with_scopes(stage, "mpim:write")
    one, other = workspace.users(2)
    client.ok("conversations.open", users=[one.id, other.id])
    client.ok("conversations.open", channel=channels["mpim"])
    for args in ({"users": [one.id]}, {"channel": channels["im"]}):
        client.fails("missing_scope", "conversations.open", **args)


def test_unknown_names_are_ignored(stage):
    admin = stage[1].admin
    kept = with_scopes(stage, "chat:write,canvases:read, groups:history,x").ok("auth.test").headers["X-OAuth-Scopes"]
    assert kept == "chat:write,groups:history"
    nothing = with_scopes(stage, "canvases:read,x")
    assert nothing.ok("auth.test").headers["X-OAuth-Scopes"] == "identify", "never all of them"
    for method in ("users.list", "conversations.list", "emoji.list", "team.info"):
        nothing.fails("missing_scope", method)
    assert "canvases:read" not in str(admin.ok("admin.tokens.list", user_id=stage[2].id)["tokens"])


def test_the_scopes_of_a_template(stage):
    """Those of slack-samples' Bolt starter template, and of others: all are taken."""
    names = ("app_mentions:read,channels:history,chat:write,commands,groups:history,im:history,im:read,im:write,mpim:history,reactions:write,"
             "users:read.email,users.profile:read,team:read,emoji:read,usergroups:read,files:write,incoming-webhook,assistant:write")
    assert with_scopes(stage, names).ok("auth.test").headers["X-OAuth-Scopes"] == names
