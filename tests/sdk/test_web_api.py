# SPDX-License-Identifier: Apache-2.0
"""@slack/web-api, today's and the one before: what its users do most."""

import base64

import pytest

from tests.support.wait import wait_until

SDKS = {"8": "@slack/web-api", "7": "web-api-7"}


@pytest.fixture(params=SDKS)
def web(request, scripts):
    """A WebClient of a member: `web(ann).ask("call", "chat.postMessage", {...})`."""

    def open_client(member, token=None):
        return scripts("web_api.mjs", sdk=SDKS[request.param], api=f"{member.url}/api/", token=token or member.token)

    return open_client


@pytest.fixture
def room(workspace):
    """A user, a second one, and a channel of both."""
    ann, bob = workspace.users(2)
    return ann, bob, workspace.channel(ann, bob)


def call(client, method, **args):
    return client.ask("call", method, args)


def texts(reply):
    return [message["text"] for message in reply["messages"] if "subtype" not in message]


def test_who_i_am(web, room):
    ann, _, _ = room
    me = call(web(ann), "auth.test")
    assert (me["ok"], me["user_id"], me["user"]) == (True, ann.id, ann.name)


def test_post_change_delete(web, room):
    ann, bob, channel = room
    client = web(ann)
    text = 'Grüße, <@U1> & "all" 😀\n+ second line'
    posted = call(client, "chat.postMessage", channel=channel, text=text)
    assert posted["channel"] == channel and posted["message"]["text"] == text
    kept = call(client, "chat.postMessage", channel=channel, text="stays")
    changed = call(client, "chat.update", channel=channel, ts=posted["ts"], text="better")
    assert changed["ts"] == posted["ts"] and changed["message"]["edited"]["user"] == ann.id
    assert [m["text"] for m in bob.history(channel)] == ["stays", "better"]
    call(client, "chat.delete", channel=channel, ts=kept["ts"])
    assert texts(call(client, "conversations.history", channel=channel)) == ["better"]


def test_upload(web, room):
    ann, bob, channel = room
    data = bytes(range(256)) * 10
    web(ann).ask("upload", channel, "a.bin", base64.b64encode(data).decode())
    message = bob.history(channel)[0]
    assert message["text"] == "from JavaScript"
    assert bob.page(message["files"][0]["url_private"].removeprefix(bob.url), headers={"Authorization": f"Bearer {bob.token}"}).content == data


def test_structures_arrive_as_they_were(web, room):
    ann, bob, channel = room
    blocks = [{"type": "section", "block_id": "b", "text": {"type": "mrkdwn", "text": "*hello* & <@U1>"}}]
    metadata = {"event_type": "made", "event_payload": {"n": 1, "deep": {"list": [True, None, "x"]}}}
    posted = call(web(ann), "chat.postMessage", channel=channel, text="plain", blocks=blocks,
                  attachments=[{"fallback": "f", "text": "a"}], metadata=metadata, unfurl_links=False)
    message = bob.ok("conversations.history", channel=channel, include_all_metadata=True)["messages"][0]
    assert message["ts"] == posted["ts"] and message["blocks"] == blocks and message["metadata"] == metadata
    assert message["attachments"][0]["text"] == "a"


def test_reactions_and_pins(web, room):
    ann, bob, channel = room
    client, ts = web(ann), bob.post(channel, "ship it?")
    call(client, "reactions.add", channel=channel, name="tada", timestamp=ts)
    assert call(client, "reactions.get", channel=channel, timestamp=ts)["message"]["reactions"] == [{"name": "tada", "users": [ann.id], "count": 1}]
    assert [item["message"]["ts"] for item in call(client, "reactions.list", user=ann.id)["items"]] == [ts]
    call(client, "pins.add", channel=channel, timestamp=ts)
    assert call(client, "pins.list", channel=channel)["items"][0]["message"]["pinned_to"] == [channel]
    call(client, "pins.remove", channel=channel, timestamp=ts)
    call(client, "reactions.remove", channel=channel, name="tada", timestamp=ts)
    assert "reactions" not in bob.history(channel)[0]


def test_a_thread(web, room):
    ann, bob, channel = room
    client = web(ann)
    root = call(client, "chat.postMessage", channel=channel, text="root")["ts"]
    bob.post(channel, "from bob", thread_ts=root)
    call(client, "chat.postMessage", channel=channel, text="to all", thread_ts=root, reply_broadcast=True)
    replies = call(client, "conversations.replies", channel=channel, ts=root)
    assert texts(replies)[:2] == ["root", "from bob"] and replies["messages"][2]["text"] == "to all"
    assert replies["messages"][0]["reply_count"] == 2
    assert sorted(replies["messages"][0]["reply_users"]) == sorted([ann.id, bob.id])


