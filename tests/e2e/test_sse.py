# SPDX-License-Identifier: Apache-2.0
"""Event streams: GET /events."""

import re
import subprocess
import threading

import pytest
import requests

from tests.support.raw import RawConnection, request
from tests.support.reading import READ_STATE, same_event
from tests.support.streams import Stream
from tests.support.wait import SOON_S, wait_until


def settled(stream, poster, channel):
    """Posts until the stream's id has moved on: from then on its events have the shared one."""
    first = stream.last_id
    wait_until(lambda: poster.post(channel, "tick") and stream.last_id != first, what="a later id")


def test_the_head_of_the_reply(environment, room):
    with Stream(environment.urls[0], room[0].token) as stream:
        headers = stream.response.headers
        assert stream.status == 200
        assert headers["Content-Type"].split(";")[0] == "text/event-stream"
        assert headers["Cache-Control"] == "no-store" and headers["X-Accel-Buffering"] == "no"
        assert "Content-Encoding" not in headers and "Access-Control-Allow-Origin" not in headers
        stream.expect({"type": "hello"})
        assert stream.events[0][0] == "hello" and stream.events[0][1]


def test_curl_shows_events(environment, room):
    ann, bob, channel = room
    curl = subprocess.Popen(["curl", "-sN", "--max-time", "60", "-H", f"Authorization: Bearer {bob.token}",
                             f"{environment.urls[0]}/events"], stdout=subprocess.PIPE, text=True)
    try:
        seen = []
        for line in curl.stdout:
            seen.append(line.rstrip("\n"))
            if line.startswith("event: hello"):
                ann.post(channel, "for curl")
            if "for curl" in line:
                break
        assert seen[0] == "retry: 3000"
        assert seen[-2] == "event: message" and seen[-1].startswith('data: {"type":"message"')
    finally:
        curl.kill()
        curl.wait()


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer nonsense"}, {"Authorization": "Basic eDp5"},
                                     {"Authorization": "Bearer "}])
def test_without_a_good_token(environment, headers):
    reply = requests.get(f"{environment.urls[0]}/events", headers=headers, timeout=30)
    assert reply.status_code == 401 and reply.json()["ok"] is False and reply.headers["WWW-Authenticate"]


def test_an_app_token_and_a_token_without_the_scope(environment, workspace):
    ann, bot = workspace.user(), workspace.bot()
    app = workspace.admin.ok("admin.apps.create", name="an app", bot_user_id=bot.id)
    scoped = workspace.admin.ok("admin.tokens.create", user_id=ann.id, scopes="channels:read")["token"]
    for token in (app["app_token"], scoped):
        reply = requests.get(f"{environment.urls[0]}/events", headers={"Authorization": f"Bearer {token}"}, timeout=30)
        assert reply.status_code == 403


def test_a_ticket_is_good_once_on_any_instance(environment, room):
    ann, bob, channel = room
    ticket = bob.ok("rtm.connect", native=True)["url"].rsplit("/", 1)[1]
    with Stream(environment.urls[1], ticket=ticket) as stream:
        stream.expect({"type": "hello"})
        ts = ann.post(channel)
        stream.expect({"type": "message", "ts": ts})
    assert requests.get(f"{environment.urls[0]}/events?ticket={ticket}", timeout=30).status_code == 401


def test_beside_the_methods(environment, room):
    """At the path used by a generated client, whose base URL ends with /api."""
    ann, bob, channel = room
    with Stream(environment.urls[0], bob.token, path="/api/events") as stream:
        stream.expect({"type": "hello"})
        ts = ann.post(channel)
        stream.expect({"type": "message", "ts": ts})
    assert requests.get(f"{environment.urls[0]}/api/events", timeout=30).status_code == 401
    for path in ("/api/events/", "/api/eventsx", "/api/event", "/xapi/events", "/API/events"):
        assert requests.get(f"{environment.urls[0]}{path}", headers={"X-Tidings-Errors": "http"}, timeout=30).status_code == 404, path


