# SPDX-License-Identifier: Apache-2.0
"""/healthz, /readyz, /metrics, `tidings check`, and the effect of a failed part on callers."""

import re
import threading

import pytest

from tests.support.environment import Environment
from tests.support.metrics import metric_of
from tests.support.raw import RawConnection, request
from tests.support.wait import wait_until


@pytest.fixture(scope="module")
def fragile(tmp_path_factory, recorder):
    """One instance on services of its own, which the tests stop."""
    environment = Environment(tmp_path_factory.mktemp("fragile"), instances=1, recorder=recorder)
    try:
        yield environment.start()
    finally:
        trouble = environment.stop()
    assert not trouble, "\n".join(trouble)


def ready(environment):
    return environment.client().page("/readyz")


def test_healthz_and_readyz(environment):
    for path in ("/healthz", "/readyz"):
        response = environment.client().page(path)
        assert response.status_code == 200
        assert response.headers["Content-Type"].startswith("application/json")
        assert isinstance(response.json(), dict)


def test_check(environment):
    environment.instances[0].run("check")


@pytest.mark.parametrize("part", ["redis", "postgres"])
def test_readyz_names_the_missing_part(fragile, part):
    service = getattr(fragile, part)
    service.stop()
    try:
        wait_until(lambda: ready(fragile).status_code == 503)
        shown = ready(fragile).json()
        assert shown[part] == "missing" and shown["postgres" if part == "redis" else "redis"] == "ok"
        assert fragile.client().page("/healthz").status_code == 200
        with pytest.raises(Exception, match=f"(?i){part}"):
            fragile.instances[0].run("check")
    finally:
        service.start()
        wait_until(lambda: ready(fragile).status_code == 200)


def test_without_redis_all_calls_work(fragile):
    """Redis is a fast copy: without it posts are taken and numbers are right, from Postgres."""
    workspace = fragile.workspace()
    ann, bob = workspace.users(2)
    channel = workspace.channel(ann, bob)
    fragile.redis.stop()
    try:
        ts = [ann.post(channel, f"t{i}") for i in range(3)]
        assert bob.unread(channel) == 3
        assert bob.ok("channels.mark", channel=channel, ts=ts[1])["unread_count"] == 1
        assert bob.ok("unread.sync")["totals"]["unread_count"] == 1
    finally:
        fragile.redis.start()
    wait_until(lambda: ready(fragile).status_code == 200)
    assert bob.unread(channel) == 1
    wait_until(lambda: bob.ok("unread.sync")["totals"]["unread_count"] == 1)


def test_without_postgres_calls_say_so_and_lose_nothing(fragile):
    workspace = fragile.workspace()
    ann, bob = workspace.users(2)
    channel = workspace.channel(ann, bob)
    kept = ann.post(channel, "kept", client_msg_id="k0")
    fragile.postgres.stop()
    try:
        for method, args in (("chat.postMessage", {"channel": channel, "text": "x", "client_msg_id": "k1"}),
                             ("channels.history", {"channel": channel}),
                             ("channels.mark", {"channel": channel, "ts": kept})):
            reply = ann.fails("service_unavailable", method, **args)
            assert reply.status == 200
        assert ann.call("chat.postMessage", channel=channel, text="x", client_msg_id="k1",
                        headers={"X-Tidings-Errors": "http"}).status == 503
    finally:
        fragile.postgres.start()
    wait_until(lambda: ready(fragile).status_code == 200)
    again = ann.ok("chat.postMessage", channel=channel, text="x", client_msg_id="k1")
    assert [m["ts"] for m in bob.history(channel)] == [again["ts"], kept]
    assert bob.unread(channel) == 2


def test_a_redis_that_is_full_is_counted_and_numbers_stay_right(fragile):
    workspace = fragile.workspace()
    ann, bob = workspace.users(2)
    channel = workspace.channel(ann, bob)
    ann.post(channel)
    before = metric_of(fragile.client().page("/metrics").text, "tidings_events_refused_total")
    fragile.redis.cli("CONFIG", "SET", "maxmemory", "1")
    try:
        ann.post(channel)
        wait_until(lambda: metric_of(fragile.client().page("/metrics").text, "tidings_events_refused_total") > before)
        assert bob.unread(channel) == 2
    finally:
        fragile.redis.cli("CONFIG", "SET", "maxmemory", "0")
    ann.post(channel)
    assert bob.unread(channel) == 3
    wait_until(lambda: bob.ok("unread.sync")["totals"]["unread_count"] == 3)


def test_metrics(environment, workspace):
    client = environment.client()
    response = client.page("/metrics")
    assert response.status_code == 200 and response.headers["Content-Type"].startswith("text/plain")
    for line in response.text.splitlines():
        assert re.match(r"^(# (HELP|TYPE) \S+ .+|[a-z_:][a-z0-9_:]*(\{[^{}]*\})? \S+)$", line, re.I), line
    assert "tidings_build_info" in response.text


def test_metrics_count_calls_and_errors(environment, workspace):
    client = environment.client()
    client.call("auth.test")
    before = client.page("/metrics").text
    for _ in range(5):
        client.fails("not_authed", "auth.test")
    after = client.page("/metrics").text
    labels = 'error="not_authed"'
    name = "tidings_http_requests_total"
    assert metric_of(after, name, labels) - metric_of(before, name, labels) == 5


def test_metrics_hold_no_ids_and_no_unknown_methods(environment, workspace):
    ann = workspace.user()
    channel = workspace.channel(ann)
    ann.post(channel)
    for i in range(50):
        ann.call(f"made.up{i}")
    text = environment.client().page("/metrics").text
    for secret in (ann.id, channel, workspace.id, ann.token, "made.up1"):
        assert secret not in text


def test_pages_answer_while_calls_are_many(environment, workspace):
    ann = workspace.user()
    stop = threading.Event()

    def hammer():
        client = ann.at(environment.urls[0])
        while not stop.is_set():
            client.ok("auth.test")

    threads = [threading.Thread(target=hammer) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            assert environment.client().page("/healthz").status_code == 200
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_the_access_log_is_json_and_holds_no_token(environment, workspace):
    ann = workspace.user()
    with RawConnection(ann.url) as connection:
        connection.send(request("POST", f"/api/auth.test?token={ann.token}",
                                headers=["X-Request-Id: look-for-me"]))
        connection.reply()
    log = environment.instances[0].log

    def logged():
        return [line for line in log.read_text().splitlines() if "look-for-me" in line]

    line = wait_until(logged)[0]
    assert line.startswith("{") and "auth.test" in line
    assert ann.token not in log.read_text()
