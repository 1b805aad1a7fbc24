# SPDX-License-Identifier: Apache-2.0
"""Requests as the official clients put them on the wire, byte by byte."""

import json
from urllib.parse import quote, quote_plus

import pytest

from tests.support.client import Client
from tests.support.raw import TEXT, RawConnection, RawFrames, request

FORM = "application/x-www-form-urlencoded"
JSON = "application/json;charset=utf-8"
JAVASCRIPT = ["Accept: application/json", "Accept-Encoding: gzip, deflate", "Accept-Language: *",
              "Sec-Fetch-Mode: cors", "User-Agent: @slack:web-api/8.2.0 node/20.20.0 linux/6.1"]
PYTHON = ["Connection: close", "Accept-Encoding: identity",
          "User-Agent: Python/3.11.7 slackclient/3.43.0 Linux/6.1"]
GO = ["Accept-Encoding: gzip", "User-Agent: Go-http-client/1.1"]
BLOCKS = [{"type": "section", "text": {"type": "mrkdwn", "text": "*b* & <c>"}}]
METADATA = {"event_type": "e", "event_payload": {"k": "v"}}


@pytest.fixture
def room(workspace):
    """A user, a second one, and a channel with both and one message: (ann, bob, channel, ts)."""
    ann, bob = workspace.users(2)
    channel = workspace.channel(ann, bob)
    return ann, bob, channel, bob.post(channel, "first")


def send(client, target, token=None, content_type=FORM, body=b"", headers=(), verb="POST"):
    with RawConnection(client.url) as connection:
        connection.send(request(verb, target, token, content_type, body, headers))
        reply = connection.reply()
    assert reply.status == 200
    assert reply.headers["content-type"].startswith("application/json")
    assert reply.json["ok"] is True, reply.json
    return reply.json


def test_javascript_auth_test(room):
    assert send(room[0], "/api/auth.test", room[0].token, headers=JAVASCRIPT)["user_id"] == room[0].id


def test_python_auth_test(room):
    assert send(room[0], "/api/auth.test", room[0].token, JSON, headers=PYTHON)["user_id"] == room[0].id


def test_javascript_token_of_one_call_in_header_and_body(room):
    ann = room[0]
    assert send(ann, "/api/auth.test", ann.token, body=f"token={ann.token}", headers=JAVASCRIPT)["user_id"] == ann.id


def test_javascript_post(room):
    ann, bob, channel, ts = room
    text = f'h\u00e9 <@{bob.id}> & "q" \U0001f600\nline'
    args = {"channel": channel, "text": text, "blocks": json.dumps(BLOCKS, separators=(",", ":")),
            "attachments": "[]", "thread_ts": ts, "reply_broadcast": "false", "unfurl_links": "true",
            "metadata": json.dumps(METADATA, separators=(",", ":"))}
    body = "&".join(f"{name}={quote(value, safe='')}" for name, value in args.items())
    message = send(ann, "/api/chat.postMessage", ann.token, body=body, headers=JAVASCRIPT)["message"]
    assert message["text"] == text
    assert message["blocks"] == BLOCKS or message["blocks"][0]["text"] == BLOCKS[0]["text"]
    assert message["metadata"] == METADATA
    assert message["thread_ts"] == ts


def test_python_post(room):
    ann, bob, channel, _ = room
    text = f"h\u00e9 <@{bob.id}> \U0001f600"
    body = json.dumps({"channel": channel, "text": text, "blocks": BLOCKS, "reply_broadcast": True,
                       "metadata": {"event_type": "e", "event_payload": {}}})
    assert "\\ud83d\\ude00" in body
    message = send(ann, "/api/chat.postMessage", ann.token, JSON, body, PYTHON)["message"]
    assert message["text"] == text
    assert message["metadata"] == {"event_type": "e", "event_payload": {}}


def test_go_post(room):
    ann, _, channel, _ = room
    body = f"token={quote_plus(ann.token)}&channel={channel}&text=a+%26amp%3B+b&blocks={quote_plus(json.dumps(BLOCKS))}"
    message = send(ann, "/api/chat.postMessage", body=body, headers=GO)["message"]
    assert message["text"] == "a &amp; b"
    assert message["blocks"][0]["text"] == BLOCKS[0]["text"]


def test_python_async_mark(room):
    ann, _, channel, ts = room
    send(ann, f"/api/conversations.mark?channel={channel}&ts={ts}", ann.token)
    assert ann.unread(channel) == 0


def test_get_with_a_content_type(room):
    ann, _, channel, ts = room
    reply = send(ann, f"/api/conversations.history?channel={channel}&limit=10&inclusive=1", ann.token, verb="GET")
    assert reply["messages"][0]["ts"] == ts


