# SPDX-License-Identifier: Apache-2.0
"""Every argument of every method with every kind of invalid value: the error names the argument, and nothing changes."""

import pytest

TS = "1700000000.000000"
MISSING = ("invalid_arguments", "missing_argument")
SOMETHING = [["a"], {"a": 1}]  # neither is text

# What each kind of argument may be answered with, and values that are bad.
KINDS = {
    "channel": (("channel_not_found", "invalid_arguments"), ["", "C", "U0000000000", "C0000000000", *SOMETHING]),
    "user": (("user_not_found", "invalid_arguments", "missing_argument"),
             ["", "U", "C0000000000", "U0000000000", *SOMETHING]),
    "users": (("user_not_found", "no_user", "invalid_arguments", "missing_argument"),
              ["", ",", "U0000000000", ["U0000000000"], [1, 2], {"a": 1}]),
    "ts": (("invalid_timestamp", *MISSING), ["", "x", "1700000000", "1700000000.0000001", *SOMETHING]),
    "timestamp": (("bad_timestamp", "no_item_specified"), ["", "x", "1700000000", "1700000000.0000001", *SOMETHING]),
    "emoji": (("invalid_name", "invalid_arguments"), ["", ":x:", "X", "x" * 101, "x::skin-tone-9", *SOMETHING]),
    "oldest": (("invalid_ts_oldest",), ["x", "1700000000.", "17000000000", *SOMETHING]),
    "latest": (("invalid_ts_latest",), ["x", "1700000000.", "17000000000", *SOMETHING]),
    "limit": (("invalid_limit",), ["x", -1, "01", 1.5, *SOMETHING]),
    "cursor": (("invalid_cursor",), ["*", "AAAA", "x" * 5000, *SOMETHING]),
    "types": (("invalid_types", "invalid_arguments"), ["x", "public_channel,x", ["x"], {"a": 1}]),
    "boolean": (("invalid_arguments",), ["x", "2", 2, "yes please", *SOMETHING]),
    "text": (("no_text", "invalid_arguments"), ["", "  ", *SOMETHING]),
    "json-blocks": (("invalid_blocks", "invalid_blocks_format"), ["x", "{", {"a": 1}, [1]]),
    "json-attachments": (("invalid_attachments", "invalid_arguments"), ["x", "{", {"a": 1}, [1]]),
    "metadata": (("invalid_metadata_format",), ["x", "{", [], [1]]),
    "name": (("invalid_name", "invalid_name_required", "invalid_name_specials", "invalid_name_maxlength", *MISSING),
             ["", "A B", "x" * 81, *SOMETHING]),
    "key": (("invalid_arguments",), ["x" * 129, *SOMETHING]),
    "number": (MISSING, ["x", -1, 1.5, 10**20, *SOMETHING]),
    "strategy": (MISSING, ["x", "AUTO", *SOMETHING]),
    "since": (("invalid_arguments",), ["x", "*" * 3000, *SOMETHING]),
    "position": (("invalid_position", "invalid_arguments"), ["", "x", "e1.1", "s1.1.1.1", "*" * 3000, *SOMETHING]),
    "marks": (("invalid_arguments",), ["", "x", "[", [], {"a": 1}, 1, [{}] * 1001]),
}

# Every method with its arguments: (kind, good value); a good value of None: optional and left out.
CHANNEL = ("channel", "CHANNEL")
POST = {"channel": CHANNEL, "text": ("text", "x"), "thread_ts": ("ts", None), "client_msg_id": ("key", None),
        "blocks": ("json-blocks", None), "attachments": ("json-attachments", None), "metadata": ("metadata", None),
        "reply_broadcast": ("boolean", None)}
