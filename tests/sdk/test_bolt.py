# SPDX-License-Identifier: Apache-2.0
"""@slack/bolt: an app that answers, by Socket Mode and over HTTP."""

import json
import time

import pytest
import requests

from tests.support.wait import wait_until
from tools.services import free_port


@pytest.fixture(params=["socket mode", "http"])
def bolt(request, make_app, scripts):
    """A started Bolt app, as SimpleNamespace, with `script`."""
    port = free_port() if request.param == "http" else None
    app = make_app(f"http://127.0.0.1:{port}/slack/events" if port else None)
    app.script = scripts("bolt.mjs", api=f"{app.ann.url}/api/", token=app.bot.token, appToken=app.token, port=port,
                         signingSecret=app.secret)
    app.script.ask("start")
    app.port = port
    # Over HTTP it hears what happens once it has answered the challenge.
    wait_until(lambda: app.ann.post(app.channel, "anybody?") and app.script.matching({"what": "message"}), interval=0.2)
    return app


def said(app, text):
    """Waits for the app to say `text`, and returns the message as history has it."""
    def look():
        return [m for m in app.ann.history(app.channel) if m["text"] == text]
    return wait_until(look, interval=0.05, what=text)[0]


def by_the_bot(app):
    return [m["text"] for m in app.ann.history(app.channel) if m["user"] == app.bot.id]


def test_it_answers(bolt, workspace):
    bolt.ann.post(bolt.channel, "hello, app")
    answer = said(bolt, f"Hello, <@{bolt.ann.id}>")
    assert (answer["user"], answer["bot_id"]) == (bolt.bot.id, bolt.bot.bot_id)
    assert bolt.script.expect({"what": "said"})["ts"] == answer["ts"]
    # Over HTTP it perhaps heard that it came into the channel itself, and welcomed itself.
    wait_until(lambda: bolt.ann.unread(bolt.channel) == len(by_the_bot(bolt)))
    assert by_the_bot(bolt).count(answer["text"]) == 1

    ts = bolt.ann.post(bolt.channel, "in a thread, please")

    def thread():
        return [m["text"] for m in bolt.ann.ok("conversations.replies", channel=bolt.channel, ts=ts)["messages"]]

    wait_until(lambda: thread() == ["in a thread, please", "here"], what="a reply")
    ts = bolt.ann.post(bolt.channel, f"<@{bolt.bot.id}>, are you there?")
    wait_until(lambda: thread()[1:] == [f"At your service, <@{bolt.ann.id}>"], what="an answer to a mention")
    newcomer = workspace.user()
    newcomer.ok("channels.join", channel=bolt.channel)
    said(bolt, f"Welcome, <@{newcomer.id}>")

    bolt.ann.post(bolt.channel, "the end")
    bolt.script.expect({"what": "message", "message": {"text": "the end"}})
    own = [line for line in bolt.script.matching({"what": "message"}) if line["message"]["user"] == bolt.bot.id]
    assert not own, "it does not hear itself"
    assert bolt.script.matching({"what": "message"})[0]["botId"] == bolt.bot.bot_id
    assert not bolt.script.matching({"what": "error"})
    bolt.script.ask("stop")


@pytest.mark.parametrize("bolt", ["http"], indirect=True)
def test_what_others_send_it_refuses(bolt):
    """Bolt verifies our signatures, so the requests it accepted above were signed correctly."""
    event = {"type": "message", "text": "hello", "channel": bolt.channel}
    body = json.dumps({"type": "event_callback", "event": event})
    for headers in ({}, {"X-Slack-Request-Timestamp": str(int(time.time())), "X-Slack-Signature": "v0=" + "0" * 64}):
        reply = requests.post(f"http://127.0.0.1:{bolt.port}/slack/events", body, timeout=30,
                              headers={"Content-Type": "application/json", **headers})
        assert reply.status_code == 401
