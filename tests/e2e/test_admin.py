# SPDX-License-Identifier: Apache-2.0
"""admin.*: permissions, results, refusals."""

import json

import pytest

from tests.support.sockets import Socket
from tests.support.wait import SOON_S, wait_until
from tests.support.workspace import fresh_name

OTHERS = [("admin.users.create", {"name": "x"}), ("admin.users.setActive", {"user_id": "U0000000000", "active": False}),
          ("admin.tokens.create", {"user_id": "U0000000000"}), ("admin.tokens.revoke", {"token_id": "K0000000000"}),
          ("admin.tokens.list", {"user_id": "U0000000000"}),
          ("admin.apps.create", {"name": "x", "bot_user_id": "U0000000000"}),
          ("admin.apps.delete", {"app_id": "A0000000000"})]
IDS = [method for method, _ in OTHERS]


def test_workspaces_create(environment):
    operator = environment.client(environment.operator_token)
    domain = fresh_name("dom")
    reply = operator.ok("admin.workspaces.create", name="Acme \u00e9", domain=domain)
    assert reply["workspace"]["id"].startswith("T")
    assert (reply["workspace"]["name"], reply["workspace"]["domain"]) == ("Acme \u00e9", domain)
    admin = environment.client(reply["admin"]["token"])
    assert admin.ok("auth.test")["user_id"] == reply["admin"]["user_id"]
    again = operator.call("admin.workspaces.create", name="Other", domain=domain)
    assert again["ok"] is False and again["error"] in ("name_taken", "domain_taken")


def test_workspaces_create_takes_the_operators_token_only(environment, workspace):
    args = {"name": "x", "domain": fresh_name("dom")}
    environment.client().fails("not_authed", "admin.workspaces.create", **args)
    environment.client("nonsense").fails("invalid_auth", "admin.workspaces.create", **args)
    workspace.admin.fails(("no_permission", "not_allowed_token_type"), "admin.workspaces.create", **args)
    workspace.user().fails(("no_permission", "not_allowed_token_type"), "admin.workspaces.create", **args)


def test_workspaces_create_is_off_without_an_operator_token(environment, workspace, extra_instance):
    instance = extra_instance(operator_token="")
    for token in ("", environment.operator_token, workspace.admin.token):
        reply = environment.client(token, instance.url).call("admin.workspaces.create", name="x", domain="x-off")
        assert reply["ok"] is False


@pytest.mark.parametrize("args, name", [({"domain": "d"}, "name"), ({"name": "n"}, "domain"),
                                        ({"name": "n", "domain": "not a domain"}, "domain"),
                                        ({"name": "", "domain": "d"}, "name"), ({"name": "n", "domain": ["d"]},
                                         "domain"),
                                        ({"name": {"a": 1}, "domain": "d"}, "name")])
def test_workspaces_create_arguments(environment, args, name):
    operator = environment.client(environment.operator_token)
    reply = operator.fails(("invalid_arguments", "missing_argument", "invalid_name", "invalid_name_required"),
                           "admin.workspaces.create", **args)
    assert name in reply.messages


@pytest.mark.parametrize("method, args", OTHERS, ids=IDS)
def test_not_an_admin(environment, workspace, method, args):
    """The same whether or not the target exists."""
    ann, bot = workspace.user(), workspace.bot()
    real = {name: (ann.id if value.startswith("U") else value) if isinstance(value, str) else value
            for name, value in args.items()}
    for given in (args, real):
        ann.fails("no_permission", method, **given)
        bot.fails("not_allowed_token_type", method, **given)
    app = workspace.admin.ok("admin.apps.create", name="a", bot_user_id=bot.id)["app_token"]
    environment.client(app).fails("not_allowed_token_type", method, **args)
    assert environment.client(environment.operator_token).call(method, **args)["ok"] is False


@pytest.mark.parametrize("method, args", [row for row in OTHERS if "U0000000000" in row[1].values()])
def test_unknown_users_and_those_of_other_workspaces(environment, workspace, method, args):
    stranger = environment.workspace().bot()
    answers = []
    for user in ("U0000000000", stranger.id):
        given = {name: user if value == "U0000000000" else value for name, value in args.items()}
        answers.append(workspace.admin.fails(("user_not_found", "app_not_found"), method, **given))
    assert answers[0].body.replace(b"U0000000000", b"") == answers[1].body.replace(stranger.id.encode(), b"")
    stranger.ok("auth.test")


