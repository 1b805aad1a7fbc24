# SPDX-License-Identifier: Apache-2.0
"""TCP input before any method is called: broken, slow, endless and malicious requests."""

import json
import subprocess
import time
from contextlib import ExitStack
from urllib.request import Request, urlopen

import pytest

from tests.support.metrics import metric
from tests.support.raw import RawConnection, request
from tests.support.wait import wait_until

FORM = "application/x-www-form-urlencoded"
BODY_MAX = 2 * 1024 * 1024
IN_TIME_S = 8  # who waited for a slow client would wait for longer: 10 s for headers, 30 s for a body


@pytest.fixture
def ann(workspace):
    return workspace.admin


@pytest.fixture
def door(ann):
    """A connection to the instance that `ann` uses."""
    with RawConnection(ann.url) as connection:
        yield connection


def answers_400_and_closes(connection, statuses=(b"400",)):
    data = connection.rest(timeout=IN_TIME_S)
    assert data.count(b"HTTP/1.1 ") == 1, data[:300]
    assert data.split(b" ")[1] in statuses, data[:300]


def still_serves(client):
    assert client.ok("auth.test")["ok"] is True


POST = "POST /api/auth.test HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize("head", [
    "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
    "content-length: 2\r\nCONTENT-LENGTH: 2\r\n\r\n{}", "Content-Length: 2, 2\r\n\r\n{}",
    "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "Content-Length: -2\r\n\r\n{}", "Content-Length: +2\r\n\r\n{}", "Content-Length: 0x2\r\n\r\n{}",
    "Content-Length: two\r\n\r\n{}",
    "Content-Length: 2 2\r\n\r\n{}", "Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "Transfer-Encoding: xchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
])
def test_lengths_that_contradict(ann, door, head):
    """A proxy in front might see another request in the same bytes than we do."""
    door.send(POST + f"Authorization: Bearer {ann.token}\r\nContent-Type: application/json\r\n" + head)
    answers_400_and_closes(door)
    still_serves(ann)


