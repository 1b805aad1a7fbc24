# SPDX-License-Identifier: Apache-2.0
"""An application's own users log in with the JWTs of their identity provider."""
import time

import pytest

from tests.property.tokens import ALGORITHMS, Keys, family
from tests.support.client import Client
from tests.support.logins import Provider
from tests.support.streams import Stream
from tests.support.wait import wait_until
from tests.support.workspace import Member


@pytest.fixture(scope="module")
def keys():
    return Keys().ours


@pytest.fixture
def provider(workspace):
    return Provider(workspace)


def nobody(environment):
    return environment.client()


def bearer(environment, jwt, instance=0):
    return Client(environment.instances[instance].url, jwt)


def member(environment, reply):
    return Member(environment.instances[0].url, reply["token"], reply["user"]["id"], reply["user"]["name"], None)


@pytest.mark.parametrize("encoding", ["json", "form"])
def test_an_exchange(environment, workspace, provider, encoding):
    reply = nobody(environment).ok("auth.exchange", encoding=encoding, token=provider.jwt())
    assert reply["token"].startswith("xoxp-") and time.time() + 500 < reply["expires_at"] <= time.time() + 660
    assert reply["workspace"] == {"id": workspace.id, "name": workspace.name, "domain": workspace.domain}
    me = environment.client(reply["token"]).ok("auth.test")
    assert me["user_id"] == reply["user"]["id"] and me["team_id"] == workspace.id
    assert bearer(environment, provider.jwt()).ok("auth.exchange")["user"]["id"] == me["user_id"]  # from the header, and the same user


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_each_algorithm(environment, workspace, keys, algorithm):
    provider = Provider(workspace, keys[family(algorithm)], algorithm)
    assert nobody(environment).ok("auth.exchange", token=provider.jwt())["ok"]


@pytest.mark.parametrize("encoding", ["json", "form", "header"])
def test_a_jwt_as_token(environment, provider, encoding):
    jwt = provider.jwt()
    if encoding == "header":
        first = bearer(environment, jwt).ok("auth.test")
    else:
        first = nobody(environment).ok("auth.test", encoding=encoding, token=jwt)
    again = [bearer(environment, jwt, n).ok("auth.test") for n in (0, 1, 0)]
    assert {reply["user_id"] for reply in again} == {first["user_id"]}
    with environment.database() as database:
        assert database.execute("SELECT count(*) FROM tokens WHERE user_id = %s", [first["user_id"]]).fetchone() == (1,)


def test_a_socket_and_a_stream(environment, workspace, provider):
    jwt = provider.jwt()
    with Stream(environment.instances[0].url, jwt) as stream:  # nobody has logged in with it before
        stream.expect({"type": "hello"})
        user = bearer(environment, jwt).ok("auth.test")["user_id"]
        ann = Member(environment.instances[0].url, jwt, user, "ann", None)
        with ann.socket() as socket:
            channel = ann.ok("channels.create", name="room")["channel"]["id"]
            ts = ann.post(channel)
            assert socket.expect({"type": "message", "ts": ts}) and stream.expect({"type": "message", "ts": ts})


def test_a_stream_of_nobody(environment, provider):
    for jwt in (provider.jwt() + "A", provider.jwt(exp=1), "eyJ", "eyJ." * 10):
        assert Stream(environment.instances[0].url, jwt).status == 401


def test_provisioning(environment, workspace):
    provider = Provider(workspace, name_claim="name", email_claim="email")
    with workspace.admin.socket() as socket:
        made = nobody(environment).ok("auth.exchange", token=provider.jwt("1", name="Ann Lee", email="ann@example.com"))["user"]
        assert made["name"] == "Ann.Lee" and made["real_name"] == "Ann Lee" and made["profile"]["email"] == "ann@example.com"
        joined = socket.expect({"type": "team_join"})["user"]
        assert joined["id"] == made["id"] and "email" not in joined["profile"]
    second = nobody(environment).ok("auth.exchange", token=provider.jwt("2", name="Ann Lee"))["user"]
    assert second["name"] == "Ann.Lee-2" and second["id"] != made["id"]
    nameless = nobody(environment).ok("auth.exchange", token=provider.jwt("3", name="<>"))["user"]
    assert nameless["name"].startswith("user-u")


