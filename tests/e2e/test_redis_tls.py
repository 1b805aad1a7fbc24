# SPDX-License-Identifier: Apache-2.0
"""Redis by TLS, with certificates on both sides and a user of Tidings' own; and what is said of those that do not fit."""

import re
import shutil
import urllib.parse

import pytest

from tests.support.command import run
from tests.support.environment import Environment, running
from tests.support.wait import wait_until
from tools.certificates import Authority
from tools.services import Redis, TlsRedis

RIGHTS = ["~*", "&*", "+@all", "-@dangerous", "+info"]  # those of docs/operations.md


def login(url, password="p%40ss"):
    return url.replace("://", f"://tidings:{password}@")


@pytest.fixture(scope="module")
def environment(tmp_path_factory, recorder):
    """Two instances that have only the way in the URL: no other user may do anything, and a certificate is asked for."""
    directory = tmp_path_factory.mktemp("redis-tls")
    with TlsRedis(directory / "tls", clients=True) as redis:
        redis.cli("ACL", "SETUSER", "tidings", "on", ">p@ss", *RIGHTS)
        redis.cli("ACL", "SETUSER", "default", "resetpass", ">other")
        yield from running(Environment(directory, settings={"TIDINGS_REDIS_URL": login(redis.url)}, recorder=recorder))


def test_frames_reach_the_other_instance(room, environment, sockets):
    ann, bob, channel = room
    there = sockets(bob.at(environment.urls[1]))
    for number in range(20):
        ts = ann.post(channel, f"message {number}")
        there.expect({"type": "message", "channel": channel, "ts": ts})
    assert bob.unread(channel) == 20


def test_large_answers_and_questions(room, environment):
    """Of many records of TLS each: heads and positions of 300 channels are sent and read at once."""
    ann, bob, _ = room
    channels = [ann.ok("channels.create", name=f"c{number}")["channel"]["id"] for number in range(300)]
    for channel in channels:
        ann.ok("channels.invite", channel=channel, users=[bob.id])
    environment.instances[1].run("unread", "rebuild")
    assert "0 wrong" in environment.instances[0].run("unread", "verify")


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """By name, servers of which none is as the URL says."""
    directory = tmp_path_factory.mktemp("servers")
    made = {"tls": TlsRedis(directory / "tls"), "elsewhere": TlsRedis(directory / "elsewhere", names="DNS:redis.example"),
            "clients": TlsRedis(directory / "clients", clients=True), "plain": Redis(directory / "plain")}
    for redis in made.values():
        redis.start()
    yield made
    for redis in made.values():
        redis.stop()


def unfit(servers, directory):
    other = urllib.parse.quote(str(Authority(directory).certificate))
    tls, elsewhere, clients = (servers[name].url for name in ("tls", "elsewhere", "clients"))
    return {
        "password": (login(tls, "wrong"), "WRONGPASS"),
        "authority": (tls.partition("?")[0] + f"?cacert={other}", "its certificate is refused: "),
        "no authority": (tls.partition("?")[0], "its certificate is refused: "),
        "address": (elsewhere, "its certificate is refused: IP address mismatch"),
        "host": (elsewhere.replace("127.0.0.1", "localhost"), "its certificate is refused: hostname mismatch"),
        "no certificate": (clients.partition("&")[0], "certificate required|connection closed|connection broken"),  # by what comes first
        "no TLS": (tls.replace("rediss", "redis").partition("?")[0], "connection closed"),
        "TLS": (servers["plain"].url.replace("redis:", "rediss:"), "connecting took too long"),  # it waits for the end of a line
    }


@pytest.mark.parametrize("what", ["password", "authority", "no authority", "address", "host", "no certificate", "no TLS", "TLS"])
def test_why_redis_is_down_is_said(environment, servers, tmp_path, what):
    """By all connections: those for commands and messages, and those of threads."""
    url, reason = unfit(servers, tmp_path)[what]
    instance = environment.instance(start=False, redis_url=url, redis_timeout_ms=2000)
    instance.start(wait=False)
    try:
        for connection in ("commands", "pub/sub", "worker"):
            wait_until(lambda words=f"Redis ({connection}) is down: ": any(
                words in line and re.search(reason, line) for line in instance.log.read_text().splitlines()),
                what=f"a reason for {connection}")
    finally:
        assert instance.stop() == 0


@pytest.mark.parametrize("name, content", [("cacert", None), ("cacert", "no certificate"), ("cert", None), ("cert", "x"), ("key", None), ("key", "x")])
def test_files_that_cannot_be_used_are_refused_at_start(environment, tmp_path, name, content):
    authority = Authority(tmp_path)
    certificate, key = authority.issue("client")
    files = {"cacert": authority.certificate, "cert": certificate, "key": key, name: tmp_path / "unfit"}
    if content:
        files[name].write_text(content, encoding="ascii")
    query = "&".join(f"{argument}={path}" for argument, path in files.items())
    done = run("serve", DATABASE_URL=environment.postgres.url, REDIS_URL=f"rediss://127.0.0.1:1?{query}")
    assert done.returncode == 2 and "TIDINGS_REDIS_URL=rediss://127.0.0.1:1: must be a URL whose " + name in done.stderr


def test_the_key_of_another_certificate_is_refused_at_start(environment, tmp_path):
    authority = Authority(tmp_path)
    query = f"cert={authority.issue('one')[0]}&key={authority.issue('two')[1]}"
    done = run("serve", DATABASE_URL=environment.postgres.url, REDIS_URL=f"rediss://127.0.0.1:1?{query}")
    assert done.returncode == 2 and "must be a URL whose key is the readable private key of cert" in done.stderr


def test_new_certificates_are_used_without_a_restart(environment, servers, extra_instance):
    redis = servers["tls"]
    instance = extra_instance(redis_url=redis.url)
    redis.stop()
    before = redis.cacert.read_text(encoding="ascii")
    shutil.rmtree(redis.cacert.parent)
    redis.start()
    assert redis.cacert.read_text(encoding="ascii") != before
    wait_until(instance.ready, what="Redis")
