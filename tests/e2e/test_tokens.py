# SPDX-License-Identifier: Apache-2.0
"""Tokens: valid, revoked, expired, of the wrong kind or with too little scope."""

import itertools

import pytest

from tests.support.metrics import metric
from tests.support.raw import RawConnection, request
from tests.support.wait import SOON_S, wait_until

CALLS = [("auth.test", {}), ("chat.postMessage", {"channel": "C0000000000", "text": "x"}), ("unread.sync", {}),
         ("admin.users.create", {"name": "x"}), ("rtm.connect", {})]
CALL_IDS = [method for method, _ in CALLS]


@pytest.mark.parametrize("method, args", CALLS, ids=CALL_IDS)
def test_no_token(environment, method, args):
    environment.client().fails("not_authed", method, **args)


@pytest.mark.parametrize("token", ["xoxp-none", "x", "xoxb-" + "A" * 43, "xoxp-" + "A" * 5000, "' OR 1=1 --"])
def test_unknown_token(environment, token):
    environment.client(token).fails("invalid_auth", "auth.test")


@pytest.mark.parametrize("method, args", CALLS, ids=CALL_IDS)
def test_unknown_token_on_every_family(environment, method, args):
    environment.client("xoxp-" + "A" * 43).fails("invalid_auth", method, **args)


def test_tokens_have_slacks_prefixes(workspace):
    assert workspace.user().token.startswith("xoxp-")
    assert workspace.bot().token.startswith("xoxb-")
    assert len(workspace.user().token) >= 40


def test_tokens_are_not_stored_in_clear(environment, workspace):
    ann = workspace.user()
    with environment.database() as database:
        row = database.execute("SELECT to_jsonb(t)::text FROM tokens t WHERE user_id = %s", (ann.id,)).fetchone()
    assert ann.token not in row[0] and ann.token[5:] not in row[0]


def test_revoked_token(environment, workspace):
    ann = workspace.user()
    ann.ok("auth.test")
    assert workspace.admin.ok("admin.tokens.revoke", revoke_token=ann.token)["revoked"] is True
    for url in environment.urls:
        elsewhere = ann.at(url)
        wait_until(lambda: elsewhere.call("auth.test").get("error") == "token_revoked", what="the revocation")


def test_revocation_reaches_every_instance_soon(environment, workspace):
    ann = workspace.user()
    elsewhere = ann.at(environment.urls[1])
    elsewhere.ok("auth.test")
    workspace.admin.ok("admin.tokens.revoke", revoke_token=ann.token)
    wait_until(lambda: elsewhere.call("auth.test").get("error") == "token_revoked", timeout=SOON_S)


def errors(environment, token):
    """The errors returned by each loop of each instance: connections are new, so they reach any of the loops."""
    return {url: {environment.client(token, url=url).call("auth.test").get("error") for _ in range(8)} for url in environment.urls}


@pytest.mark.parametrize("end", ["auth.revoke", "admin.tokens.revoke", "admin.users.setActive"])
def test_an_ended_session_is_over_at_once(environment, workspace, end):
    """Here with the reply, elsewhere a moment later; and all that was opened with it ends."""
    ann = workspace.user()
    here, there = environment.urls
    assert errors(environment, ann.token) == {here: {None}, there: {None}}
    with ann.socket() as socket, ann.at(there).socket() as other, ann.at(there).stream() as stream:
        if end == "auth.revoke":
            assert ann.ok("auth.revoke")["revoked"] is True
        elif end == "admin.tokens.revoke":
            workspace.admin.ok("admin.tokens.revoke", revoke_token=ann.token)
        else:
            workspace.admin.ok("admin.users.setActive", user_id=ann.id, active=False)
        gone = "account_inactive" if end == "admin.users.setActive" else "token_revoked"
        assert errors(environment, ann.token)[here] == {gone}
        wait_until(lambda: errors(environment, ann.token)[there] == {gone}, timeout=1)
        for one in (socket, other):
            assert one.wait_closed(SOON_S)[0] == 4001
        stream.wait_ended(SOON_S)
    if end == "admin.users.setActive":
        workspace.admin.ok("admin.users.setActive", user_id=ann.id, active=True)
        assert errors(environment, ann.token)[here] == {None}


def test_revoke_as_a_test_and_of_all_kinds(environment, workspace):
    ann, bot = workspace.user(), workspace.bot()
    app = environment.client(workspace.admin.ok("admin.apps.create", name="app", bot_user_id=bot.id)["app_token"])
    other = environment.client(workspace.admin.ok("admin.tokens.create", user_id=ann.id)["token"])
    for caller in (ann, bot, app):
        assert caller.ok("auth.revoke", test=True)["revoked"] is False
        assert caller.ok("auth.revoke", encoding="form", test=1)["revoked"] is False
        caller.ok("auth.test")
        assert "test" in caller.fails("invalid_arguments", "auth.revoke", test="maybe").messages
        assert caller.ok("auth.revoke", test=False)["revoked"] is True
        caller.fails("token_revoked", "auth.test")
        caller.fails("token_revoked", "auth.revoke")
    other.ok("auth.test")


