# SPDX-License-Identifier: Apache-2.0
"""admin.push.test: pushes arrive at servers that check them, and the servers' answers are reported and handled."""

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.environment import Environment, running
from tests.support.metrics import metric
from tests.support.provider_keys import APNS, address, apps, service_account
from tests.support.push_receivers import Google, Matrix, Receivers, fcm_error

SECRET_KEY = "00" * 32
TIMEOUT_MS = 4000
BURST = 300


@pytest.fixture(scope="module")
def receivers(tmp_path_factory):
    receivers = Receivers(tmp_path_factory.mktemp("receivers"))
    receivers.wait_ready()
    yield receivers
    receivers.close()


@pytest.fixture(scope="module")
def environment(tmp_path_factory, recorder, receivers):
    settings = {**receivers.settings, "TIDINGS_SECRET_KEY": SECRET_KEY, "TIDINGS_PUSH_TIMEOUT_MS": str(TIMEOUT_MS)}
    yield from running(Environment(tmp_path_factory.mktemp("pushes"), 1, settings=settings, recorder=recorder))


class Devices:
    """A device of each platform, of one user."""

    def __init__(self, workspace, receivers):
        self.admin, self.ann, self.receivers = workspace.admin, workspace.user(), receivers
        made = {platform: workspace.admin.ok("admin.pushApps.create", name=platform, **given)["app"] for platform, given in apps().items()}
        self.client, subscription = receivers.webpush.subscribe(made["webpush"]["public_key"])
        self.addresses = {"apns": {"push_token": receivers.apns.new_token()}, "fcm": address("fcm"), "webpush": subscription,
                          "matrix": {"url": receivers.matrix.url + Matrix.PATH, "pushkey": f"key {self.ann.id}"}}
        for platform, where in self.addresses.items():
            self.register(platform, **where)

    def register(self, platform, **where):
        self.ann.ok("devices.register", device_id=platform, app=platform, **where)

    def test(self, platform, **arguments):
        reply = self.admin.ok("admin.push.test", user_id=self.ann.id, device_id=platform, **arguments)
        return reply["outcome"], reply["status"], reply["reason"]

    def known(self):
        return {device["device_id"]: device for device in self.ann.ok("devices.list")["devices"]}


@pytest.fixture
def devices(environment, workspace, receivers):
    return Devices(workspace, receivers)


def test_apns_takes_it(devices, receivers):
    assert devices.test("apns") == ("delivered", 200, "")
    push = receivers.apns.accepted(devices.addresses["apns"]["push_token"], 1)[0]
    headers = push["headers"]
    assert push["payload"]["aps"] == {"alert": {"title": "Tidings", "body": "This is a test."}, "sound": "default", "mutable-content": 1}
    assert push["payload"]["tidings"]["workspace"].startswith("T")
    assert (headers["apns-topic"], headers["apns-push-type"], headers["apns-priority"]) == (APNS["topic"], "alert", "10")
    assert abs(int(headers["apns-expiration"]) - time.time() - 60) < 30


def test_fcm_takes_it(devices, receivers):
    assert devices.test("fcm") == ("delivered", 200, "")
    message = json.loads(receivers.google.to(Google.SEND)[-1].body)["message"]
    assert message["token"] == devices.addresses["fcm"]["push_token"]
    assert message["notification"] == {"title": "Tidings", "body": "This is a test."}
    assert message["android"] == {"priority": "high", "ttl": "60s"}


def test_a_browser_takes_it(devices, receivers):
    assert devices.test("webpush") == ("delivered", 201, "")
    push = receivers.webpush.script.expect({"what": "accepted", "client": devices.client})
    assert push["payload"]["aps"]["alert"] == {"title": "Tidings", "body": "This is a test."}
    assert (push["headers"]["ttl"], push["headers"]["urgency"]) == ("60", "high")


