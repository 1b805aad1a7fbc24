# SPDX-License-Identifier: Apache-2.0
"""Limits on large bodies: of strangers, of one user, in total; other users are served meanwhile."""

import json
from contextlib import ExitStack

import pytest

from tests.support.metrics import metric
from tests.support.raw import RawConnection, request
from tests.support.wait import wait_until

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


def refusals(instance, reason):
    return metric(instance, "tidings_http_bodies_refused_total", f'reason="{reason}"')


def ask(url, data):
    """The reply to a request whose body may not be there whole."""
    with RawConnection(url) as connection:
        connection.send(data)
        return connection.reply()


def ask_together(url, requests):
    """The replies to simultaneous requests, each on a connection of its own."""
    with ExitStack() as stack:
        connections = [stack.enter_context(RawConnection(url)) for _ in requests]
        for connection, data in zip(connections, requests):
            connection.send(data)
        return [connection.reply().json for connection in connections]


def head_of(body_bytes, token=None, method="chat.postMessage", content_type=FORM):
    return request("POST", f"/api/{method}", token, content_type, "x" * body_bytes).removesuffix(b"x" * body_bytes)


def numbers(count):
    return "[" + ",".join(["1"] * count) + "]"


def test_an_unknown_tokens_body_is_refused_unread(environment, workspace):
    url = environment.urls[0]
    assert ask(url, head_of(2_000_000, "xoxp-nobody")).json["error"] == "invalid_auth"
    admin = workspace.admin
    token = admin.ok("admin.tokens.create", user_id=admin.id)
    admin.ok("admin.tokens.revoke", token_id=token["token_id"])
    assert ask(url, head_of(2_000_000, token["token"])).json["error"] == "token_revoked"
    assert ask(url, head_of(5000, "xoxp-nobody", "no.such")).json["error"] == "unknown_method"


def test_bad_json_of_a_stranger_is_not_read(environment):
    reply = ask(environment.urls[0], request("POST", "/api/auth.test", "xoxp-nobody", JSON, '{"a":'))
    assert reply.json["error"] == "invalid_auth"
    reply = ask(environment.urls[0], request("POST", "/api/auth.test", None, JSON, '{"a":'))
    assert reply.json["error"] == "not_authed"


@pytest.mark.parametrize("more, error", [(0, None), (1, "request_too_large")])
def test_a_body_whose_token_is_inside_is_small(workspace, extra_instance, more, error):
    instance = extra_instance()
    before = refusals(instance, "stranger")
    text = f"token={workspace.admin.token}&x="
    body = text + "x" * (65_536 + more - len(text))
    reply = ask(instance.url, request("POST", "/api/auth.test", None, FORM, body)).json
    assert reply.get("error") == error
    assert refusals(instance, "stranger") == before + more
    with_head = request("POST", "/api/auth.test", workspace.admin.token, FORM, body)
    assert ask(instance.url, with_head).json["ok"]


@pytest.mark.parametrize("more", [0, 1])
def test_the_number_of_values_is_bounded(room, extra_instance, more):
    ann, _, channel = room
    instance = extra_instance()
    before = refusals(instance, "values")
    # An object, the text and the channel, an array.
    body = f'{{"channel":"{channel}","text":"hi","unknown":{numbers(19_996 + more)}}}'
    reply = ask(instance.url, request("POST", "/api/chat.postMessage", ann.token, JSON, body)).json
    assert reply["ok"] is (more == 0), reply
    assert refusals(instance, "values") == before + more
    if more:
        assert reply["error"] == "invalid_json"
        assert "more than 20000 JSON values" in reply["response_metadata"]["messages"][0]


@pytest.mark.parametrize("more", [0, 1])
def test_an_arguments_values_are_bounded_too(environment, room, more):
    """JSON inside a form, or inside a text of JSON."""
    ann, _, channel = room
    # An array, an object, its type, an array.
    blocks = f'[{{"type":"x","y":{numbers(19_996 + more)}}}]'
    for content_type, body in ((FORM, f"channel={channel}&blocks={blocks}"),
                               (JSON, json.dumps({"channel": channel, "blocks": blocks}))):
        reply = ask(environment.urls[0], request("POST", "/api/chat.postMessage", ann.token, content_type, body)).json
        assert reply["ok"] is (more == 0), reply
        if more:
            assert reply["error"] == "invalid_blocks" and "JSON values" in reply["response_metadata"]["messages"][0]


def test_large_blocks_are_as_they_were_sent(room):
    """Each form of body is parsed by the separate thread."""
    ann, bob, channel = room
    blocks = [{"type": "section", "text": {"type": "mrkdwn", "text": f"<@{bob.id}> {n} \\ \" é 1.10"}} for n in range(40)]
    text = json.dumps(blocks)
    for content_type, body in ((JSON, json.dumps({"channel": channel, "blocks": blocks, "n": 1})),
                               (JSON, json.dumps({"channel": channel, "blocks": text})),
                               (JSON, json.dumps({"channel": channel, "blocks": text * 1, "x": "y" * 100_000}))):
        reply = ask(ann.url, request("POST", "/api/chat.postMessage", ann.token, content_type, body)).json
        assert reply["ok"], reply
        assert reply["message"]["blocks"] == blocks
    assert [message["blocks"] for message in ann.history(channel)] == [blocks] * 3


