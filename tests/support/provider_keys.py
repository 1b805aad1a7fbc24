# SPDX-License-Identifier: Apache-2.0
"""Keys of push providers, made by openssl, and the addresses of devices."""

import base64
import functools
import json
import os
import subprocess


def _openssl(*arguments, text=None):
    return subprocess.run(["openssl", *arguments], input=text, capture_output=True, check=True, timeout=60).stdout


@functools.cache
def ec_key(curve="P-256"):
    """A private key in PEM, as Apple's .p8 has it."""
    return _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", f"ec_paramgen_curve:{curve}").decode()


@functools.cache
def rsa_key(bits=2048):
    return _openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", f"rsa_keygen_bits:{bits}").decode()


def service_account(**changes):
    account = {"type": "service_account", "project_id": "demo-1", "private_key_id": "1", "private_key": rsa_key(),
               "client_email": "push@demo-1.iam.gserviceaccount.com", "token_uri": "https://oauth2.googleapis.com/token"}
    return json.dumps({name: value for name, value in {**account, **changes}.items() if value is not None})


APNS = {"platform": "apns", "key_id": "ABCDE12345", "team_id": "TEAM123456", "topic": "com.example.chat"}


def apps():
    """The arguments of a push app of each platform, without its name."""
    return {"apns": {**APNS, "key": ec_key()}, "fcm": {"platform": "fcm", "service_account": service_account()},
            "webpush": {"platform": "webpush", "subject": "mailto:ops@example.com"}, "matrix": {"platform": "matrix"}}


def base64url(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@functools.cache
def browser_key():
    """The public key of a subscription: a point on P-256."""
    return base64url(_openssl("pkey", "-pubout", "-outform", "DER", text=ec_key().encode())[-65:])


def address(platform):
    """The address of a new device."""
    return {"apns": {"push_token": os.urandom(32).hex()}, "fcm": {"push_token": f"{os.urandom(8).hex()}:APA91b_-{os.urandom(60).hex()}"},
            "webpush": {"endpoint": f"https://push.example.com/{os.urandom(8).hex()}", "p256dh": browser_key(), "auth": base64url(os.urandom(16))},
            "matrix": {"url": "https://push.example.com/_matrix/push/v1/notify", "pushkey": os.urandom(8).hex()}}[platform]
