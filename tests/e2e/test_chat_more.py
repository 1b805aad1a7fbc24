# SPDX-License-Identifier: Apache-2.0
"""Messages other than plain posts: /me, ephemeral messages, markdown; links to messages."""

import pytest


@pytest.fixture
def room(workspace):
    """Two members of a channel, a user who is not in any, and the channel."""
    ann, bob, cid = workspace.users(3)
    return ann, bob, cid, workspace.channel(ann, bob)


def test_me_message(room):
    ann, bob, _, channel = room
    with bob.socket() as socket:
        reply = ann.ok("chat.meMessage", channel=channel, text="waves", blocks=[{"type": "divider"}])
        frame = socket.expect({"type": "message", "subtype": "me_message"})
    assert reply["channel"] == channel and frame["ts"] == reply["ts"] and frame["text"] == "waves"
    message = bob.history(channel)[0]
    assert (message["subtype"], message["text"], message["user"]) == ("me_message", "waves", ann.id)
    assert "blocks" not in message
    assert bob.unread(channel) == 1
    assert ann.ok("chat.update", channel=channel, ts=reply["ts"], text="waved")["message"]["subtype"] == "me_message"


def test_me_message_errors(workspace, room):
    ann, _, cid, channel = room
    assert "text" in ann.fails("no_text", "chat.meMessage", channel=channel, text=" ").messages
    ann.fails("no_text", "chat.meMessage", channel=channel, blocks=[{"type": "divider"}])
    ann.fails("channel_not_found", "chat.meMessage", channel="C0000000000", text="x")
    cid.fails("not_in_channel", "chat.meMessage", channel=channel, text="x")
    assert ann.history(channel) == []


def test_a_me_message_is_one_after_an_edit_with_blocks(room):
    ann, bob, _, channel = room
    root = bob.post(channel, "root")
    ts = ann.ok("chat.meMessage", channel=channel, text="waves", thread_ts=root, client_msg_id="w")["ts"]
    again = ann.ok("chat.meMessage", channel=channel, text="waves", thread_ts=root, client_msg_id="w")
    assert again["ts"] == ts and again["is_duplicate"] is True
    message = ann.ok("chat.update", channel=channel, ts=ts, blocks=[{"type": "divider"}])["message"]
    assert message["subtype"] == "me_message" and message["blocks"] == [{"type": "divider"}] and message["thread_ts"] == root
    # A broadcast reply has its own subtype, and no second one.
    reply = ann.ok("chat.meMessage", channel=channel, text="waves", thread_ts=root, reply_broadcast=True)
    assert reply.body.count(b'"subtype"') == 1 and reply["message"]["subtype"] == "thread_broadcast"


def test_what_a_bot_wants_to_be_shown_as(workspace, room):
    ann, bob, _, channel = room
    bot = workspace.bot()
    ann.ok("channels.invite", channel=channel, users=bot.id)
    with bob.socket() as socket:
        guise = {"username": "Robo \u2603", "icon_emoji": ":ghost:", "icon_url": "https://example.com/r.png"}
        message = bot.ok("chat.postMessage", channel=channel, text="one", **guise)["message"]
        frame = socket.expect({"text": "one"})
    shown = {"subtype": "bot_message", "username": "Robo \u2603", "bot_id": bot.bot_id, "user": bot.id,
             "icons": {"emoji": ":ghost:", "image_48": "https://example.com/r.png"}}
    last = ann.ok("channels.events", channel=channel, after_seq=message["seq"] - 1)["events"][0]
    for seen in (message, frame, bob.history(channel)[0], last):
        assert {name: seen.get(name) for name in shown} == shown
    assert bob.unread(channel) == 1
    edited = bot.ok("chat.update", channel=channel, ts=message["ts"], text="two", attachments=[{"text": "a"}], username="Other")
    assert edited["message"]["username"] == "Robo \u2603" and edited["message"]["subtype"] == "bot_message"
    plain = bot.ok("chat.postMessage", channel=channel, text="me", as_user=True, **guise)["message"]
    assert not {"username", "icons", "subtype"} & plain.keys()
    root = bot.ok("chat.postMessage", channel=channel, text="re", thread_ts=message["ts"], reply_broadcast=True, username="Re")
    assert root.body.count(b'"subtype"') == 1 and root["message"]["username"] == "Re"
    with bob.socket() as socket:
        bot.ok("chat.postEphemeral", channel=channel, user=bob.id, text="psst", **guise)
        assert socket.expect({"is_ephemeral": True})["username"] == "Robo \u2603"