METHODS = {
    "chat.postMessage": POST,
    "chat.update": {"channel": CHANNEL, "ts": ("ts", "MESSAGE"), "text": ("text", "x"),
                    "blocks": ("json-blocks", None), "attachments": ("json-attachments", None),
                    "metadata": ("metadata", None), "reply_broadcast": ("boolean", None)},
    "chat.delete": {"channel": CHANNEL, "ts": ("ts", "MESSAGE")},
    "channels.create": {"name": ("name", "fine-name"), "is_private": ("boolean", None), "strategy": ("strategy", None)},
    "channels.list": {"types": ("types", None), "exclude_archived": ("boolean", None), "limit": ("limit", None),
                      "cursor": ("cursor", None)},
    "channels.info": {"channel": CHANNEL},
    "channels.members": {"channel": CHANNEL, "limit": ("limit", None), "cursor": ("cursor", None)},
    "channels.history": {"channel": CHANNEL, "oldest": ("oldest", None), "latest": ("latest", None),
                         "inclusive": ("boolean", None), "limit": ("limit", None), "cursor": ("cursor", None)},
    "channels.replies": {"channel": CHANNEL, "ts": ("ts", "MESSAGE"), "oldest": ("oldest", None),
                         "latest": ("latest", None), "inclusive": ("boolean", None), "limit": ("limit", None),
                         "cursor": ("cursor", None)},
    "channels.events": {"channel": CHANNEL, "after_seq": ("number", 0), "limit": ("limit", None)},
    "channels.join": {"channel": CHANNEL},
    "channels.leave": {"channel": CHANNEL},
    "channels.invite": {"channel": CHANNEL, "users": ("users", "USER")},
    "channels.kick": {"channel": CHANNEL, "user": ("user", "USER")},
    "channels.mark": {"channel": CHANNEL, "ts": ("ts", "MESSAGE"), "read_epoch": ("number", None)},
    "channels.markMany": {"marks": ("marks", [{}])},
    "channels.markUnread": {"channel": CHANNEL, "ts": ("ts", "MESSAGE")},
    "channels.markMessages": {"channel": CHANNEL, "ts": ("ts", "MESSAGE")},
    "channels.setStrategy": {"channel": CHANNEL, "strategy": ("strategy", "zset")},
    "channels.archive": {"channel": CHANNEL},
    **{method: {"channel": CHANNEL, "timestamp": ("timestamp", "MESSAGE"), "name": ("emoji", "tada")}
       for method in ("reactions.add", "reactions.remove")},
    **{method: {"channel": CHANNEL, "timestamp": ("timestamp", "MESSAGE")} for method in ("reactions.get", "pins.add", "pins.remove")},
    "reactions.list": {"user": ("user", None), "limit": ("limit", None), "count": ("number", None), "page": ("number", None), "cursor": ("cursor", None)},
    "pins.list": {"channel": CHANNEL},
    "users.info": {"user": ("user", "USER")},
    "users.list": {"limit": ("limit", None), "cursor": ("cursor", None)},
    "unread.sync": {"since": ("since", None), "limit": ("limit", None), "cursor": ("cursor", None),
                    "types": ("types", None)},
    "events.sync": {"since": ("position", "e1.1.1.1.0"), "limit": ("limit", None)},
    "client.counts": {"since": ("since", None), "limit": ("limit", None), "cursor": ("cursor", None),
                      "types": ("types", None)},
    "rtm.connect": {"native": ("boolean", None), "since": ("position", None)},
    "rtm.start": {"native": ("boolean", None), "since": ("position", None)},
}
for _name in [name for name in METHODS if name.startswith("channels.")]:
    METHODS[_name.replace("channels.", "conversations.")] = METHODS[_name]

CASES = [(method, argument) for method, arguments in METHODS.items() for argument in arguments]


@pytest.fixture(scope="module")
def stage(plain_environment):
    """(ann, her channel with bob in it and one message, its ts, bob): shared, as nothing may change."""
    workspace = plain_environment.workspace()
    ann, bob = workspace.users(2)
    channel = workspace.channel(ann, bob)
    return ann, channel, ann.post(channel, "the only one"), bob


def good_arguments(stage, method):
    ann, channel, ts, bob = stage
    known = {"CHANNEL": channel, "MESSAGE": ts, "USER": bob.id}
    return {name: known.get(value, value) if isinstance(value, str) else value for name, (_, value) in METHODS[method].items() if value is not None}


def snapshot(stage):
    """All that a bad call could have changed."""
    ann, channel, _, bob = stage
    info = bob.ok("channels.info", channel=channel)["channel"]
    return (bob.ok("channels.events", channel=channel, after_seq=0)["events"],
            bob.ok("channels.history", channel=channel)["messages"],
            {name: info[name] for name in ("unread_count", "last_read", "read_epoch", "num_members", "is_archived")},
            [entry["id"] for entry in ann.ok("unread.sync")["channels"]])


def names_it(reply, argument):
    """Whether the error identifies the bad argument: in its message or, for missing objects, by its code."""
    code_names_it = reply["error"].split("_")[0] in argument and reply["error"].endswith("_not_found")
    return code_names_it or argument in reply.messages


@pytest.mark.parametrize("method, argument", CASES, ids=[f"{method}-{argument}" for method, argument in CASES])
def test_bad_values(stage, method, argument):
    ann = stage[0]
    codes, values = KINDS[METHODS[method][argument][0]]
    before = snapshot(stage)
    for value in values:
        if value == "" and METHODS[method][argument][1] is None:
            continue  # an optional argument that is empty is absent
        reply = ann.fails(codes, method, **{**good_arguments(stage, method), argument: value})
        assert names_it(reply, argument), f"{argument}={value!r}: {dict(reply)!r}"
    assert snapshot(stage) == before


