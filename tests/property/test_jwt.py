# SPDX-License-Identifier: Apache-2.0
"""What src/login says of a JWT is what PyJWT and joserfc say, but for the differences listed here, in which it is stricter."""
import json
import os
import random
import subprocess
import time
from collections import Counter

import joserfc.errors
import jwt as pyjwt
import pytest
from joserfc import jwk as joserfc_jwk
from joserfc import jwt as joserfc_jwt

from tests.property.tokens import ALGORITHMS, AUDIENCES, HARMLESS, HMAC, ISSUER, RSA, SPOILING, Keys, Token, family
from tools.project import BUILD
from tools.services import sanitizer_prefix

VERDICTS = BUILD / "dev/tests/unit/jwt_verdicts"
LEEWAY_S = 60

# Tokens that both libraries accept and src/login refuses, and why.
STRICTER = {
    "alg twice": "which member counts differs from library to library", "issuer twice": "likewise", "expiry twice": "likewise",
    "subject twice": "likewise", "audiences without azp": "who else gets the token could use it here", "other party": "likewise",
    "expiry in milliseconds": "beyond the year 9999 it is a mistake", "expiry too large": "likewise", "NaN": "it is not JSON",
    "kid is empty": "it names no key", "long kid": "a limit", "too long": "a limit", "nested too deep": "a limit",
    "log-out token": "it is no proof of a log-in", "other type": "likewise",
}
# Only PyJWT accepts these.
STRICTER_THAN_PYJWT = {"expiry in text": "it must be a number", "valid from a text": "likewise", "padded signature": "one form for one signature"}
# Only joserfc accepts the one, and only joserfc refuses the other.
STRICTER_THAN_JOSERFC = {"nothing critical": "an empty `crit` is not allowed"}
LAXER_THAN_JOSERFC = {"unknown header": "what is unknown and not critical is ignored (RFC 7515, 4)"}
OF_CLAIMS = [name for name in SPOILING if name.startswith(("other a", "no ", "audience", "expir", "issue"))]
ALLOWED = {"HMAC": HMAC, "RSA": RSA, "ES256": ["ES256"], "ES384": ["ES384"], "EdDSA": ["EdDSA"]}


def by_pyjwt(token, keys, kind):
    try:
        kid = pyjwt.get_unverified_header(token).get("kid")
        if kind != "HMAC" and kid not in ("ours", None):
            return "unknown key"
        key = keys[kind] if kind == "HMAC" else pyjwt.PyJWKSet.from_json(keys[kind]).keys[0].key
        pyjwt.decode(token, key, algorithms=ALLOWED[kind], issuer=ISSUER, audience=AUDIENCES, leeway=LEEWAY_S, options={"require": ["exp", "iss", "aud"]})
    except (pyjwt.PyJWTError, UnicodeError, ValueError, TypeError, OverflowError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"
    return "ok"


def by_joserfc(token, keys, kind):
    try:
        key = joserfc_jwk.OctKey.import_key(keys[kind]) if kind == "HMAC" else joserfc_jwk.KeySet.import_key_set(json.loads(keys[kind]))
        decoded = joserfc_jwt.decode(token, key, algorithms=ALLOWED[kind])
        joserfc_jwt.JWTClaimsRegistry(now=int(time.time()), leeway=LEEWAY_S, iss={"essential": True, "value": ISSUER},
                                      aud={"essential": True, "values": AUDIENCES}, exp={"essential": True}).validate(decoded.claims)
    except (joserfc.errors.JoseError, UnicodeError, ValueError, TypeError, OverflowError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"
    return "ok"


def is_expected(library, done):
    """Whether the library's verdict may differ from ours."""
    names = {"PyJWT": STRICTER_THAN_PYJWT, "joserfc": STRICTER_THAN_JOSERFC | LAXER_THAN_JOSERFC}[library] | STRICTER
    return any(name in names for name in done)


def is_good(algorithm, done):
    """A secret has no `kid`, so that any is taken."""
    return all(name in HARMLESS or (algorithm in HMAC and name in ("unknown kid", "kid by SQL")) for name in done)


def ours(questions):
    program = subprocess.run([*sanitizer_prefix(str(VERDICTS)), str(VERDICTS)], input="".join(json.dumps(question) + "\n" for question in questions),
                             capture_output=True, text=True, timeout=120, check=True)
    return program.stdout.splitlines()


def made(keys, count, chance):
    """Tokens, each with what was done to it: nothing that spoils it, or one or two things that do."""
    now = int(time.time())
    for n in range(count):
        algorithm = ALGORITHMS[n % len(ALGORITHMS)]
        done = [chance.choice(list(HARMLESS))] + ([chance.choice(list(SPOILING))] if n % 3 else [])
        if len(done) > 1 and chance.random() < 0.25:
            done.append(chance.choice(OF_CLAIMS))
        token = Token(algorithm, keys, now)
        for name in done:
            (HARMLESS | SPOILING)[name](token, chance)
        yield algorithm, done, token.write()


def compare(count):
    seed = int(os.environ.get("JWT_SEED", random.randrange(2**32)))
    keys = Keys()
    sets = keys.sets()
    tokens = list(made(keys, count, random.Random(seed)))
    questions = [{"token": token, "secret" if family(algorithm) == "HMAC" else "keys": sets[family(algorithm)], "algs": ALLOWED[family(algorithm)],
                  "issuer": ISSUER, "audiences": AUDIENCES, "now": int(time.time())} for algorithm, _, token in tokens]
    found, seen = Counter(), Counter()
    for (algorithm, done, token), mine in zip(tokens, ours(questions), strict=True):
        assert mine in ("ok", "invalid_token", "token_expired"), (seed, done, mine)
        seen[mine] += 1
        assert (mine == "ok") == is_good(algorithm, done), (seed, algorithm, done, mine, token)
        for library, judge in (("PyJWT", by_pyjwt), ("joserfc", by_joserfc)):
            theirs = judge(token, sets, family(algorithm))
            if (mine == "ok") != (theirs == "ok") and not is_expected(library, done):
                found[(library, tuple(done), mine, theirs[:80])] += 1
    assert not found, (seed, found)
    assert seen["ok"] > count / 5 and seen["invalid_token"] > count / 5 and seen["token_expired"] > 0, (seed, seen)


def test_same_verdicts():
    compare(500)


@pytest.mark.long
def test_same_verdicts_of_many():
    compare(10_000)