def test_people_are_themselves(room):
    ann, _, _, channel = room
    message = ann.ok("chat.postMessage", channel=channel, text="x", username="bob", icon_emoji=":x:", icon_url="https://x")["message"]
    assert not {"username", "icons", "subtype"} & message.keys()


def test_a_name_alone_says_nothing(workspace, room):
    bot, channel = workspace.bot(), room[3]
    room[0].ok("channels.invite", channel=channel, users=bot.id)
    bot.fails("no_text", "chat.postMessage", channel=channel, username="x")
    bot.fails("no_text", "chat.postMessage", channel=channel, metadata={"event_type": "e", "event_payload": {}})
    bot.fails("no_text", "chat.postEphemeral", channel=channel, user=room[0].id, icon_emoji=":x:")
    for name in ("username", "icon_emoji", "icon_url"):
        assert name in bot.fails("invalid_arguments", "chat.postMessage", channel=channel, text="x", **{name: "x" * 2049}).messages
        assert name in bot.fails("invalid_arguments", "chat.postMessage", channel=channel, text="x", **{name: ["x"]}).messages


def test_an_edit_replaces_what_it_names(room):
    """Blocks, attachments and metadata each stay until they are replaced, or removed by [] or {}."""
    ann, bob, _, channel = room
    parts = {"blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": f"<@{bob.id}>"}}],
             "attachments": [{"text": "at", "zz": 1.50, "aa": "\u00e9"}],
             "metadata": {"event_type": "e", "event_payload": {"b": 1, "a": 2}}}
    ts = ann.post(channel, "orig", **parts)
    shown = {**parts, "attachments": [{**parts["attachments"][0], "id": 1}]}

    def after(**change):
        message = ann.ok("chat.update", channel=channel, ts=ts, **change)["message"]
        assert bob.history(channel)[0] == message
        return {name: message[name] for name in shown if name in message}

    mentions = lambda: bob.ok("channels.info", channel=channel)["channel"]["mention_count"]
    assert after(text="new") == shown and mentions() == 1
    shown["attachments"] = [{"text": "other", "id": 1}]
    assert after(attachments=[{"text": "other"}]) == shown and mentions() == 1
    shown["metadata"] = {"event_type": "f", "event_payload": {}}
    assert after(metadata=shown["metadata"]) == shown and mentions() == 1
    del shown["metadata"]
    assert after(text="x", metadata={}) == shown and mentions() == 1
    del shown["blocks"]
    assert after(blocks=[]) == shown and mentions() == 0
    del shown["attachments"]
    assert after(attachments=[]) == {}
    shown["blocks"] = parts["blocks"]
    assert after(blocks=parts["blocks"]) == {"blocks": parts["blocks"]} and mentions() == 1


def test_an_edit_leaves_something_to_see(room):
    ann, bob, _, channel = room
    blocks, attachments = [{"type": "divider"}], [{"fallback": "f"}]
    ts = ann.post(channel, "", blocks=blocks, attachments=attachments)
    ann.ok("chat.update", channel=channel, ts=ts, attachments=[])
    for nothing in ({"blocks": []}, {"blocks": [], "metadata": {}}, {"blocks": [], "attachments": []}):
        ann.fails("no_text", "chat.update", channel=channel, ts=ts, **nothing)
    assert bob.history(channel)[0]["blocks"] == blocks
    ann.ok("chat.update", channel=channel, ts=ts, blocks=[], attachments=attachments)
    assert "blocks" not in ann.ok("chat.update", channel=channel, ts=ts, text="text", blocks=[])["message"]
    assert "attachments" not in ann.ok("chat.update", channel=channel, ts=ts, attachments=[])["message"]