def test_users_create(workspace):
    user = workspace.admin.ok("admin.users.create", name="ann", real_name="Ann \u00e9", email="ann@example.org",
                              is_admin=True)["user"]
    assert user["id"].startswith("U") and user["name"] == "ann" and user["real_name"] == "Ann \u00e9"
    assert user["is_admin"] is True and user["is_bot"] is False and user["team_id"] == workspace.id
    assert user == workspace.admin.ok("users.info", user=user["id"])["user"]
    workspace.admin.fails("name_taken", "admin.users.create", name="ann")


def test_who_is_new_or_changed_is_told(environment, workspace):
    """On all instances: team_join, user_change; not in other workspaces."""
    ann, stranger = workspace.user(), environment.workspace().user()
    with ann.socket() as here, ann.at(environment.urls[1]).socket() as there, ann.stream() as stream, stranger.socket() as elsewhere:
        bob = workspace.user("bob")
        shown = ann.ok("users.info", user=bob.id)["user"]
        for connection in (here, there, stream):
            frame = connection.expect({"type": "team_join", "user": shown})
            assert isinstance(frame["cache_ts"], int) and isinstance(frame["event_ts"], str)
        workspace.admin.ok("admin.users.setActive", user_id=bob.id, active=False)
        for connection in (here, there, stream):
            connection.expect({"type": "user_change", "user": {"id": bob.id, "deleted": True}})
        elsewhere.send({"id": 1, "type": "ping"})
        elsewhere.expect({"type": "pong"})
        assert not elsewhere.matching(lambda frame: bob.id in str(frame))


def test_users_create_of_a_bot(workspace):
    user = workspace.admin.ok("admin.users.create", name="robot", is_bot=True)["user"]
    assert user["is_bot"] is True and user["bot_id"].startswith("B")


@pytest.mark.parametrize("args, name", [({}, "name"), ({"name": ""}, "name"), ({"name": "x" * 1000}, "name"),
                                        ({"name": ["a"]}, "name"), ({"name": "x", "is_admin": "maybe"}, "is_admin"),
                                        ({"name": "x", "is_bot": "maybe"}, "is_bot"),
                                        ({"name": "x", "real_name": {"a": 1}}, "real_name")])
def test_users_create_arguments(workspace, args, name):
    before = len(workspace.admin.ok("users.list")["members"])
    reply = workspace.admin.fails(("invalid_arguments", "missing_argument", "invalid_name", "invalid_name_required",
                                   "invalid_name_maxlength", "invalid_name_specials"), "admin.users.create", **args)
    assert name in reply.messages
    assert len(workspace.admin.ok("users.list")["members"]) == before


def test_a_new_admin_is_an_admin(environment, workspace):
    boss = workspace.user(is_admin=True)
    assert boss.ok("admin.users.create", name="made-by-boss")["user"]["name"] == "made-by-boss"


@pytest.mark.parametrize("change, name", [({"user_id": None}, "user_id"), ({"active": None}, "active"),
                                          ({"active": "perhaps"}, "active")])
def test_users_set_active_arguments(workspace, change, name):
    ann = workspace.user()
    args = {"user_id": ann.id, "active": False, **change}
    reply = workspace.admin.fails(("invalid_arguments", "missing_argument"), "admin.users.setActive", **args)
    assert name in reply.messages
    ann.ok("auth.test")


def test_inactive_users_keep_their_messages(workspace):
    ann, bob = workspace.users(2)
    channel = workspace.channel(ann, bob)
    ts = ann.post(channel)
    workspace.admin.ok("admin.users.setActive", user_id=ann.id, active=False)
    assert bob.history(channel)[0]["ts"] == ts and bob.unread(channel) == 1


def test_tokens_create(environment, workspace):
    ann = workspace.user()
    made = workspace.admin.ok("admin.tokens.create", user_id=ann.id)
    assert made["token"].startswith("xoxp-") and made["token_id"] and "expires_at" not in made
    assert environment.client(made["token"]).ok("auth.test")["user_id"] == ann.id
    made = workspace.admin.ok("admin.tokens.create", user_id=workspace.bot().id)
    assert made["token"].startswith("xoxb-")
    workspace.admin.ok("admin.tokens.create", user_id=ann.id, type="user", expires_in=60, rate_limit=100)