def test_a_matrix_gateway_takes_it(devices, receivers):
    assert devices.test("matrix") == ("delivered", 200, "")
    notification = json.loads(receivers.matrix.to(Matrix.PATH)[-1].body)["notification"]
    assert notification["devices"][0]["pushkey"] == devices.addresses["matrix"]["pushkey"]
    assert (notification["prio"], notification["content"]["body"]) == ("high", "This is a test.")


def test_success_is_seen(devices):
    assert "last_success" not in devices.known()["matrix"]
    devices.test("matrix")
    assert devices.known()["matrix"]["last_success"] > 0


def bad_token(devices):
    devices.register("apns", push_token=os.urandom(33).hex())  # longer than pushy's server has them


def dead_token(devices):
    token = devices.receivers.apns.new_token()
    devices.receivers.apns.order(f"expired {token} {int(time.time() * 1000) + 60000}")
    devices.register("apns", push_token=token)


def unregistered(devices):
    devices.receivers.google.unregistered.add(devices.addresses["fcm"]["push_token"])


def expired(devices):
    devices.receivers.webpush.script.ask("expire", devices.client)


def no_endpoint(devices):
    where = devices.addresses["webpush"]
    devices.register("webpush", **{**where, "endpoint": where["endpoint"] + "0"})


def rejected(devices):
    devices.receivers.matrix.rejected.add(devices.addresses["matrix"]["pushkey"])


@pytest.mark.parametrize("platform, make, status, reason", [
    ("apns", bad_token, 400, "BadDeviceToken"),
    ("apns", dead_token, 410, "Unregistered"),
    ("fcm", unregistered, 404, "UNREGISTERED"),
    ("webpush", expired, 410, "Subscription expired"),
    ("webpush", no_endpoint, 404, "Client not subscribed"),
    ("matrix", rejected, 200, "rejected"),
])
def test_devices_that_are_gone_go(devices, platform, make, status, reason):
    make(devices)
    assert devices.test(platform) == ("gone", status, reason)
    assert sorted(devices.known()) == sorted({"apns", "fcm", "webpush", "matrix"} - {platform})
    devices.admin.fails("device_not_found", "admin.push.test", user_id=devices.ann.id, device_id=platform)


def test_a_token_registered_again_after_apples_word_stays(devices, receivers):
    token = receivers.apns.new_token()
    receivers.apns.order(f"expired {token} {int(time.time() * 1000) - 3600000}")
    devices.register("apns", push_token=token)
    assert devices.test("apns") == ("retry", 410, "Unregistered")
    assert devices.known()["apns"]["failing_since"] > 0


def test_devices_stay_while_their_app_has_another_topic(devices):
    """An admin may mistype the topic: one mistake must not remove all devices of the app."""
    devices.register("apns", push_token=devices.receivers.apns.new_token(known=False))
    assert devices.test("apns") == ("refused", 400, "DeviceTokenNotForTopic")
    assert devices.known()["apns"]["failing_since"] > 0


def test_what_users_and_admins_choose_leads_to_public_addresses(devices, receivers, extra_instance):
    """Also over a connection opened for the operator's own URLs."""
    where = {"url": f"{receivers.apns.url}/x", "pushkey": "k"}
    devices.register("matrix", **where)
    account = service_account(token_uri=f"{receivers.google.url}/token")
    devices.admin.ok("admin.pushApps.update", name="fcm", platform="fcm", service_account=account)
    devices.admin = devices.admin.at(extra_instance(events_api_private="false", push_google_token_url="").url)
    asked = len(receivers.google.requests)
    assert devices.test("apns")[0] == "delivered"
    for platform in ("matrix", "webpush", "fcm"):
        assert devices.test(platform) == ("retry", 0, "the address is private")
    assert len(receivers.google.requests) == asked


def test_another_key_than_apple_knows(devices):
    devices.admin.ok("admin.pushApps.update", name="apns", platform="apns", key_id="ZZZZZ12345")
    outcome, status, reason = devices.test("apns")
    assert (outcome, status, reason) == ("refused", 403, "InvalidProviderToken")
    assert devices.known()["apns"]["failing_since"] > 0


