# SPDX-License-Identifier: Apache-2.0
"""The way to Redis by Sentinel: logins, which Sentinels are asked, and what is said when none of them helps. Failovers are among the fault tests."""

import socket
import threading

import pytest

from tests.support.wait import wait_until
from tools.redis_sentinel import Sentinel
from tools.services import Redis, free_port


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    """A Redis and its Sentinel, both with logins."""
    directory = tmp_path_factory.mktemp("sentinel")
    with Redis(directory / "redis") as server:
        server.cli("ACL", "SETUSER", "tidings", "on", ">p@ss", "~*", "&*", "+@all", "-@dangerous", "+info", "+role")
        lines = "user sue on >hush ~* &* +@all\n"
        with Sentinel(directory / "sentinel", free_port(), "sentinel", server.port, lines) as sentinel:
            server.sentinel = sentinel
            yield server


def url_of(redis, sentinels=None, name="tidings", password="hush"):
    where = sentinels or f"127.0.0.1:{redis.sentinel.port}"
    return f"redis+sentinel://tidings:p%40ss@{where}/{name}/1?sentinel_user=sue&sentinel_password={password}"


def expect_reason(environment, url, reason):
    instance = environment.instance(start=False, redis_url=url, redis_timeout_ms=2000)
    instance.start(wait=False)
    try:
        for connection in ("commands", "pub/sub", "worker"):
            wait_until(lambda line=f"Redis ({connection}) is down: {reason}": line in instance.log.read_text(), what=f"a reason for {connection}")
    finally:
        assert instance.stop() == 0


def test_sentinels_are_asked_until_one_knows(redis, extra_instance):
    """The first says nothing, for as long as a thread waits in all; the second refuses connections."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        sentinels = f"127.0.0.1:{silent.getsockname()[1]},127.0.0.1:{free_port()},127.0.0.1:{redis.sentinel.port}"
        instance = extra_instance(redis_url=url_of(redis, sentinels), redis_timeout_ms=200)
        wait_until(lambda: redis.cli("-n", "1", "EXISTS", "unread-built") == "1", what="keys in the database of the URL")
        assert instance.ready()


@pytest.mark.parametrize("args, reason", [
    ({"name": "others"}, "Sentinel: it knows no master of that name"),
    ({"password": "wrong"}, "Sentinel: WRONGPASS"),
    ({"sentinels": "127.0.0.1:1"}, "Sentinel: Connection refused"),
    ({"sentinels": "nowhere.invalid"}, "Sentinel: unknown host"),
])
def test_why_no_master_is_found_is_said(redis, environment, args, reason):
    expect_reason(environment, url_of(redis, **args), reason)


def test_a_replica_is_not_taken_for_the_master(redis, environment):
    """As when a Sentinel is behind."""
    redis.cli("REPLICAOF", "127.0.0.1", "1")
    try:
        expect_reason(environment, url_of(redis), "the server that Sentinel names is no master")
    finally:
        redis.cli("REPLICAOF", "NO", "ONE")


class Peer(threading.Thread):
    """Takes itself for a Sentinel, and gives one answer to everything."""

    def __init__(self, answer):
        super().__init__(daemon=True)
        self.answer = answer
        self.server = socket.create_server(("127.0.0.1", 0))

    def run(self):
        while True:
            try:
                link, _ = self.server.accept()
            except OSError:
                return
            with link:
                link.recv(1000)
                link.sendall(self.answer)


@pytest.mark.parametrize("answer, reason", [
    (b"*2\r\n$0\r\n\r\n$1\r\n1\r\n", "its answer is no address"),
    (b"*2\r\n$3\r\na\0b\r\n$1\r\n1\r\n", "its answer is no address"),
    (b"*2\r\n$256\r\n" + b"a" * 256 + b"\r\n$1\r\n1\r\n", "its answer is no address"),
    (b"*2\r\n$9\r\n127.0.0.1\r\n$5\r\n65536\r\n", "its answer is no address"),
    (b"*3\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\n1\r\n", "it knows no master of that name"),
    (b"$-1\r\n", "it knows no master of that name"),
    (b"*2\r\n:1\r\n:2\r\n", "it knows no master of that name"),
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", "protocol error"),
    (b"", "connection closed"),
])
def test_answers_that_are_none(environment, answer, reason):
    peer = Peer(answer)
    peer.start()
    try:
        expect_reason(environment, f"redis+sentinel://127.0.0.1:{peer.server.getsockname()[1]}/tidings", f"Sentinel: {reason}")
    finally:
        peer.server.close()