def test_history_page_by_page_while_others_write(web, room):
    ann, bob, channel = room
    client = web(ann)
    for number in range(7):
        bob.post(channel, f"m{number}")
    first = call(client, "conversations.history", channel=channel, limit=3)
    assert texts(first) == ["m6", "m5", "m4"] and first["has_more"]
    bob.post(channel, "later")
    cursor = first["response_metadata"]["next_cursor"]
    assert texts(call(client, "conversations.history", channel=channel, limit=3, cursor=cursor)) == ["m3", "m2", "m1"]
    pages = client.ask("pages", "conversations.history", {"channel": channel, "limit": 3})
    assert [text for page in pages for text in texts(page)] == ["later", *(f"m{n}" for n in reversed(range(7)))]
    assert all(len(page["messages"]) <= 3 for page in pages)


def test_a_direct_conversation(web, room):
    ann, bob, _ = room
    client = web(ann)
    opened = call(client, "conversations.open", users=bob.id)["channel"]["id"]
    assert opened.startswith("D")
    by_user = call(client, "chat.postMessage", channel=bob.id, text="psst")
    assert by_user["channel"] == opened
    mine = call(client, "conversations.list", types="im")["channels"]
    assert [(im["id"], im["user"]) for im in mine] == [(opened, bob.id)]
    assert [m["text"] for m in bob.history(opened)] == ["psst"]


def test_a_group_conversation(web, workspace):
    ann, bob, cid = workspace.users(3)
    opened = call(web(ann), "conversations.open", users=f"{bob.id},{cid.id}", return_im=True)["channel"]
    assert opened["is_mpim"] is True
    assert call(web(bob), "conversations.open", users=f"{cid.id},{ann.id}")["channel"]["id"] == opened["id"]


def test_marking_read(web, room):
    ann, bob, channel = room
    client = web(ann)
    bob.post(channel, "one")
    last = bob.post(channel, "two")
    assert call(client, "conversations.info", channel=channel)["channel"]["unread_count"] == 2
    call(client, "conversations.mark", channel=channel, ts=last)
    info = call(client, "conversations.info", channel=channel)["channel"]
    assert info["unread_count"] == 0 and info["last_read"] == last


def test_life_of_a_channel(web, workspace):
    ann, bob, cid = workspace.users(3)
    client = web(ann)
    name = f"life-{workspace.name}"[:80]
    channel = call(client, "conversations.create", name=name)["channel"]["id"]
    call(client, "conversations.invite", channel=channel, users=f"{bob.id},{cid.id}")
    call(client, "conversations.kick", channel=channel, user=cid.id)
    members = call(client, "conversations.members", channel=channel)["members"]
    assert sorted(members) == sorted([ann.id, bob.id])
    topic = call(client, "conversations.setTopic", channel=channel, topic="a topic")["channel"]["topic"]
    assert topic["value"] == "a topic"
    call(client, "conversations.setPurpose", channel=channel, purpose="a purpose")
    call(client, "conversations.rename", channel=channel, name=f"{name[:70]}-new")
    call(web(bob), "conversations.leave", channel=channel)
    info = call(client, "conversations.info", channel=channel, include_num_members=True)["channel"]
    assert (info["name"], info["purpose"]["value"], info["num_members"]) == (f"{name[:70]}-new", "a purpose", 1)
    call(client, "conversations.archive", channel=channel)
    assert call(client, "conversations.info", channel=channel)["channel"]["is_archived"] is True
    call(client, "conversations.unarchive", channel=channel)
    joined = call(web(bob), "conversations.join", channel=channel)
    assert joined["channel"]["is_member"] is True


def test_presence(web, room):
    ann, bob, _ = room
    client, other = web(ann), web(bob)
    call(client, "users.setPresence", presence="away")
    assert call(other, "users.getPresence", user=ann.id)["presence"] == "away"
    call(client, "users.setPresence", presence="auto")
    with ann.socket():
        wait_until(lambda: call(other, "users.getPresence", user=ann.id)["presence"] == "active")


def test_users(web, workspace):
    ann = workspace.users(5)[0]
    client = web(ann)
    everyone = {member["id"] for member in call(client, "users.list")["members"]}
    pages = client.ask("pages", "users.list", {"limit": 2})
    assert ann.id in everyone and all(len(page["members"]) <= 2 for page in pages)
    listed = [member["id"] for page in pages for member in page["members"]]
    assert len(listed) == len(everyone) and set(listed) == everyone
    assert call(client, "users.info", user=ann.id)["user"]["name"] == ann.name


