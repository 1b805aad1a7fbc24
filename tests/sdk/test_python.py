# SPDX-License-Identifier: Apache-2.0
"""slack_sdk for Python: WebClient, its RTM client and its Socket Mode client."""

import queue

import pytest
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_handlers import RateLimitErrorRetryHandler
from slack_sdk.rtm_v2 import RTMClient
from slack_sdk.socket_mode import SocketModeClient
from slack_sdk.socket_mode.response import SocketModeResponse

from tests.support.wait import wait_until


def web(member, **options):
    return WebClient(member.token, base_url=f"{member.url}/api/", **options)


@pytest.fixture
def room(workspace):
    """A user, a second one, and a channel of both."""
    ann, bob = workspace.users(2)
    return ann, bob, workspace.channel(ann, bob)


def texts(reply):
    return [message["text"] for message in reply["messages"] if "subtype" not in message]


def test_upload(room):
    ann, bob, channel = room
    data = bytes(range(256)) * 10
    web(ann).files_upload_v2(channel=channel, filename="a.bin", file=data, initial_comment="from Python")
    message = bob.history(channel)[0]
    assert message["text"] == "from Python"
    assert bob.page(message["files"][0]["url_private"].removeprefix(bob.url), headers={"Authorization": f"Bearer {bob.token}"}).content == data


def test_post_change_delete(room):
    ann, bob, channel = room
    client = web(ann)
    assert client.api_test(foo="bar")["args"]["foo"] == "bar"
    assert client.auth_test()["user_id"] == ann.id
    posted = client.chat_postMessage(channel=channel, text='Grüße, <@U1> & "all" 😀')
    assert posted["message"]["text"] == 'Grüße, <@U1> & "all" 😀' and posted.status_code == 200
    client.chat_update(channel=channel, ts=posted["ts"], text="better")
    assert [m["text"] for m in bob.history(channel)] == ["better"]
    client.chat_delete(channel=channel, ts=posted["ts"])
    assert bob.history(channel) == []


def test_structures(room):
    ann, _, channel = room
    client = web(ann)
    blocks = [{"type": "section", "block_id": "b", "text": {"type": "mrkdwn", "text": "*hello* 😀"}}]
    metadata = {"event_type": "made", "event_payload": {"n": 1}}
    client.chat_postMessage(channel=channel, text="plain", blocks=blocks, metadata=metadata, unfurl_links=False)
    message = client.conversations_history(channel=channel, include_all_metadata=True)["messages"][0]
    assert message["blocks"] == blocks and message["metadata"] == metadata


def test_reactions_and_pins(room):
    ann, bob, channel = room
    client = web(ann)
    ts = client.chat_postMessage(channel=channel, text="ship it?")["ts"]
    client.reactions_add(channel=channel, name="thumbsup", timestamp=ts)
    web(bob).reactions_add(channel=channel, name="thumbsup", timestamp=ts)
    wanted = [{"name": "thumbsup", "users": [ann.id, bob.id], "count": 2}]
    assert client.reactions_get(channel=channel, timestamp=ts, full=True)["message"]["reactions"] == wanted
    assert [item["message"]["reactions"] for page in client.reactions_list(limit=1) for item in page["items"]] == [wanted]
    with pytest.raises(SlackApiError, match="already_reacted"):
        client.reactions_add(channel=channel, name="thumbsup", timestamp=ts)
    client.pins_add(channel=channel, timestamp=ts)
    assert [item["message"]["ts"] for item in client.pins_list(channel=channel)["items"]] == [ts]
    client.pins_remove(channel=channel, timestamp=ts)
    client.reactions_remove(channel=channel, name="thumbsup", timestamp=ts)
    assert bob.history(channel)[0]["reactions"] == [{"name": "thumbsup", "users": [bob.id], "count": 1}]


def test_a_thread(room):
    ann, bob, channel = room
    root = web(ann).chat_postMessage(channel=channel, text="root")["ts"]
    web(bob).chat_postMessage(channel=channel, text="reply", thread_ts=root, reply_broadcast=True)
    replies = web(ann).conversations_replies(channel=channel, ts=root)
    assert [m["text"] for m in replies["messages"]] == ["root", "reply"]
    assert replies["messages"][0]["reply_users"] == [bob.id]