def test_a_deleted_apps_token_is_no_good_at_once(environment, workspace):
    bot = workspace.bot()
    made = workspace.admin.ok("admin.apps.create", name="app", bot_user_id=bot.id)
    assert errors(environment, made["app_token"]) == {url: {None} for url in environment.urls}
    workspace.admin.ok("admin.apps.delete", app_id=made["app"]["id"])
    assert errors(environment, made["app_token"])[environment.urls[0]] == {"invalid_auth"}
    wait_until(lambda: errors(environment, made["app_token"])[environment.urls[1]] == {"invalid_auth"}, timeout=1)


def test_what_was_not_told_is_found(environment, workspace):
    instance = environment.instance(token_check_ms=1000, loops=1)
    ann = workspace.user().at(instance.url)
    with ann.socket() as socket, environment.database() as database:
        ann.ok("auth.test")
        database.execute("UPDATE tokens SET revoked_at = 1 WHERE user_id = %s", [ann.id])
        assert socket.wait_closed(SOON_S)[0] == 4001
        wait_until(lambda: ann.call("auth.test").get("error") == "token_revoked", timeout=SOON_S)
    assert instance.stop() == 0


def test_the_command_tells_it_too(environment, workspace):
    ann = workspace.user()
    with ann.socket() as socket:
        assert errors(environment, ann.token) == {url: {None} for url in environment.urls}
        environment.instances[0].run("admin", "tokens.revoke", f"workspace={workspace.id}", f"revoke_token={ann.token}")
        wait_until(lambda: set.union(*errors(environment, ann.token).values()) == {"token_revoked"}, timeout=1)
        assert socket.wait_closed(SOON_S)[0] == 4001


def test_expired_token(environment, workspace):
    ann = workspace.user()
    made = workspace.admin.ok("admin.tokens.create", user_id=ann.id, expires_in=5)
    client = environment.client(made["token"])
    client.ok("auth.test")
    assert isinstance(made["expires_at"], int)
    wait_until(lambda: client.call("auth.test").get("error") == "token_expired")


def test_inactive_user(environment, workspace):
    ann = workspace.user()
    workspace.admin.ok("admin.users.setActive", user_id=ann.id, active=False)
    wait_until(lambda: ann.call("auth.test").get("error") == "account_inactive")
    workspace.admin.ok("admin.users.setActive", user_id=ann.id, active=True)
    wait_until(lambda: ann.call("auth.test")["ok"])


@pytest.mark.parametrize("method, args", CALLS[1:], ids=CALL_IDS[1:])
def test_app_token_elsewhere(environment, workspace, method, args):
    bot = workspace.bot()
    made = workspace.admin.ok("admin.apps.create", name="app", bot_user_id=bot.id)
    assert made["app_token"].startswith("xapp-")
    environment.client(made["app_token"]).fails("not_allowed_token_type", method, **args)


def test_two_authorization_headers(workspace):
    ann = workspace.user()
    with RawConnection(ann.url) as connection:
        connection.send(request("POST", "/api/auth.test", ann.token, headers=[f"Authorization: Bearer {ann.token}"]))
        assert b" 400 " in connection.rest().split(b"\r\n")[0]


def test_operator_token_is_for_workspaces_only(environment):
    reply = environment.client(environment.operator_token).call("auth.test")
    assert reply["ok"] is False
    assert reply["error"] in ("not_allowed_token_type", "invalid_auth")


@pytest.mark.parametrize("scopes, method, needed", [
    ("chat:write", "channels.history", "channels:history"),
    ("channels:history", "chat.postMessage", "chat:write"),
])
def test_missing_scope(environment, workspace, scopes, method, needed):
    ann = workspace.user()
    channel = workspace.channel(ann)
    made = workspace.admin.ok("admin.tokens.create", user_id=ann.id, scopes=scopes)
    client = environment.client(made["token"])
    reply = client.fails("missing_scope", method, channel=channel, text="x")
    assert needed in reply["needed"] and reply["provided"] == scopes
    assert ann.history(channel) == []


ADMIN_CALLS = [("admin.users.create", {"name": "x"}), ("admin.users.setActive", {"user_id": "ID", "active": False}),
               ("admin.tokens.create", {"user_id": "ID"}), ("admin.tokens.list", {"user_id": "ID"}),
               ("admin.tokens.revoke", {"token_id": "K0000000000"}), ("admin.apps.delete", {"app_id": "A0000000000"}),
               ("admin.apps.create", {"name": "x", "bot_user_id": "ID"})]