@pytest.mark.parametrize("bad", ["x", "e1.", "e1.5", "e1.5.5.5", "e1.5.6.7.8", "e1.0.0.0.0", "e1.5.5.5.5 ", "s1.5.5.5",
                                 "e1.99999999999999999999.5.5.5", "e1.5.5.5.5.x", "e1.-5.5.5.5", "e2", "e2.x", "e0.5.5.5.5"])
def test_an_id_that_is_none(environment, room, bad):
    with RawConnection(environment.urls[0]) as raw:
        raw.send(request("GET", "/events", room[0].token, headers=[f"Last-Event-ID: {bad}"]))
        status = raw.reply(head_only=True).status
    assert status == (200 if bad.endswith(" ") else 400)


@pytest.mark.parametrize("last_id", ["e1.5.5.5.5", "e2.5", "e3.9999999999.9999999999.9999999999.0.1"])
def test_an_id_that_is_too_old_or_of_a_later_version(environment, room, streams, last_id):
    ann, bob, channel = room
    stream = streams(bob, last_id)
    assert stream.events[0][0] == "gap" and stream.frames[0] == {"type": "gap", "channel": None}
    ts = ann.post(channel)
    stream.expect({"type": "message", "ts": ts})


def test_other_verbs_and_paths(environment, room):
    url, token = environment.urls[0], room[0].token
    headers = {"Authorization": f"Bearer {token}"}
    reply = requests.post(f"{url}/events", headers=headers, timeout=30)
    assert reply.status_code == 405 and "GET" in reply.headers["Allow"]
    assert requests.get(f"{url}/events/x", headers=headers, timeout=30).status_code == 404


def test_smuggling_is_refused(environment, room):
    for line in ("Content-Length: 5", "Transfer-Encoding: chunked", "Authorization: Bearer x", "no colon"):
        with RawConnection(environment.urls[0]) as raw:
            raw.send(request("GET", "/events", room[0].token, headers=[line]))
            assert raw.reply().status == 400, line


def heard_by(connections, ts):
    """Waits for a message before it is changed: read back later, its frame would tell of it as it is then."""
    for one in connections:
        one.expect({"type": "message", "ts": ts})


def test_the_same_frames_as_a_native_socket(environment, room, sockets, streams, workspace):
    ann, bob, channel = room
    cid = workspace.user()
    socket, stream = sockets(bob, native=True), streams(bob.at(environment.urls[1]))
    first = ann.post(channel, "one", blocks=[{"type": "divider"}])
    heard_by((socket, stream), first)
    ann.ok("chat.update", channel=channel, ts=first, text="two")
    gone = ann.post(channel, "gone")
    heard_by((socket, stream), gone)
    bob.ok("channels.mark", channel=channel, ts=first)
    ann.ok("chat.delete", channel=channel, ts=gone)
    cid.ok("channels.join", channel=channel)
    ann.ok("channels.create", name="brand-new")
    for one in (socket, stream):
        one.expect({"type": "unread_changed"})
        one.expect({"type": "channel_marked"})
        one.expect({"type": "channel_created"})
        one.expect({"type": "member_joined_channel", "user": cid.id})
    told, heard = ([f for f in one.matching({"channel": channel}) if "seq" in f] for one in (socket, stream))
    assert len(told) == len(heard) == 5
    for one, other in zip(told, heard):
        assert same_event(one, other), (one, other)
    for name in READ_STATE:
        assert name in stream.expect({"type": "unread_changed"}), name
    for kind, event_id, data in stream.events:
        assert kind == data["type"] and event_id


def test_own_posts_are_heard(room, streams):
    ann, _, channel = room
    stream = streams(ann)
    ts = ann.post(channel)
    assert stream.expect({"type": "message", "ts": ts})["user"] == ann.id