@pytest.mark.parametrize("style", ["json-text", "commas"])
def test_invite_lists(workspace, style):
    ann, bob, cid = workspace.users(3)
    channel = workspace.channel(ann)
    users = json.dumps([bob.id, cid.id], separators=(",", ":")) if style == "json-text" else f"{bob.id},{cid.id}"
    send(ann, "/api/conversations.invite", ann.token, body=f"channel={channel}&users={quote(users, safe='')}",
         headers=JAVASCRIPT)
    assert set(ann.ok("conversations.members", channel=channel)["members"]) == {ann.id, bob.id, cid.id}


def test_go_info(room):
    ann, _, channel, _ = room
    body = f"token={ann.token}&channel={channel}&include_locale=false&include_num_members=true"
    assert send(ann, "/api/conversations.info", body=body, headers=GO)["channel"]["num_members"] == 2
    send(ann, "/api/conversations.info", ann.token, body=f"channel={channel}&return_im=1")


def test_python_mark_with_a_short_fraction_in_json(room):
    """A numeric ts keeps its digits: the fraction is padded on the right, never rounded."""
    ann, _, channel, ts = room
    send(ann, "/api/channels.mark", ann.token, JSON, json.dumps({"channel": channel, "ts": ts}), PYTHON)
    assert ann.unread(channel) == 0
    body = f'{{"channel": "{channel}", "ts": {ts}}}'
    assert send(ann, "/api/channels.mark", ann.token, JSON, body)["last_read"] == ts


def test_javascript_mark(room):
    ann, _, channel, ts = room
    send(ann, "/api/channels.mark", ann.token, body=f"channel={channel}&ts={ts}", headers=JAVASCRIPT)
    assert ann.unread(channel) == 0


def test_javascript_client_counts(room):
    ann, _, channel, ts = room
    reply = send(ann, "/api/client.counts", ann.token, body="thread_counts_by_channel=true", headers=JAVASCRIPT)
    entry = next(entry for entry in reply["channels"] if entry["id"] == channel)
    assert entry["latest"] == ts and entry["has_unreads"] is True and entry["mention_count"] == 0
    for name in ("threads", "mpims", "ims", "channel_badges"):
        assert name in reply


def test_go_opens_an_apps_connection(workspace):
    bot = workspace.bot()
    token = workspace.admin.ok("admin.apps.create", name="app", bot_user_id=bot.id)["app_token"]
    reply = send(bot, "/api/apps.connections.open", token, "application/json", headers=GO)
    assert reply["url"].startswith("ws://127.0.0.1/link/")


def handshake(target, key="dGhlIHNhbXBsZSBub25jZQ=="):
    """As sent by Python's built-in client: no port in Host, no Origin, no User-Agent."""
    return (f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n")


@pytest.mark.parametrize("kind", ["rtm", "link"])
@pytest.mark.parametrize("form", ["/{kind}/?ticket={ticket}", "/{kind}/{ticket}?", "/{kind}/{ticket}?ticket=other&batch=1"])
def test_python_opens_a_socket(workspace, kind, form):
    bot = workspace.bot()
    app_token = workspace.admin.ok("admin.apps.create", name="app", bot_user_id=bot.id)["app_token"]
    url = (bot.ok("rtm.connect") if kind == "rtm" else Client(bot.url, app_token).ok("apps.connections.open"))["url"]
    with RawFrames(bot.url) as connection:
        connection.send(handshake(form.format(kind=kind, ticket=url.rpartition("/")[2])))
        reply = connection.reply(head_only=True)
        assert reply.status == 101 and reply.headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        assert json.loads(connection.read_until(TEXT))["type"] == "hello"


@pytest.mark.parametrize("target", ["/link/?ticket=abc", "/rtm/?ticket=abc", "/link/abc?"])
def test_python_comes_with_a_ticket_that_is_none(environment, target):
    with RawFrames(environment.urls[0]) as connection:
        connection.send(handshake(target))
        assert connection.reply(head_only=True).status == 101
        assert json.loads(connection.read_until(TEXT))["error"]["msg"] == "Socket URL has expired"
        assert connection.close_code() == 1008


@pytest.mark.parametrize("target", ["/link/", "/link/?", "/rtm/?ticket=", "/rtm/?other=abc", "/link?ticket=abc"])
def test_no_ticket_at_all(environment, target):
    with RawFrames(environment.urls[0]) as connection:
        connection.send(handshake(target))
        assert connection.reply(head_only=True).status == 404
