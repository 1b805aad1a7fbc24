# SPDX-License-Identifier: Apache-2.0
"""The WebSocket protocol itself: handshakes of real clients, broken frames, PINGs."""

import json
import time

import pytest

from tests.support.metrics import metric
from tests.support.raw import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, RawConnection, RawWebSocket, request
from tests.support.wait import wait_until


@pytest.fixture
def ann(workspace):
    return workspace.user()


@pytest.fixture
def ws(ann):
    """A raw socket past its hello."""
    with RawWebSocket(ann.ok("rtm.connect")["url"]) as raw:
        assert raw.handshake.status == 101
        assert json.loads(raw.read_until(TEXT)) == {"type": "hello"}
        yield raw


def ping(raw, number=1):
    """Sends an application's ping and waits for its pong: the connection still works."""
    raw.send_frame(TEXT, json.dumps({"id": number, "type": "ping"}).encode())
    wait_until(lambda: json.loads(raw.read_until(TEXT)).get("reply_to") == number)


@pytest.mark.parametrize("suffix, host, headers", [
    ("", None, []), ("?", None, []), ("?", "127.0.0.1", []), ("?batch_presence_aware=1", None, []),
    ("", None, ["Origin: https://api.slack.com"]), ("", None, ["Origin: null"]),
    ("", None, ["Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits"]),
    ("", None, ["Sec-WebSocket-Protocol: chat"]),
])
def test_handshakes(ann, suffix, host, headers):
    with RawWebSocket(ann.ok("rtm.connect")["url"], suffix, host, headers) as raw:
        assert raw.handshake.status == 101
        assert raw.handshake.headers["upgrade"].lower() == "websocket"
        assert "sec-websocket-extensions" not in raw.handshake.headers
        assert json.loads(raw.read_until(TEXT)) == {"type": "hello"}
        ping(raw)


def test_accept_key(ann):
    """The example of RFC 6455, in lower case header names, in pieces."""
    path = "/rtm/" + ann.ok("rtm.connect")["url"].split("/rtm/")[1]
    with RawConnection(ann.url) as raw:
        head = (f"GET {path} HTTP/1.1\r\nhost: x\r\nupgrade: WebSocket\r\nconnection: keep-alive, upgrade\r\n"
                "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n")
        for start in range(0, len(head), 7):
            raw.send(head[start:start + 7])
        reply = raw.reply(head_only=True)
        assert reply.status == 101
        assert reply.headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


@pytest.mark.parametrize("drop", ["Upgrade", "Sec-WebSocket-Key", "Sec-WebSocket-Version"])
def test_incomplete_handshakes_are_refused(ann, drop):
    path = "/rtm/" + ann.ok("rtm.connect")["url"].split("/rtm/")[1]
    headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
               "Sec-WebSocket-Version": "13"}
    del headers[drop]
    with RawConnection(ann.url) as raw:
        raw.send(request("GET", path, headers=[f"{name}: {value}" for name, value in headers.items()]))
        assert 400 <= raw.reply(head_only=True).status < 500


def test_upgrade_on_a_connection_that_was_used_before(ann):
    """As by a proxy that reuses connections."""
    path = "/rtm/" + ann.ok("rtm.connect")["url"].split("/rtm/")[1]
    with RawConnection(ann.url) as raw:
        raw.send(request("POST", "/api/auth.test", ann.token))
        assert raw.reply().json["ok"] is True
        raw.send(request("GET", path, headers=["Upgrade: websocket", "Connection: Upgrade",
                                               "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
                                               "Sec-WebSocket-Version: 13"]))
        assert raw.reply(head_only=True).status == 101
        first, size = raw.read(2)
        assert first == 0x81 and json.loads(raw.read(size)) == {"type": "hello"}


@pytest.mark.parametrize("payload", [b"", b"x", b"uuid-1:1700000000.123", bytes(range(125))])
def test_ping_is_echoed(ws, payload):
    ws.send_frame(PING, payload)
    assert ws.read_until(PONG) == payload


def test_server_pings_each_10_seconds_with_a_payload(workspace, sockets):
    sockets_of_ann = sockets(workspace.user())
    wait_until(lambda: sockets_of_ann.pings, interval=0.1)
    assert all(payload for payload in sockets_of_ann.pings)


def test_fragmented_client_frames(ws, ann, workspace):
    channel = workspace.channel(ann)
    text = json.dumps({"id": 1, "type": "message", "channel": channel, "text": "h\u00e9 in pieces"},
                      ensure_ascii=False).encode()
    pieces = [text[i:i + 5] for i in range(0, len(text), 5)]
    for i, piece in enumerate(pieces):
        ws.send_frame(TEXT if i == 0 else CONTINUATION, piece, final=i == len(pieces) - 1)
        if i == 2:
            ws.send_frame(PING, b"between")
    assert ws.read_until(PONG) == b"between"
    wait_until(lambda: json.loads(ws.read_until(TEXT)).get("reply_to") == 1)
    assert ann.history(channel)[0]["text"] == "h\u00e9 in pieces"