def test_markdown_text(room):
    ann, bob, _, channel = room
    ts = ann.ok("chat.postMessage", channel=channel, markdown_text="# Title\n**bold**")["ts"]
    assert bob.history(channel)[0]["text"] == "# Title\n**bold**"
    assert ann.ok("chat.update", channel=channel, ts=ts, markdown_text="_other_")["text"] == "_other_"
    for other in ({"text": "x"}, {"blocks": [{"type": "divider"}]}):
        reply = ann.fails("markdown_text_conflict", "chat.postMessage", channel=channel, markdown_text="x", **other)
        assert "markdown_text" in reply.messages
    assert "markdown_text" in ann.fails("no_text", "chat.postMessage", channel=channel, markdown_text=" ").messages
    ann.fails("msg_too_long", "chat.postMessage", channel=channel, markdown_text="x" * 12_001)
    assert len(bob.history(channel)) == 1


def test_ephemeral(environment, room):
    """Only the sockets of that user, on any instance, receive it; it is neither stored nor counted."""
    ann, bob, _, channel = room
    seq = ann.ok("chat.postMessage", channel=channel, text="before")["seq"]
    with bob.socket() as here, bob.at(environment.urls[1]).socket() as there, ann.socket() as hers:
        ts = ann.ok("chat.postEphemeral", channel=channel, user=bob.id, text="psst", blocks=[{"type": "divider"}])["message_ts"]
        for socket in (here, there):
            frame = socket.expect({"type": "message", "is_ephemeral": True})
            assert (frame["channel"], frame["channel_type"], frame["user"]) == (channel, "channel", ann.id)
            assert (frame["text"], frame["ts"], frame["blocks"]) == ("psst", ts, [{"type": "divider"}])
            assert "seq" not in frame
        assert ann.ok("chat.postMessage", channel=channel, text="after")["seq"] == seq + 1
        hers.expect({"type": "message", "text": "after"})
        assert not hers.matching({"is_ephemeral": True})
    assert [message["text"] for message in bob.history(channel)] == ["after", "before"]
    assert bob.unread(channel) == 2


def test_ephemeral_by_name_and_to_a_user(workspace, room):
    """`channel` as chat.postMessage takes it."""
    ann, bob, cid, channel = room
    named = workspace.channel(ann, bob, name="by-name")
    with bob.socket() as socket:
        for count, name in enumerate(("#by-name", "by-name"), 1):
            ann.ok("chat.postEphemeral", channel=name, user=bob.id, text=f"psst {count}")
            assert socket.expect({"is_ephemeral": True, "text": f"psst {count}"})["channel"] == named
        ann.ok("chat.postEphemeral", channel=bob.id, user=bob.id, text="psst, bob")
        frame = socket.expect({"is_ephemeral": True, "text": "psst, bob"})
    assert frame["channel_type"] == "im"
    assert frame["channel"] == ann.ok("conversations.open", users=bob.id)["channel"]["id"]
    ann.fails("user_not_in_channel", "chat.postEphemeral", channel=bob.id, user=cid.id, text="x")
    for nowhere in ("#nowhere", "U0000000000"):
        assert "channel" in ann.fails("channel_not_found", "chat.postEphemeral", channel=nowhere, user=bob.id, text="x").messages
    secret = workspace.channel(ann, name="secret", private=True)
    bob.fails("channel_not_found", "chat.postEphemeral", channel="#secret", user=ann.id, text="x")
    assert secret and bob.history(named) == []


