# SPDX-License-Identifier: Apache-2.0
"""SIGTERM: sockets receive goodbye, calls in progress are answered, the exit code is 0."""

import os
import signal
import threading
import time

import pytest
import requests

from tests.support.environment import log_trouble
from tests.support.raw import RawConnection, request
from tests.support.wait import wait_until
from tools.services import Redis

LATE_S = 20  # who waited for what is gone would wait for a minute, or be killed


@pytest.fixture
def instance(environment):
    """An instance that the test ends."""
    instance = environment.instance()
    yield instance
    if instance.pid:
        instance.stop()
    assert not log_trouble(instance)


def terminate(instance):
    os.kill(instance.pid, signal.SIGTERM)


def ended(instance):
    wait_until(lambda: instance.exit_code is not None, what="the end of the instance")
    return instance.exit_code


def test_sockets_are_closed_with_a_code(instance, workspace):
    ann = workspace.user().at(instance.url)
    with ann.socket() as one, ann.socket(native=True) as two:
        terminate(instance)
        for socket in (one, two):
            code, _ = socket.wait_closed()
            assert code in (1001, 1012)
    assert ended(instance) == 0


def test_sockets_have_time_to_go(environment, workspace):
    """goodbye, then some seconds in which frames still arrive and clients connect elsewhere, then Close."""
    instance = environment.instance(goodbye_ms=3000)
    ann = workspace.user()
    channel = workspace.channel(ann)
    with ann.at(instance.url).socket() as socket:
        begun = time.monotonic()
        terminate(instance)
        socket.expect({"type": "goodbye"})
        ts = ann.post(channel, "meanwhile")
        socket.expect({"type": "message", "ts": ts})
        assert socket.wait_closed()[0] == 1001
        assert time.monotonic() - begun > 2.5
    assert ended(instance) == 0


def test_nobody_is_waited_for_who_is_gone(environment, workspace):
    instance = environment.instance(goodbye_ms=60000, drain_ms=60000)
    with workspace.user().at(instance.url).socket() as socket:
        terminate(instance)
        socket.expect({"type": "goodbye"})
    begun = time.monotonic()
    assert ended(instance) == 0
    assert time.monotonic() - begun < LATE_S


def test_at_rest_it_is_quick(instance):
    terminate(instance)
    assert ended(instance) == 0


def test_it_ends_in_time_without_redis(environment, workspace, tmp_path):
    """Undelivered events are in Postgres; other instances deliver them."""
    redis = Redis(tmp_path / "redis")
    redis.start()
    try:
        instance = environment.instance(redis_url=redis.url, drain_ms=2000)
        ann = workspace.user().at(instance.url)
        channel = workspace.channel(ann)
        redis.kill()
        ann.post(channel, "committed")
        start = time.monotonic()
        assert instance.stop() == 0
        assert time.monotonic() - start < 2 + LATE_S
    finally:
        redis.stop()
        redis.wipe()


def test_it_ends_in_time_while_postgres_stands_still(environment, workspace):
    instance = environment.instance(drain_ms=2000, statement_timeout_ms=60000)
    ann = workspace.user()
    channel = workspace.channel(ann)
    try:
        with RawConnection(instance.url) as raw:
            environment.postgres.kill(signal.SIGSTOP)
            raw.send(request("POST", f"/api/chat.postMessage?channel={channel}&text=x", token=ann.token))
            start = time.monotonic()
            assert instance.stop() == 0
            assert time.monotonic() - start < 2 + LATE_S
    finally:
        environment.postgres.kill(signal.SIGCONT)
    assert not log_trouble(instance)


def test_it_ends_while_redis_is_asked(environment, workspace, tmp_path):
    """The callers who asked for a count then need Postgres, which is no longer reachable."""
    redis = Redis(tmp_path / "redis")
    redis.start()
    try:
        instance = environment.instance(redis_url=redis.url, redis_timeout_ms=5000, drain_ms=0, loops=1)
        ann, bob = workspace.users(2)
        channel = workspace.channel(ann, bob)
        ann.ok("chat.delete", channel=channel, ts=ann.post(channel))
        assert bob.at(instance.url).unread(channel) == 0
        redis.kill(signal.SIGSTOP)
        with RawConnection(instance.url) as raw:
            raw.send(request("GET", f"/api/channels.info?channel={channel}", token=bob.token))
            for _ in range(3):  # what is asked later is answered: that has come so far
                bob.at(instance.url).ok("channels.members", channel=channel)
            assert instance.stop() == 0
        assert not log_trouble(instance)
    finally:
        redis.kill(signal.SIGCONT)
        redis.stop()
        redis.wipe()


def test_sigint_is_the_same(instance):
    os.kill(instance.pid, signal.SIGINT)
    assert ended(instance) == 0


def test_nothing_acknowledged_is_lost(instance, workspace):
    """Clients post until the connection fails; each acked message is stored once, and counted."""
    ann, bob = workspace.users(2)
    channel = workspace.channel(ann, bob)
    acked, lock = [], threading.Lock()

    def post_on(number):
        client = ann.at(instance.url)
        for i in range(100_000):
            try:
                reply = client.call("chat.postMessage", channel=channel, text=f"{number}-{i}")
            except requests.RequestException:
                return
            if not reply["ok"]:
                assert reply["error"] == "service_unavailable"
                return
            with lock:
                acked.append(reply["ts"])

    threads = [threading.Thread(target=post_on, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(acked) > 100)
    terminate(instance)
    for thread in threads:
        thread.join()
    assert ended(instance) == 0
    stored, cursor = [], ""
    while True:
        reply = bob.ok("channels.history", channel=channel, limit=999, cursor=cursor)
        stored += [m["ts"] for m in reply["messages"] if "subtype" not in m]
        cursor = reply.get("response_metadata", {}).get("next_cursor", "")
        if not cursor:
            break
    assert len(stored) == len(set(stored)) and set(acked) <= set(stored)
    assert bob.unread(channel) == len(stored)


def test_frames_of_the_last_posts_reach_the_other_instance(environment, instance, workspace, sockets):
    ann, bob = workspace.users(2)
    channel = workspace.channel(ann, bob)
    socket = sockets(bob)
    ts = [ann.at(instance.url).post(channel, f"t{i}") for i in range(20)]
    terminate(instance)
    assert ended(instance) == 0
    socket.expect({"type": "message", "ts": ts[-1]})
    assert [f["ts"] for f in socket.matching({"type": "message"})] == ts


def test_who_was_just_refused_does_not_disturb_the_end(instance):
    with RawConnection(instance.url) as raw:
        raw.send(request("GET", "/rtm/nobody"))
        assert raw.reply().status in (400, 426)
        terminate(instance)
        assert ended(instance) == 0
