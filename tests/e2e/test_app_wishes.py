# SPDX-License-Identifier: Apache-2.0
"""The events that an app receives: all, or those listed in admin.apps.create."""

import pytest

from tests.e2e import test_app_mention
from tests.e2e.test_app_mention import Address, Link, heard, make_app
from tests.support.kept import wait_kept
from tests.support.notes import note
from tests.support.wait import wait_until
from tools import openapi

environment = test_app_mention.environment  # a fixture
NAMES = openapi.read()["components"]["schemas"]["AppEvent"]["enum"]


@pytest.fixture(params=["socket mode", "http"])
def listen(request, workspace):
    """Creates an app with these events that receives at least its mentions."""
    ears = []

    def make(events):
        if request.param == "http":
            ears.append(Address())
            app = make_app(workspace, events=events, events_url=ears[-1].server.url)
        else:
            app = make_app(workspace, events=events)
            ears.append(Link(app))
        app.payloads = ears[-1].payloads
        wait_until(lambda: app.ann.post(app.channel, f"<@{app.bot.id}>?") and app.payloads(), interval=0.2)
        return app

    yield make
    for ear in ears:
        ear.close()


def live(app, workspace):
    """Lets one event of each kind happen to the app's bot, a mention last."""
    ann, bot, other = app.ann, app.bot, workspace.user()
    secret = workspace.channel(ann, bot, private=True)
    mpim = ann.ok("conversations.open", users=[bot.id, other.id])["channel"]["id"]
    for channel in (app.channel, secret, mpim, bot.id):
        ann.post(channel, "hello")
    ts = ann.post(app.channel, "x")
    ann.ok("chat.update", channel=app.channel, ts=ts, text="edited")
    for method in ("reactions.add", "reactions.remove", "pins.add", "pins.remove"):
        ann.ok(method, channel=app.channel, timestamp=ts, name="tada")
    other.ok("conversations.join", channel=app.channel)
    other.ok("conversations.leave", channel=app.channel)
    for channel, name in ((app.channel, "open"), (secret, "closed")):
        ann.ok("conversations.rename", channel=channel, name=name)
        ann.ok("conversations.archive", channel=channel)
        ann.ok("conversations.unarchive", channel=channel)
    ann.post(mpim, f"<@{bot.id}> the end")
    heard(app, "app_mention", f"<@{bot.id}> the end")


def names(app):
    """The names of the events received, without the bot's own joins, which may precede the app's socket."""
    letters = {"channel": "channels", "group": "groups"}
    found = set()
    for event in (payload["event"] for payload in app.payloads()):
        if event["type"] == "message":
            found.add(f"message.{letters.get(event['channel_type'], event['channel_type'])}")
        elif event.get("user") != app.bot.id:
            found.add(event["type"])
    return found


@pytest.mark.parametrize("events", [["app_mention"], ["app_mention", "message.im", "member_joined_channel"],
                                    ["app_mention", "message.groups", "group_archive", "channel_rename"], []])
def test_an_app_gets_the_events_that_it_asked_for(listen, workspace, events):
    app = listen(events)
    live(app, workspace)
    wanted = set(events or NAMES)
    wait_until(lambda: names(app) == wanted, what=f"{wanted}, {names(app)}")
    # The conversation of the bot and ann was new. With Slack nobody joins such a one.
    joins = [p["event"]["channel"] for p in app.payloads() if p["event"]["type"] == "member_joined_channel"]
    assert not [channel for channel in joins if channel.startswith("D")]


def test_messages_without_mentions(environment, workspace):
    """Only events that are sent are stored."""
    app = make_app(workspace, events=["message.channels"])
    link = Link(app)
    wait_kept(environment, app.id, app.channel,
              [lambda url=url: app.ann.at(url).post(app.channel, "before") for url in environment.urls],
              lambda: link.payloads() and None)
    link.close()
    app.ann.post(app.channel, f"<@{app.bot.id}> in the gap")
    app.ann.post(app.bot.id, "in private")
    app.ann.post(app.channel, "the end")
    link = Link(app)
    app.payloads = link.payloads
    heard(app, "message", "the end")
    heard(app, "message", f"<@{app.bot.id}> in the gap")
    assert {p["event"]["type"] for p in link.payloads()} == {"message"} and "in private" not in [
        p["event"]["text"] for p in link.payloads()]
    link.close()


def test_names(workspace):
    bot, make = workspace.bot(), workspace.admin
    for good in (NAMES, ",".join(NAMES), "app_mention", []):
        make.ok("admin.apps.create", name="x", bot_user_id=bot.id, events=good)
    for bad in (["nonsense"], "message", "app_mention,,message.im", ["app_mention", 1], {"a": 1}, "app_mention," * 43):
        assert "events" in make.fails("invalid_arguments", "admin.apps.create", name="x", bot_user_id=bot.id, events=bad).messages


def test_an_app_gets_the_notes_that_slack_has(environment, listen):
    app = listen([])
    ts = app.ann.post(app.channel)
    seqs = [note(environment, app.channel, ts, app.ann.id, name=name) for name in ("sparkled", "reaction_added")]
    event = wait_until(lambda: [p["event"] for p in app.payloads() if p["event"]["type"] == "reaction_added"], what="the note")[0]
    assert (event["seq"], event["reaction"], event["item"]["ts"]) == (seqs[1], "thumbsup", ts)
    assert not [p for p in app.payloads() if p["event"]["type"] == "sparkled"]
