# SPDX-License-Identifier: Apache-2.0
"""Two instances behind nginx, by the configuration of compose.yaml: REST, and sockets on connections used for REST."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.support.nginx import Nginx
from tests.support.raw import TEXT, RawFrames, request


@pytest.fixture(scope="session")
def nginx(plain_environment):
    nginx = Nginx(plain_environment.directory / "nginx", plain_environment.instances)
    nginx.start()
    yield nginx
    assert nginx.stop() == 0, nginx.log_tail()


@pytest.fixture
def room(nginx, workspace):
    """(ann, bob, channel), with both users connected through nginx."""
    ann, bob = (member.at(nginx.url) for member in workspace.users(2))
    return ann, bob, workspace.channel(ann, bob)


def connections(instance):
    """The number of HTTP connections of an instance."""
    for line in requests.get(f"{instance.url}/metrics", timeout=30).text.splitlines():
        if line.startswith("tidings_http_connections "):
            return int(float(line.split()[-1]))
    raise AssertionError("no such metric")


def test_rest(room):
    ann, bob, channel = room
    seqs = [ann.ok("chat.postMessage", channel=channel, text=f"{i}")["seq"] for i in range(20)]
    assert seqs == list(range(seqs[0], seqs[0] + 20))
    assert bob.unread(channel) == 20
    reply = ann.call("auth.test", headers={"X-Request-Id": "through-nginx"})
    assert reply.headers["X-Request-Id"] == "through-nginx"


def test_compressed_replies_pass(room):
    ann, channel = room[0], room[-1]
    ann.post(channel, "again and again " * 100)
    reply = ann.ok("channels.history", channel=channel, headers={"Accept-Encoding": "gzip"})
    assert reply.headers["Content-Encoding"] == "gzip" and "Accept-Encoding" in reply.headers["Vary"]
    assert int(reply.headers["Content-Length"]) < len(reply.body) / 2
    assert "Content-Encoding" not in ann.ok("channels.history", channel=channel, headers={"Accept-Encoding": "identity"}).headers


@pytest.mark.parametrize("encoding", ["json", "form", "query", "get"])
def test_encodings(room, encoding):
    ann, bob, channel = room
    ann.ok("chat.postMessage", channel=channel, text="h\u00e9 & + %20", encoding=encoding)
    assert bob.history(channel)[0]["text"] == "h\u00e9 & + %20"


def test_a_socket_gets_what_is_posted_on_either_instance(environment, room, sockets):
    ann, bob, channel = room
    url = bob.ok("rtm.connect")["url"]
    assert url.startswith(ann.url.replace("http", "ws", 1) + "/rtm/"), "clients are sent through nginx"
    socket = sockets(bob)
    for instance_url in environment.urls:
        ts = ann.at(instance_url).post(channel)
        socket.expect({"type": "message", "ts": ts})
    ack = socket.request({"id": 1, "type": "message", "channel": channel, "text": "by socket"})
    assert ack["ok"] is True


def test_upgrades_on_connections_used_for_rest(nginx, room, sockets):
    """nginx keeps connections to the instances and sends an upgrade over one that had calls before, as often as not:
    with as many upgrades as kept connections some must take those."""
    ann, bob, channel = room
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: ann.at(nginx.url).ok("auth.test"), range(32)))
    kept = sum(connections(instance) for instance in nginx.instances)
    assert kept > 0
    devices = [sockets(bob) for _ in range(kept + 1)]
    ts = ann.post(channel)
    for device in devices:
        device.expect({"type": "message", "ts": ts})


def test_an_upgrade_over_one_client_connection_used_for_rest(nginx, room):
    """The client's own connection to nginx, too."""
    _, bob, _ = room
    path = "/rtm/" + bob.ok("rtm.connect")["url"].split("/rtm/")[1]
    with RawFrames(nginx.url) as raw:
        for _ in range(3):
            raw.send(request("POST", "/api/auth.test", bob.token))
            assert raw.reply().status == 200
        raw.upgrade(path)
        assert raw.handshake.status == 101
        assert json.loads(raw.read_until(TEXT)) == {"type": "hello"}


def test_an_instance_that_is_down_is_passed_by(environment, nginx, room):
    ann, _, channel = room
    instance = environment.instances[1]
    assert instance.stop() == 0
    try:
        seqs = [ann.ok("chat.postMessage", channel=channel, text="x")["seq"] for _ in range(10)]
        assert seqs == list(range(seqs[0], seqs[0] + 10))
    finally:
        instance.start()


def test_metrics_are_not_for_the_world(nginx):
    assert requests.get(f"{nginx.url}/metrics", timeout=30).status_code == 404


def test_instances_restart_one_after_the_other_and_every_call_is_answered(environment, workspace, extra_instance):
    """Also over connections that nginx keeps open, and without a pause between the two."""
    instances = [extra_instance(), extra_instance()]
    nginx = Nginx(environment.directory / "nginx-rolling", instances)
    nginx.start()
    members = [member.at(nginx.url) for member in workspace.users(4)]
    channel = workspace.channel(*members)
    stop = threading.Event()

    def post(member):
        acked = []
        while not stop.is_set():
            acked.append(member.post(channel, "on and on"))
        return acked

    try:
        with ThreadPoolExecutor(len(members)) as pool:
            posting = [pool.submit(post, member) for member in members]
            try:
                for instance in 2 * instances:
                    assert instance.stop() == 0
                    instance.start()
            finally:
                stop.set()
            acked = [ts for done in posting for ts in done.result(60)]
    finally:
        assert nginx.stop() == 0, nginx.log_tail()
    with environment.database() as database:
        posted = database.execute("SELECT count(*) FROM messages WHERE channel_id = %s AND subtype IS NULL", [channel]).fetchone()
    assert len(set(acked)) == len(acked) == posted[0]