@pytest.mark.parametrize("args, name", [({"type": "app"}, "type"), ({"type": "x"}, "type"),
                                        ({"expires_in": -1}, "expires_in"), ({"expires_in": "soon"}, "expires_in"),
                                        ({"expires_in": 0}, "expires_in"), ({"rate_limit": "x"}, "rate_limit"),
                                        ({"rate_limit": -1}, "rate_limit"), ({"scopes": "x" * 5000}, "scopes")])
def test_tokens_create_arguments(workspace, args, name):
    ann = workspace.user()
    reply = workspace.admin.fails("invalid_arguments", "admin.tokens.create", user_id=ann.id, **args)
    assert name in reply.messages
    assert len(workspace.admin.ok("admin.tokens.list", user_id=ann.id)["tokens"]) == 1


def test_tokens_revoke_by_id_and_by_token(environment, workspace):
    ann = workspace.user()
    for by in ("token_id", "revoke_token"):
        made = workspace.admin.ok("admin.tokens.create", user_id=ann.id)
        value = made["token_id"] if by == "token_id" else made["token"]
        client = environment.client(made["token"])
        client.ok("auth.test")
        assert workspace.admin.ok("admin.tokens.revoke", **{by: value})["revoked"] is True
        wait_until(lambda: client.call("auth.test").get("error") == "token_revoked")
    ann.ok("auth.test")


def test_tokens_revoke_of_none(environment, workspace):
    other = environment.workspace()
    for args in ({"token_id": "K0000000000"}, {"revoke_token": "xoxp-none"}, {"revoke_token": other.admin.token},
                 {"token_id": "' OR 1=1"}):
        workspace.admin.fails("token_not_found", "admin.tokens.revoke", **args)
    other.admin.ok("auth.test")
    workspace.admin.fails(("invalid_arguments", "missing_argument"), "admin.tokens.revoke")


def test_sockets_of_one_token_close_and_others_stay(environment, workspace):
    ann = workspace.user()
    made = workspace.admin.ok("admin.tokens.create", user_id=ann.id)
    client = environment.client(made["token"])
    with Socket(client.ok("rtm.connect")["url"]) as gone, ann.socket() as stays:
        workspace.admin.ok("admin.tokens.revoke", token_id=made["token_id"])
        gone.wait_closed(SOON_S)
        stays.request({"id": 1, "type": "ping"})


def test_apps(environment, workspace):
    bot = workspace.bot()
    made = workspace.admin.ok("admin.apps.create", name="helper", bot_user_id=bot.id)
    assert made["app"]["id"].startswith("A") and made["app"]["signing_secret"]
    assert made["app_token"].startswith("xapp-")
    client = environment.client(made["app_token"])
    whose = client.ok("auth.test")  # Slack's SDK for Java asks so before it connects
    assert (whose["app_id"], whose["bot_id"], whose["team_id"]) == (made["app"]["id"], bot.bot_id, workspace.id)
    workspace.admin.ok("admin.apps.delete", app_id=made["app"]["id"])
    wait_until(lambda: client.call("auth.test").get("error") in ("invalid_auth", "token_revoked"))
    workspace.admin.fails("app_not_found", "admin.apps.delete", app_id=made["app"]["id"])


@pytest.mark.parametrize("change, name", [({"name": None}, "name"), ({"bot_user_id": None}, "bot_user_id"),
                                          ({"name": ["x"]}, "name"), ({"events_url": "not a url"}, "events_url")])
def test_apps_create_arguments(workspace, change, name):
    args = {"name": "x", "bot_user_id": workspace.bot().id, **change}
    reply = workspace.admin.fails(("invalid_arguments", "missing_argument", "invalid_name"), "admin.apps.create",
                                  **args)
    assert name in reply.messages


def test_apps_are_of_bots(workspace):
    reply = workspace.admin.call("admin.apps.create", name="x", bot_user_id=workspace.user().id)
    assert reply["ok"] is False and reply["error"] in ("invalid_arguments", "user_not_found")


def test_command_line(environment):
    """`tidings admin` calls the same methods, straight on the database."""
    domain = fresh_name("cli")
    instance = environment.instances[0]
    made = json.loads(instance.run("admin", "workspaces.create", "name=From a shell", f"domain={domain}"))
    assert made["ok"] is True and made["workspace"]["domain"] == domain
    assert environment.client(made["admin"]["token"]).ok("auth.test")["team_id"] == made["workspace"]["id"]


def test_command_line_refuses_as_http_does(environment):
    instance = environment.instances[0]
    with pytest.raises(Exception, match="name"):
        instance.run("admin", "workspaces.create", "domain=x")