@pytest.mark.parametrize("method, args", ADMIN_CALLS, ids=[method for method, _ in ADMIN_CALLS])
def test_an_admins_token_of_little_scope_is_no_way_to_more(environment, workspace, method, args):
    """Else it could make itself a token that may do everything."""
    admin = workspace.admin
    args = {name: admin.id if value == "ID" else value for name, value in args.items()}
    few = environment.client(admin.ok("admin.tokens.create", user_id=admin.id, scopes="chat:write")["token"])
    assert few.fails("missing_scope", method, **args)["needed"] == "admin"
    assert admin.ok("auth.test")["user_id"] == admin.id and len(admin.ok("admin.tokens.list", user_id=admin.id)["tokens"]) == 2
    plain = workspace.admin.ok("admin.tokens.create", user_id=workspace.user().id, scopes="admin")["token"]
    environment.client(plain).fails("no_permission", method, **args)


def test_the_scope_of_admin_methods(environment, workspace):
    admin = workspace.admin
    some = environment.client(admin.ok("admin.tokens.create", user_id=admin.id, scopes="admin,users:read")["token"])
    assert some.ok("admin.users.create", name="new")["user"]["name"] == "new"
    some.fails("missing_scope", "channels.list")


def test_scopes_that_allow(environment, workspace):
    ann = workspace.user()
    channel = workspace.channel(ann)
    made = workspace.admin.ok("admin.tokens.create", user_id=ann.id, scopes=["chat:write", "channels:history"])
    client = environment.client(made["token"])
    ts = client.post(channel, "allowed")
    assert client.history(channel)[0]["ts"] == ts
    assert client.ok("auth.test")["user_id"] == ann.id


def test_bot_token_posts_as_the_bot(workspace):
    ann, bot = workspace.user(), workspace.bot()
    channel = workspace.channel(ann, bot)
    message = bot.ok("chat.postMessage", channel=channel, text="beep")["message"]
    assert message["user"] == bot.id and message["bot_id"] == bot.bot_id
    assert ann.unread(channel) == 1


def test_tokens_list(workspace):
    ann = workspace.user()
    made = workspace.admin.ok("admin.tokens.create", user_id=ann.id, scopes="chat:write", expires_in=3600)
    tokens = workspace.admin.ok("admin.tokens.list", user_id=ann.id)["tokens"]
    assert len(tokens) == 2
    mine = next(token for token in tokens if token["token_id"] == made["token_id"])
    assert mine["type"] == "user" and mine["scopes"] in ("chat:write", ["chat:write"])
    assert isinstance(mine["created"], int) and mine["expires_at"] == made["expires_at"]
    assert all("token" not in token for token in tokens)


def test_tokens_list_tells_when_one_was_used(workspace):
    ann = workspace.user()
    ann.ok("auth.test")

    def used():
        return workspace.admin.ok("admin.tokens.list", user_id=ann.id)["tokens"][0].get("last_used")

    assert isinstance(wait_until(used, what="last_used"), int)


def test_scopes_are_told_in_a_header(environment, workspace):
    """Slack's SDKs show them as response_metadata.scopes."""
    ann = workspace.user()
    token = workspace.admin.ok("admin.tokens.create", user_id=ann.id, scopes="users:read,chat:write")["token"]
    few = environment.client(token)
    assert few.ok("auth.test").headers["X-OAuth-Scopes"] == "users:read,chat:write"
    refused = few.fails("missing_scope", "channels.list").headers
    assert (refused["X-OAuth-Scopes"], refused["X-Accepted-OAuth-Scopes"]) == ("users:read,chat:write", "channels:read")
    assert few.ok("auth.test").headers["X-Accepted-OAuth-Scopes"] == "", "it needs none"
    assert {"users:read", "chat:write"} < set(ann.ok("users.list").headers["X-OAuth-Scopes"].split(","))


def test_tokens_that_nobody_uses_are_forgotten(environment, workspace):
    """For each that comes two go: after a crowd there are soon few."""
    instance = environment.instance(token_cache_ms=1, loops=1)
    numbers = itertools.count()

    def call():
        environment.client(f"xoxp-{next(numbers)}", url=instance.url).fails("invalid_auth", "auth.test")
        return metric(instance, "tidings_tokens")

    for _ in range(30):
        call()
    wait_until(lambda: call() < 5, interval=0.2, what="the crowd forgotten")
    assert metric(instance, "tidings_tokens_dropped_total") == 0
    assert instance.stop() == 0


def test_tokens_that_are_kept(environment, workspace):
    """At most the limit; invalid ones are dropped first."""
    instance = environment.instance(tokens_max=3, loops=1)
    ann = workspace.user().at(instance.url)

    def dropped():
        lines = ann.page("/metrics").text.splitlines()
        return next(int(line.split()[-1]) for line in lines if line.startswith("tidings_tokens_dropped_total "))

    ann.ok("auth.test")
    for number, gone in enumerate([0, 0, 2, 2, 4]):
        environment.client(f"xoxp-{number}", url=instance.url).fails("invalid_auth", "auth.test")
        assert dropped() == gone
    ann.ok("auth.test")
    assert dropped() == 4
    others = [user.at(instance.url) for user in workspace.users(3)]
    for other in others:
        other.ok("auth.test")
    assert dropped() == 7, "one that is no good, then ann's and another, for want of room"
    for other in (ann, *others):
        other.ok("auth.test")
    assert instance.stop() == 0
