# SPDX-License-Identifier: Apache-2.0
"""Replies that are compressed: which, for whom, and which never."""
import gzip
import json
import random
import string
import threading

import pytest

from tests.support.raw import RawConnection, request
from tests.support.wait import wait_until

PLAIN = {"Accept-Encoding": "identity"}
GZIP = {"Accept-Encoding": "gzip"}


def is_gzip(reply):
    return reply.headers.get("Content-Encoding") == "gzip"


@pytest.fixture
def room(workspace):
    ann = workspace.user()
    channel = workspace.channel(ann)
    for number in range(30):
        ann.post(channel, f"the text of message {number}")
    return ann, channel


def test_long_replies_are_compressed_for_who_takes_it(room):
    ann, channel = room
    there = ann.ok("channels.history", channel=channel, headers=GZIP)
    plain = ann.ok("channels.history", channel=channel, headers=PLAIN)
    assert is_gzip(there) and not is_gzip(plain) and dict(there) == dict(plain)
    assert int(there.headers["Content-Length"]) < len(plain.body) / 3
    for reply in (there, plain):
        assert reply.headers["Vary"] == "Accept-Encoding"
        assert reply.headers["Content-Type"] == "application/json; charset=utf-8"
    for takes in ("br, gzip;q=0.5", "*", "GZIP"):
        assert is_gzip(ann.ok("channels.history", channel=channel, headers={"Accept-Encoding": takes}))
    for takes_not in ("br", "gzip;q=0", "identity;q=1, *;q=0"):
        assert not is_gzip(ann.ok("channels.history", channel=channel, headers={"Accept-Encoding": takes_not}))


def test_short_ones_are_not(room, environment):
    ann, channel = room
    reply = ann.ok("auth.test", headers=GZIP)
    assert not is_gzip(reply) and reply.headers["Vary"] == "Accept-Encoding"
    for length, wanted in ((1024, False), (1025, True)):
        text = "x" * (length - len(json.dumps({"ok": True, "args": {"text": ""}}, separators=(",", ":"))))
        reply = environment.client().ok("api.test", text=text, headers=GZIP)
        assert len(json.dumps(dict(reply), separators=(",", ":"))) == length and is_gzip(reply) is wanted


@pytest.mark.parametrize("min_bytes, wanted", [(0, False), (100, True)])
def test_from_which_length_is_a_setting(extra_instance, room, min_bytes, wanted):
    ann = room[0].at(extra_instance(gzip_min_bytes=min_bytes).url)
    reply = ann.ok("auth.test", headers=GZIP)
    assert is_gzip(reply) is wanted and reply.headers.get("Vary") == ("Accept-Encoding" if wanted else None)


def test_errors_are_compressed_too(environment):
    with RawConnection(environment.urls[0]) as connection:
        connection.send(request("POST", "/api/api.test?error=" + "x" * 2000, headers=["Accept-Encoding: gzip", "Connection: close"]))
        head, body = connection.rest().split(b"\r\n\r\n", 1)
    assert b"Content-Encoding: gzip" in head and json.loads(gzip.decompress(body))["ok"] is False


def test_secrets_never_are(extra_instance, environment, workspace):
    """Even if all other replies are compressed: each of these contains a secret together with input chosen by the caller."""
    url = extra_instance(gzip_min_bytes=1).url
    ann, bot, admin = workspace.user().at(url), workspace.bot(), workspace.admin.at(url)
    made = admin.ok("admin.apps.create", name="app", bot_user_id=bot.id, headers=GZIP)
    operator = environment.client(environment.operator_token, url=url)
    replies = {
        "rtm.start": ann.ok("rtm.start", headers=GZIP), "rtm.connect": ann.ok("rtm.connect", headers=GZIP), "admin.apps.create": made,
        "admin.tokens.create": admin.ok("admin.tokens.create", user_id=ann.id, headers=GZIP),
        "apps.connections.open": environment.client(made["app_token"], url=url).ok("apps.connections.open", headers=GZIP),
        "admin.workspaces.create": operator.ok("admin.workspaces.create", name="x" * 80, domain=workspace.id.lower() + "-x", headers=GZIP),
    }
    assert [name for name, reply in replies.items() if is_gzip(reply)] == []
    assert is_gzip(ann.ok("auth.test", headers=GZIP))


def test_a_long_reply(environment, workspace):
    """Others are served meanwhile, and a client that disconnects leaves nothing behind."""
    ann = workspace.user()
    channel = workspace.channel(ann)
    for _ in range(40):
        ann.post(channel, "\u00e9abcdefgh" * 2000)
    reply = ann.ok("channels.history", channel=channel, limit=100, headers=GZIP)
    assert is_gzip(reply) and len(reply.body) > 500_000
    assert dict(reply) == dict(ann.ok("channels.history", channel=channel, limit=100, headers=PLAIN))

    def read():
        client = ann.at(environment.urls[0])
        for _ in range(5):
            assert len(client.ok("channels.history", channel=channel, limit=100, headers=GZIP)["messages"]) == 41
    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        with RawConnection(environment.urls[0]) as connection:
            connection.send(request("POST", f"/api/channels.history?channel={channel}&limit=100", ann.token,
                                    headers=["Accept-Encoding: gzip"]))
    for thread in threads:
        thread.join()
    wait_until(lambda: ann.ok("auth.test")["ok"])


def test_a_sidebar_is_small_on_the_wire(environment, workspace):
    """25 bytes a channel, although ids are random, and a fourteenth of the uncompressed size."""
    ann, bob = workspace.users(2)
    with environment.database() as database:
        for number in range(300):
            channel = "C" + "".join(random.choices(string.ascii_uppercase + string.digits, k=10))
            database.execute("SELECT channels_create(%s, %s, %s, %s, %s, NULL, false, 'auto', '{0,0,0}')",
                             [f"O-{workspace.id}-{number}", workspace.id, bob.id, channel, f"project-{number}-{workspace.id.lower()}"])
    reply = bob.ok("unread.sync", headers=GZIP)
    assert is_gzip(reply) and len(reply["channels"]) == 300
    length = int(reply.headers["Content-Length"])
    assert length < 300 * 25 and length < len(reply.body) / 14, length
