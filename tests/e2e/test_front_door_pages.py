# SPDX-License-Identifier: Apache-2.0
"""Pages, and who keeps a connection: raw requests behind each other."""

import pytest
import requests

from tests.support.raw import RawConnection, request

IN_TIME_S = 8


@pytest.fixture
def door(workspace):
    with RawConnection(workspace.admin.url) as connection:
        yield connection


def test_head(workspace, door):
    for target in (f"/api/auth.test?token={workspace.admin.token}", "/healthz"):
        door.send(request("HEAD", target))
        assert door.reply(head_only=True).status in (200, 405)
    assert door.rest(timeout=IN_TIME_S) == b""


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("path", ["/healthz", "/app/style.css", "/openapi.json"])
def test_a_page_behind_calls(workspace, door, path, count):
    """It comes whole, also if it was asked for before the calls were answered, and is the connection's last."""
    whole = requests.get(workspace.admin.url + path, timeout=60)
    door.send(count * request("GET", "/api/api.test") + request("GET", path) + request("GET", "/api/api.test"))
    for _ in range(count):
        assert door.reply().json["ok"] is True
    reply = door.reply()
    assert reply.status == whole.status_code == 200 and reply.body == whole.content
    assert reply.headers["connection"] == "close" and reply.headers["x-request-id"]
    assert door.rest(timeout=IN_TIME_S) == b""


@pytest.mark.parametrize("framing", ["Content-Length: 5\r\n\r\na", "Transfer-Encoding: chunked\r\n\r\n5\na"])
def test_a_page_does_not_wait_for_a_body(door, framing):
    door.send(f"GET /healthz HTTP/1.1\r\nHost: x\r\n{framing}")
    assert door.reply().status == 200
    assert door.rest(timeout=IN_TIME_S) == b""


def test_pages_take_heads_of_the_maximum(door):
    """Cookies and arguments too, of which libmicrohttpd keeps copies."""
    cookies = "; ".join(f"c{i}={i}" for i in range(700))
    arguments = "&".join(f"a{i}={i}" for i in range(700))
    door.send(request("GET", f"/healthz?{arguments}", headers=[f"Cookie: {cookies}"]))
    assert door.reply().status == 200


def test_http_1_0_may_keep_its_connection(door):
    for _ in range(2):
        door.send("GET /api/api.test HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n")
        assert door.reply().headers["connection"] == "keep-alive"