@pytest.mark.parametrize("other", [0, 1])
@pytest.mark.parametrize("late", [False, True])
def test_resumed_without_a_hole(environment, room, streams, other, late):
    """`late`: after its events have the gateway's id; otherwise after the first one, with an id of the connection's own."""
    ann, bob, channel = room
    second = ann.ok("channels.create", name=f"second-{other}-{late}".lower())["channel"]["id"]
    bob.ok("channels.join", channel=second)
    stream = streams(bob)
    if late:
        settled(stream, ann, channel)
    seen = ann.ok("chat.postMessage", channel=channel, text="seen")["seq"]
    stream.expect({"type": "message", "seq": seen, "channel": channel})
    last_id = stream.close()
    missed = {where: [ann.ok("chat.postMessage", channel=where, text=f"{i}")["seq"] for i in range(30)]
              for where in (channel, second)}
    again = streams(bob.at(environment.urls[other]), last_id)
    after = {where: ann.ok("chat.postMessage", channel=where, text="after")["seq"] for where in missed}
    for where, seqs in missed.items():
        again.expect({"type": "message", "channel": where, "seq": after[where]})
        got = [f["seq"] for f in again.matching({"channel": where}) if "seq" in f]
        assert got == sorted(set(got)), "each once and in order"
        assert set(seqs) <= set(got)
        assert min(got) >= (seen - 200 if where == channel else 2)
    assert not again.matching({"type": "gap"})


