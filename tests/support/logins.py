# SPDX-License-Identifier: Apache-2.0
"""A workspace with an identity provider, and JWTs that this one issues."""
import json
import time

from tests.property.tokens import SECRET, base64url, family, jwk, sign
from tests.support.workspace import fresh_name

AUDIENCE = "tidings"


def signed(header, claims, key, algorithm):
    text = f"{base64url(json.dumps(header).encode())}.{base64url(json.dumps(claims).encode())}"
    return f"{text}.{base64url(sign(algorithm, key, text.encode()))}"


class Provider:
    """Registered as `name` in the workspace; `arguments` as for admin.auth.providers.create."""

    def __init__(self, workspace, key=SECRET, algorithm="HS256", issuer=None, **arguments):
        self.workspace, self.key, self.algorithm = workspace, key, algorithm
        self.name = fresh_name("provider")
        self.issuer = issuer or f"https://{self.name}.example"
        given = {"secret": key} if family(algorithm) == "HMAC" else {"keys": jwk(key, "ours")}
        workspace.admin.ok("admin.auth.providers.create", name=self.name, kind="jwt", issuer=self.issuer,
                           **{"provision": "create", "audience": AUDIENCE, **given, **arguments})

    def claims(self, subject="ann", **claims):
        now = int(time.time())
        made = {"iss": self.issuer, "aud": AUDIENCE, "sub": subject, "iat": now, "exp": now + 600, **claims}
        return {name: value for name, value in made.items() if value is not None}

    def jwt(self, subject="ann", header=None, **claims):
        return signed({"alg": self.algorithm, "kid": "ours", **(header or {})}, self.claims(subject, **claims), self.key, self.algorithm)
