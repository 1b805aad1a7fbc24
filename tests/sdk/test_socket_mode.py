# SPDX-License-Identifier: Apache-2.0
"""@slack/socket-mode: an app that receives events without a public address."""

import pytest

from tests.support.kept import wait_kept

CONNECTED = {"what": "state", "state": "connected"}


@pytest.fixture
def listen(app, scripts):
    """A started SocketModeClient of the app."""

    def open_client(url, attempts=0, **options):
        script = scripts("socket_mode.mjs", api=f"{url}/api/", token=app.token, attempts=attempts, options=options)
        assert script.ask("start")["ok"] is True
        return script

    return open_client


def heard(client, **event):
    return client.expect({"what": "event", "event": event})


def texts(client):
    return [line["event"].get("text") for line in client.matching({"what": "event"})]


def test_events_come_once(app, listen, workspace):
    client = listen(app.ann.url)
    app.ann.post(app.channel, "one 😀")
    told = heard(client, type="message", text="one 😀")
    assert (told["event"]["user"], told["team"], told["retry_num"]) == (app.ann.id, workspace.id, 0)
    app.ann.post(app.channel, "two")
    workspace.user().ok("channels.join", channel=app.channel)
    heard(client, type="member_joined_channel")
    assert texts(client)[:2] == ["one 😀", "two"]
    client.ask("disconnect")


def test_what_is_not_acked_comes_again(app, listen, extra_instance):
    client = listen(extra_instance(app_socket_ack_ms=3000).url, attempts=2)
    app.ann.post(app.channel, "hold this")
    app.ann.post(app.channel, "not this")
    again = [client.expect({"what": "event", "event": {"text": "hold this"}, "retry_num": n}) for n in range(3)]
    assert [line["retry_reason"] for line in again] == ["", "timeout", "timeout"]
    assert len({line["envelope_id"] for line in again}) == 1
    assert texts(client).count("not this") == 1


def test_it_connects_anew_when_told(app, listen, extra_instance):
    """A connection of 11 s receives a warning 10 s before its end."""
    client = listen(extra_instance(app_socket_life_s=11).url, clientPingTimeout=1000)
    client.expect(CONNECTED, count=2)
    app.ann.post(app.channel, "on the second one")
    heard(client, text="on the second one")


def test_an_instance_that_ends(environment, app, listen, extra_instance):
    instance = extra_instance(drain_ms=500)
    client = listen(instance.url, clientPingTimeout=1000)
    wait_kept(environment, app.id, app.channel, [lambda: app.ann.post(app.channel, "before it")])
    instance.stop()
    gap = [f"while it was away {n}" for n in range(3)]
    for text in gap:
        app.ann.post(app.channel, text)
    instance.start()
    client.expect(CONNECTED, count=2)
    app.ann.post(app.channel, "after it")
    for text in (*gap, "after it"):
        heard(client, text=text)


def test_an_app_that_is_no_more(app, listen, scripts, workspace):
    """Its connections end, and the SDK does not try for ever to get another."""
    client = listen(app.ann.url, autoReconnectEnabled=False)
    workspace.admin.ok("admin.apps.delete", app_id=app.id)
    another = scripts("socket_mode.mjs", api=f"{app.ann.url}/api/", token=app.token)
    assert another.fails("start")["data"]["error"] == "invalid_auth"
    client.expect({"what": "state", "state": "disconnected"})