REQUIRED = [(method, argument) for method, argument in CASES
            if METHODS[method][argument][1] is not None and not (method, argument) == ("chat.update", "text")]


@pytest.mark.parametrize("method, argument", REQUIRED, ids=[f"{method}-{argument}" for method, argument in REQUIRED])
@pytest.mark.parametrize("how", ["absent", "null"])
def test_missing_arguments(stage, method, argument, how):
    ann = stage[0]
    args = good_arguments(stage, method)
    if how == "absent":
        del args[argument]
    else:
        args[argument] = None
    codes = {"text": ("no_text",), "users": ("no_user", *MISSING), "name": ("invalid_name_required", *MISSING),
             "ts": ("invalid_timestamp", *MISSING), "channel": ("channel_not_found", *MISSING),
             "user": ("user_not_found", *MISSING), "timestamp": ("no_item_specified",)}
    if method.startswith("reactions."):
        codes["name"] = ("invalid_name",)
    before = snapshot(stage)
    reply = ann.fails(codes.get(argument, MISSING), method, **args)
    assert names_it(reply, argument), dict(reply)
    assert snapshot(stage) == before


@pytest.mark.parametrize("encoding", ["form", "query"])
def test_an_optional_argument_that_is_empty_is_absent(workspace, encoding):
    """Forms and scripts send empty arguments for fields that were not filled in."""
    ann, bob = workspace.users(2)
    public, private = workspace.channel(ann, bob), workspace.channel(ann, bob, private=True)

    def ok(method, who=ann, **args):
        return who.ok(method, encoding=encoding, **args)

    for method in ("unread.sync", "client.counts"):
        assert {c["id"] for c in ok(method, types="", since="", cursor="", limit="")["channels"]} == {public, private}
    for method in ("channels.list", "users.conversations"):
        assert [c["id"] for c in ok(method, types="", user="", exclude_archived="")["channels"]] == [public]
    bob.post(private)
    assert ok("channels.markAll", types="", threads="")["channels"] >= 1 and ann.unread(private) == 0
    assert ok("users.getPresence", user="")["online"] is False
    assert [user["id"] for user in ok("users.info", user="", users=bob.id)["users"]] == [bob.id]
    assert ok("channels.create", name="made", is_private="", strategy="")["channel"]["strategy"] == "auto"
    assert ok("channels.join", bob, channel="", name="made")["channel"]["num_members"] == 2
    posted = ok("chat.postMessage", channel=public, markdown_text="*x*", text="", blocks="", thread_ts="", client_msg_id="")
    assert posted["message"]["text"] == "*x*"
    ok("chat.update", channel=public, ts=posted["ts"], markdown_text="*y*", text="", blocks="")
    made = ok("admin.tokens.create", workspace.admin, user_id=ann.id, type="", scopes="", expires_in="", rate_limit="")
    assert made["type"] == "user" and "expires_at" not in made
    assert ok("admin.tokens.revoke", workspace.admin, token_id="", revoke_token=made["token"])["revoked"] is True
    assert "token_id" in workspace.admin.fails("invalid_arguments", "admin.tokens.revoke", encoding=encoding, token_id="").messages
    assert ok("admin.apps.create", workspace.admin, name="app", bot_user_id=workspace.bot().id, events_url="", events="")["app"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("nasty", ["'; DROP TABLE messages; --", "%s%n%x", "\u202e", "${jndi:x}", "\\", '"', "\r\nX: y"])
def test_nasty_text_in_ids(stage, method, nasty):
    """Whatever takes an id takes this for one that is not there."""
    ann = stage[0]
    for argument, (kind, _) in METHODS[method].items():
        if kind in ("channel", "user", "ts"):
            ann.fails(KINDS[kind][0], method, **{**good_arguments(stage, method), argument: nasty})


@pytest.mark.parametrize("method", METHODS)
def test_lone_surrogates_and_nul_anywhere(stage, method):
    ann = stage[0]
    before = snapshot(stage)
    for value in ("\ud800", "a\u0000b"):
        for argument in METHODS[method]:
            assert ann.call(method, **{**good_arguments(stage, method), argument: value})["ok"] is False
    assert snapshot(stage) == before


def test_nothing_is_broken_afterwards(stage):
    ann, channel, ts, bob = stage
    assert [m["ts"] for m in ann.history(channel)] == [ts]
    assert bob.unread(channel) == 1