def test_an_ephemeral_message_and_a_permalink(web, room):
    ann, bob, channel = room
    client = web(ann)
    with bob.socket() as socket:
        told = call(client, "chat.postEphemeral", channel=channel, user=bob.id, text="only for you")
        assert socket.expect({"text": "only for you"})["ts"] == told["message_ts"]
    ts = ann.post(channel, "linked")
    link = call(client, "chat.getPermalink", channel=channel, message_ts=ts)["permalink"]
    assert link.endswith(f"/archives/{channel}/p{ts.replace('.', '')}")


def test_errors_are_the_sdks_own(web, room):
    ann, _, channel = room
    client = web(ann)
    for error, method, args in (
            ("channel_not_found", "chat.postMessage", {"channel": "C000000000", "text": "x"}),
            ("no_text", "chat.postMessage", {"channel": channel, "text": ""}),
            ("message_not_found", "chat.update", {"channel": channel, "ts": "1700000000.000001", "text": "x"}),
            ("invalid_timestamp", "conversations.mark", {"channel": channel, "ts": "today"}),
            ("invalid_cursor", "users.list", {"cursor": "x"}),
            ("user_not_found", "users.info", {"user": "U000000000"})):
        seen = client.fails("call", method, args)
        assert seen["code"] == "slack_webapi_platform_error"
        assert (seen["data"]["ok"], seen["data"]["error"]) == (False, error)
        assert seen["message"] == f"An API error occurred: {error}"


def test_an_error_names_the_argument(web, room):
    ann, _, _ = room
    seen = web(ann).fails("call", "conversations.info", {})
    assert any("channel" in line for line in seen["data"]["response_metadata"]["messages"])


def test_other_methods_fail_at_once(web, room):
    ann, _, _ = room
    client = web(ann)
    assert client.fails("apiCall", "no.suchMethod", {})["data"]["error"] == "unknown_method"
    assert client.fails("call", "search.messages", {})["code"] == "slack_webapi_platform_error"


@pytest.mark.parametrize("token, error", [("xoxp-nobody-has-this-one", "invalid_auth"), ("revoked", "token_revoked")])
def test_bad_tokens(web, workspace, token, error):
    ann = workspace.user()
    if token == "revoked":
        made = workspace.admin.ok("admin.tokens.create", user_id=ann.id)
        workspace.admin.ok("admin.tokens.revoke", token_id=made["token_id"])
        token = made["token"]
    assert web(ann, token).fails("call", "auth.test", {})["data"]["error"] == error


def test_a_token_of_the_call_counts(web, room):
    ann, bob, _ = room
    assert call(web(ann), "auth.test", token=bob.token)["user_id"] == bob.id


def test_a_limit_is_waited_for(web, workspace):
    ann = workspace.user()
    token = workspace.admin.ok("admin.tokens.create", user_id=ann.id, rate_limit=60)["token"]
    client = web(ann, token)

    def is_limited():
        """Not if the calls take so long that a slow machine stays within the limit."""
        replies = client.ask("calls", "auth.test", [{}] * 62)
        assert [reply["user_id"] for reply in replies] == [ann.id] * 62
        return client.matching({"what": "rate_limited"})

    assert wait_until(is_limited, 60, what="a limit")[0]["seconds"] == 1


def test_posting_again_is_no_second_message(web, room):
    ann, _, channel = room
    client = web(ann)
    args = {"channel": channel, "text": "once", "client_msg_id": "0f3a"}
    first, again = (client.ask("apiCall", "chat.postMessage", args) for _ in range(2))
    assert again["ts"] == first["ts"] and again["is_duplicate"] is True
    assert texts(call(client, "conversations.history", channel=channel)) == ["once"]


def test_posts_outlive_a_crash(web, room, extra_instance):
    """The SDK retries calls without a reply; with a client_msg_id each message is stored once."""
    ann, bob, channel = room
    instance = extra_instance()
    client = web(ann.at(instance.url))
    wanted = [f"m{number}" for number in range(300)]
    posts = client.order("calls", "chat.postMessage",
                         [{"channel": channel, "text": text, "client_msg_id": text} for text in wanted])
    wait_until(lambda: bob.history(channel), interval=0)
    instance.kill()
    instance.start()
    replies = client.answer(posts)["result"]
    messages = bob.history(channel, limit=999)
    assert sorted(m["text"] for m in messages) == sorted(wanted)
    assert {m["ts"] for m in messages} == {reply["ts"] for reply in replies}
