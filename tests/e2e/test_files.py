# SPDX-License-Identifier: Apache-2.0
"""Files: uploading in all the ways that clients have, sharing, reading, removing; and who may not."""
import io
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
import requests

from tests.support.environment import Environment, running
from tests.support.metrics import metric
from tests.support.wait import wait_until

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)
MAX = 3 << 20
USER_MAX = 40 << 20
KEEP_S = 4


@pytest.fixture(scope="module")
def environment(tmp_path_factory, recorder):
    directory = tmp_path_factory.mktemp("files")
    yield from running(Environment(directory, settings={
        "TIDINGS_FILES_URL": f"file://{directory}/stored", "TIDINGS_FILE_MAX_BYTES": str(MAX), "TIDINGS_USER_FILES_BYTES": str(USER_MAX),
        "TIDINGS_UPLOAD_KEEP_S": str(KEEP_S), "TIDINGS_FILES_SWEEP_S": "1", "TIDINGS_BODY_TIMEOUT_MS": "2000"}, recorder=recorder))


def announce(user, data, name="a.png", **args):
    made = user.ok("files.getUploadURLExternal", filename=name, length=len(data), **args)
    return made["file_id"], made["upload_url"]


def send(url, data, **args):
    return requests.post(url, data=data, timeout=60, **args)


def upload(user, data=PNG, name="a.png", **args):
    file, url = announce(user, data, name, **args)
    assert send(url, data).status_code == 200
    return file


def share(user, channel, data=PNG, name="a.png", **args):
    file = upload(user, data, name)
    return user.ok("files.completeUploadExternal", files=[{"id": file}], channel_id=channel, **args)["files"][0]


def get(user, url, **headers):
    return requests.get(url, headers={"Authorization": f"Bearer {user.token}", **headers}, timeout=60)


def stored(environment):
    """The files of the directory, by their names."""
    return {path.name for path in (environment.directory / "stored").rglob("*") if path.is_file()}


def objects(environment, file):
    with environment.database() as database:
        return {row[0] for row in database.execute("SELECT object FROM file_objects WHERE file_id = %s", [file])}