def test_large_blocks_that_are_no_json_are_refused(room):
    """The separate thread parses them only once."""
    ann, _, channel = room
    body = json.dumps({"channel": channel, "blocks": '["' + "x" * 1_000_000})
    reply = ask(ann.url, request("POST", "/api/chat.postMessage", ann.token, JSON, body)).json
    assert reply["error"] == "invalid_blocks", reply


def test_one_users_bodies_are_bounded_and_others_are_served(room, extra_instance):
    ann, bob, channel = room
    instance = extra_instance(user_bodies_bytes=300_000)
    body = json.dumps({"channel": channel, "attachments": [{"text": "x" * 200_000}]})
    with RawConnection(instance.url) as slow:
        slow.send(head_of(200_000, ann.token))
        wait_until(lambda: metric(instance, "tidings_http_bodies_bytes") == 200_000)
        refused = ask(instance.url, head_of(len(body), ann.token))
        assert refused.status == 429 and refused.json["error"] == "ratelimited" and refused.headers["retry-after"] == "1"
        assert ask(instance.url, request("POST", "/api/chat.postMessage", bob.token, JSON, body)).json["ok"]
        assert ann.at(instance.url).post(channel, "a small one")
    assert refusals(instance, "user") == 1
    wait_until(lambda: metric(instance, "tidings_http_bodies_bytes") == 0)
    assert ask(instance.url, request("POST", "/api/chat.postMessage", ann.token, JSON, body)).json["ok"]


def test_bytes_a_minute(room, extra_instance):
    ann, bob, channel = room
    instance = extra_instance(rate_bytes=600_000)
    body = json.dumps({"channel": channel, "attachments": [{"text": "x" * 400_000}]})

    def post(member):
        return ask(instance.url, request("POST", "/api/chat.postMessage", member.token, JSON, body))
    assert post(ann).json["ok"] and post(ann).json["ok"]  # what the second is too much by comes later
    refused = post(ann)
    assert refused.status == 429 and 1 <= int(refused.headers["retry-after"]) <= 60
    assert post(bob).json["ok"]
    assert ann.at(instance.url).post(channel, "a small one")
    assert metric(instance, "tidings_ratelimited_total", 'kind="bytes"') >= 1


def test_replies_that_are_not_read_are_bounded(room, extra_instance):
    """The bytes of one user are bounded; others receive their replies."""
    ann, bob, channel = room
    instance = extra_instance(user_replies_bytes=3_000_000, rate_bytes=0)
    stamps = [ann.post(channel, attachments=[{"text": "x" * 1_000_000}]) for _ in range(8)]

    def history(member):
        return request("GET", f"/api/channels.history?channel={channel}", member.token)

    def stamps_of(reply):
        return [message["ts"] for message in reversed(reply.json["messages"]) if "attachments" in message]
    with RawConnection(instance.url) as slow:
        slow.send(history(ann))  # more than a user's share, but alone
        wait_until(lambda: metric(instance, "tidings_http_replies_bytes") > 8_000_000)
        refused = ask(instance.url, history(ann))
        assert refused.status == 429 and refused.headers["retry-after"] == "1"
        assert stamps_of(ask(instance.url, history(bob))) == stamps
        assert stamps_of(slow.reply()) == stamps
    wait_until(lambda: metric(instance, "tidings_http_replies_bytes") == 0)
    assert stamps_of(ask(instance.url, history(ann))) == stamps
    assert metric(instance, "tidings_http_replies_refused_total", 'reason="user"') == 1


def test_who_calls_without_a_token_shares_few_bytes(workspace, extra_instance, own_redis):
    instance = extra_instance(rate_strangers_bytes=10_000, redis_url=own_redis.url)

    def test(token=None, size=6000):
        return ask(instance.url, request("POST", "/api/api.test", token, FORM, "a=" + "x" * (size - 2)))
    assert test().json["ok"] and test().json["ok"]
    assert test().status == 429
    assert test(workspace.admin.token).status == 429, "nobody is asked for it there"
    assert test(size=4096).json["ok"], "small ones are free"
    assert test(size=4097).status == 429
    assert workspace.admin.at(instance.url).ok("auth.test")


def test_look_ups_of_unknown_tokens_wait_for_each_other(workspace, extra_instance):
    instance = extra_instance(loops=1)
    replies = ask_together(instance.url, [request("POST", "/api/auth.test", f"xoxp-nobody-{number}", FORM, "")
                                          for number in range(200)])
    assert [reply["error"] for reply in replies] == ["invalid_auth"] * 200
    assert workspace.admin.at(instance.url).ok("auth.test")


def test_posts_of_more_bytes_than_a_batch_takes_all_arrive(environment, room):
    ann, bob, channel = room
    body = json.dumps({"channel": channel, "attachments": [{"text": "x" * 50_000}]})
    with bob.socket() as socket:
        replies = ask_together(environment.urls[0], [request("POST", "/api/chat.postMessage", ann.token, JSON, body)] * 30)
        stamps = sorted(reply["ts"] for reply in replies)
        for stamp in stamps:
            socket.expect({"type": "message", "ts": stamp})
    assert sorted(message["ts"] for message in ann.history(channel) if "attachments" in message) == stamps
    wait_until(lambda: bob.ok("channels.info", channel=channel)["channel"]["unread_count"] == 30)
