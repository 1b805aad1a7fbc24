# SPDX-License-Identifier: Apache-2.0
"""@slack/rtm-api: 6.2.1, and 7.0.4 with its fault: once it has sent a message, the end of its connection makes it throw
("Cannot read properties of undefined (reading 'cancel')"), which here is never made to happen."""

import pytest

SDKS = {"6.2.1": "@slack/rtm-api", "7.0.4": "rtm-api-7"}
READY = {"what": "state", "state": "ready"}
RECONNECTING = {"what": "state", "state": "reconnecting"}


@pytest.fixture
def rtm(scripts):
    """A started RTMClient of a member. It can send once it is READY, 2 s later."""

    def open_client(version, member, token=None, **options):
        script = scripts("rtm.mjs", sdk=SDKS[version], api=f"{member.url}/api/", token=token or member.token,
                         options=options)
        script.start = script.order("start", {})
        return script

    return open_client


def heard(client, **event):
    return client.expect({"what": "event", "event": event})["event"]


@pytest.mark.parametrize("version", SDKS)
def test_a_conversation(rtm, workspace, sockets, version):
    ann, bob = workspace.users(2)
    client, other = rtm(version, ann), sockets(bob)
    assert client.answer(client.start)["result"]["self"] == {"id": ann.id, "name": ann.name}
    client.expect({"what": "state", "state": "connected"})
    channel = workspace.channel(bob, ann)
    heard(client, type="member_joined_channel", user=ann.id, channel=channel)

    posted = bob.ok("chat.postMessage", channel=channel, text="Hello, Ann 😀 & <all>")
    event = heard(client, type="message", text="Hello, Ann 😀 & <all>")
    assert (event["user"], event["channel"], event["ts"]) == (bob.id, channel, posted["ts"])
    bob.ok("chat.update", channel=channel, ts=posted["ts"], text="changed")
    assert heard(client, type="message", subtype="message_changed")["message"]["text"] == "changed"
    ann.ok("channels.mark", channel=channel, ts=posted["ts"])
    assert heard(client, type="channel_marked", channel=channel)["unread_count_display"] == 0
    bob.ok("chat.delete", channel=channel, ts=posted["ts"])
    assert heard(client, subtype="message_deleted")["deleted_ts"] == posted["ts"]

    client.expect(READY)
    acks = [client.ask("send", f"number {n}", channel) for n in range(3)]
    assert [ack["text"] for ack in acks] == ["number 0", "number 1", "number 2"]
    assert [m["ts"] for m in bob.history(channel)] == [ack["ts"] for ack in reversed(acks)]
    assert other.expect({"type": "message", "text": "number 2"})["ts"] == acks[2]["ts"]
    client.ask("reply", {"channel": channel, "text": "in a thread", "thread_ts": acks[0]["ts"]})
    assert other.expect({"text": "in a thread"})["thread_ts"] == acks[0]["ts"]
    client.ask("typing", channel)
    other.expect({"type": "user_typing", "user": ann.id, "channel": channel})
    client.ask("presence", [bob.id])
    heard(client, type="presence_change", presence="active")

    for text, where in (("", channel), ("x", "C000000000"), ("x" * 40001, channel)):
        error = client.fails("send", text, where)
        assert error["code"] == "slack_rtmapi_send_message_platform_error" and error["data"]["error"]["code"] > 0
    if version != "7.0.4":
        client.ask("disconnect")
    assert not client.matching(RECONNECTING)


def test_its_pings_are_answered(rtm, workspace):
    clients = [rtm(version, workspace.user(), clientPingTimeout=3000, serverPongTimeout=2900) for version in SDKS]
    for client in clients:
        client.expect({"what": "event", "event": {"type": "pong"}}, count=2)
        assert not client.matching(RECONNECTING)


def test_it_connects_anew(rtm, workspace, extra_instance):
    """When the instance was killed, and when it ended well."""
    instance = extra_instance(drain_ms=500)
    ann, bob, cid = workspace.users(3)
    channel = workspace.channel(bob, ann, cid)
    clients = [rtm("6.2.1", ann.at(instance.url)), rtm("7.0.4", cid.at(instance.url))]
    for count, end in ((1, instance.kill), (2, instance.stop)):
        for client in clients:
            client.expect(READY, count=count)
        clients[0].ask("send", "before", channel)
        end()
        instance.start()
    for client in clients:
        client.expect(READY, count=3)
    bob.post(channel, "after all")
    for client in clients:
        heard(client, text="after all")
        client.ask("send", "I am back", channel)
    assert [m["text"] for m in bob.history(channel)][:3] == ["I am back", "I am back", "after all"]


@pytest.mark.parametrize("version", SDKS)
def test_it_gives_up_when_it_may_not(rtm, workspace, version):
    client = rtm(version, workspace.user(), token="xoxp-nobody-has-this-one")
    assert client.answer(client.start)["error"]["data"]["error"] == "invalid_auth"
    assert not client.matching(RECONNECTING)


def test_rtm_start(rtm, workspace):
    """The older method for connecting: it returns lists."""
    ann, bob = workspace.users(2)
    channel = workspace.channel(ann, bob)
    bob.post(channel, "before")
    client = rtm("6.2.1", ann, useRtmConnect=False)
    started = client.answer(client.start)["result"]
    assert started["self"]["id"] == ann.id
    assert {user["id"]: user["name"] for user in started["users"]}[bob.id] == bob.name
    assert [(c["id"], c["unread_count"]) for c in started["channels"] if c["is_member"]] == [(channel, 1)]
    client.expect({"what": "state", "state": "connected"})
    bob.post(channel, "after")
    heard(client, type="message", text="after", channel=channel)