def test_nobody_is_found_by_email(environment, workspace):
    admin = workspace.admin.ok("admin.users.create", name="boss", email="boss@example.com", is_admin=True)["user"]
    provider = Provider(workspace, email_claim="email")
    made = nobody(environment).ok("auth.exchange", token=provider.jwt("boss", email="boss@example.com", is_admin=True))["user"]
    assert made["id"] != admin["id"] and not made["is_admin"]


def test_an_unverified_email_is_not_taken(environment, workspace):
    provider = Provider(workspace, email_claim="email")
    made = nobody(environment).ok("auth.exchange", token=provider.jwt(email="a@example.com", email_verified=False))["user"]
    assert "email" not in made["profile"]


def test_without_provisioning(environment, workspace):
    provider = Provider(workspace, provision="never")
    ann = workspace.user()
    nobody(environment).fails("user_not_found", "auth.exchange", token=provider.jwt("42"))
    bearer(environment, provider.jwt("42")).fails("invalid_auth", "auth.test")
    linked = workspace.admin.ok("admin.users.update", user_id=ann.id, provider=provider.name, external_id="42")["user"]
    assert linked["external_id"] == "42" and linked["provider"] == provider.name
    assert nobody(environment).ok("auth.exchange", token=provider.jwt("42"))["user"]["id"] == ann.id
    assert nobody(environment).ok("auth.exchange", token=provider.jwt(42))["user"]["id"] == ann.id  # a number
    bob = workspace.user()
    workspace.admin.fails("name_taken", "admin.users.update", user_id=bob.id, provider=provider.name, external_id="42")
    workspace.admin.fails("user_not_found", "admin.users.update", user_id=workspace.bot().id, provider=provider.name, external_id="43")
    workspace.admin.fails("provider_not_found", "admin.users.update", user_id=bob.id, provider="none", external_id="43")
    workspace.admin.ok("admin.users.update", user_id=ann.id, provider=provider.name, external_id="")
    nobody(environment).fails("user_not_found", "auth.exchange", token=provider.jwt("42"))


def test_a_profile_is_kept_up_to_date(environment, workspace):
    provider = Provider(workspace, name_claim="name", email_claim="email", update_profile=True)
    nobody(environment).ok("auth.exchange", token=provider.jwt(name="Ann", email="a@example.com"))
    with workspace.admin.socket() as socket:
        changed = nobody(environment).ok("auth.exchange", token=provider.jwt(name="Ann Lee"))["user"]
        assert changed["real_name"] == "Ann Lee" and changed["name"] == "Ann" and changed["profile"]["email"] == "a@example.com"
        assert socket.expect({"type": "user_change"})["user"]["real_name"] == "Ann Lee"


def test_a_user_claim(environment, workspace):
    provider = Provider(workspace, user_claim="uid")
    first = nobody(environment).ok("auth.exchange", token=provider.jwt("a", uid="x"))["user"]["id"]
    assert nobody(environment).ok("auth.exchange", token=provider.jwt("b", uid="x"))["user"]["id"] == first
    for uid in (None, "", "x" * 256, ["x"], 1.5, True):
        nobody(environment).fails("invalid_token", "auth.exchange", token=provider.jwt("a", uid=uid))
    assert nobody(environment).ok("auth.exchange", token=provider.jwt("a", uid="x" * 255))["ok"]


def test_scopes(environment, workspace):
    provider = Provider(workspace, scopes="users:read")
    ann = environment.client(nobody(environment).ok("auth.exchange", token=provider.jwt())["token"])
    ann.ok("users.list")
    ann.fails("missing_scope", "channels.list")
    bearer(environment, provider.jwt()).fails("missing_scope", "channels.list")