def test_ephemeral_errors(workspace, room):
    ann, bob, cid, channel = room
    good = {"channel": channel, "user": bob.id, "text": "x"}
    ann.fails("user_not_in_channel", "chat.postEphemeral", **{**good, "user": cid.id})
    ann.fails("user_not_in_channel", "chat.postEphemeral", **{**good, "user": "U0000000000"})
    ann.fails("user_not_found", "chat.postEphemeral", **{**good, "user": "bob"})
    cid.fails("not_in_channel", "chat.postEphemeral", **good)
    ann.fails("channel_not_found", "chat.postEphemeral", **{**good, "channel": "C0000000000"})
    ann.fails("no_text", "chat.postEphemeral", **{**good, "text": ""})
    ann.fails("no_text", "chat.postEphemeral", channel=channel, user=bob.id)
    ann.fails("thread_not_found", "chat.postEphemeral", **good, thread_ts="1700000000.000000")
    ann.fails("invalid_timestamp", "chat.postEphemeral", **good, thread_ts="x")
    ann.fails("msg_too_long", "chat.postEphemeral", **{**good, "text": "x" * 40_001})
    ann.fails("invalid_blocks", "chat.postEphemeral", **good, blocks="[")
    assert "user" in ann.fails("invalid_arguments", "chat.postEphemeral", channel=channel, text="x").messages
    ann.ok("channels.archive", channel=channel)
    ann.fails("is_archived", "chat.postEphemeral", **good)


def test_ephemeral_links_names(room):
    ann, bob, _, channel = room
    with bob.socket() as socket:
        for args in ({"link_names": True}, {"parse": "full"}, {}):
            ann.ok("chat.postEphemeral", channel=channel, user=bob.id, text=f"@{bob.name}, psst", **args)
            wanted = f"<@{bob.id}>, psst" if args else f"@{bob.name}, psst"
            assert socket.expect({"is_ephemeral": True, "text": wanted})["user"] == ann.id


def test_ephemeral_in_a_thread(room):
    ann, bob, _, channel = room
    root = ann.post(channel)
    with bob.socket() as socket:
        ann.ok("chat.postEphemeral", channel=channel, user=bob.id, text="psst", thread_ts=root)
        assert socket.expect({"is_ephemeral": True})["thread_ts"] == root
        reply = ann.post(channel, thread_ts=root)
        ann.ok("chat.postEphemeral", channel=channel, user=bob.id, text="to a reply", thread_ts=reply)
        assert socket.expect({"is_ephemeral": True, "text": "to a reply"})["thread_ts"] == root
    assert len(bob.ok("channels.replies", channel=channel, ts=root)["messages"]) == 2


def test_permalink(room):
    ann, bob, _, channel = room
    root = ann.post(channel)
    reply = bob.ok("chat.getPermalink", channel=channel, message_ts=root)
    place = f"{ann.url}/archives/{channel}/p"
    assert reply["channel"] == channel and reply["permalink"] == place + root.replace(".", "")
    answer = ann.post(channel, thread_ts=root)
    assert bob.ok("chat.getPermalink", channel=channel, message_ts=answer, encoding="get")["permalink"] == (
        f"{place}{answer.replace('.', '')}?thread_ts={root}&cid={channel}")


def test_permalink_errors(workspace, room):
    ann, bob, cid, channel = room
    ts = ann.post(channel)
    cid.fails("not_in_channel", "chat.getPermalink", channel=channel, message_ts=ts)
    cid.fails("channel_not_found", "chat.getPermalink", channel=workspace.channel(ann, private=True), message_ts=ts)
    bob.fails("message_not_found", "chat.getPermalink", channel=channel, message_ts="1700000000.000000")
    bob.fails("invalid_timestamp", "chat.getPermalink", channel=channel, message_ts="x")
    ann.ok("chat.delete", channel=channel, ts=ts)
    bob.fails("message_not_found", "chat.getPermalink", channel=channel, message_ts=ts)