def test_an_account_that_google_refuses(devices):
    devices.admin.ok("admin.pushApps.update", name="fcm", platform="fcm", service_account=service_account(client_email="x@demo-1.iam.gserviceaccount.com"))
    assert devices.test("fcm") == ("refused", 400, "invalid_scope")


def test_provider_tokens_are_shared(devices, receivers):
    for _ in range(3):
        devices.test("apns")
        devices.test("fcm")
    used = {push["headers"]["authorization"] for push in receivers.apns.accepted(devices.addresses["apns"]["push_token"], 3)}
    assert len(used) == 1
    used = {request.headers["Authorization"] for request in receivers.google.to(Google.SEND)
            if devices.addresses["fcm"]["push_token"] in request.body}
    assert len(used) == 1


def test_an_access_token_that_is_revoked_is_made_anew(devices, receivers):
    assert devices.test("fcm")[0] == "delivered"
    receivers.google.revoke()
    assert devices.test("fcm") == ("retry", 401, "UNAUTHENTICATED")
    assert devices.test("fcm")[0] == "delivered"


def test_providers_may_ask_to_wait(devices, receivers):
    devices.test("fcm")
    receivers.google.answer = lambda request: (503, {"Retry-After": "30"}, fcm_error(503, "UNAVAILABLE", "UNAVAILABLE"))
    try:
        assert devices.test("fcm") == ("retry", 503, "UNAVAILABLE")
    finally:
        receivers.google.answer = None
    assert "fcm" in devices.known()


def test_bad_arguments(workspace, devices):
    ann = devices.ann.id
    devices.admin.fails("user_not_found", "admin.push.test", user_id="U00000000X", device_id="apns")
    devices.admin.fails("device_not_found", "admin.push.test", user_id=ann, device_id="none")
    devices.admin.fails("device_not_found", "admin.push.test", user_id=ann, device_id="apns", app="fcm")
    devices.admin.fails("invalid_arguments", "admin.push.test", user_id=ann, device_id="x" * 129)
    devices.admin.fails("invalid_arguments", "admin.push.test", user_id=ann)
    devices.ann.fails("no_permission", "admin.push.test", user_id=ann, device_id="apns")


def test_one_that_stands_still_delays_no_other(environment, devices, receivers):
    """And it recovers by itself."""
    assert devices.test("apns")[0] == "delivered"
    process = receivers.apns.script
    process.signal(signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(8) as pool:
            late = [pool.submit(devices.test, "apns") for _ in range(8)]
            started = time.monotonic()
            assert {devices.test(platform)[0] for platform in ("fcm", "webpush", "matrix")} == {"delivered"}
            assert time.monotonic() - started < TIMEOUT_MS / 1000 and not any(one.done() for one in late)
            assert {one.result() for one in late} == {("retry", 0, "timeout")}
    finally:
        process.signal(signal.SIGCONT)
    assert devices.test("apns") == ("delivered", 200, "")


def test_each_of_a_burst_has_one_outcome_while_connections_end(environment, devices, receivers):
    instance = environment.instances[0]

    def count():
        return metric(instance, "tidings_push_notifications_total", 'platform="apns"')

    token, before = devices.addresses["apns"]["push_token"], count()
    with ThreadPoolExecutor(32) as pool:
        tests = [pool.submit(devices.test, "apns") for _ in range(BURST)]
        receivers.apns.accepted(token, 64)  # of which 32 at most are not answered yet
        receivers.apns.order("away")  # GOAWAY, and the end of all connections
        receivers.apns.order("back")
        outcomes = [test.result() for test in tests]
    assert len(outcomes) == BURST and {outcome for outcome, _, _ in outcomes} <= {"delivered", "retry"}
    assert count() - before >= BURST  # badges of devices of before, too
    delivered = sum(outcome == "delivered" for outcome, _, _ in outcomes)
    assert delivered > 0 and receivers.apns.accepted(token, delivered)
    assert devices.test("apns")[0] == "delivered"
