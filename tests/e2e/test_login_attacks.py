# SPDX-License-Identifier: Apache-2.0
"""Attacks on logins by JWT. Each is refused with the same words, both in auth.exchange and as a bearer, and logs nobody in.

tests/property/test_jwt.py tries all of them with each algorithm on the parser alone."""
import json
import time

import pytest

from tests.property.tokens import AUDIENCES, HARMLESS, SPOILING, Keys, Token, base64url, family, jwk, pem
from tests.support.client import Client
from tests.support.logins import Provider, signed

ALGORITHMS = ["HS256", "RS256", "ES256", "EdDSA"]
EXPIRED = ("expired", "long expired")


@pytest.fixture(scope="module")
def keys():
    return Keys()


@pytest.fixture(scope="module")
def providers(plain_environment, keys):
    """One for each algorithm, whose audiences are those of the tokens."""
    workspace = plain_environment.workspace()
    return {name: Provider(workspace, keys.ours[family(name)], name, audience=AUDIENCES) for name in ALGORITHMS}


def outcomes(environment, jwt):
    """Of auth.exchange and of a call with the JWT as the bearer token."""
    exchanged = environment.client().call("auth.exchange", token=jwt)
    try:
        called = Client(environment.instances[0].url, jwt).call("auth.test").get("error")
    except (UnicodeError, ValueError):  # no header can carry it
        called = "invalid_auth"
    return exchanged.get("error"), called


class Random:
    """The first of everything."""
    choice = staticmethod(lambda items: items[0])
    randrange = staticmethod(lambda *_: 0)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("attack", SPOILING)
def test_an_attack(plain_environment, keys, providers, algorithm, attack):
    token = Token(algorithm, keys, int(time.time()))
    token.claims["iss"] = providers[algorithm].issuer
    SPOILING[attack](token, Random())
    jwt = token.write()
    if algorithm == "HS256" and attack in ("unknown kid", "kid by SQL"):
        assert outcomes(plain_environment, jwt) == (None, None)  # a secret has no kid
        return
    said = outcomes(plain_environment, jwt)
    assert said[0] == ("token_expired" if attack in EXPIRED else "invalid_token")
    assert said[1] in (("token_expired",) if attack in EXPIRED else ("invalid_auth", "invalid_token"))
    if said[1] == "invalid_token":
        assert attack == "too long"


@pytest.mark.parametrize("variety", HARMLESS)
def test_what_is_no_attack(plain_environment, keys, providers, variety):
    token = Token("ES256", keys, int(time.time()))
    token.claims["iss"] = providers["ES256"].issuer
    HARMLESS[variety](token, Random())
    assert outcomes(plain_environment, token.write()) == (None, None)


def test_the_errors_are_alike(environment, workspace):
    """Nobody learns which issuers there are."""
    provider = Provider(workspace)
    stranger = environment.client()
    replies = {stranger.call("auth.exchange", token=jwt).body for jwt in (
        provider.jwt(iss="https://unknown.example"), provider.jwt(aud="other"), provider.jwt() + "AAAA", provider.jwt(exp=None), "eyJ")}
    assert len(replies) == 1


def test_the_public_key_as_secret(environment, workspace, keys):
    """In each form in which an attacker may have it."""
    key = keys.ours["RSA"]
    provider = Provider(workspace, key, "RS256")
    own = jwk(key, "ours")
    for secret in (pem(key), pem(key).strip(), json.dumps(own), own["n"]):
        jwt = signed({"alg": "HS256", "kid": "ours"}, provider.claims(), secret, "HS256")
        assert outcomes(environment, jwt) == ("invalid_token", "invalid_auth")


def test_an_algorithm_that_the_provider_does_not_allow(environment, workspace, keys):
    provider = Provider(workspace, keys.ours["RSA"], "RS256", algs="PS256")
    assert outcomes(environment, provider.jwt()) == ("invalid_token", "invalid_auth")
    workspace.admin.ok("admin.auth.providers.update", name=provider.name, algs="PS256,RS256")
    assert outcomes(environment, provider.jwt(n=1)) == (None, None)


def test_kid_of_another_key(environment, workspace, keys):
    one, other = keys.ours["ES256"], keys.others["ES256"]
    provider = Provider(workspace, one, "ES256", keys={"keys": [jwk(one, "one"), jwk(other, "other")]})
    assert outcomes(environment, provider.jwt(header={"kid": "one"})) == (None, None)
    assert outcomes(environment, provider.jwt(header={"kid": "other"}))[0] == "invalid_token"
    header = {"alg": "ES256"}
    assert outcomes(environment, signed(header, provider.claims(), other, "ES256")) == (None, None)  # without kid each is tried


def test_a_jwt_beside_its_twin(environment, workspace):
    """A remembered JWT is remembered by all of its bytes."""
    provider = Provider(workspace)
    jwt = provider.jwt()
    assert outcomes(environment, jwt) == (None, None)
    header, claims, signature = jwt.split(".")
    forged = base64url(json.dumps(provider.claims("boss")).encode())
    assert outcomes(environment, f"{header}.{forged}.{signature}") == ("invalid_token", "invalid_auth")
    assert outcomes(environment, f"{header}.{claims}.{signature}=") == ("invalid_token", "invalid_auth")


def test_an_encrypted_key_moved_to_another_row(environment, workspace):
    """Who can write to the table cannot give a provider keys that were sealed for another one."""
    mine, theirs = Provider(workspace), Provider(environment.workspace(), "another secret, which is as long as it must be")
    with environment.database() as database:
        database.execute("UPDATE auth_providers p SET keys = o.keys FROM auth_providers o WHERE p.name = %s AND o.name = %s", [mine.name, theirs.name])
    mine.key = theirs.key
    assert outcomes(environment, mine.jwt()) == ("invalid_token", "invalid_auth")


def test_a_jwt_for_an_admin(environment, workspace):
    """Claims give no rights."""
    provider = Provider(workspace, user_claim="sub")
    token = environment.client().ok("auth.exchange", token=provider.jwt("eve", is_admin=True, scope="admin", roles=["admin"]))["token"]
    environment.client(token).fails("no_permission", "admin.users.list")


def test_sql_in_claims(environment, workspace):
    provider = Provider(workspace, name_claim="name")
    for text in ("'; DROP TABLE users; --", "%s%n", "\u202eann", "{}", "a,b"):
        assert outcomes(environment, provider.jwt(text, name=text)) == (None, None)
    assert environment.client().call("auth.exchange", token=provider.jwt("x\u0000y")).get("error") == "invalid_token"