def test_pages_while_others_write(room):
    ann, bob, channel = room
    for number in range(7):
        bob.post(channel, f"m{number}")
    seen = []
    for page in web(ann).conversations_history(channel=channel, limit=3):
        bob.post(channel, "later")
        assert len(page["messages"]) <= 3
        seen += texts(page)
    assert seen == [f"m{number}" for number in reversed(range(7))]


def test_conversations(workspace):
    ann, bob, cid = workspace.users(3)
    client = web(ann)
    name = f"python-{workspace.name}"[:60]
    channel = client.conversations_create(name=name, is_private=True)["channel"]["id"]
    client.conversations_invite(channel=channel, users=[bob.id, cid.id])
    client.conversations_kick(channel=channel, user=cid.id)
    assert sorted(client.conversations_members(channel=channel)["members"]) == sorted([ann.id, bob.id])
    client.conversations_setTopic(channel=channel, topic="a topic")
    client.conversations_setPurpose(channel=channel, purpose="a purpose")
    client.conversations_rename(channel=channel, name=f"{name}-new")
    info = client.conversations_info(channel=channel, include_num_members=True)["channel"]
    assert (info["name"], info["topic"]["value"], info["num_members"]) == (f"{name}-new", "a topic", 2)
    listed = client.conversations_list(types="private_channel, mpim", exclude_archived=True)["channels"]
    assert [c["id"] for c in listed] == [channel]
    assert [c["id"] for c in client.users_conversations(types="private_channel")["channels"]] == [channel]
    client.conversations_archive(channel=channel)
    assert client.conversations_info(channel=channel)["channel"]["is_archived"] is True


def test_direct_and_read(room):
    ann, bob, _ = room
    direct = web(ann).conversations_open(users=[bob.id], return_im=True)["channel"]
    assert direct["is_im"] is True and direct["user"] == bob.id
    ts = web(ann).chat_postMessage(channel=bob.id, text="psst")["ts"]
    client = web(bob)
    assert client.conversations_info(channel=direct["id"])["channel"]["unread_count"] == 1
    client.conversations_mark(channel=direct["id"], ts=ts)
    assert client.conversations_info(channel=direct["id"])["channel"]["unread_count"] == 0


def test_people_and_presence(workspace):
    ann, bob = workspace.users(2)
    client = web(ann)
    everyone = [[member["id"] for member in page["members"]] for page in client.users_list(limit=1)]
    assert [ann.id] in everyone and [bob.id] in everyone
    assert client.users_info(user=bob.id)["user"]["name"] == bob.name
    web(bob).users_setPresence(presence="away")
    assert client.users_getPresence(user=bob.id)["presence"] == "away"


def test_errors(room):
    ann, _, channel = room
    client = web(ann)
    for error, call in (
            ("channel_not_found", lambda: client.chat_postMessage(channel="C000000000", text="x")),
            ("msg_too_long", lambda: client.chat_postMessage(channel=channel, text="x" * 40001)),
            ("invalid_timestamp", lambda: client.conversations_mark(channel=channel, ts="today")),
            ("unknown_method", lambda: client.api_call("no.suchMethod")),
            ("invalid_auth", lambda: WebClient("xoxp-nobody-has-it", base_url=client.base_url).auth_test())):
        with pytest.raises(SlackApiError) as caught:
            call()
        assert caught.value.response["error"] == error and caught.value.response.status_code == 200


def test_a_limit(workspace):
    """It raises a specific error, unless the caller adds the SDK's handler that waits."""
    ann = workspace.user()
    token = workspace.admin.ok("admin.tokens.create", user_id=ann.id, rate_limit=60)["token"]
    impatient = WebClient(token, base_url=f"{ann.url}/api/")
    with pytest.raises(SlackApiError) as caught:
        for _ in range(100):
            impatient.auth_test()
    assert (caught.value.response.status_code, caught.value.response["error"]) == (429, "ratelimited")
    assert caught.value.response.headers["Retry-After"] == "1"
    waits = []

    class Waiting(RateLimitErrorRetryHandler):
        def prepare_for_next_attempt(self, **args):
            waits.append(args)
            super().prepare_for_next_attempt(**args)

    patient = WebClient(token, base_url=f"{ann.url}/api/", retry_handlers=[Waiting(max_retry_count=3)])
    wait_until(lambda: patient.auth_test()["user_id"] == ann.id and waits, what="a call that had to wait")