def test_frames_byte_by_byte(ws):
    data = json.dumps({"id": 1, "type": "ping"}).encode()
    frame = bytes([0x81, 0x80 | len(data), 0, 0, 0, 0]) + data
    for i in range(len(frame)):
        ws.send(frame[i:i + 1])
    wait_until(lambda: json.loads(ws.read_until(TEXT)).get("reply_to") == 1)


def test_unmasked_frame(ws):
    ws.send_frame(TEXT, b'{"id":1,"type":"ping"}', masked=False)
    assert ws.close_code() == 1002


@pytest.mark.parametrize("length", [4 << 20, 1 << 40, (1 << 63) - 1])
def test_too_large_frame(ws, length):
    ws.send_frame(TEXT, b"x" * 1000, length=length)
    assert ws.close_code() == 1009


@pytest.mark.parametrize("length", [65537, 4 << 20, (1 << 63) - 1])
@pytest.mark.parametrize("bytewise", [False, True])
def test_a_frame_that_announces_too_much(ws, length, bytewise):
    """It is closed before any of the payload arrives."""
    ws.send_frame(TEXT, json.dumps({"id": 1, "type": "ping"}).encode())
    header = b"\x81\xff" + length.to_bytes(8, "big")
    for part in ([header[i:i + 1] for i in range(len(header))] if bytewise else [header]):
        ws.send(part)
    assert ws.close_code() == 1009


def test_fragments_that_announce_too_much(ws):
    ws.send_frame(TEXT, b"x" * 65000, final=False)
    ws.send_frame(PING, b"between")
    ws.send(b"\x80\xfe" + (537).to_bytes(2, "big"))
    assert ws.close_code() == 1009


def test_the_longest_message_in_fragments(ws):
    text = json.dumps({"id": 1, "type": "ping"})
    text += " " * (65536 - len(text))
    for i in range(0, 65536, 16384):
        ws.send_frame(CONTINUATION if i else TEXT, text[i:i + 16384].encode(), final=i == 49152)
    wait_until(lambda: json.loads(ws.read_until(TEXT)).get("reply_to") == 1)


def test_too_large_message_in_fragments(ws):
    try:
        for i in range(512):
            ws.send_frame(CONTINUATION if i else TEXT, b"x" * 16384, final=False)
    except OSError:
        pass  # closed in the middle
    assert ws.close_code() == 1009