def test_lifetimes(environment, workspace):
    provider = Provider(workspace, max_lifetime_s=100, leeway_s=10)
    long = nobody(environment).ok("auth.exchange", token=provider.jwt())["expires_at"]
    short = nobody(environment).ok("auth.exchange", token=provider.jwt(exp=int(time.time()) + 20))["expires_at"]
    assert abs(long - time.time() - 100) < 5 and abs(short - time.time() - 30) < 5


def test_a_session_ends(environment, workspace):
    provider = Provider(workspace, leeway_s=0)
    jwt = provider.jwt(exp=int(time.time()) + 4)
    token = nobody(environment).ok("auth.exchange", token=jwt)["token"]
    with Stream(environment.instances[0].url, jwt) as stream:
        stream.expect({"type": "hello"})
        wait_until(lambda: environment.client(token).call("auth.test").get("error") == "token_expired", what="the end of the token")
        stream.wait_ended()
    bearer(environment, jwt).fails("token_expired", "auth.test")
    nobody(environment).fails("token_expired", "auth.exchange", token=jwt)


def test_deactivation(environment, workspace, provider):
    jwt = provider.jwt()
    user = bearer(environment, jwt).ok("auth.test")["user_id"]
    workspace.admin.ok("admin.users.setActive", user_id=user, active=False)
    bearer(environment, jwt).fails("account_inactive", "auth.test")
    bearer(environment, provider.jwt(more=1)).fails("account_inactive", "auth.test")
    nobody(environment).fails("account_inactive", "auth.exchange", token=provider.jwt())
    wait_until(lambda: bearer(environment, jwt, 1).call("auth.test").get("error") == "account_inactive", timeout=1, what="the other instance")


def test_revocation_of_all(environment, workspace, provider):
    jwt, later = provider.jwt(), provider.jwt(iat=int(time.time()) + 2)
    exchanged = nobody(environment).ok("auth.exchange", token=jwt)
    ann = member(environment, exchanged)
    bearer(environment, jwt).ok("auth.test")
    with ann.socket() as socket:
        assert workspace.admin.ok("admin.users.revokeTokens", user_id=ann.id)["revoked"] == 2
        assert socket.wait_closed()[0] == 4001
    ann.fails("token_revoked", "auth.test")
    bearer(environment, jwt).fails("token_revoked", "auth.test")
    nobody(environment).fails("invalid_token", "auth.exchange", token=jwt)
    nobody(environment).fails("invalid_token", "auth.exchange", token=provider.jwt(iat=None))
    bearer(environment, provider.jwt(iat=None)).fails("invalid_token", "auth.test")
    assert nobody(environment).ok("auth.exchange", token=later)["user"]["id"] == ann.id
    workspace.admin.fails("user_not_found", "admin.users.revokeTokens", user_id="U0000000000")
    assert "issued_before" in workspace.admin.fails("invalid_arguments", "admin.users.revokeTokens", user_id=ann.id,
                                                    issued_before=int(time.time()) + 10).messages


def test_revocation_of_the_older_ones(environment, workspace, provider):
    now = int(time.time())
    old, new = provider.jwt(iat=now - 100), provider.jwt(iat=now - 10)
    user = bearer(environment, old).ok("auth.test")["user_id"]
    bearer(environment, new).ok("auth.test")
    assert workspace.admin.ok("admin.users.revokeTokens", user_id=user, issued_before=now - 50)["revoked"] == 1
    bearer(environment, old).fails("token_revoked", "auth.test")
    bearer(environment, new).ok("auth.test")


def test_logging_out_with_a_jwt(environment, provider):
    jwt = provider.jwt()
    bearer(environment, jwt).ok("auth.revoke")
    bearer(environment, jwt).fails("token_revoked", "auth.test")
    nobody(environment).fails("invalid_token", "auth.exchange", token=jwt)