def test_a_reply_is_shown_to_the_channel_later(workspace, room):
    """chat.update with reply_broadcast gives the same result as posting with it, but is neither unread nor an edit."""
    ann, bob, _, channel = room
    root = bob.post(channel, "root")
    ts = ann.post(channel, "reply", thread_ts=root)
    later = ann.post(channel, "later")
    unread = bob.unread(channel)
    with bob.socket() as socket:
        reply = ann.ok("chat.update", channel=channel, ts=ts, reply_broadcast=True)
        frame = socket.expect({"subtype": "message_changed"})
    message = reply["message"]
    assert (message["subtype"], message["text"], message["root"]["text"]) == ("thread_broadcast", "reply", "root")
    assert (reply["text"], message["thread_ts"], "edited" in message) == ("reply", root, False)
    assert frame["message"]["subtype"] == "thread_broadcast" and frame["message"]["root"]["ts"] == root
    assert bob.history(channel)[1] == message and [m["ts"] for m in bob.history(channel)] == [later, ts, root]
    assert [m["text"] for m in bob.ok("channels.replies", channel=channel, ts=root)["messages"]] == ["root", "reply"]
    assert bob.unread(channel) == unread
    # From now on it may be edited with it, or without.
    again = ann.ok("chat.update", channel=channel, ts=ts, text="other", reply_broadcast=True)["message"]
    assert (again["subtype"], again["text"], again["edited"]["user"]) == ("thread_broadcast", "other", ann.id)
    assert ann.ok("chat.update", channel=channel, ts=ts, text="third")["message"]["subtype"] == "thread_broadcast"
    ann.ok("chat.delete", channel=channel, ts=ts)
    assert [m["ts"] for m in bob.history(channel)] == [later, root] and bob.unread(channel) == unread


def test_a_bots_reply_shown_later_has_one_subtype(workspace, room):
    ann, bot, channel = room[0], workspace.bot(), room[3]
    ann.ok("channels.invite", channel=channel, users=bot.id)
    root = ann.post(channel, "root")
    for args in ({"username": "Robo", "blocks": [{"type": "divider"}]}, {"username": "Robo"}, {}):
        ts = bot.post(channel, "reply", thread_ts=root, **args)
        reply = bot.ok("chat.update", channel=channel, ts=ts, reply_broadcast=True)
        assert reply.body.count(b'"subtype"') == 1 and reply["message"]["subtype"] == "thread_broadcast"
        assert reply["message"].get("username") == args.get("username") and ann.history(channel)[0] == reply["message"]


def test_what_cannot_be_shown_to_the_channel(room):
    ann, bob, _, channel = room
    root = ann.post(channel, "root")
    ts = ann.post(channel, "reply", thread_ts=root)
    ann.fails("cant_broadcast_message", "chat.update", channel=channel, ts=root, reply_broadcast=True)
    ann.fails("cant_broadcast_message", "chat.update", channel=channel, ts=root, text="x", reply_broadcast=True)
    ann.fails("no_dual_broadcast_content_update", "chat.update", channel=channel, ts=ts, text="x", reply_broadcast=True)
    ann.fails("no_dual_broadcast_content_update", "chat.update", channel=channel, ts=ts, blocks=[{"type": "divider"}],
              reply_broadcast=True)
    bob.fails("cant_update_message", "chat.update", channel=channel, ts=ts, reply_broadcast=True)
    ann.fails("no_text", "chat.update", channel=channel, ts=ts, reply_broadcast=False)
    assert "reply_broadcast" in ann.fails("invalid_arguments", "chat.update", channel=channel, ts=ts, reply_broadcast="x").messages
    assert [m["text"] for m in bob.history(channel)] == ["root"]
    assert ann.ok("chat.update", channel=channel, ts=ts, text="x", reply_broadcast=False)["text"] == "x"