@pytest.mark.parametrize("payload", [b"\xff\xfe", b'{"a":"\xc0\xaf"}', b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc3"])
def test_bad_utf8(ws, payload):
    ws.send_frame(TEXT, payload)
    assert ws.close_code() == 1007


@pytest.mark.parametrize("opcode", [0x3, 0x7, 0xB, 0xF])
def test_reserved_opcodes(ws, opcode):
    ws.send_frame(opcode, b"x")
    assert ws.close_code() == 1002


def test_reserved_bits(ws):
    ws.send(bytes([0x81 | 0x40, 0x82, 0, 0, 0, 0]) + b"{}")
    assert ws.close_code() == 1002


@pytest.mark.parametrize("send", [
    lambda ws: ws.send_frame(PING, b"x" * 126), lambda ws: ws.send_frame(PING, b"x", final=False),
    lambda ws: ws.send_frame(CONTINUATION, b"x"),
], ids=["long-ping", "fragmented-ping", "continuation-of-nothing"])
def test_protocol_errors(ws, send):
    send(ws)
    assert ws.close_code() == 1002


def test_text_inside_a_fragmented_text(ws):
    ws.send_frame(TEXT, b"{", final=False)
    ws.send_frame(TEXT, b"{}")
    assert ws.close_code() == 1002


@pytest.mark.parametrize("more", [0, 1])
def test_the_number_of_values_is_bounded(ann, extra_instance, more):
    instance = extra_instance()
    with RawWebSocket(ann.at(instance.url).ok("rtm.connect")["url"]) as raw:
        greeted(raw)
        # An object, the id and the type, an array.
        raw.send_frame(TEXT, json.dumps({"id": 1, "type": "ping", "x": [1] * (1996 + more)}).encode())
        answer = json.loads(raw.read_until(TEXT))
        assert (answer["type"], answer.get("reply_to")) == (("error", None) if more else ("pong", 1))
        ping(raw, 2)
    assert metric(instance, "tidings_socket_requests_refused_total", 'reason="values"') == more


@pytest.mark.parametrize("payload", [b"", b"x", b"[]", b"5", b"{", b'{"type":5}', b"null", b"{" * 1000,
                                     b'{"a":' + b"[" * 5000])
def test_text_that_is_no_command(ws, payload):
    """The connection stays open: the reply is an error frame, or none."""
    ws.send_frame(TEXT, payload)
    ping(ws)


def test_binary_frames(ws):
    """Either refused with 1003 or passed over."""
    ws.send_frame(BINARY, b"\x00\x01")
    ws.send_frame(PING, b"still there")
    while True:
        opcode, payload = ws.read_frame()
        if opcode == CLOSE:
            assert payload[:2] == (1003).to_bytes(2, "big")
            return
        if opcode == PONG:
            assert payload == b"still there"
            return


@pytest.mark.parametrize("payload, code", [(b"", None), ((1000).to_bytes(2, "big") + b"bye", 1000),
                                           ((4321).to_bytes(2, "big"), 4321)])
def test_close_handshake(ws, payload, code):
    ws.send_frame(CLOSE, payload)
    answer = ws.read_until(CLOSE)
    assert code is None or int.from_bytes(answer[:2], "big") == code
    ws.rest()


@pytest.mark.parametrize("payload", [b"x", (999).to_bytes(2, "big"), (1005).to_bytes(2, "big"),
                                     (1000).to_bytes(2, "big") + b"\xff"])
def test_bad_close_frames(ws, payload):
    ws.send_frame(CLOSE, payload)
    assert ws.close_code() in (1002, 1007)


def test_half_open_connections_do_not_keep_others(ann, workspace):
    with RawWebSocket(ann.ok("rtm.connect")["url"]) as raw:
        raw.half_close()
        assert workspace.user().ok("auth.test")


def greeted(raw):
    assert json.loads(raw.read_until(TEXT)) == {"type": "hello"}
    return raw


@pytest.mark.parametrize("method", ["rtm.connect", "apps.connections.open"])
def test_pings_come_within_their_interval(ann, workspace, extra_instance, method):
    here = ann.at(extra_instance(ping_interval_ms=2000).url)
    if method == "apps.connections.open":
        made = workspace.admin.ok("admin.apps.create", name="app", bot_user_id=workspace.bot().id)
        here.token = made["app_token"]
    # On a busy machine one may come late; without room for the server's own clock, which has a tick of 1 s, each would.
    assert any(pings_in_time(here.ok(method)["url"], 2.0) for _ in range(5))


def pings_in_time(url, seconds):
    """Whether each of two PINGs arrives within that time."""
    with RawWebSocket(url) as raw:
        assert json.loads(raw.read_until(TEXT))["type"] == "hello"
        for _ in range(2):
            before = time.monotonic()
            payload = raw.read_until(PING)
            if time.monotonic() - before > seconds:
                return False
            raw.send_frame(PONG, payload)
    return True


def test_a_socket_that_answers_no_ping_is_closed(ann, extra_instance):
    instance = extra_instance(ping_interval_ms=1000, pong_timeout_ms=1000)
    with RawWebSocket(ann.at(instance.url).ok("rtm.connect")["url"]) as silent:
        assert greeted(silent).read_until(PING)
        assert silent.close_code() == 1008


def test_more_sockets_than_a_loop_may_have(extra_instance, workspace):
    ann = workspace.user().at(extra_instance(sockets_max=2, loops=1).url)
    held = [ann.socket() for _ in range(2)]
    url = ann.ok("rtm.connect")["url"]
    with RawWebSocket(url) as raw:
        assert raw.handshake.status == 503
    assert "tidings_sockets_refused_total 1\n" in ann.page("/metrics").text
    assert all(socket.is_open for socket in held)
    held[0].close()
    wait_until(lambda: opens(url), what="room for one more")  # its ticket was not used up
    held[1].close()


def opens(url):
    with RawWebSocket(url) as raw:
        return raw.handshake.status == 101


def test_more_frames_than_a_socket_may_send(ann, extra_instance):
    """At the limit it still works; beyond it, the socket is closed."""
    instance = extra_instance()
    with RawWebSocket(ann.at(instance.url).ok("rtm.connect")["url"]) as raw:
        greeted(raw)
        pinged = bytes([0x80 | PING, 0x80]) + bytes(4)
        raw.send(pinged * 255)
        ping(raw)
        raw.send(pinged * 2000)  # at once: 64 more may be sent each second
        assert raw.close_code() == 1008
    assert 'tidings_sockets_closed_total{reason="frames"} 1' in ann.at(instance.url).page("/metrics").text