def test_a_stream_that_comes_back_keeps_no_call_waiting(environment, extra_instance, room, streams, workspace):
    """The page that it missed takes its time; who calls is looked up all the same."""
    ann, bob, channel = room
    one = extra_instance()
    bob = bob.at(one.url)
    stream = streams(bob)
    stream.expect({"type": "hello"})
    last_id = stream.close()
    missed = ann.post(channel, "missed")
    other = workspace.user().at(one.url)
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%channel_events(%'"
    with environment.database() as database, environment.database() as watch:
        with database.transaction():
            database.execute("LOCK TABLE threads IN ACCESS EXCLUSIVE MODE")
            again = streams(bob, last_id)
            wait_until(lambda: watch.execute(waiting).fetchone()[0], what="the page waits")
            assert requests.post(f"{one.url}/api/auth.test", headers={"Authorization": f"Bearer {other.token}"},
                                 timeout=3).json()["ok"]
        again.expect({"type": "message", "ts": missed})


def test_what_was_before_the_stream_is_not_resumed(extra_instance, room, streams, workspace):
    """Although the instance had streams before, and none when it happened."""
    ann, bob, channel = room
    there = bob.at(extra_instance().url)
    earlier = streams(there)
    settled(earlier, ann, channel)
    earlier.close()
    wait_until(lambda: re.search(r'^tidings_ws_connections{kind="sse"} 0$', there.page("/metrics").text, re.MULTILINE), what="no stream")
    old = workspace.channel(ann, bob)
    ann.post(old, "of before")
    stream = streams(there)
    stream.expect({"type": "hello"})
    settled(stream, ann, channel)
    again = streams(there, stream.close())
    ann.post(old, "after")
    again.expect({"text": "after"})
    assert [frame.get("text") for frame in again.matching({"channel": old})] == ["after"]


def test_what_is_resumed_is_told_as_it_was(room, streams, workspace):
    """Edits, deletes, joins, marks and counts that happened in between."""
    ann, bob, channel = room
    ts = [ann.post(channel, f"m{i}") for i in range(4)]
    stream = streams(bob)
    settled(stream, ann, channel)
    last_id = stream.close()
    ann.ok("chat.update", channel=channel, ts=ts[0], text="edited")
    ann.ok("chat.delete", channel=channel, ts=ts[1])
    cid = workspace.user()
    cid.ok("channels.join", channel=channel)
    renamed = ann.ok("channels.rename", channel=channel, name="anew")["channel"]
    bob.ok("channels.mark", channel=channel, ts=ts[2])
    again = streams(bob, last_id)
    assert again.expect({"subtype": "message_changed"})["message"]["text"] == "edited"
    assert again.expect({"subtype": "message_deleted"})["deleted_ts"] == ts[1]
    again.expect({"type": "member_joined_channel", "user": cid.id})
    rename = again.expect({"type": "channel_rename"})["channel"]
    assert (rename["name"], rename["created"]) == ("anew", renamed["created"])
    mark = again.expect({"type": "channel_marked"})
    assert mark["last_read"] == ts[2] and mark["unread_count"] == bob.unread(channel)


def test_a_delete_in_between_changes_the_count(room, streams):
    ann, bob, channel = room
    _, gone = ann.post(channel), ann.post(channel)
    stream = streams(bob)
    settled(stream, ann, channel)
    count = bob.unread(channel)
    last_id = stream.close()
    ann.ok("chat.delete", channel=channel, ts=gone)
    again = streams(bob, last_id)
    again.expect({"subtype": "message_deleted"})
    assert again.expect({"type": "unread_changed", "channel": channel})["unread_count"] == count - 1 == bob.unread(channel)


def test_a_mute_and_a_mention_in_between(room, streams, workspace):
    ann, bob, channel = room
    quiet = workspace.channel(ann, bob)
    ts = ann.post(channel, "to nobody")
    stream = streams(bob)
    settled(stream, ann, channel)
    last_id = stream.close()
    ann.ok("chat.update", channel=channel, ts=ts, text=f"to <@{bob.id}>")
    bob.ok("channels.setNotifications", channel=quiet, muted=True)
    again = streams(bob, last_id)
    assert again.expect({"type": "unread_changed", "channel": channel})["mention_count"] == 1
    assert again.expect({"type": "unread_changed", "channel": quiet})["is_muted"] is True


def test_joined_and_left_in_between(room, streams, workspace):
    ann, bob, channel = room
    new, left = workspace.channel(ann), workspace.channel(ann, bob)
    stream = streams(bob)
    settled(stream, ann, channel)
    last_id = stream.close()
    ann.post(new, "before")
    ann.ok("channels.invite", channel=new, users=[bob.id])
    inside = ann.post(new, "inside")
    told = ann.post(left, "still there")
    bob.ok("channels.leave", channel=left)
    ann.post(left, "not for bob")
    again = streams(bob, last_id)
    again.expect({"type": "member_joined_channel", "user": bob.id, "channel": new})
    again.expect({"type": "message", "ts": inside})
    again.expect({"type": "message", "ts": told})
    again.expect({"type": "member_left_channel", "user": bob.id, "channel": left})
    ts = ann.post(channel, "the last")
    again.expect({"type": "message", "ts": ts})
    assert not again.matching({"text": "before"}) and not again.matching({"text": "not for bob"})


@pytest.mark.parametrize("late", [False, True])
def test_left_and_came_back_in_between(room, streams, workspace, late):
    """Events before the leave are sent too, and none from the absence. `late`: with an id from long after the first join."""
    ann, bob, channel = room
    secret = workspace.channel(ann, bob, private=True)
    stream = streams(bob)
    settled(stream, ann, channel)
    joined = int(stream.last_id.split(".")[1])
    if late:
        wait_until(lambda: ann.post(channel, "tick") and int(stream.last_id.split(".")[2]) > joined,
                   interval=0.2, what="an id by which the join is long past")
    last_id = stream.close()
    told = ann.ok("chat.postMessage", channel=secret, text="still there")["seq"]
    ann.ok("channels.kick", channel=secret, user=bob.id)
    ann.post(secret, "not for bob")
    ann.ok("channels.invite", channel=secret, users=[bob.id])
    again = streams(bob, last_id)
    back = ann.ok("chat.postMessage", channel=secret, text="back again")["seq"]
    again.expect({"type": "message", "channel": secret, "seq": back})
    seqs = [f["seq"] for f in again.matching({"channel": secret}) if "seq" in f]
    assert seqs[-4:] == [told, told + 1, back - 1, back], "the post, the leave, the join, the post"
    assert not again.matching({"text": "not for bob"}) and not again.matching({"type": "gap"})


def test_channels_and_threads_of_in_between(room, streams, workspace):
    """Events without a seq are sent, too: created channels, and threads followed or read elsewhere."""
    ann, bob, channel = room
    read, dropped = (ann.post(channel, f"root {i}") for i in range(2))
    for root in (read, dropped):
        bob.post(channel, "re", thread_ts=root)
    reply = ann.post(channel, "re re", thread_ts=read)
    stream = streams(bob)
    settled(stream, ann, channel)
    last_id = stream.close()
    public, secret = workspace.channel(ann), workspace.channel(ann, private=True)
    bob.ok("threads.mark", channel=channel, thread_ts=read, ts=reply)
    bob.ok("threads.unfollow", channel=channel, thread_ts=dropped)
    again = streams(bob, last_id)
    again.expect({"type": "channel_created", "channel": {"id": public}})
    assert again.expect({"type": "thread_marked", "thread_ts": read})["unread_count"] == 0
    again.expect({"type": "thread_unsubscribed", "thread_ts": dropped})
    ts = ann.post(channel, "the last")
    again.expect({"type": "message", "ts": ts})
    assert not again.matching({"type": "channel_created", "channel": {"id": secret}})


def test_private_events_of_after_a_kick_are_not_resumed(room, streams, workspace):
    ann, bob, channel = room
    secret = workspace.channel(ann, bob, private=True)
    stream = streams(bob)
    settled(stream, ann, channel)
    last_id = stream.close()
    ann.ok("channels.kick", channel=secret, user=bob.id)
    ann.post(secret, "secret")
    again = streams(bob, last_id)
    again.expect({"type": "member_left_channel", "user": bob.id, "channel": secret})
    ts = ann.post(channel, "the last")
    again.expect({"type": "message", "ts": ts})
    assert not again.matching({"text": "secret"})


def test_an_old_edited_message_brings_no_old_events_back(room, streams):
    """The edit rewrites a row far before the position from which the stream resumes."""
    ann, bob, channel = room
    old = ann.post(channel, "old")
    for i in range(20):
        ann.post(channel, f"{i}")
    stream = streams(bob)
    settled(stream, ann, channel)
    joined = int(stream.last_id.split(".")[1])
    wait_until(lambda: ann.post(channel, "tick") and int(stream.last_id.split(".")[2]) > joined,
               interval=0.2, what="an id by which the join is long past")
    last_id = stream.close()
    ann.ok("chat.update", channel=channel, ts=old, text="new")
    again = streams(bob, last_id)
    again.expect({"subtype": "message_changed"})
    assert not again.matching({"text": "5"})


def test_many_missed_events_come_in_pages(environment, room, streams):
    ann, bob, channel = room
    stream = streams(bob)
    first = ann.ok("chat.postMessage", channel=channel, text="seen")["seq"]
    stream.expect({"type": "message", "seq": first})
    last_id = stream.close()

    def burst(url):
        client = ann.at(url)
        for i in range(600):
            client.post(channel, "x" * 3000)

    threads = [threading.Thread(target=burst, args=(url,)) for url in environment.urls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    again = streams(bob, last_id)
    again.expect({"type": "message", "seq": first + 1200})
    got = [f["seq"] for f in again.matching({"channel": channel}) if "seq" in f]
    assert got == list(range(got[0], first + 1201)) and got[0] <= first + 1


def test_the_largest_message_is_resumed(room, streams):
    ann, bob, channel = room
    last_id = streams(bob).close()
    ts = [ann.post(channel, "y" * 40000, attachments=[{"text": "x" * 1040000}]) for _ in range(2)]
    again = streams(bob, last_id)
    for one in ts:
        again.expect({"type": "message", "ts": one})


def test_more_than_may_be_read_is_a_gap(extra_instance, room, streams):
    ann, bob, channel = room
    stream = streams(bob)
    last_id = stream.close()
    seqs = [ann.ok("chat.postMessage", channel=channel, text=f"{i}")["seq"] for i in range(30)]
    small = extra_instance(resume_max_events=10)
    again = streams(bob.at(small.url), last_id)
    gap = again.expect({"type": "gap", "channel": channel})
    again.expect({"type": "message", "seq": seqs[-1]})
    assert gap["from_seq"] <= seqs[0] and gap["to_seq"] == seqs[-1] - 1


def test_more_marks_than_there_is_room_for(extra_instance, room, sockets, streams, workspace):
    """They are sent as room becomes free: if all were sent at once, the stream would be closed as slow."""
    ann, bob, channel = room
    small = extra_instance(socket_queue_max_bytes=8192)
    marked = [workspace.channel(ann, bob) for _ in range(40)]
    for where in marked:
        ann.post(where)
    last_id = streams(bob.at(small.url)).close()
    device = sockets(bob)
    assert bob.ok("channels.markAll")["channels"] == 40
    wait_until(lambda: len(device.matching({"type": "channel_marked"})) == 40)
    again = streams(bob.at(small.url), last_id)
    for where in marked:
        again.expect({"type": "channel_marked", "channel": where})
    assert not again.matching({"type": "gap"})
    posted = ann.ok("chat.postMessage", channel=channel, text="it goes on")
    again.expect({"type": "message", "ts": posted["ts"]})


def test_what_is_too_old_is_a_setting(extra_instance, room, streams):
    ann, bob, channel = room
    stream = streams(bob)
    last_id = stream.close()
    strict = extra_instance(resume_max_s=0)
    fields = last_id.split(".")
    fields[3] = str(int(fields[3]) - 5)
    again = streams(bob.at(strict.url), ".".join(fields))
    assert again.frames[0] == {"type": "gap", "channel": None}


def test_ends_with_its_token(environment, workspace):
    ann, bob = workspace.users(2)
    with ann.stream() as stream, bob.at(environment.urls[1]).stream() as other:
        workspace.admin.ok("admin.tokens.revoke", revoke_token=ann.token)
        workspace.admin.ok("admin.users.setActive", user_id=bob.id, active=False)
        stream.wait_ended(SOON_S)
        other.wait_ended(SOON_S)
    reply = requests.get(f"{environment.urls[0]}/events", headers={"Authorization": f"Bearer {ann.token}"}, timeout=30)
    assert reply.status_code == 401


def test_heartbeat(room, streams):
    stream = streams(room[0])
    wait_until(lambda: stream.comments > 0, what="a comment")


def test_a_slow_reader_is_closed(extra_instance, room):
    ann, bob, channel = room
    small = extra_instance(socket_queue_max_bytes=65536)
    there = bob.at(small.url)

    def is_closed():
        return "reason=\"slow\"} 0" not in there.page("/metrics").text

    with RawConnection(small.url) as raw:
        raw.send(request("GET", "/events", bob.token))
        raw.reply(head_only=True)
        for _ in range(400):
            ann.post(channel, "x" * 30000)
            if is_closed():
                break
        wait_until(is_closed, what="the end of what nobody reads")
        assert b": closed: slow" in raw.rest()


def test_cors(extra_instance, room):
    ann = room[0]
    open_one = extra_instance(cors_origins="https://a.example,https://b.example")
    url, good = f"{open_one.url}/events", {"Origin": "https://b.example"}
    reply = requests.options(url, headers={**good, "Access-Control-Request-Method": "GET",
                                           "Access-Control-Request-Headers": "authorization"}, timeout=30)
    assert reply.status_code == 204 and reply.headers["Access-Control-Allow-Origin"] == "https://b.example"
    assert "authorization" in reply.headers["Access-Control-Allow-Headers"]
    with Stream(open_one.url, ann.token, headers=good) as stream:
        assert stream.response.headers["Access-Control-Allow-Origin"] == "https://b.example"
        assert stream.response.headers["Vary"] == "Origin"
    assert requests.get(url, headers=good, timeout=30).headers["Access-Control-Allow-Origin"] == "https://b.example"
    for bad in ("https://c.example", "https://a.example,https://b.example", "null"):
        with Stream(open_one.url, ann.token, headers={"Origin": bad}) as stream:
            assert "Access-Control-Allow-Origin" not in stream.response.headers


def test_a_stopping_instance_says_goodbye_and_ends(extra_instance, environment, room, streams):
    ann, bob, channel = room
    instance = environment.instance()
    stream = streams(bob.at(instance.url))
    assert instance.stop() == 0
    stream.wait_ended()
    assert stream.matching({"type": "goodbye"})
    ts = ann.post(channel, "meanwhile")
    streams(bob, stream.last_id).expect({"type": "message", "ts": ts})
