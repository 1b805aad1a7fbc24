# SPDX-License-Identifier: Apache-2.0
"""admin.auth.providers.*: keys are checked when they are set, stored encrypted, and never returned."""
import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from tests.property.tokens import jwk, pem
from tests.support.command import run

SECRET = "a secret of this provider, long enough"
FIXED = {"kind": "jwt", "issuer": "https://issuer.example/", "audience": "tidings"}
DEFAULTS = {"user_claim": "sub", "provision": "never", "update_profile": False, "max_lifetime_s": 86400, "leeway_s": 60, "scopes": ""}
ASYMMETRIC = {"RSA": ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"], "P-256": ["ES256"], "P-384": ["ES384"], "Ed25519": ["EdDSA"]}
MAKERS = {"RSA": lambda: rsa.generate_private_key(65537, 2048), "P-256": lambda: ec.generate_private_key(ec.SECP256R1()),
          "P-384": lambda: ec.generate_private_key(ec.SECP384R1()), "Ed25519": ed25519.Ed25519PrivateKey.generate}


@pytest.fixture(scope="module")
def keys():
    return {name: make() for name, make in MAKERS.items()}


def stored(environment, workspace):
    with environment.database() as database:
        return database.execute("SELECT keys, to_jsonb(p)::text FROM auth_providers p WHERE workspace_id = %s", [workspace.id]).fetchone()


@pytest.mark.parametrize("encoding", ["json", "form"])
def test_a_secret(environment, workspace, encoding):
    admin = workspace.admin
    provider = admin.ok("admin.auth.providers.create", name="own", encoding=encoding, secret=SECRET, **FIXED)["provider"]
    assert provider.pop("created") > 0
    assert provider == {"name": "own", "kind": "jwt", "issuer": FIXED["issuer"], "audience": ["tidings"], "algs": ["HS256", "HS384", "HS512"],
                        "keys_by": "secret", **DEFAULTS}
    sealed, row = stored(environment, workspace)
    assert sealed.startswith("sealed1.") and SECRET not in row
    assert all(SECRET not in instance.log.read_text() for instance in environment.instances)


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("form", ["pem", "jwk", "set", "text"])
def test_public_keys(environment, workspace, keys, kind, form):
    one = jwk(keys[kind], "one")
    given = {"pem": pem(keys[kind]), "jwk": one, "set": {"keys": [one]}, "text": json.dumps({"keys": [one, {**one, "kid": "two"}]})}[form]
    provider = workspace.admin.ok("admin.auth.providers.create", name="p", keys=given, **FIXED)["provider"]
    assert provider["algs"] == ASYMMETRIC[kind] and provider["keys_by"] == "keys"
    assert stored(environment, workspace)[0].startswith("sealed1.")


def test_all_arguments(workspace):
    given = {"audience": ["a", "b,c"], "algs": ["HS256", "HS512"], "user_claim": "uid", "name_claim": "name", "email_claim": "email",
             "provision": "create", "update_profile": True, "max_lifetime_s": 31536000, "leeway_s": 0, "scopes": "chat:write,users:read"}
    provider = workspace.admin.ok("admin.auth.providers.create", name="p", secret=SECRET, **{**FIXED, **given})["provider"]
    assert {name: provider[name] for name in given} == given
    assert workspace.admin.ok("admin.auth.providers.list")["providers"] == [provider]


def test_names(workspace):
    admin = workspace.admin
    admin.ok("admin.auth.providers.create", name="p", secret=SECRET, **FIXED)
    admin.fails("name_taken", "admin.auth.providers.create", name="p", secret=SECRET, **FIXED)
    assert "name:" in admin.fails("invalid_arguments", "admin.auth.providers.create", name="a b", secret=SECRET, **FIXED).messages


def private(key):
    return {**jwk(key, "p"), "d": "AAAA"}


BAD = [
    ({}, "invalid_arguments", "secret, keys"), ({"secret": SECRET, "keys": "x"}, "invalid_arguments", "secret, keys"),
    ({"secret": "s" * 31}, "invalid_key", "secret"), ({"secret": "s" * 1025}, "invalid_key", "secret"),
    ({"keys": "x"}, "invalid_key", "keys"), ({"keys": {"keys": []}}, "invalid_key", "keys"),
    ({"keys": {"kty": "oct", "k": "A" * 43}}, "invalid_key", "keys"), ({"keys": lambda: private(MAKERS["RSA"]())}, "invalid_key", "keys"),
    ({"keys": lambda: pem(rsa.generate_private_key(65537, 1024))}, "invalid_key", "keys"),
    ({"keys": lambda: pem(ec.generate_private_key(ec.SECP521R1()))}, "invalid_key", "keys"),
    ({"keys": lambda: pem(ec.generate_private_key(ec.SECP256K1()))}, "invalid_key", "keys"),
    ({"secret": SECRET, "algs": "RS256"}, "invalid_arguments", "algs"), ({"secret": SECRET, "algs": "none"}, "invalid_arguments", "algs"),
    ({"keys": lambda: pem(MAKERS["P-256"]()), "algs": "HS256"}, "invalid_arguments", "algs"),
    ({"secret": SECRET, "kind": "saml"}, "invalid_arguments", "kind"), ({"secret": SECRET, "issuer": ""}, "invalid_arguments", "issuer"),
    ({"secret": SECRET, "issuer": "i" * 256}, "invalid_arguments", "issuer"), ({"secret": SECRET, "audience": []}, "invalid_arguments", "audience"),
    ({"secret": SECRET, "audience": ["a"] * 17}, "invalid_arguments", "audience"), ({"secret": SECRET, "audience": [1]}, "invalid_arguments", "audience"),
    ({"secret": SECRET, "audience": "a" * 256}, "invalid_arguments", "audience"), ({"secret": SECRET, "provision": "always"}, "invalid_arguments", "provision"),
    ({"secret": SECRET, "leeway_s": 601}, "invalid_arguments", "leeway_s"), ({"secret": SECRET, "max_lifetime_s": 0}, "invalid_arguments", "max_lifetime_s"),
    ({"secret": SECRET, "user_claim": "c" * 81}, "invalid_arguments", "user_claim"), ({"secret": SECRET, "scopes": "A"}, "invalid_arguments", "scopes"),
    ({"secret": SECRET, "update_profile": "perhaps"}, "invalid_arguments", "update_profile"),
]


@pytest.mark.parametrize("given, error, named", BAD, ids=[f"{named}-{n}" for n, (_, _, named) in enumerate(BAD)])
def test_what_is_refused(workspace, given, error, named):
    given = {name: value() if callable(value) else value for name, value in given.items()}
    reply = workspace.admin.fails(error, "admin.auth.providers.create", name="p", **{**FIXED, **given})
    assert named in reply.messages and SECRET not in reply.messages
    assert workspace.admin.ok("admin.auth.providers.list")["providers"] == []


def test_updates(environment, workspace, keys):
    admin = workspace.admin
    admin.ok("admin.auth.providers.create", name="p", secret=SECRET, **FIXED)
    before = stored(environment, workspace)[0]
    changed = admin.ok("admin.auth.providers.update", name="p", leeway_s=5, audience="other")["provider"]
    assert changed["leeway_s"] == 5 and changed["audience"] == ["other"] and changed["max_lifetime_s"] == 86400
    assert stored(environment, workspace)[0] == before
    assert "algs:" in admin.fails("invalid_arguments", "admin.auth.providers.update", name="p", algs="RS256").messages
    changed = admin.ok("admin.auth.providers.update", name="p", keys=pem(keys["RSA"]))["provider"]
    assert changed["algs"] == ASYMMETRIC["RSA"] and changed["keys_by"] == "keys" and changed["leeway_s"] == 5
    assert admin.ok("admin.auth.providers.update", name="p", algs="PS256")["provider"]["algs"] == ["PS256"]
    admin.fails("invalid_key", "admin.auth.providers.update", name="p", secret="short")
    admin.fails("provider_not_found", "admin.auth.providers.update", name="q", leeway_s=5)


def test_deletion(workspace):
    admin = workspace.admin
    admin.ok("admin.auth.providers.create", name="p", secret=SECRET, **FIXED)
    admin.ok("admin.auth.providers.delete", name="p")
    admin.fails("provider_not_found", "admin.auth.providers.delete", name="p")
    assert admin.ok("admin.auth.providers.list")["providers"] == []


def test_another_workspaces(environment, workspace):
    workspace.admin.ok("admin.auth.providers.create", name="p", secret=SECRET, **FIXED)
    other = environment.workspace().admin
    assert other.ok("admin.auth.providers.list")["providers"] == []
    other.fails("provider_not_found", "admin.auth.providers.update", name="p", leeway_s=5)
    other.fails("provider_not_found", "admin.auth.providers.delete", name="p")


def test_the_command(environment, workspace):
    settings = {"DATABASE_URL": environment.postgres.url, "REDIS_URL": environment.redis.url, "SECRET_KEY": "7" * 64}
    done = run("admin", "auth.providers.create", f"workspace={workspace.id}", "name=p", f"secret={SECRET}",
               *(f"{name}={value}" for name, value in FIXED.items()), **settings)
    assert done.returncode == 0 and json.loads(done.stdout)["provider"]["name"] == "p"
    assert run("admin", "auth.providers.delete", f"workspace={workspace.id}", "name=p", **settings).returncode == 0
    done = run("admin", "auth.providers.create", f"workspace={workspace.id}", "name=p", f"secret={SECRET}",
               *(f"{name}={value}" for name, value in FIXED.items()), **{**settings, "SECRET_KEY": ""})
    assert done.returncode == 1 and json.loads(done.stdout)["error"] == "secret_key_missing"