WAYS = {
    "raw": lambda url, data: send(url, data),
    "urllib's type": lambda url, data: send(url, data, headers={"Content-Type": "application/x-www-form-urlencoded"}),
    "put": lambda url, data: requests.put(url, data=data, timeout=60),
    "chunks": lambda url, data: send(url, iter([data[:7], data[7:]])),
    "field file": lambda url, data: requests.post(url, files={"file": ("x.png", data)}, timeout=60),
    "field body, with a token": lambda url, data: requests.post(url, files={"body": ("x.png", data)}, headers={"Authorization": "Bearer xoxp-x"},
                                                                timeout=60),
    "field filename, others before": lambda url, data: requests.post(url, data={"n": "1"}, files={"filename": ("x.png", data)}, timeout=60),
    "expecting": lambda url, data: send(url, data, headers={"Expect": "100-continue"}),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("data", [PNG, b"\r\n--b\r\n" * 3 + b"\r", b"x", bytes(range(256)) * 1000], ids=["png", "delimiters", "one", "long"])
def test_each_way_to_upload(room, way, data):
    ann, bob, channel = room
    file, url = announce(ann, data)
    reply = WAYS[way](url, data)
    assert reply.status_code == 200, reply.text
    done = ann.ok("files.completeUploadExternal", files=[{"id": file, "title": "A title"}], channel_id=channel)["files"][0]
    assert (done["id"], done["size"], done["title"], done["name"]) == (file, len(data), "A title", "a.png")
    assert get(bob, done["url_private"]).content == data


def test_a_shared_file_is_a_counted_post(room):
    ann, bob, channel = room
    position = bob.ok("unread.sync")["position"]
    file = upload(ann, alt_txt="a graph")
    done = ann.ok("files.completeUploadExternal", files=[{"id": file}], channel_id=channel, initial_comment="look")["files"][0]
    assert done["alt_txt"] == "a graph"
    message = bob.history(channel)[0]
    for event in (bob.ok("events.sync", since=position)["events"][-1], bob.ok("channels.events", channel=channel, after_seq=0)["events"][-1]):
        assert (event["subtype"], event["upload"], event["files"]) == ("file_share", True, message["files"])
    assert (message["text"], message["subtype"], message["files"][0]["id"]) == ("look", "file_share", done["id"])
    assert message["files"][0]["mimetype"] == "image/png" and message["user"] == ann.id
    assert bob.unread(channel) == 1
    share(ann, channel)
    entry = [c for c in bob.ok("unread.sync")["channels"] if c["id"] == channel][0]
    assert (entry["unread_count"], entry["latest_preview"]) == (2, "sent a file")


def test_in_a_thread_with_others(room):
    ann, bob, channel = room
    root = bob.post(channel, "root")
    files = [{"id": upload(ann, name=f"{n}.png")} for n in range(10)]
    ann.ok("files.completeUploadExternal", files=json.dumps(files), channels=channel, thread_ts=root)
    reply = bob.ok("channels.replies", channel=channel, ts=root)["messages"][1]
    assert [f["id"] for f in reply["files"]] == [f["id"] for f in files]
    ann.fails("too_many_files", "files.completeUploadExternal", files=[*files, {"id": "F0000000001"}], channel_id=channel)


def test_completing_twice_posts_once(room):
    ann, bob, channel = room
    file, url = announce(ann, PNG)
    assert send(url, PNG).status_code == 200
    done = [ann.ok("files.completeUploadExternal", files=[{"id": file}], channel_id=channel)["files"][0]["id"] for _ in range(2)]
    assert set(done) == {file} and len(bob.history(channel)) == 1
    assert send(url, PNG).status_code == 404  # the URL is used up
    assert get(bob, ann.ok("files.info", file=file)["file"]["url_private"]).content == PNG


def test_two_completions_at_once(environment, room):
    ann, bob, channel = room
    file = upload(ann)
    body = json.dumps({"files": [{"id": file}], "channel_id": channel})
    headers = {"Authorization": f"Bearer {ann.token}", "Content-Type": "application/json"}
    with ThreadPoolExecutor(6) as pool:
        replies = list(pool.map(lambda n: requests.post(f"{environment.urls[n % 2]}/api/files.completeUploadExternal", data=body, headers=headers,
                                                        timeout=60).json(), range(6)))
    assert all(reply["ok"] for reply in replies), replies
    assert len(bob.history(channel)) == 1


@pytest.mark.parametrize("way", ["shorter", "longer", "no part", "broken"])
def test_what_is_not_as_announced_is_refused(environment, room, way):
    ann, _, channel = room
    file, url = announce(ann, PNG)
    if way == "no part":
        reply = requests.post(url, files={"file": (None, PNG)}, timeout=60)
    elif way == "broken":
        reply = send(url, b"--b\r\nContent-Disposition: form-data; filename=x\r\n\r\nxx", headers={"Content-Type": "multipart/form-data; boundary=b"})
    else:
        reply = send(url, PNG[:-1] if way == "shorter" else PNG + b"x")
    assert reply.status_code == 400
    ann.fails("file_not_found", "files.completeUploadExternal", files=[{"id": file}], channel_id=channel)
    assert send(url, PNG).status_code == 200  # and can be repeated
    ann.ok("files.completeUploadExternal", files=[{"id": file}], channel_id=channel)


def test_limits(room):
    ann, _, channel = room
    upload(ann, bytes(MAX))
    ann.fails("file_too_large", "files.getUploadURLExternal", filename="x", length=MAX + 1)
    for _ in range(USER_MAX // MAX - 1):
        announce(ann, bytes(MAX))
    left = USER_MAX - USER_MAX // MAX * MAX
    ann.fails("storage_limit_reached", "files.getUploadURLExternal", filename="x", length=left + 1)
    ann.ok("files.getUploadURLExternal", filename="x" * 255, length=left, alt_txt="x" * 1000)
    for args in ({"length": 0}, {"length": "x"}, {"filename": ""}, {"filename": "x" * 256}, {"alt_txt": "x" * 1001}):
        ann.fails("invalid_arguments", "files.getUploadURLExternal", **{"filename": "x", "length": 1, **args})
    for files in ([], [{}], [{"id": "C1"}], "x", [{"id": "F0000000001", "title": "x" * 256}], [{"id": "F0000000001"}] * 2):
        ann.fails("invalid_arguments", "files.completeUploadExternal", files=files, channel_id=channel)


def test_ranges(room):
    ann, bob, channel = room
    data = bytes(range(256))
    url = share(ann, channel, data, "x.bin")["url_private"]
    for text, status, content, told in (
            ("bytes=0-0", 206, data[:1], "bytes 0-0/256"), ("bytes=250-", 206, data[250:], "bytes 250-255/256"),
            ("bytes=-6", 206, data[250:], "bytes 250-255/256"), ("bytes=-300", 206, data, "bytes 0-255/256"),
            ("bytes=5-999", 206, data[5:], "bytes 5-255/256"), ("bytes=256-", 416, b"", "bytes */256"), ("bytes=-0", 416, b"", "bytes */256"),
            ("bytes=9-5", 200, data, None), ("bytes=0-1,4-5", 200, data, None), ("lines=1-2", 200, data, None), ("bytes=x", 200, data, None),
            ("bytes=" + "9" * 30 + "-", 200, data, None)):
        reply = get(bob, url, Range=text)
        assert (reply.status_code, reply.content, reply.headers.get("Content-Range")) == (status, content, told), text
    head = requests.head(url, headers={"Authorization": f"Bearer {bob.token}"}, timeout=60)
    assert (head.status_code, head.headers["Content-Length"], head.content) == (200, "256", b"")


@pytest.mark.parametrize(("name", "data", "mimetype", "shown"), [
    ("a.png", PNG, "image/png", True), ("a.jpg", b"\xff\xd8\xff\xe0" + bytes(20), "image/jpeg", True), ("a.gif", b"GIF89a" + bytes(20), "image/gif", True),
    ("a.webp", b"RIFF1234WEBPVP8 ", "image/webp", True), ("a.mp4", b"\0\0\0\x18ftypmp42" + bytes(9), "video/mp4", True),
    ("a.pdf", b"%PDF-1.7\n", "application/pdf", True), ("a.svg", b"<svg onload='alert(1)'/>", "image/svg+xml", False),
    ("a.html", b"<script>alert(1)</script>", "text/html", False), ("fake.png", b"<script>alert(1)</script>", "application/octet-stream", False),
    ("a.txt", b"text", "text/plain", False)])
def test_how_it_is_served(room, name, data, mimetype, shown):
    ann, bob, channel = room
    done = share(ann, channel, data, name)
    assert done["mimetype"] == mimetype
    for url, inline in ((done["url_private"], shown), (done["url_private_download"], False)):
        reply = get(bob, url)
        assert reply.content == data and reply.headers["Content-Type"] == (mimetype if inline else "application/octet-stream")
        assert reply.headers["Content-Disposition"].startswith("inline" if inline else "attachment")
        assert reply.headers["X-Content-Type-Options"] == "nosniff" and "sandbox" in reply.headers["Content-Security-Policy"]


def test_names(room):
    ann, bob, channel = room
    name = 'Grüße "x"\u2028; a=b/../c.txt'
    done = share(ann, channel, b"x", name)
    assert done["name"] == name
    head = get(bob, done["url_private"]).headers["Content-Disposition"]
    assert head.isascii() and "\"x\"" not in head and "Gr%C3%BC%C3%9Fe" in head


def test_who_may_read_it(environment, room, workspace):
    ann, bob, channel = room
    stranger = environment.workspace().admin
    eve = workspace.user()
    own = upload(ann)
    ann.ok("files.completeUploadExternal", files=[{"id": own}])
    done = share(ann, channel)
    for user, file in ((bob, own), (eve, done["id"]), (stranger, done["id"]), (bob, "F0000000001")):
        for method in ("files.info", "files.delete", "files.sign"):
            user.fails("file_not_found", method, file=file)
    assert get(ann, ann.ok("files.info", file=own)["file"]["url_private"]).status_code == 200
    url = done["url_private"]
    assert [get(user, url).status_code for user in (ann, bob, eve, stranger)] == [200, 200, 404, 404]
    assert requests.get(url, timeout=60).status_code == 401
    assert requests.get(url, params={"token": bob.token}, timeout=60).status_code == 401
    bob.ok("channels.leave", channel=channel)
    assert get(bob, url).status_code == 404 and get(bob, url.replace("a.png", "b")).status_code == 404
    bob.fails("file_not_found", "files.info", file=done["id"])


def test_somebody_elses_upload(room):
    ann, bob, channel = room
    file = upload(ann)
    bob.fails("file_not_found", "files.completeUploadExternal", files=[{"id": file}], channel_id=channel)
    ann.fails("channel_not_found", "files.completeUploadExternal", files=[{"id": file}], channel_id="C0000000001")
    ann.fails("file_not_found", "files.completeUploadExternal", files=[{"id": file}, {"id": "F0000000001"}], channel_id=channel)


def test_signed(room):
    ann, bob, channel = room
    done = share(ann, channel)
    signed = bob.ok("files.sign", file=done["id"])
    assert requests.get(signed["url"], timeout=60).content == PNG
    other = signed["url"][:-1] + ("1" if signed["url"].endswith("0") else "0")
    assert requests.get(other, timeout=60).status_code == 404
    bob.ok("channels.leave", channel=channel)
    assert requests.get(signed["url"], timeout=60).status_code == 404


def test_list(room, workspace):
    ann, bob, channel = room
    other = workspace.channel(ann)
    ids = [share(ann, where)["id"] for where in (channel, channel, other)]
    listed = bob.ok("files.list")
    assert {f["id"] for f in listed["files"]} == set(ids[:2])
    assert listed["paging"] == {"count": 100, "total": 2, "page": 1, "pages": 1}
    page = ann.ok("files.list", count=2, page=2)
    assert len(page["files"]) == 1 and page["paging"]["pages"] == 2
    assert [f["id"] for f in ann.ok("files.list", channel=other)["files"]] == ids[2:]
    assert bob.ok("files.list", channel=other)["files"] == [] and bob.ok("files.list", user=bob.id)["files"] == []
    info = bob.ok("files.info", file=ids[0])["file"]
    assert info["channels"] == [channel] and info["shares"]["public"][channel][0]["ts"] and info["is_public"]


def test_deleting(environment, room, workspace):
    ann, bob, channel = room
    done = share(ann, channel)
    bytes_of = objects(environment, done["id"])
    assert bytes_of <= stored(environment)
    bob.fails("cant_delete_file", "files.delete", file=done["id"])
    before = metric(environment.instances[0], "tidings_file_objects_removed_total") + metric(environment.instances[1], "tidings_file_objects_removed_total")
    ann.ok("files.delete", file=done["id"])
    assert get(bob, done["url_private"]).status_code == 404 and bob.history(channel)[0]["files"]
    ann.fails("file_not_found", "files.info", file=done["id"])
    wait_until(lambda: not bytes_of & stored(environment))
    wait_until(lambda: metric(environment.instances[0], "tidings_file_objects_removed_total")
               + metric(environment.instances[1], "tidings_file_objects_removed_total") > before)


def test_with_its_last_share(environment, room, workspace):
    ann, bob, channel = room
    other = workspace.channel(ann, bob)
    file = upload(ann)
    for where in (channel, other):
        ann.ok("files.completeUploadExternal", files=[{"id": file}], channel_id=where)
    url = ann.ok("files.info", file=file)["file"]["url_private"]
    ann.ok("chat.delete", channel=channel, ts=ann.history(channel)[0]["ts"])
    assert get(bob, url).status_code == 200
    ann.ok("chat.delete", channel=other, ts=ann.history(other)[0]["ts"])
    assert get(bob, url).status_code == 404
    wait_until(lambda: not objects(environment, file))


def test_with_retention(environment, room):
    ann, bob, channel = room
    done = share(ann, channel)
    with environment.database() as database:
        database.execute("DELETE FROM messages WHERE channel_id = %s AND ts = (SELECT max(ts) FROM messages WHERE channel_id = %s)", [channel, channel])
        database.execute("UPDATE file_shares SET ts = 1 WHERE file_id = %s", [done["id"]])
    wait_until(lambda: get(bob, done["url_private"]).status_code == 404)
    wait_until(lambda: not objects(environment, done["id"]))


def test_unfinished_uploads_end(environment, room):
    ann, _, channel = room
    file, url = announce(ann, PNG)
    late, late_url = announce(ann, PNG)
    assert send(url, PNG).status_code == 200
    bytes_of = objects(environment, file)
    assert bytes_of <= stored(environment)
    wait_until(lambda: not bytes_of & stored(environment), timeout=KEEP_S + 20)
    ann.fails("file_not_found", "files.completeUploadExternal", files=[{"id": file}], channel_id=channel)
    assert send(late_url, PNG).status_code == 404 and not objects(environment, late)


def test_a_client_that_stops_leaves_nothing(environment, room):
    ann, _, _ = room
    file, url = announce(ann, bytes(1 << 20))
    parts = urlsplit(url)

    def begin():
        peer = socket.create_connection((parts.hostname, parts.port))
        peer.sendall(f"POST {parts.path} HTTP/1.1\r\nHost: x\r\nContent-Length: {1 << 20}\r\n\r\n".encode() + bytes(1000))
        return peer

    slow, gone = begin(), begin()
    wait_until(lambda: sum(name.endswith(".part") for name in stored(environment)) >= 2)
    gone.close()
    assert slow.recv(100).startswith(b"HTTP/1.1 503")
    slow.close()
    wait_until(lambda: not any(name.endswith(".part") for name in stored(environment)))
    wait_until(lambda: metric(environment.instances[0], "tidings_file_transfers") == 0)


def test_too_many_at_once(environment, room):
    ann, bob, channel = room
    url = share(ann, channel, bytes(MAX), "big")["url_private"]
    file, upload_url = announce(ann, bytes(1 << 20))
    parts = urlsplit(upload_url)
    peers = [socket.create_connection((parts.hostname, parts.port)) for _ in range(8)]
    for peer in peers:
        peer.sendall(f"PUT {parts.path} HTTP/1.1\r\nHost: x\r\nContent-Length: {1 << 20}\r\n\r\n".encode())
    wait_until(lambda: metric(environment.instances[0], "tidings_file_transfers") == 8)
    before = metric(environment.instances[0], "tidings_file_transfers_refused_total")
    assert send(upload_url, b"x").status_code == 503 and get(ann, url).status_code == 503
    assert metric(environment.instances[0], "tidings_file_transfers_refused_total") == before + 2
    assert get(bob, url).status_code == 200  # others are not concerned
    for peer in peers:
        peer.close()
    wait_until(lambda: get(ann, url).status_code == 200)


def test_killed_in_the_middle(environment, room):
    ann, _, _ = room
    instance = environment.instance()
    try:
        file, url = announce(ann, bytes(1 << 20))
        path = urlsplit(url).path
        peer = socket.create_connection(("127.0.0.1", urlsplit(instance.url).port))
        peer.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {1 << 20}\r\n\r\n".encode() + bytes(1000))
        wait_until(lambda: any(f"{name}.part" in stored(environment) for name in objects(environment, file)))
        instance.kill()
        left = {f"{name}.part" for name in objects(environment, file)}
        assert left & stored(environment)
        wait_until(lambda: not left & stored(environment), timeout=KEEP_S + 20)
    finally:
        instance.stop()


def test_a_disk_that_is_full(environment, room, workspace):
    ann, _, channel = room
    file, url = announce(ann, PNG)
    directory = environment.directory / "stored"
    moved = directory.rename(environment.directory / "moved")
    try:
        directory.write_text("no directory")
        assert send(url, PNG).status_code == 503
    finally:
        directory.unlink()
        moved.rename(directory)
    assert send(url, PNG).status_code == 200
    ann.ok("files.completeUploadExternal", files=[{"id": file}], channel_id=channel)


def test_a_file_that_is_not_there(environment, room):
    ann, bob, channel = room
    done = share(ann, channel)
    for name in objects(environment, done["id"]):
        next((environment.directory / "stored").rglob(name)).unlink()
    assert get(bob, done["url_private"]).status_code == 404


def test_memory_and_neighbours(environment, room):
    """An upload is not held in memory, and others do not wait for it."""
    ann, bob, channel = room
    instance = environment.instance(file_max_bytes=100 << 20, user_files_bytes=1 << 30)
    try:
        size = 100 << 20

        def resident():
            with open(f"/proc/{instance.pid}/status", encoding="ascii") as status:
                return int(next(line for line in status if line.startswith("VmRSS:")).split()[1]) << 10

        ann.url = instance.url
        made = ann.ok("files.getUploadURLExternal", filename="big", length=size)
        most, ended = [resident()], threading.Event()

        def watch():
            while not ended.wait(0.02):
                most.append(resident())

        watcher = threading.Thread(target=watch)
        watcher.start()
        with io.BytesIO(bytes(size)) as data:
            assert send(made["upload_url"], data).status_code == 200
        ended.set()
        watcher.join()
        assert max(most) - most[0] < 8 << 20
    finally:
        instance.stop()


def test_off(tmp_path_factory):
    for parts in running(Environment(tmp_path_factory.mktemp("off"), instances=1)):
        ann = parts.workspace().user()
        for method in ("files.getUploadURLExternal", "files.completeUploadExternal", "files.info", "files.list", "files.delete", "files.sign"):
            ann.fails("files_disabled", method, filename="x", length=1, files=[{"id": "F0000000001"}], file="F0000000001")
        for url in ("s3://bucket/x", "/tmp/x", "file://x", "http://x"):
            bad = parts.instance(start=False, files_url=url)
            with pytest.raises(Exception):  # noqa: B017, PT011
                bad.start()
