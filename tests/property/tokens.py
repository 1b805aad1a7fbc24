# SPDX-License-Identifier: Apache-2.0
"""JWTs, right and wrong in one or two of many ways, each by a seed."""
import base64
import hashlib
import hmac
import json

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

ISSUER = "https://issuer.example"
AUDIENCES = ["tidings", "tidings-too"]
SECRET = "a secret that is long enough for HMAC with SHA-512, so by far for others"
HASHES = {"256": hashes.SHA256, "384": hashes.SHA384, "512": hashes.SHA512}
ORDER_256 = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
HMAC = ["HS256", "HS384", "HS512"]
RSA = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]
ALGORITHMS = [*HMAC, *RSA, "ES256", "ES384", "EdDSA"]


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value, length=None):
    return base64url(value.to_bytes(length or (value.bit_length() + 7) // 8, "big"))


def family(algorithm):
    return "RSA" if algorithm in RSA else "HMAC" if algorithm in HMAC else algorithm


def pem(key):
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()


def jwk(key, kid):
    public = key.public_key()
    if isinstance(public, rsa.RSAPublicKey):
        numbers = public.public_numbers()
        return {"kty": "RSA", "n": number(numbers.n), "e": number(numbers.e), "kid": kid}
    if isinstance(public, ed25519.Ed25519PublicKey):
        return {"kty": "OKP", "crv": "Ed25519", "x": base64url(public.public_bytes_raw()), "kid": kid}
    numbers, length = public.public_numbers(), public.key_size // 8
    return {"kty": "EC", "crv": f"P-{public.key_size}", "x": number(numbers.x, length), "y": number(numbers.y, length), "kid": kid}


class Keys:
    """Two keys of each family: a provider's, and a stranger's."""

    def __init__(self):
        makers = {"RSA": lambda: rsa.generate_private_key(65537, 2048), "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
                  "ES384": lambda: ec.generate_private_key(ec.SECP384R1()), "EdDSA": ed25519.Ed25519PrivateKey.generate}
        self.ours = {name: make() for name, make in makers.items()} | {"HMAC": SECRET}
        self.others = {name: make() for name, make in makers.items()} | {"HMAC": SECRET[::-1]}

    def sets(self):
        """The provider's keys by family: a JWK Set, or the secret."""
        return {name: key if name == "HMAC" else json.dumps({"keys": [jwk(key, "ours")]}) for name, key in self.ours.items()}


def salt_of(algorithm):
    return HASHES[algorithm[2:]].digest_size


def sign(algorithm, key, text, salt=None):
    """The signature as JWS has it."""
    if algorithm in HMAC:
        return hmac.new(key.encode(), text, getattr(hashlib, f"sha{algorithm[2:]}")).digest()
    if algorithm == "EdDSA":
        return key.sign(text)
    digest = HASHES[algorithm[2:]]()
    if algorithm.startswith("ES"):
        r, s = decode_dss_signature(key.sign(text, ec.ECDSA(digest)))
        length = int(algorithm[2:]) // 8
        return r.to_bytes(length, "big") + s.to_bytes(length, "big")
    if algorithm.startswith("PS"):
        length = salt_of(algorithm) if salt is None else salt
        return key.sign(text, padding.PSS(padding.MGF1(digest), length), digest)
    return key.sign(text, padding.PKCS1v15(), digest)


class Token:
    """A good token, before it is spoilt."""

    def __init__(self, algorithm, keys, now):
        self.algorithm, self.keys, self.now = algorithm, keys, now
        self.key = keys.ours[family(algorithm)]
        self.header = {"alg": algorithm, "kid": "ours", "typ": "JWT"}
        self.claims = {"iss": ISSUER, "aud": AUDIENCES[0], "sub": "ann", "iat": now, "exp": now + 600}
        self.signed_as, self.salt = algorithm, None
        self.texts = []  # changes of header's and claims' JSON
        self.after = []  # of the three parts

    def write(self):
        texts = [json.dumps(self.header), json.dumps(self.claims)]
        for change in self.texts:
            texts = change(texts)
        parts = [base64url(text.encode()) for text in texts]
        signature = b"" if self.signed_as is None else sign(self.signed_as, self.key, ".".join(parts).encode(), self.salt)
        parts.append(base64url(signature))
        for change in self.after:
            parts = change(parts)
        return ".".join(parts)


def bytes_of(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def header(**members):
    return lambda token, _: token.header.update(members)


def claims(**members):
    return lambda token, _: token.claims.update(members)


def without(name):
    return lambda token, _: (token.claims.pop(name, None), None)


def moment(name, seconds):
    return lambda token, _: token.claims.update({name: token.now + seconds})


def signature(change):
    return lambda token, random: token.after.append(lambda parts: [*parts[:2], base64url(change(bytes_of(parts[2]), random))])


def part(which, change):
    return lambda token, _: token.after.append(lambda parts: [change(text) if n == which else text for n, text in enumerate(parts)])


def whole(change):
    return lambda token, _: token.after.append(change)


def flipped(data, random):
    at = random.randrange(len(data)) if data else 0
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1:] if data else b"x"


def trailing_bits(text):
    """The same bytes by another last character, where it has bits to spare."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return text[:-1] + letters[letters.index(text[-1]) ^ 1] if len(text) % 4 in (2, 3) else text + "A"


def is_ecdsa(token):
    return token.signed_as in ("ES256", "ES384")


def der(token, _):
    """ECDSA's signature in DER, as OpenSSL has it."""
    if is_ecdsa(token):
        from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
        half = int(token.signed_as[2:]) // 8
        token.after.append(lambda parts: [*parts[:2], base64url(encode_dss_signature(
            int.from_bytes(bytes_of(parts[2])[:half], "big"), int.from_bytes(bytes_of(parts[2])[half:], "big")))])
    else:
        token.claims["iss"] = "https://other.example"


def mirrored(token, _):
    """s and n - s are both right."""
    if token.signed_as == "ES256":
        token.after.append(lambda parts: [*parts[:2], base64url(bytes_of(parts[2])[:32] + (
            ORDER_256 - int.from_bytes(bytes_of(parts[2])[32:], "big")).to_bytes(32, "big"))])


def stranger(token, _):
    token.key = token.keys.others[family(token.algorithm)]


def confused(token, _):
    """HMAC with the public key as its secret."""
    if family(token.algorithm) == "HMAC":
        token.key = token.keys.others["HMAC"]
    else:
        token.key = pem(token.keys.ours[family(token.algorithm)])
        token.signed_as = token.header["alg"] = "HS256"


def unsigned(token, _):
    token.signed_as, token.header["alg"] = None, "none"


def other_algorithm(token, random):
    token.header["alg"] = random.choice([name for name in ALGORITHMS if name != token.algorithm])


def carried_key(token, _):
    stranger(token, _)
    if family(token.algorithm) != "HMAC":
        token.header["jwk"] = jwk(token.key, "ours")


def other_salt(token, _):
    if token.signed_as and token.signed_as.startswith("PS"):
        token.salt = 0
    else:
        token.claims["aud"] = "other"


def twice(which, member):
    """A member again in front: the last one counts for most libraries, the first one for some."""
    return lambda token, _: token.texts.append(lambda texts: [
        "{" + member + ", " + text[1:] if n == which else text for n, text in enumerate(texts)])


# What is done to tokens: those after which the token is still good, then those that spoil it.
HARMLESS = {
    "nothing": lambda token, random: None,
    "audiences": claims(aud=["other", AUDIENCES[1]], azp=AUDIENCES[0]),
    "one audience in a list": claims(aud=[AUDIENCES[1]]),
    "more claims": claims(email="ann@example.com", roles={"a": [1, 2.5, None, True]}),
    "expired within the leeway": moment("exp", -30),
    "valid from within the leeway": moment("nbf", 30),
    "issued within the leeway": moment("iat", 30),
    "without iat": without("iat"),
    "fractions of seconds": moment("exp", 600.5),
    "without type": lambda token, random: (token.header.pop("typ"), None),
    "access token": header(typ="at+jwt"),
    "jku": header(jku="https://stranger.example/keys"),
    "x5u": header(x5u="https://stranger.example/chain"),
    "x5t": header(x5t="AAAA"),
    "unknown header": header(tidings="1"),
    "mirrored": mirrored,
}
SPOILING = {
    "unsigned": unsigned, "confused": confused, "stranger": stranger, "other algorithm": other_algorithm, "carried key": carried_key,
    "none, in other letters": header(alg="nOnE"), "alg in small letters": lambda token, random: token.header.update(alg=token.algorithm.lower()),
    "alg is a number": header(alg=1), "no alg": lambda token, random: (token.header.pop("alg", None), None),
    "critical": header(crit=["exp"], exp=1), "critical, unknown": header(crit=["tidings"], tidings=1), "critical b64": header(crit=["b64"], b64=False),
    "nothing critical": header(crit=[]), "unknown kid": header(kid="../../../../dev/null"), "kid by SQL": header(kid="' UNION SELECT 'x"),
    "long kid": header(kid="k" * 129), "kid is a number": header(kid=1), "kid is empty": header(kid=""),
    "log-out token": header(typ="logout+jwt"), "other type": header(typ="dpop+jwt"),
    "other issuer": claims(iss=ISSUER + "/"), "issuer's start": claims(iss=ISSUER[:-1]), "no issuer": without("iss"), "issuers": claims(iss=[ISSUER]),
    "other audience": claims(aud="tidings-three"), "no audience": without("aud"), "other audiences": claims(aud=["a", "b"]),
    "audience's start": claims(aud="tiding"), "audiences nested": claims(aud=[[AUDIENCES[0]]]), "audience and a number": claims(aud=[AUDIENCES[0], 1]),
    "audience in an object": claims(aud={AUDIENCES[0]: 1}), "empty audiences": claims(aud=[]),
    "audiences without azp": claims(aud=[AUDIENCES[0], "other"], azp=None), "other party": claims(aud=[AUDIENCES[0], "other"], azp="other"),
    "expired": moment("exp", -70), "long expired": moment("exp", -86400), "no expiry": without("exp"), "expiry in text": claims(exp="99999999999"),
    "expiry in milliseconds": lambda token, random: token.claims.update(exp=(token.now + 600) * 1000), "expiry is true": claims(exp=True),
    "expiry is null": claims(exp=None), "negative expiry": claims(exp=-1), "expiry too large": claims(exp=10**30),
    "not valid yet": moment("nbf", 90), "valid from a text": claims(nbf="0"), "issued later": moment("iat", 90), "issued at a text": claims(iat="x"),
    "flipped signature": signature(flipped), "short signature": signature(lambda data, random: data[:-1]),
    "long signature": signature(lambda data, random: data + b"\0"), "zeros before": signature(lambda data, random: b"\0" + data),
    "no signature": signature(lambda data, random: b""), "zero signature": signature(lambda data, random: b"\0" * len(data)),
    "ones": signature(lambda data, random: b"\xff" * len(data)), "der": der, "other salt": other_salt,
    "padded": part(1, lambda text: text + "=" * (-len(text) % 4 or 4)), "padded signature": part(2, lambda text: text + "=" * (-len(text) % 4 or 4)),
    "blank": part(1, lambda text: text[:4] + " " + text[4:]), "line feed": part(2, lambda text: text + "\n"), "dot": part(2, lambda text: text + "."),
    "other alphabet": part(1, lambda text: text[:-4] + "+/+/"), "trailing bits": part(2, trailing_bits), "letters beyond": part(1, lambda text: text + "é"),
    "two parts": whole(lambda parts: parts[:2]), "four parts": whole(lambda parts: [*parts, parts[2]]),
    "five parts": whole(lambda parts: [parts[0], "AAAA", "AAAA", "AAAA", "AAAA"]), "empty header": part(0, lambda text: ""),
    "empty claims": part(1, lambda text: ""), "header is a list": part(0, lambda text: base64url(b"[]")),
    "claims are a text": part(1, lambda text: base64url(b'"x"')), "bad JSON": part(0, lambda text: base64url(b"{")),
    "bad UTF-8": lambda token, random: token.after.append(lambda parts: [parts[0], base64url(b'{"sub":"\xff"}'), parts[2]]),
    "JSON and more": lambda token, random: token.texts.append(lambda texts: [texts[0], texts[1] + " {}"]),
    "NaN": lambda token, random: token.texts.append(lambda texts: [texts[0], texts[1][:-1] + ', "n": NaN}']),
    "alg twice": twice(0, '"alg": "none"'), "issuer twice": twice(1, '"iss": "https://other.example"'), "expiry twice": twice(1, '"exp": 1'),
    "subject twice": twice(1, '"sub": "bob"'), "nested too deep": lambda token, random: token.claims.update(
        deep=json.loads("[" * 20 + "]" * 20)), "too long": claims(more="x" * 8192),
}
