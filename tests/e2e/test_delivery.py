# SPDX-License-Identifier: Apache-2.0
"""From one instance to the other, with the in-process log and with Kafka."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.wait import wait_until

pytestmark = pytest.mark.parametrize("log", ["in-process", pytest.param("kafka", marks=pytest.mark.kafka)])


@pytest.fixture
def room(log, workspace):
    """(ann, bob, channel): two members of a channel."""
    ann, bob = workspace.users(2)
    return ann, bob, workspace.channel(ann, bob)


@pytest.mark.parametrize("poster, listener", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_every_way_between_instances(environment, room, sockets, poster, listener):
    ann, bob, channel = room
    socket = sockets(bob.at(environment.urls[listener]))
    here = ann.at(environment.urls[poster])
    first = here.ok("chat.postMessage", channel=channel, text="one")
    here.ok("chat.update", channel=channel, ts=first["ts"], text="two")
    here.ok("chat.delete", channel=channel, ts=first["ts"])
    socket.expect({"subtype": "message_deleted"})
    assert [f["seq"] for f in socket.matching(lambda f: f.get("channel") == channel and "seq" in f)] == [3, 4, 5]


def test_marks_reach_devices_on_both(environment, room, sockets):
    ann, bob, channel = room
    devices = [sockets(bob.at(url)) for url in environment.urls]
    ts = [ann.post(channel) for _ in range(3)]
    bob.at(environment.urls[1]).ok("channels.mark", channel=channel, ts=ts[0])
    for device in devices:
        assert device.expect({"type": "channel_marked"})["unread_count"] == 2


def test_membership_reaches_sockets_on_both(environment, room, sockets, workspace):
    ann, _, channel = room
    cid = workspace.user()
    devices = [sockets(cid.at(url)) for url in environment.urls]
    cid.ok("channels.join", channel=channel)
    for device in devices:
        device.expect({"type": "member_joined_channel", "user": cid.id})
    ts = ann.at(environment.urls[1]).post(channel, "welcome")
    for device in devices:
        device.expect({"type": "message", "ts": ts})
    ann.ok("channels.kick", channel=channel, user=cid.id)
    for device in devices:
        device.expect({"type": "member_left_channel", "user": cid.id})


def test_channel_created_reaches_both(environment, room, sockets):
    ann, bob, _ = room
    devices = [sockets(bob.at(url)) for url in environment.urls]
    made = ann.ok("channels.create", name="everywhere")["channel"]["id"]
    for device in devices:
        device.expect({"type": "channel_created", "channel": {"id": made}})


def test_one_order_for_all_sockets(environment, room, sockets):
    """Posts, edits and deletes from both instances at once: every socket has each event once, by seq."""
    ann, bob, channel = room
    devices = [sockets(who.at(url)) for who in (ann, bob) for url in environment.urls]
    posters = [who.at(url) for who in (ann, bob) for url in environment.urls]

    def work(client):
        for i in range(20):
            ts = client.post(channel, f"{i}")
            if i % 4 == 0:
                client.ok("chat.update", channel=channel, ts=ts, text="edited")
            if i % 5 == 0:
                client.ok("chat.delete", channel=channel, ts=ts)

    with ThreadPoolExecutor(len(posters)) as pool:
        list(pool.map(work, posters))
    last = ann.ok("chat.postMessage", channel=channel, text="last")["seq"]
    assert last == 2 + 4 * (20 + 5 + 4) + 1
    for device in devices:
        device.expect({"type": "message", "seq": last})
        frames = device.matching(lambda frame: frame.get("channel") == channel and "seq" in frame)
        assert [frame["seq"] for frame in frames] == list(range(3, last + 1))


def test_a_socket_that_opens_under_load_misses_nothing(environment, room, sockets):
    """Messages before its hello are in history, later ones are frames."""
    ann, bob, channel = room
    stop = threading.Event()

    def post_on():
        poster = ann.at(environment.urls[1])
        while not stop.is_set():
            poster.post(channel, "stream")

    thread = threading.Thread(target=post_on)
    thread.start()
    try:
        for _ in range(5):
            socket = sockets(bob)
            head = bob.ok("channels.history", channel=channel, limit=1)["messages"][0]["seq"]
            wait_until(lambda: len(socket.matching({"type": "message"})) > 30)
            seen = [frame["seq"] for frame in socket.matching({"type": "message"})]
            assert seen == list(range(seen[0], seen[0] + len(seen)))
            assert seen[0] <= head + 1
    finally:
        stop.set()
        thread.join()


def test_posts_of_a_socket_keep_their_order_while_others_are_refused(room, sockets, workspace):
    """A batch with a post that is not permitted is sent again without it."""
    ann, _, channel = room
    stop = threading.Event()

    def be_refused(who):
        while not stop.is_set():
            assert who.call("chat.postMessage", channel=channel, text="let me in")["error"] == "not_in_channel"

    strangers = [threading.Thread(target=be_refused, args=(who,)) for who in workspace.users(4)]
    for stranger in strangers:
        stranger.start()
    try:
        socket = sockets(ann)
        for i in range(240):
            if i >= 10:  # so many are on their way
                socket.expect({"reply_to": i - 9})
            socket.send({"id": i + 1, "type": "message", "channel": channel, "text": f"m{i}"})
        socket.expect({"reply_to": 240})
    finally:
        stop.set()
        for stranger in strangers:
            stranger.join()
    texts = [message["text"] for message in ann.ok("channels.history", channel=channel, limit=240)["messages"]]
    assert texts[::-1] == [f"m{i}" for i in range(240)]


def test_counts_after_a_burst(environment, room, sockets):
    ann, bob, channel = room
    posters = [ann.at(url) for url in environment.urls * 2]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda client: [client.post(channel) for _ in range(25)], posters))
    for url in environment.urls:
        there = bob.at(url)
        assert there.unread(channel) == 100
        wait_until(lambda: there.ok("unread.sync")["totals"]["unread_count"] == 100)


def test_idempotency(environment, room):
    ann, bob, channel = room
    first = ann.post(channel, "once", client_msg_id="k")
    assert ann.at(environment.urls[1]).post(channel, "once", client_msg_id="k") == first
    assert bob.unread(channel) == 1