@pytest.mark.parametrize("line", [
    "GARBAGE", "POST", "POST /api/auth.test", "POST  /api/auth.test HTTP/1.1", "POST /api/auth.test FTP/1.1", "POST api/auth.test HTTP/1.1", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "POST /api/auth.test HTTP/1.1 x", "P\x00ST /api/auth.test HTTP/1.1", "POST /api/au\x00th.test HTTP/1.1",
    "POST /api/auth\x01test HTTP/1.1", "{}", "SSH-2.0-OpenSSH_9.2",
])
def test_bad_request_lines(ann, door, line):
    door.send(line.encode("latin-1") + b"\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
    answers_400_and_closes(door)
    still_serves(ann)


def test_a_length_beyond_all_numbers(ann, door):
    door.send(POST + "Content-Length: 99999999999999999999999999\r\n\r\n{}")
    answers_400_and_closes(door, (b"400", b"413"))
    still_serves(ann)


@pytest.mark.parametrize("head, status", [
    ("GET /api/api.test HTTP/9.9\r\nHost: x\r\n", 400), (f"GET /{'a' * 20000} HTTP/1.1\r\nHost: x\r\n", 414),
    (f"GET /api/api.test HTTP/1.1\r\nHost: x\r\nX: {'a' * 20000}\r\n", 431), ("GET  /api/api.test HTTP/1.1\r\nHost: x\r\n", 400),
], ids=["version", "target", "header", "blanks"])
@pytest.mark.parametrize("is_later", [False, True], ids=["first", "later"])
def test_what_is_refused_is_told_in_json(door, head, status, is_later):
    if is_later:
        door.send(request("POST", "/api/api.test"))
        assert door.reply().json["ok"] is True
    door.send(head + "\r\n")
    reply = door.reply()
    assert (reply.status, reply.json["error"]) == (status, "bad_request")
    assert reply.headers["connection"] == "close"
    assert door.rest(timeout=IN_TIME_S) == b""


@pytest.mark.parametrize("line", [
    "X Y: z", "X : z", ": z", "X\x00: z", " folded", "no colon at all", "X: a\x00b",
])
def test_bad_header_lines(ann, door, line):
    door.send(f"{POST}{line}\r\nContent-Length: 0\r\n\r\n".encode("latin-1"))
    answers_400_and_closes(door)
    still_serves(ann)


def test_two_authorization_headers(ann, door):
    door.send(request("POST", "/api/auth.test", ann.token, headers=["authorization: Bearer other"]))
    answers_400_and_closes(door)


def test_two_hosts(door):
    door.send(request("POST", "/api/api.test", headers=["Host: other"]))
    answers_400_and_closes(door)


def test_no_host(door):
    door.send("POST /api/api.test HTTP/1.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    assert door.reply().status == 400


@pytest.mark.parametrize("target", ["/api/%00", "/api/auth.test%00x", "/%00", "/api/%zz", "/api/" + "%" * 10])
def test_nul_and_bad_escapes_in_the_path(ann, door, target):
    door.send(request("POST", target, ann.token))
    reply = door.reply()
    if reply.status == 200:
        assert reply.json["error"] == "unknown_method"
    else:
        assert reply.status in (400, 404)
    still_serves(ann)


def test_endless_headers(ann, door):
    """Refused after a bounded number of bytes, with or without a word."""
    door.send(POST)
    sent = 0
    try:
        while sent < 64 << 20:
            door.send(b"X-More: " + b"y" * 1000 + b"\r\n")
            sent += 1010
        raise AssertionError("64 MiB of headers were taken")
    except (ConnectionError, BrokenPipeError):
        pass
    still_serves(ann)


def test_an_endless_request_line(ann, door):
    try:
        door.send(b"GET /")
        for _ in range(64 << 4):
            door.send(b"a" * 65536)
        raise AssertionError("64 MiB of request line were taken")
    except (ConnectionError, BrokenPipeError):
        pass
    still_serves(ann)


def test_many_headers_of_a_fair_size(ann, door):
    door.send(request("POST", "/api/auth.test", ann.token, headers=[f"X-H{i}: {'v' * 50}" for i in range(40)]))
    assert door.reply().json["ok"] is True


def body_of(size, prefix=b"pad="):
    return prefix + b"x" * (size - len(prefix))


@pytest.mark.parametrize("chunked", [False, True])
def test_body_at_the_maximum(ann, door, chunked):
    send_body(door, ann, BODY_MAX, chunked)
    assert door.reply().json["ok"] is True
    door.send(request("POST", "/api/auth.test", ann.token))
    assert door.reply().json["ok"] is True


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("size", [BODY_MAX + 1, BODY_MAX + (1 << 20)])
@pytest.mark.parametrize("mode, status", [("slack", 200), ("http", 413)])
def test_body_over_the_maximum_is_told_so(ann, door, size, chunked, mode, status):
    """The client has sent it all before it reads: the answer must still be there."""
    send_body(door, ann, size, chunked, [f"X-Tidings-Errors: {mode}"])
    reply = door.reply()
    assert reply.status == status
    assert reply.json["ok"] is False and reply.json["error"] == "request_too_large"
    door.rest()
    still_serves(ann)


def send_body(connection, client, size, chunked, headers=()):
    body = body_of(size)
    if not chunked:
        connection.send(request("POST", "/api/auth.test", client.token, FORM, body, headers))
        return
    head = request("POST", "/api/auth.test", client.token, FORM, headers=[*headers, "Transfer-Encoding: chunked"])
    connection.send(head.replace(b"Content-Length: 0\r\n", b""))
    for start in range(0, size, 100_000):
        piece = body[start:start + 100_000]
        connection.send(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
    connection.send("0\r\n\r\n")


@pytest.mark.parametrize("chunked", [False, True])
def test_endless_body(ann, door, chunked):
    """At most another 2 MiB or 2 s are read and discarded; then the connection closes."""
    length = "Transfer-Encoding: chunked" if chunked else "Content-Length: 1000000000"
    door.send(f"{POST}Authorization: Bearer {ann.token}\r\nContent-Type: {FORM}\r\n{length}\r\n\r\n")
    piece = b"10000\r\n" + b"x" * 65536 + b"\r\n" if chunked else b"x" * 65536
    sent, start = 0, time.monotonic()
    try:
        while sent < 256 << 20:
            door.send(piece)
            sent += 65536
    except (ConnectionError, BrokenPipeError):
        pass
    assert sent < 64 << 20 and time.monotonic() - start < 10
    still_serves(ann)


def chunked_head(client, *headers):
    lines = [f"Authorization: Bearer {client.token}", f"Content-Type: {FORM}", *headers, "Transfer-Encoding: chunked"]
    return "POST /api/api.test HTTP/1.1\r\nHost: x\r\n" + "".join(f"{line}\r\n" for line in lines) + "\r\n"


def refuses_chunks(connection, reason):
    """One JSON reply, and the end of the connection."""
    reply = connection.reply()
    assert reply.status == 400 and reply.headers["content-type"].startswith("application/json")
    assert reply.headers["connection"] == "close" and reply.headers["x-request-id"]
    assert reply.json["error"] == "bad_request" and reason in reply.json["response_metadata"]["messages"][0]
    assert connection.rest(timeout=IN_TIME_S) == b""


LINE_END = "a line of the chunked body does not end with CR LF"


@pytest.mark.parametrize("is_later", [False, True])
@pytest.mark.parametrize("body, reason", [
    ("3\na=b\r\n0\r\n\r\n", LINE_END), ("3\r\na=b\n0\r\n\r\n", LINE_END), ("3\r\na=b\r\n0\n\r\n", LINE_END),
    ("3\r\na=b\r\n0\r\n\n", LINE_END), ("3\r\na=b\r\n0\r\nX: y\n\r\n", LINE_END), ("3;x\na=b\r\n0\r\n\r\n", LINE_END),
    ("3\na=b\n0\n\n", LINE_END), ("ffffffffffffffff\r\na=b", "size is too large"), ("-3\r\na=b", "a malformed chunk size"),
    ("3 \r\na=b\r\n0\r\n\r\n", "a malformed chunk size"),
])
def test_malformed_chunks(ann, door, body, reason, is_later):
    """A proxy that sees another end of such lines could be made to send a request of its choice behind the body."""
    if is_later:
        door.send(request("POST", "/api/auth.test", ann.token))
        assert door.reply().json["ok"] is True
    door.send(chunked_head(ann) + body + request("POST", "/api/api.test", ann.token, FORM, "a=smuggled").decode())
    refuses_chunks(door, reason)
    still_serves(ann)


@pytest.mark.parametrize("is_later", [False, True])
@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.parametrize("body", [
    "3\r\na=b\r\n4\r\n&c=d\r\n0\r\n\r\n", "7;name=\"value\"\r\na=b&c=d\r\n0;last\r\n\r\n", "7\r\na=b&c=d\r\n0\r\nX-Sum: 1\r\nY:\r\n\r\n",
])
def test_chunks(ann, door, body, is_whole, is_later):
    """In one piece with their head, or byte by byte. The connection goes on."""
    if is_later:
        door.send(request("POST", "/api/auth.test", ann.token))
        assert door.reply().json["ok"] is True
    data = chunked_head(ann) + body
    for piece in [data] if is_whole else data:
        door.send(piece)
    reply = door.reply()
    assert reply.json["args"] == {"a": "b", "c": "d"} and "connection" not in reply.headers
    door.send(request("POST", "/api/api.test", ann.token, FORM, "e=f"))
    assert door.reply().json["args"] == {"e": "f"}


@pytest.mark.parametrize("body, reason", [("3\r\na=b\r\n0\r\n\r\n", None), ("3\na=b\r\n0\r\n\r\n", LINE_END)])
def test_chunks_that_wait_to_be_asked_for(ann, door, body, reason):
    for _ in range(2):
        door.send(request("POST", "/api/auth.test", ann.token))
        assert door.reply().json["ok"] is True
    door.send(chunked_head(ann, "Expect: 100-continue"))
    assert door.reply().status == 100
    door.send(body)
    if reason:
        refuses_chunks(door, reason)
    else:
        assert door.reply().json["args"] == {"a": "b"}


def test_a_chunked_head_may_be_long(ann, door):
    """The body follows directly, in as many bytes as are looked at at once."""
    door.send(request("POST", "/api/auth.test", ann.token))
    text = "x" * 6000
    door.send(chunked_head(ann, "X-Long: " + "y" * 7000) + f"1772\r\na={text}\r\n0\r\n\r\n")
    assert door.reply().json["ok"] is True
    assert door.reply().json["args"] == {"a": text}


@pytest.mark.parametrize("is_later", [False, True])
def test_a_chunked_body_may_hold_any_byte(ann, door, is_later):
    """The form is refused, not the framing."""
    if is_later:
        door.send(request("POST", "/api/auth.test", ann.token))
        assert door.reply().json["ok"] is True
    door.send(chunked_head(ann).encode() + b"6\r\na=\x00\x00\x00")
    door.send(b"\x00\r\n0\r\n\r\n")
    assert door.reply().json["error"] == "invalid_form_data"


def test_replies_to_chunked_requests_may_be_long(room, extra_instance):
    """They are sent as fast as the client reads, and counted until then."""
    ann, _, channel = room
    instance = extra_instance()
    for _ in range(6):
        ann.post(channel, attachments=[{"text": "x" * 1_000_000}])
    head = chunked_head(ann).replace("api.test", f"channels.history?channel={channel}")
    with RawConnection(instance.url) as door:
        door.send(head + "0\r\n\r\n")
        wait_until(lambda: metric(instance, "tidings_http_replies_bytes") > 6_000_000)
        reply = door.reply()
        assert len([message for message in reply.json["messages"] if "attachments" in message]) == 6
        assert "connection" not in reply.headers
    wait_until(lambda: metric(instance, "tidings_http_replies_bytes") == 0)


@pytest.mark.parametrize("size", [20_000, 100_000])
def test_a_line_between_chunks_that_does_not_end(ann, door, size):
    door.send(chunked_head(ann) + "3;" + "x" * size)
    refuses_chunks(door, "a line of the chunked body is too long")
    still_serves(ann)


def test_chunked_bodies_of_known_clients(room):
    """curl and Python send a body whose length they do not tell."""
    ann, _, channel = room
    url, fields = f"{ann.url}/api/chat.postMessage", f"channel={channel}&text="
    headers = {"Authorization": f"Bearer {ann.token}", "Content-Type": FORM}
    curl = subprocess.run(["curl", "-sS", url, "-H", "Transfer-Encoding: chunked", "-H", "Expect: 100-continue", "-H",
                           f"Authorization: Bearer {ann.token}", "-d", fields + "curl"],
                          capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(curl.stdout)["ok"] is True, curl.stdout
    with urlopen(Request(url, iter([fields.encode(), b"python"]), {**headers, "Transfer-Encoding": "chunked"}), timeout=60) as reply:
        assert json.load(reply)["ok"] is True
    assert [m["text"] for m in ann.history(channel)] == ["python", "curl"]


def test_slow_headers_are_cut_off(ann, extra_instance):
    """A byte now and then does not count: the time is for all of the headers."""
    instance = extra_instance(header_timeout_ms=500)
    start = time.monotonic()
    with RawConnection(instance.url) as connection:
        drip(connection, POST.encode() * 50, 0.05)
        assert 0.4 < time.monotonic() - start < IN_TIME_S
    start = time.monotonic()
    with RawConnection(instance.url) as silent:
        silent.send("POST /api")
        silent.rest()
        assert 0.4 < time.monotonic() - start < IN_TIME_S


def test_slow_bodies_are_cut_off(ann, extra_instance):
    instance = extra_instance(body_timeout_ms=700)
    start = time.monotonic()
    with RawConnection(instance.url) as connection:
        connection.send(f"{POST}Authorization: Bearer {ann.token}\r\nContent-Type: {FORM}\r\n"
                        "Content-Length: 1000000\r\n\r\n")
        drip(connection, b"x" * 1000, 0.05)
        assert 0.5 < time.monotonic() - start < IN_TIME_S


def drip(connection, data, pause):
    """Sends byte by byte until the server has had enough."""
    try:
        for i in range(len(data)):
            connection.send(data[i:i + 1])
            time.sleep(pause)  # the slowness itself, not a wait for anything
    except (ConnectionError, BrokenPipeError):
        return
    raise AssertionError("the server took it all")


def test_a_long_reply_takes_as_long_as_it_is_read(room, extra_instance):
    """The time is for who does not read on, not for all of the reply."""
    ann, _, channel = room
    hasty = extra_instance(body_timeout_ms=1500)
    for _ in range(12):
        ann.post(channel, attachments=[{"text": "x" * 1000000}])
    history = request("GET", f"/api/channels.history?channel={channel}", ann.token)
    with RawConnection(hasty.url) as slow, RawConnection(hasty.url) as silent:
        slow.send(history)
        silent.send(history)
        start = time.monotonic()
        left = int(slow.reply(head_only=True).headers["content-length"])
        while left > 0:
            left -= len(slow.read(min(left, 65536)))
            time.sleep(0.02)  # the slowness itself
        assert time.monotonic() - start > 2
        assert len(silent.rest()) < 12000000


def test_slow_clients_do_not_slow_others(ann):
    slow = [RawConnection(ann.url) for _ in range(50)]
    try:
        for connection in slow:
            connection.send("POST /api/auth.te")
        start = time.monotonic()
        for _ in range(20):
            still_serves(ann)
        assert time.monotonic() - start < IN_TIME_S
    finally:
        for connection in slow:
            connection.__exit__()


def test_keep_alive(ann, door):
    for _ in range(50):
        door.send(request("POST", "/api/auth.test", ann.token))
        assert door.reply().json["ok"] is True


def test_pipelining(ann, door):
    door.send(b"".join(request("POST", "/api/api.test", ann.token, FORM, f"n={i}") for i in range(20)))
    assert [door.reply().json["args"]["n"] for _ in range(20)] == [str(i) for i in range(20)]


@pytest.mark.parametrize("is_last", [False, True])
def test_a_request_behind_a_chunked_body(ann, door, is_last):
    """It is the next, and begins where the body ends; behind a last request nothing is read."""
    head = chunked_head(ann, *["Connection: close"] * is_last)
    follows = request("POST", "/api/api.test", ann.token, FORM, "c=d")
    door.send((head + "3\r\na=b\r\n0\r\n\r\n").encode() + follows)
    reply = door.reply()
    assert reply.json["args"] == {"a": "b"}
    if is_last:
        assert reply.headers["connection"] == "close"
        assert door.rest(timeout=IN_TIME_S) == b""
    else:
        assert door.reply().json["args"] == {"c": "d"}


def test_pipelined_posts_are_answered_in_order(ann, door, workspace):
    channel = workspace.channel(ann)
    door.send(b"".join(request("POST", "/api/chat.postMessage", ann.token, FORM, f"channel={channel}&text=t{i}")
                       for i in range(10)))
    replies = [door.reply().json for _ in range(10)]
    assert [reply["message"]["text"] for reply in replies] == [f"t{i}" for i in range(10)]
    assert [m["text"] for m in ann.history(channel)] == [f"t{i}" for i in range(9, -1, -1)]


def test_requests_in_pieces(ann, door):
    data = request("POST", "/api/api.test", ann.token, "application/json", '{"a": "b"}')
    for i in range(len(data)):
        door.send(data[i:i + 1])
    assert door.reply().json["args"] == {"a": "b"}


def test_connection_close_is_honoured(ann, door):
    door.send(request("POST", "/api/auth.test", ann.token, headers=["Connection: close"]))
    assert door.reply().json["ok"] is True
    assert door.rest() == b""


def test_http_1_0(ann, door):
    door.send(f"GET /api/auth.test?token={ann.token} HTTP/1.0\r\n\r\n")
    data = door.rest()
    assert b" 200 " in data.split(b"\r\n")[0] and b'"ok":true' in data.replace(b" ", b"")


def test_half_close_after_a_request(ann, door):
    door.send(request("POST", "/api/auth.test", ann.token))
    door.half_close()
    assert door.reply().json["ok"] is True


def test_half_close_along_with_a_request(ann):
    """A client that reads to the end of the connection need not wait for the idle timeout."""
    for number in range(20):
        count = 1 + number % 3
        with RawConnection(ann.url) as door:
            door.send(count * request("GET", "/api/api.test"))
            door.half_close()
            assert door.rest(timeout=IN_TIME_S).count(b"HTTP/1.1 200 ") == count


@pytest.mark.parametrize("method, more", [("chat.postMessage", {"text": "x"}), ("channels.info", {})])
def test_half_close_just_before_the_reply(room, method, more):
    """Also if the half-close arrives while the reply is being sent."""
    ann, _, channel = room
    call = request("POST", f"/api/{method}", ann.token, "application/json", json.dumps({"channel": channel, **more}))
    for _ in range(8):
        with ExitStack() as stack:
            doors = [stack.enter_context(RawConnection(ann.url)) for _ in range(200)]
            for door in doors:
                door.send(call)
            wait_until(doors[0].has_come, interval=0)
            for door in doors:
                door.half_close()
            for door in doors:
                assert door.rest(timeout=IN_TIME_S).startswith(b"HTTP/1.1 200 ")


def test_expect_100_continue(ann, door):
    body = b"a=b"
    door.send(request("POST", "/api/api.test", ann.token, FORM,
                      headers=["Expect: 100-continue", f"Content-Length: {len(body)}"]).replace(
                          b"Content-Length: 0\r\n", b""))
    assert door.reply().status == 100
    door.send(body)
    assert door.reply().json["args"] == {"a": "b"}


def test_expect_with_too_large_a_body(ann, door):
    door.send(request("POST", "/api/api.test", ann.token, FORM,
                      headers=["Expect: 100-continue", f"Content-Length: {BODY_MAX + 1}"]).replace(
                          b"Content-Length: 0\r\n", b""))
    reply = door.reply()
    assert reply.status == 200 and reply.json["error"] == "request_too_large"


@pytest.mark.parametrize("verb", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_other_verbs(ann, door, verb):
    door.send(request(verb, "/api/auth.test", ann.token))
    reply = door.reply()
    assert reply.status in (200, 400, 405, 501)
    if reply.status == 200:
        assert reply.json["ok"] is False
    still_serves(ann)


@pytest.mark.parametrize("target", ["/favicon.ico", "/apix/auth.test", "/API/auth.test", "/api", "/.git/config",
                                    "/../etc/passwd"])
def test_paths_that_are_nothing(ann, door, target):
    door.send(request("GET", target))
    reply = door.reply()
    assert reply.status == 404 or (reply.status == 200 and reply.json["error"] == "unknown_method")


def test_absolute_target(ann, door):
    door.send(request("POST", f"http://127.0.0.1:{door.port}/api/auth.test", ann.token))
    reply = door.reply()
    assert reply.status in (200, 400, 404)
    still_serves(ann)


def test_a_client_that_leaves_in_the_middle(ann, workspace):
    channel = workspace.channel(ann)
    for cut in (10, 60, 150, -3):
        with RawConnection(ann.url) as connection:
            connection.send(request("POST", "/api/chat.postMessage", ann.token, "application/json",
                                    json.dumps({"channel": channel, "text": "never"}))[:cut])
    still_serves(ann)
    assert ann.history(channel) == []


def test_a_client_that_does_not_wait_for_its_answer(ann, workspace):
    """The post counts all the same, and once."""
    channel = workspace.channel(ann)
    for i in range(20):
        with RawConnection(ann.url) as connection:
            connection.send(request("POST", "/api/chat.postMessage", ann.token, "application/json",
                                    json.dumps({"channel": channel, "text": f"t{i}"})))
            connection.half_close()
            connection.reply()
    wait_until(lambda: len(ann.history(channel)) == 20)


def test_many_connections(ann):
    """More than a turn of the loop serves."""
    connections = [RawConnection(ann.url) for _ in range(300)]
    try:
        for _ in range(3):
            for connection in connections:
                connection.send(request("POST", "/api/auth.test", ann.token))
            assert all(connection.reply().json["ok"] for connection in connections)
    finally:
        for connection in connections:
            connection.__exit__()


def test_connection_limit(ann, extra_instance):
    """Over the limit a connection is refused; below it again, it is served."""
    instance = extra_instance(connections_max=20, loops=1)
    held = [RawConnection(instance.url) for _ in range(30)]
    assert 18 <= sum(is_answered(connection, ann) for connection in held) <= 20  # one that asked whether it is ready may count
    for connection in held:
        connection.__exit__()
    client = ann.at(instance.url)
    wait_until(lambda: served(client), what="service after the crowd has gone")


def is_answered(connection, client):
    try:
        connection.send(request("POST", "/api/auth.test", client.token))
        return connection.reply().json["ok"]
    except (EOFError, ConnectionError):
        return False


def served(client):
    try:
        return client.call("auth.test")["ok"]
    except OSError:
        return False
