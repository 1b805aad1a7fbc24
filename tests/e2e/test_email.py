# SPDX-License-Identifier: Apache-2.0
"""Who sees an e-mail address: its owner, admins, and tokens that list `users:read.email`. Nobody else, by any method or frame."""
import pytest

from tests.support.cast import Cast

ADDRESS = "ann@example.org"


@pytest.fixture(scope="module")
def cast(plain_environment):
    return Cast(plain_environment)


@pytest.fixture(scope="module")
def ann(cast):
    return cast.workspace.user("ann", email=ADDRESS)


def shown(client, ann):
    """The addresses of Ann in all that `client` gets to read."""
    users = [client.ok("users.info", user=ann.id)["user"], client.ok("users.info", user=ann.id, include_locale=True)["user"],
             *client.ok("users.info", users=[ann.id])["users"], *client.ok("users.list", limit=1000)["members"],
             *client.ok("users.list", limit=1000, include_locale=True)["members"], *client.ok("rtm.start")["users"]]
    found = [user["profile"].get("email") for user in users if user["id"] == ann.id]
    assert len(found) == 6
    return set(found)


@pytest.mark.parametrize("caller, sees", [("outsider", False), ("member", False), ("bot", False), ("admin", True), ("admin_in", True)])
def test_by_caller(cast, ann, caller, sees):
    assert shown(cast.callers[caller], ann) == {ADDRESS if sees else None}


def test_oneself(plain_environment, cast, ann):
    assert shown(ann, ann) == {ADDRESS}
    scoped = cast.admin.ok("admin.tokens.create", user_id=ann.id, scopes="users:read,rtm:stream")["token"]
    assert shown(plain_environment.client(scoped), ann) == {ADDRESS}


READ = "users:read,rtm:stream"


@pytest.mark.parametrize("owner", ["member", "bot", "admin"])
@pytest.mark.parametrize("scopes, sees", [(READ, False), (f"{READ},users:read.email", True), (f"{READ},channels:read", False)])
def test_by_scope(plain_environment, cast, ann, owner, scopes, sees):
    """An admin's token that may not do what admins do sees no more than another's."""
    made = cast.admin.ok("admin.tokens.create", user_id=cast.callers[owner].id, scopes=scopes)
    assert shown(plain_environment.client(made["token"]), ann) == {ADDRESS if sees else None}


def test_the_scope_admin_is_enough_for_an_admin_only(plain_environment, cast, ann):
    for owner, address in (("admin", ADDRESS), ("member", None)):
        made = cast.admin.ok("admin.tokens.create", user_id=cast.callers[owner].id, scopes=f"{READ},admin")
        assert shown(plain_environment.client(made["token"]), ann) == {address}


def test_the_scope_alone_reads_no_users(plain_environment, cast, ann):
    made = cast.admin.ok("admin.tokens.create", user_id=cast.member.id, scopes="users:read.email")
    plain_environment.client(made["token"]).fails("missing_scope", "users.info", user=ann.id)


def test_in_no_frame(environment, workspace):
    """A frame is the same for all who get it."""
    admin, bob = workspace.admin, workspace.user()
    with bob.socket(native=True) as socket, bob.stream() as stream, admin.at(environment.urls[1]).socket() as far:
        user = admin.ok("admin.users.create", name="cid", email="cid@example.org")["user"]
        assert user["profile"]["email"] == "cid@example.org"
        admin.ok("admin.users.setActive", user_id=user["id"], active=False)
        for connection in (socket, stream, far):
            for kind in ("team_join", "user_change"):
                assert "email" not in connection.expect({"type": kind, "user": {"id": user["id"]}})["user"]["profile"]
