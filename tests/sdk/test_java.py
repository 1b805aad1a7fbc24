# SPDX-License-Identifier: Apache-2.0
"""Slack's SDK for Java. It reads replies into classes: a member of another type than Slack's is an exception."""

import os
from types import SimpleNamespace

import pytest

from tests.sdk.conftest import HERE
from tests.support.script import Script
from tests.support.workspace import Workspace


@pytest.fixture(scope="module")
def people(environment):
    """A user without a rate limit, the same with one call a second; a second user; two bots; a channel of all."""
    workspace = Workspace(environment.urls, environment.operator_token)
    ann, bob, bots = workspace.user(), workspace.user(), [workspace.bot(), workspace.bot()]
    limited = workspace.admin.ok("admin.tokens.create", user_id=ann.id, rate_limit=60)["token"]
    return SimpleNamespace(workspace=workspace, ann=ann, bob=bob, bots=bots, limited=limited,
                           channel=workspace.channel(ann, bob, *bots))


@pytest.fixture(scope="module")
def tour(people, java):
    """The output of Tour.java."""
    admin = people.workspace.admin
    app = admin.ok("admin.apps.create", name="by socket", bot_user_id=people.bots[0].id)
    given = {"API": f"{people.ann.url}/api/", "CHANNEL": people.channel, "TOKEN": people.ann.token,
             "BOB_TOKEN": people.bob.token, "BOB": people.bob.id, "LIMITED_TOKEN": people.limited,
             "APP_TOKEN": app["app_token"]}
    script = Script([*java, HERE / "java" / "Tour.java"], env={**os.environ, **given})
    try:
        address = f"http://127.0.0.1:{script.expect({'what': 'listening'}, 60)['port']}/"
        made = admin.ok("admin.apps.create", name="by address", bot_user_id=people.bots[1].id, events_url=address)["app"]
        script.say(made["signing_secret"])
        script.expect({"what": "end"}, 60)
        admin.ok("admin.apps.delete", app_id=made["id"])
        yield script
    finally:
        script.close()


def told(tour, what):
    (line,) = tour.matching({"what": what})
    return {name: value for name, value in line.items() if name != "what"}


def test_messages(tour, people):
    assert told(tour, "me") == {"user": people.ann.id, "team": people.workspace.id}
    assert told(tour, "changed") == {"by": people.bob.id, "text": "changed"}
    assert told(tour, "gone") == {"error": "message_not_found"}
    assert told(tour, "message") == {"text": "é & <x> 😀", "metadata": {"n": "1"}, "block": "*hello*", "replies": 1,
                                     "latest": True}
    assert told(tour, "thread") == {"texts": ["é & <x> 😀", "changed"]}


def test_read_state(tour):
    unread = told(tour, "unread")
    assert unread.pop("before") > 0
    assert unread == {"after": 0, "read": True, "members": 4}
    assert told(tour, "refused") == {"error": "invalid_timestamp"}


def test_conversations(tour, people):
    assert told(tour, "taken") == {"error": "name_taken"}
    already = {"ok": False, "error": "already_in_channel", "user": people.bob.id}
    assert told(tour, "invited") == {"error": "already_in_channel", "errors": [already]}
    assert told(tour, "channel") == {"name": "made-anew", "topic": "a topic", "creator": people.ann.id}
    assert told(tour, "im") == {"user": people.bob.id, "is": True}
    assert told(tour, "list") == {"all": True}


def test_people(tour, people):
    assert told(tour, "user") == {"id": people.bob.id, "name": people.bob.name, "bot": False}
    assert told(tour, "users") == {"known": True}


def test_a_limit(tour, people):
    """With the SDK's plain client it is an exception; the other client waits."""
    assert told(tour, "limited") == {"error": "ratelimited", "status": 429, "wait": "1"}
    assert [m["text"] for m in people.bob.history(people.channel)].count("late") == 2


def test_signed_events(tour):
    assert told(tour, "event") == {"text": "for an address"}


def test_rtm(tour, people):
    assert told(tour, "rtm hello") == {"type": "hello", "me": people.ann.id}
    ack = told(tour, "rtm ack")["frame"]
    assert (ack["ok"], ack["reply_to"], ack["text"]) == (True, 1, "by RTM")
    assert told(tour, "rtm message") == {"text": "for RTM"}


@pytest.mark.parametrize("backend", ["Tyrus", "JavaWebSocket"])
def test_socket_mode(tour, backend):
    (line,) = tour.matching({"what": "socket mode", "backend": backend})
    assert (line["text"], line["alive"]) == (f"for {backend}", True)
    assert not [noise for noise in tour.noise if "ERROR" in noise]
