# SPDX-License-Identifier: Apache-2.0
"""devices.*: where the devices of a user are reached is checked strictly, kept encrypted, and follows a phone that changes hands."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.command import run
from tests.support.provider_keys import address, apps, base64url, browser_key, ec_key

PLATFORMS = ("apns", "fcm", "webpush", "matrix")


@pytest.fixture
def workspace(workspace):
    """A workspace with a push app for each platform, named like the platform."""
    for platform, given in apps().items():
        workspace.admin.ok("admin.pushApps.create", name=platform, **given)
    return workspace


def devices(user):
    return [(device["app"], device["device_id"]) for device in user.ok("devices.list")["devices"]]


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("encoding", ["json", "form"])
def test_a_device_of_each_platform(environment, workspace, platform, encoding):
    ann, bob = workspace.users(2)
    given = address(platform)
    device = ann.ok("devices.register", device_id="phone", app=platform, locale="de-CH", preview="sender", encoding=encoding, **given)["device"]
    assert device.pop("created") > 0
    assert device == {"device_id": "phone", "app": platform, "platform": platform, "locale": "de-CH", "preview": "sender"}
    assert devices(ann) == [(platform, "phone")] and devices(bob) == []
    with environment.database() as database:
        stored = database.execute("SELECT to_json(d)::text FROM devices d WHERE user_id = %s", [ann.id]).fetchone()[0]
    assert "sealed1." in stored and not [value for value in given.values() if value in stored]
    bob.fails("device_not_found", "devices.unregister", device_id="phone")
    ann.ok("devices.unregister", device_id="phone")
    ann.fails("device_not_found", "devices.unregister", device_id="phone")
    assert devices(ann) == []


def test_the_same_id_again_replaces_it(workspace):
    ann = workspace.user()
    ann.ok("devices.register", device_id="phone", app="apns", preview="none", **address("apns"))
    again = ann.ok("devices.register", device_id="phone", app="apns", **address("apns"))["device"]
    assert again["preview"] == "full" and devices(ann) == [("apns", "phone")]
    ann.ok("devices.register", device_id="phone", app="fcm", **address("fcm"))  # another app's is another device
    ann.ok("devices.register", device_id="tablet", app="apns", **address("apns"))
    assert devices(ann) == [("apns", "phone"), ("apns", "tablet"), ("fcm", "phone")]
    ann.ok("devices.unregister", device_id="phone", app="fcm")
    assert devices(ann) == [("apns", "phone"), ("apns", "tablet")]
    ann.fails("device_not_found", "devices.unregister", device_id="phone", app="fcm")


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_phone_that_changes_hands(workspace, platform):
    ann, bob = workspace.users(2)
    given = address(platform)
    ann.ok("devices.register", device_id="anns", app=platform, **given)
    if platform == "webpush":
        given["auth"] = base64url(os.urandom(16))  # the browser's endpoint is what counts
    if platform == "apns":
        given["push_token"] = given["push_token"].upper()
    bob.ok("devices.register", device_id="bobs", app=platform, **given)
    assert devices(ann) == [] and devices(bob) == [(platform, "bobs")]
    bob.ok("devices.register", device_id="new name", app=platform, **given)
    assert devices(bob) == [(platform, "new name")]


def test_one_token_registered_by_many_at_once(environment, workspace):
    users = workspace.users(6)
    given = address("fcm")
    clients = [user.at(environment.urls[n % 2]) for n, user in enumerate(users)]
    with ThreadPoolExecutor(len(clients)) as pool:
        list(pool.map(lambda client: client.ok("devices.register", device_id="phone", app="fcm", **given), clients))
    assert sum(len(devices(user)) for user in users) == 1


BAD = [
    ("apns", {"push_token": "ab" * 31}, "push_token"), ("apns", {"push_token": "ab" * 32 + "c"}, "push_token"),
    ("apns", {"push_token": "xy" * 32}, "push_token"), ("apns", {"push_token": "ab" * 101}, "push_token"),
    ("fcm", {"push_token": "a b"}, "push_token"), ("fcm", {"push_token": "ä"}, "push_token"), ("fcm", {"push_token": "a" * 4097}, "push_token"),
    ("webpush", {"endpoint": "http://push.example.com/x"}, "endpoint"), ("webpush", {"endpoint": "https://127.0.0.1/x"}, "endpoint"),
    ("webpush", {"endpoint": "https://[::1]/x"}, "endpoint"), ("webpush", {"endpoint": "https://localhost/x"}, "endpoint"),
    ("webpush", {"endpoint": "https://0x7f000001/x"}, "endpoint"), ("webpush", {"endpoint": "https://10.1.2.3:8443"}, "endpoint"),
    ("webpush", {"endpoint": "https://"}, "endpoint"), ("webpush", {"endpoint": "ftp://push.example.com"}, "endpoint"),
    ("webpush", {"endpoint": "https://a.example/" + "x" * 2000}, "endpoint"), ("webpush", {"p256dh": base64url(os.urandom(32))}, "p256dh"),
    ("webpush", {"p256dh": base64url(b"\4" + b"\1" * 64)}, "p256dh"), ("webpush", {"p256dh": browser_key()[:-4]}, "p256dh"),
    ("webpush", {"auth": base64url(b"a" * 15)}, "auth"), ("webpush", {"auth": base64url(b"a" * 17)}, "auth"),
    ("webpush", {"auth": "!" * 22}, "auth"), ("matrix", {"url": "https://192.168.1.1/"}, "url"), ("matrix", {"pushkey": "x" * 513}, "pushkey"),
]


@pytest.mark.parametrize("platform, change, name", BAD, ids=[f"{row[0]}-{row[2]}-{n}" for n, row in enumerate(BAD)])
def test_an_address_that_is_none(workspace, platform, change, name):
    ann = workspace.user()
    reply = ann.fails("invalid_token", "devices.register", device_id="x", app=platform, **{**address(platform), **change})
    assert reply.messages.startswith(f"[ERROR] {name}: must")
    assert devices(ann) == []


@pytest.mark.parametrize("change, error, name", [
    ({"device_id": "x" * 129}, "invalid_arguments", "device_id"), ({"device_id": ""}, "invalid_arguments", "device_id"),
    ({"app": "none"}, "app_not_found", ""), ({"app": "x" * 200}, "app_not_found", ""), ({"app": ""}, "invalid_arguments", "app"),
    ({"push_token": ""}, "invalid_arguments", "push_token"), ({"preview": "some"}, "invalid_arguments", "preview"),
    ({"locale": "de CH"}, "invalid_arguments", "locale"),
])
def test_bad_arguments(workspace, change, error, name):
    ann = workspace.user()
    given = {"device_id": "x", "app": "fcm", **address("fcm"), **change}
    assert name in ann.fails(error, "devices.register", **given).messages
    assert devices(ann) == []


def test_128_characters_of_any_kind(workspace):
    ann = workspace.user()
    ann.ok("devices.register", device_id="😀" * 128, app="fcm", **address("fcm"))
    assert devices(ann) == [("fcm", "😀" * 128)]


def test_an_app_of_another_workspace(environment, workspace):
    stranger = environment.workspace().user()
    stranger.fails("app_not_found", "devices.register", device_id="x", app="fcm", **address("fcm"))


def test_there_are_not_too_many(workspace):
    ann, bob = workspace.users(2)
    moving = address("fcm")
    bob.ok("devices.register", device_id="bobs", app="fcm", **moving)
    names = [f"phone {number:03}" for number in range(100)]
    for name in [*names, names[-1]]:
        ann.ok("devices.register", device_id=name, app="fcm", **address("fcm"))
    ann.fails("too_many_devices", "devices.register", device_id="another", app="fcm", **moving)
    assert sorted(devices(ann)) == [("fcm", name) for name in names] and devices(bob) == [("fcm", "bobs")]
    ann.ok("devices.register", device_id=names[-1], app="fcm", **moving)
    assert devices(bob) == []


def test_an_app_that_goes_takes_its_devices_along(workspace):
    ann = workspace.user()
    for platform in ("fcm", "apns"):
        ann.ok("devices.register", device_id="x", app=platform, **address(platform))
    workspace.admin.ok("admin.pushApps.delete", name="fcm")
    assert devices(ann) == [("apns", "x")]


def test_local_addresses_where_they_are_allowed(workspace, extra_instance):
    ann = workspace.user().at(extra_instance(events_api_private="true").url)
    for endpoint in ("http://127.0.0.1:9/x", "https://localhost/x"):
        ann.ok("devices.register", device_id="x", app="webpush", **{**address("webpush"), "endpoint": endpoint})
    ann.fails("invalid_token", "devices.register", device_id="x", app="webpush", **{**address("webpush"), "endpoint": "ftp://localhost"})


def test_rotation(environment, workspace):
    """Under another key a device is still known by its token."""
    old, new = "5" * 64, "6" * 64  # the first is that of the environment
    ann, bob = workspace.users(2)
    given = address("matrix")
    ann.ok("devices.register", device_id="a/b/c", app="matrix", **given)

    def rotate(keys):
        done = run("secrets", "rotate", DATABASE_URL=environment.postgres.url, REDIS_URL=environment.redis.url, SECRET_KEY=keys)
        assert done.returncode == 0, done.stderr
        with environment.database() as database:
            return database.execute("SELECT address, digest FROM devices WHERE user_id = %s", [ann.id]).fetchone()

    first = rotate(old)
    second = rotate(f"{new},{old}")
    assert first[0].split(".")[1] != second[0].split(".")[1] and first[1] != second[1]
    back = rotate(f"{old},{new}")
    assert back[1] == first[1]
    bob.ok("devices.register", device_id="x", app="matrix", **given)
    assert devices(ann) == [] and devices(bob) == [("matrix", "x")]
    assert ec_key() not in environment.instances[0].log.read_text()


def test_how_it_goes_is_shown(environment, workspace):
    """The results recorded by the sender; reset when the device registers again."""
    ann = workspace.user()
    ann.ok("devices.register", device_id="x", app="matrix", **address("matrix"))
    with environment.database() as database:
        database.execute("UPDATE devices SET last_success = 1700000000, failing_since = 1700000001 WHERE user_id = %s", [ann.id])
    device, = ann.ok("devices.list")["devices"]
    assert (device["last_success"], device["failing_since"]) == (1700000000, 1700000001)
    again = ann.ok("devices.register", device_id="x", app="matrix", **address("matrix"))["device"]
    assert "last_success" not in again and "failing_since" not in again


def test_the_apps_to_register_for(environment, workspace):
    """For users who are not admins: only the apps of this workspace, with their public fields."""
    made = {app["name"]: app for app in workspace.admin.ok("admin.pushApps.list")["apps"]}
    assert workspace.user().ok("devices.list")["apps"] == [
        {"name": "apns", "platform": "apns"}, {"name": "fcm", "platform": "fcm"}, {"name": "matrix", "platform": "matrix"},
        {"name": "webpush", "platform": "webpush", "public_key": made["webpush"]["public_key"]}]
    assert environment.workspace().user().ok("devices.list")["apps"] == []