def test_a_socket_goes_on(environment, workspace):
    provider = Provider(workspace, leeway_s=0)
    ann = member(environment, nobody(environment).ok("auth.exchange", token=provider.jwt(exp=int(time.time()) + 8)))
    with ann.socket(native=True) as socket, ann.socket() as plain:
        assert abs(socket.expect({"type": "auth_expires"})["at"] - time.time() - 8) < 5
        for n, token in enumerate((provider.jwt("bob"), provider.jwt()[:-2], "", "x", None, "e" * 8193)):
            assert socket.request({"id": n, "type": "auth_refresh", "token": token})["error"]["msg"] == "invalid_token"
        reply = socket.request({"id": 7, "type": "auth_refresh", "token": provider.jwt()})
        assert reply["ok"] is True and abs(reply["expires_at"] - time.time() - 600) < 10
        assert plain.wait_closed()[0] == 4001 and not plain.matching({"type": "auth_expires"})
        assert socket.request({"id": 8, "type": "ping"})["type"] == "pong"
        token = nobody(environment).ok("auth.exchange", token=provider.jwt())["token"]
        assert socket.request({"id": 9, "type": "auth_refresh", "token": token})["ok"] is True
        workspace.admin.ok("admin.tokens.revoke", revoke_token=token)
        assert socket.wait_closed()[0] == 4001  # it is this token that the socket lives by


def test_two_workspaces_with_one_provider(environment, workspace):
    first = Provider(workspace)
    other = environment.workspace()
    Provider(other, issuer=first.issuer)
    jwt = first.jwt()
    assert "workspace:" in nobody(environment).fails("invalid_arguments", "auth.exchange", token=jwt).messages
    bearer(environment, jwt).fails("invalid_auth", "auth.test")
    for named in (other.id, other.domain):
        assert nobody(environment).ok("auth.exchange", token=jwt, workspace=named)["workspace"]["id"] == other.id
    nobody(environment).fails("invalid_token", "auth.exchange", token=jwt, workspace="T0000000000")


def test_another_workspaces_provider(environment, workspace):
    """Its keys verify only its own workspace's tokens."""
    victim, thief = Provider(workspace), environment.workspace()
    own = Provider(thief, "a secret that the thief knows, of this length", issuer=victim.issuer)
    made = nobody(environment).ok("auth.exchange", token=own.jwt("ann"))
    assert made["workspace"]["id"] == thief.id
    nobody(environment).fails("invalid_token", "auth.exchange", token=own.jwt("ann"), workspace=workspace.id)


def test_a_deleted_provider(environment, workspace, provider):
    jwt = provider.jwt()
    user = bearer(environment, jwt).ok("auth.test")["user_id"]
    workspace.admin.ok("admin.auth.providers.delete", name=provider.name)
    bearer(environment, jwt).ok("auth.test")
    nobody(environment).fails("invalid_token", "auth.exchange", token=jwt)
    workspace.admin.ok("admin.auth.providers.create", name=provider.name, kind="jwt", issuer=provider.issuer, audience="tidings", secret=provider.key,
                       provision="create")
    assert nobody(environment).ok("auth.exchange", token=provider.jwt())["user"]["id"] != user


def test_changed_keys(environment, workspace, provider):
    workspace.admin.ok("admin.auth.providers.update", name=provider.name, secret="another secret, which is as long as it must be")
    nobody(environment).fails("invalid_token", "auth.exchange", token=provider.jwt())
    provider.key = "another secret, which is as long as it must be"
    assert nobody(environment).ok("auth.exchange", token=provider.jwt())


def test_without_a_token(environment):
    assert "token" in nobody(environment).fails("invalid_arguments", "auth.exchange").messages
    for token in ("x", "xoxp-x", "eyJ", "a.b.c", "e" * 8193):
        nobody(environment).fails("invalid_token", "auth.exchange", token=token)
    bearer(environment, "eyJ" + "a" * 8190).fails("invalid_token", "auth.test")
    bearer(environment, "eyJ" + "a" * 8189).fails("invalid_auth", "auth.test")


def test_many_at_once(environment, provider):
    """The first login of one user, by ten connections on two instances."""
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(10) as pool:
        users = list(pool.map(lambda n: bearer(environment, provider.jwt(n=n), n % 2).ok("auth.test")["user_id"], range(10)))
    assert len(set(users)) == 1