class Rtm:
    """A connected RTMClient, and the events it received."""

    def __init__(self, member):
        self.events = []
        self.client = RTMClient(token=member.token, base_url=f"{member.url}/api/", ping_interval=1)
        self.client.on("*")(lambda client, event: self.events.append(event))
        self.client.connect()
        self.expect(type="hello")

    def expect(self, count=1, **match):
        def found():
            events = [e for e in list(self.events) if match.items() <= e.items()]
            return events[count - 1] if len(events) >= count else None
        return wait_until(found, what=f"{match}, {self.events}")


@pytest.fixture
def rtm():
    opened = []

    def open_client(member):
        opened.append(Rtm(member))
        return opened[-1]

    yield open_client
    for one in opened:
        one.client.close()


def test_rtm(rtm, room):
    ann, bob, channel = room
    heard = rtm(ann)
    ts = bob.post(channel, "hello 😀")
    assert heard.expect(type="message", text="hello 😀")["ts"] == ts
    bob.post(channel, "long " + "x" * 35000)
    heard.expect(type="message", text="long " + "x" * 35000)
    heard.client.send({"id": 1, "type": "message", "channel": channel, "text": "by socket"})
    ack = heard.expect(reply_to=1)
    assert ack["ok"] is True and bob.history(channel)[0]["ts"] == ack["ts"]
    ann.ok("conversations.mark", channel=channel, ts=ts)
    heard.expect(type="channel_marked", channel=channel)


def test_rtm_of_a_bot(rtm, workspace):
    ann, bot = workspace.user(), workspace.bot()
    channel = workspace.channel(ann, bot)
    heard = rtm(bot)
    bot.post(channel, "what it said itself")
    ann.post(channel, "what ann said")
    heard.expect(text="what ann said")
    assert not [e for e in heard.events if e.get("text") == "what it said itself"]


def test_rtm_connects_anew(rtm, room, extra_instance):
    ann, bob, channel = room
    instance = extra_instance(drain_ms=500)
    heard = rtm(ann.at(instance.url))
    for count, end in ((2, instance.kill), (3, instance.stop)):
        end()
        instance.start()
        heard.expect(type="hello", count=count)
        bob.post(channel, f"after {count}")
        heard.expect(text=f"after {count}")


class App:
    """A connected SocketModeClient that acks all events, except first attempts of texts that begin with "hold"."""

    def __init__(self, url, token):
        self.requests = queue.Queue()
        self.client = SocketModeClient(token, web_client=WebClient(base_url=f"{url}/api/"), ping_interval=1)
        self.client.socket_mode_request_listeners.append(self._take)
        self.client.connect()

    def _take(self, client, request):
        event = request.payload["event"]
        if not (event.get("text", "").startswith("hold") and request.retry_attempt == 0):
            client.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))
        self.requests.put(request)

    def next(self):
        return self.requests.get(timeout=30)


@pytest.fixture
def listen():
    opened = []

    def open_client(url, token):
        opened.append(App(url, token))
        return opened[-1]

    yield open_client
    for one in opened:
        one.client.close()


def test_socket_mode(app, listen, extra_instance):
    listener = listen(extra_instance(app_socket_ack_ms=3000).url, app.token)
    app.ann.post(app.channel, "hello")
    assert listener.next().payload["event"]["text"] == "hello"
    app.ann.post(app.channel, "hold this")
    first, again = listener.next(), listener.next()
    assert (first.retry_attempt, again.retry_attempt, again.retry_reason) == (0, 1, "timeout")
    assert first.envelope_id == again.envelope_id and again.payload["event"]["text"] == "hold this"


def test_socket_mode_goes_on_without_a_gap(app, listen, extra_instance):
    """When warned that its connection ends, it opens the next one first: each event arrives."""
    listener = listen(extra_instance(app_socket_life_s=11).url, app.token)
    first = listener.client.session_id()
    sent = []

    def moved():
        sent.append(f"m{len(sent)}")
        app.ann.post(app.channel, sent[-1])
        return listener.client.session_id() != first

    wait_until(moved, interval=0.1)
    app.ann.post(app.channel, "last")
    missing = {*sent, "last"}
    while missing:  # what came by the old connection may be handled after what came by the new one
        missing.discard(listener.next().payload["event"]["text"])
