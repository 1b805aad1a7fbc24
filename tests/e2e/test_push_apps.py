# SPDX-License-Identifier: Apache-2.0
"""admin.pushApps.*: keys are checked when they are set, stored encrypted, and never returned."""

import base64
import json

import pytest

from tests.support.provider_keys import APNS, apps, ec_key, rsa_key, service_account

SHOWN = {
    "apns": {"key_id": "ABCDE12345", "team_id": "TEAM123456", "topic": "com.example.chat", "environment": "production"},
    "fcm": {"project_id": "demo-1", "client_email": "push@demo-1.iam.gserviceaccount.com"},
    "webpush": {"subject": "mailto:ops@example.com"},
    "matrix": {},
}


@pytest.mark.parametrize("platform", SHOWN)
@pytest.mark.parametrize("encoding", ["json", "form"])
def test_an_app_of_each_platform(environment, workspace, platform, encoding):
    admin = workspace.admin
    app = admin.ok("admin.pushApps.create", name="one", encoding=encoding, **apps()[platform])["app"]
    assert admin.ok("admin.pushApps.list")["apps"] == [app]
    if platform == "webpush":
        point = base64.urlsafe_b64decode(app.pop("public_key") + "=")
        assert len(point) == 65 and point[0] == 4
    assert app.pop("created") > 0 and app == {"name": "one", "platform": platform, **SHOWN[platform]}
    with environment.database() as database:
        stored = database.execute("SELECT secret, fields::text FROM push_apps WHERE workspace_id = %s", [workspace.id]).fetchone()
    assert (stored[0] or "sealed1.").startswith("sealed1.") and "PRIVATE" not in stored[1]
    assert (stored[0] is None) == (platform == "matrix")
    assert "PRIVATE" not in environment.instances[0].log.read_text()


def test_a_service_account_as_an_object(workspace):
    """As well as its JSON in a string."""
    admin, account = workspace.admin, json.loads(service_account(project_id="demo-2"))
    app = admin.ok("admin.pushApps.create", name="one", platform="fcm", service_account=account)["app"]
    assert app["project_id"] == "demo-2"
    changed = admin.ok("admin.pushApps.update", name="one", platform="fcm", service_account={**account, "project_id": "demo-3"})["app"]
    assert changed["project_id"] == "demo-3"


def test_names(workspace):
    admin = workspace.admin
    admin.ok("admin.pushApps.create", name="com.example_chat-1", platform="matrix")
    admin.fails("name_taken", "admin.pushApps.create", name="com.example_chat-1", platform="matrix")
    admin.ok("admin.pushApps.create", name="n" * 80, platform="matrix")
    for name in ("n" * 81, "a/b", "ä", " "):
        assert "name:" in admin.fails("invalid_arguments", "admin.pushApps.create", name=name, platform="matrix").messages
    assert len(admin.ok("admin.pushApps.list")["apps"]) == 2


BAD = [
    ({"platform": "sms"}, "invalid_arguments", "platform"), ({**APNS}, "invalid_arguments", "key"),
    ({**APNS, "key": "hush"}, "invalid_key", "key"), ({**APNS, "key": lambda: ec_key("P-384")}, "invalid_key", "key"),
    ({**APNS, "key": rsa_key}, "invalid_key", "key"), ({**APNS, "key": lambda: ec_key()[:-40]}, "invalid_key", "key"),
    ({**APNS, "key": ec_key, "key_id": "short"}, "invalid_arguments", "key_id"),
    ({**APNS, "key": ec_key, "team_id": "TEAM-23456"}, "invalid_arguments", "team_id"),
    ({**APNS, "key": ec_key, "topic": "com example"}, "invalid_arguments", "topic"),
    ({**APNS, "key": ec_key, "environment": "test"}, "invalid_arguments", "environment"),
    ({"platform": "fcm"}, "invalid_arguments", "service_account"),
    ({"platform": "fcm", "service_account": "{"}, "invalid_key", "service_account"),
    ({"platform": "fcm", "service_account": {"type": "service_account"}}, "invalid_key", "project_id"),
    ({"platform": "fcm", "service_account": ["service_account"]}, "invalid_key", "service_account"),
    ({"platform": "webpush"}, "invalid_arguments", "subject"),
    ({"platform": "webpush", "subject": "ops@example.com"}, "invalid_arguments", "subject"),
    *[({"platform": "fcm", "service_account": lambda c=change: service_account(**c)}, "invalid_key", next(iter(change)))
      for change in ({"type": "authorized_user"}, {"project_id": None}, {"project_id": "a/b"}, {"private_key": "hush"}, {"client_email": ""},
                     {"token_uri": "http://example.com"}, {"private_key": ec_key()}, {"private_key": rsa_key(1024)})],
]


@pytest.mark.parametrize("given, error, names", BAD, ids=[f"{row[0]['platform']}-{row[2]}-{n}" for n, row in enumerate(BAD)])
def test_what_is_wrong_is_named_and_not_stored(workspace, given, error, names):
    given = {name: value() if callable(value) else value for name, value in given.items()}
    reply = workspace.admin.fails(error, "admin.pushApps.create", name="x", **given)
    assert names in reply.messages and "hush" not in reply.messages
    assert workspace.admin.ok("admin.pushApps.list")["apps"] == []


def test_changes(environment, workspace):
    admin = workspace.admin
    admin.ok("admin.pushApps.create", name="ios", **apps()["apns"])

    def secret():
        with environment.database() as database:
            return database.execute("SELECT secret FROM push_apps WHERE workspace_id = %s", [workspace.id]).fetchone()[0]

    before = secret()
    app = admin.ok("admin.pushApps.update", name="ios", environment="sandbox", platform="fcm", subject="unknown here")["app"]
    assert app["environment"] == "sandbox" and app["topic"] == "com.example.chat" and app["platform"] == "apns" and "subject" not in app
    assert secret() == before
    admin.ok("admin.pushApps.update", name="ios", key=ec_key())
    assert secret() != before
    admin.fails("invalid_key", "admin.pushApps.update", name="ios", key=rsa_key(), topic="other")
    assert admin.ok("admin.pushApps.list")["apps"] == [app]
    admin.fails("app_not_found", "admin.pushApps.update", name="android", topic="x")
    admin.ok("admin.pushApps.delete", name="ios")
    admin.fails("app_not_found", "admin.pushApps.delete", name="ios")
    assert admin.ok("admin.pushApps.list")["apps"] == []


def test_a_browsers_key_pair_stays(workspace):
    made = workspace.admin.ok("admin.pushApps.create", name="web", **apps()["webpush"])["app"]
    changed = workspace.admin.ok("admin.pushApps.update", name="web", subject="https://example.com/")["app"]
    assert changed == {**made, "subject": "https://example.com/"}


def test_without_a_key_of_the_server(extra_instance, workspace):
    """Keys are never stored unencrypted; existing apps are still listed."""
    workspace.admin.ok("admin.pushApps.create", name="matrix", platform="matrix")
    admin, ann = (member.at(extra_instance(secret_key="").url) for member in (workspace.admin, workspace.user()))
    for method, args in (("create", {"name": "other", "platform": "matrix"}), ("update", {"name": "matrix"})):
        assert "TIDINGS_SECRET_KEY" in admin.fails("secret_key_missing", f"admin.pushApps.{method}", **args).messages
    ann.fails("secret_key_missing", "devices.register", device_id="x", app="matrix", url="https://push.example", pushkey="x")
    assert len(admin.ok("admin.pushApps.list")["apps"]) == 1 and ann.ok("devices.list")["devices"] == []
