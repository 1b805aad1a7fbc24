# SPDX-License-Identifier: Apache-2.0
"""chat.postMessage: accepted arguments, stored fields, refusals."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.metrics import metric

TS = re.compile(r"^\d{10}\.\d{6}$")
BLOCKS = [{"type": "section", "text": {"type": "mrkdwn", "text": "*hi* \u00e9"}},
          {"type": "actions", "elements": [{"type": "button", "text": {"type": "plain_text", "text": "B"}}]}]
ATTACHMENTS = [{"fallback": "f", "text": "a", "color": "#36a64f", "fields": [{"title": "t", "value": "v"}]}]
METADATA = {"event_type": "task", "event_payload": {"id": 11, "deep": {"list": [1, 2.5, None, True]}}}


def test_reply_of_a_post(room, workspace):
    ann, _, channel = room
    reply = ann.ok("chat.postMessage", channel=channel, text="hi", client_msg_id="m-1")
    assert reply["channel"] == channel
    assert TS.match(reply["ts"]) and isinstance(reply["seq"], int)
    assert "is_duplicate" not in reply or reply["is_duplicate"] is False
    message = reply["message"]
    assert message["type"] == "message" and message["text"] == "hi"
    assert message["user"] == ann.id and message["team"] == workspace.id
    assert message["ts"] == reply["ts"] and message["client_msg_id"] == "m-1"


def test_ts_and_seq_rise(room):
    ann, bob, channel = room
    replies = [who.ok("chat.postMessage", channel=channel, text="x") for who in (ann, bob) * 10]
    ts = [reply["ts"] for reply in replies]
    assert ts == sorted(set(ts))
    first = replies[0]["seq"]
    assert [reply["seq"] for reply in replies] == list(range(first, first + 20))


def test_ts_rises_although_a_clock_went_back(environment, room):
    """The situation after a failover to a server whose clock is an hour behind: new messages still sort after all existing ones."""
    ann, bob, channel = room
    first = ann.post(channel)
    with environment.database() as database:
        database.execute("SELECT channel_cool(%s)", [channel])
        database.execute("UPDATE channels SET last_ts = last_ts + 3600000000 WHERE id = %s", [channel])
    root = ann.post(channel)
    assert float(root) - float(first) > 3590
    replies = [bob.post(channel, thread_ts=root) for _ in range(2)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: ann.at(ann.url).post(channel), range(8)))
    ann.ok("chat.update", channel=channel, ts=root, text="x")
    bob.ok("channels.leave", channel=channel)
    bob.ok("channels.join", channel=channel)
    last = ann.post(channel)
    events = ann.ok("channels.events", channel=channel, after_seq=0)["events"]
    told = [event.get("event_ts") or event["ts"] for event in events]
    assert told == sorted(set(told)) and told[2:6] == [first, root, *replies] and told[-1] == last


@pytest.mark.parametrize("name", ["plain", "hash"])
def test_channel_by_name(workspace, name):
    ann = workspace.user()
    channel = workspace.channel(ann, name="by-name")
    reply = ann.ok("chat.postMessage", channel="#by-name" if name == "hash" else "by-name", text="x")
    assert reply["channel"] == channel


@pytest.mark.parametrize("text", [
    "x", "  padded  ", "line\nbreak\ttab\r\n", "\u00e9\u00df\u4e2d\u6587", "\U0001f600\U0001f468\u200d\U0001f469",
    "&amp; &lt;b&gt; <@U123> <!here> <https://x|y>", '"quotes" \\back\\slash\\', "\u202eright to left",
    "\ufeffbom", "\uffff\U0010ffff", "a\u0301\u0302\u0303", "a\u007f\u0080\u0001",
])
@pytest.mark.parametrize("encoding", ["json", "form"])
def test_text_is_kept_as_it_is(room, text, encoding):
    ann, _, channel = room
    assert ann.ok("chat.postMessage", channel=channel, text=text, encoding=encoding)["message"]["text"] == text
    assert ann.history(channel)[0]["text"] == text


@pytest.mark.parametrize("letter", ["x", "\u00e9", "\u4e2d", "\U0001f600"])
@pytest.mark.parametrize("encoding", ["json", "form"])
def test_text_of_40000_code_points(room, letter, encoding):
    ann, _, channel = room
    ts = ann.post(channel, letter * 40_000, encoding=encoding)
    message = ann.history(channel)[0]
    assert message["ts"] == ts and message["text"] == letter * 40_000


@pytest.mark.parametrize("letter", ["x", "\U0001f600"])
def test_text_of_40001_code_points(room, letter):
    ann, _, channel = room
    ann.fails("msg_too_long", "chat.postMessage", channel=channel, text=letter * 40_001)
    assert ann.history(channel) == []


BLANKS = ["", " ", "\n\t\r ", "\u00a0\u2003\u3000", "\u2028\u2029\u0085", "\u200b", "\u2060", "\ufeff", "\u00ad", "\u2800", "\u3164",
          "\u200d", "\ufe0f", "\u202e \u202c", "\u001b", "\U000e0020"]


@pytest.mark.parametrize("text", BLANKS)
def test_blank_text(room, text):
    ann, _, channel = room
    ann.fails("no_text", "chat.postMessage", channel=channel, text=text)
    assert ann.history(channel) == []
    ts = ann.post(channel, "x")
    ann.fails("no_text", "chat.update", channel=channel, ts=ts, text=text)
    assert ann.history(channel)[0]["text"] == "x"


@pytest.mark.parametrize("text", ["\u200bx", "\u2764\ufe0f", "\U0001f469\u200d\U0001f467", "\u0301", "-", "\ue000"])
def test_text_that_shows_something(room, text):
    ann, _, channel = room
    ann.post(channel, text)
    assert ann.history(channel)[0]["text"] == text


@pytest.mark.parametrize("text", BLANKS)
def test_blank_text_beside_blocks_is_no_text(room, text):
    """The blocks' words are shown in its place, as where no text was given."""
    ann, _, channel = room
    ann.ok("chat.postMessage", channel=channel, blocks=BLOCKS)
    ts = ann.ok("chat.postMessage", channel=channel, text=text, blocks=BLOCKS)["ts"]
    shown, without = (message["text"] for message in ann.history(channel)[:2])
    assert shown == without
    ann.ok("chat.update", channel=channel, ts=ts, blocks=[])
    assert ann.history(channel)[0]["text"] == shown


def test_no_text_at_all(room):
    room[0].fails("no_text", "chat.postMessage", channel=room[2])


@pytest.mark.parametrize("text", ["a\u0000b", "\u0000"])
@pytest.mark.parametrize("encoding", ["json", "form"])
def test_nul_in_text(room, text, encoding):
    """Postgres cannot store a NUL, so it is refused rather than lost."""
    ann, _, channel = room
    ann.fails(("invalid_json", "invalid_arguments", "invalid_form_data"), "chat.postMessage", channel=channel,
              text=text, encoding=encoding)
    assert ann.history(channel) == []


@pytest.mark.parametrize("text", ["\ud83d", "a\udc00b", "\ude00\ud83d"])
def test_lone_surrogates(room, text):
    ann, _, channel = room
    ann.fails(("invalid_json", "invalid_arguments"), "chat.postMessage", channel=channel, text=text)
    assert ann.history(channel) == []


@pytest.mark.parametrize("encoding", ["json", "form", "query"])
def test_blocks_attachments_and_metadata_come_back(room, encoding):
    ann, bob, channel = room
    reply = ann.ok("chat.postMessage", channel=channel, text="t", blocks=BLOCKS, attachments=ATTACHMENTS,
                   metadata=METADATA, encoding=encoding)
    for message in (reply["message"], bob.history(channel)[0]):
        assert [block["type"] for block in message["blocks"]] == ["section", "actions"]
        assert message["blocks"][0]["text"] == BLOCKS[0]["text"]
        assert message["attachments"][0]["fields"] == ATTACHMENTS[0]["fields"]
        assert message["metadata"] == METADATA


@pytest.mark.parametrize("args", [{"blocks": BLOCKS}, {"attachments": ATTACHMENTS}])
def test_blocks_or_attachments_do_without_text(room, args):
    ann, bob, channel = room
    ann.ok("chat.postMessage", channel=channel, **args)
    assert bob.unread(channel) == 1


@pytest.mark.parametrize("args, error", [
    ({"blocks": "{"}, ("invalid_blocks", "invalid_blocks_format")),
    ({"blocks": {"type": "section"}}, ("invalid_blocks", "invalid_blocks_format")),
    ({"blocks": ["x"]}, ("invalid_blocks", "invalid_blocks_format")),
    ({"blocks": [{"type": "divider"}, {}]}, "invalid_blocks"),
    ({"blocks": [{"type": 1}]}, "invalid_blocks"),
    ({"blocks": [{"type": "divider", "block_id": 1}]}, "invalid_blocks"),
    ({"blocks": [{"type": "divider"}] * 51}, ("invalid_blocks", "msg_blocks_too_long")),
    ({"attachments": "[}"}, ("invalid_attachments", "invalid_arguments")),
    ({"attachments": {"text": "x"}}, ("invalid_attachments", "invalid_arguments")),
    ({"attachments": [1]}, ("invalid_attachments", "invalid_arguments")),
    ({"attachments": [{"text": {"a": 1}}]}, "invalid_attachments"),
    ({"attachments": [{"fields": {"title": "a"}}]}, "invalid_attachments"),
    ({"attachments": [{"fields": ["a"]}]}, "invalid_attachments"),
    ({"attachments": [{"fields": [{"value": []}]}]}, "invalid_attachments"),
    ({"attachments": [{"text": "x"}] * 101}, "too_many_attachments"),
    ({"metadata": "x"}, "invalid_metadata_format"),
    ({"metadata": []}, "invalid_metadata_format"),
    ({"metadata": {"event_type": 5, "event_payload": {}}}, ("invalid_metadata_format", "invalid_metadata_schema")),
    ({"thread_ts": "abc"}, "invalid_timestamp"),
    ({"thread_ts": "1700000000.0"}, "invalid_timestamp"),
    ({"thread_ts": "1700000000.000000"}, "thread_not_found"),
    ({"text": ["a"]}, ("invalid_arguments", "no_text")),
    ({"text": {"a": 1}}, ("invalid_arguments", "no_text")),
    ({"client_msg_id": ["a"]}, "invalid_arguments"),
    ({"client_msg_id": "x" * 129}, "invalid_arguments"),
    ({"reply_broadcast": "maybe"}, "invalid_arguments"),
])
def test_bad_arguments_store_nothing(room, args, error):
    ann, bob, channel = room
    before = ann.ok("channels.info", channel=channel)["channel"].get("latest")
    reply = ann.fails(error, "chat.postMessage", **{"channel": channel, "text": "x", **args})
    if reply["error"] != "thread_not_found":
        assert next(iter(args)) in reply.messages
    assert ann.history(channel) == [] and bob.unread(channel) == 0
    assert ann.ok("channels.info", channel=channel)["channel"].get("latest") == before


@pytest.mark.parametrize("args, words", [
    ({"blocks": [{"type": "divider"}] * 51}, "blocks: must have at most 50 members"),
    ({"attachments": [{"text": "x"}] * 101}, "attachments: must have at most 100 members"),
    ({"metadata": {"event_type": "e", "event_payload": {"k": "x" * 16_384}}}, "metadata: must have at most 16384 bytes"),
])
def test_what_is_too_much_is_told_how_much_may_be(room, args, words):
    assert room[0].call("chat.postMessage", channel=room[2], text="x", **args).messages == f"[ERROR] {words}"


def test_numbers_where_attachments_have_text(room):
    """Clients in Go and Java could not decode them, nor the rest of the reply."""
    ann, bob, channel = room
    ann.post(channel, encoding="form", attachments=[
        {"fallback": 7, "text": True, "title": None, "ts": 1700000000, "color": "good",
         "fields": [{"title": 1, "value": 0.1, "short": True}, {"value": "v"}]}, {"fields": None}])
    assert bob.history(channel)[0]["attachments"] == [
        {"fallback": "7", "text": "true", "title": None, "ts": 1700000000, "color": "good", "id": 1,
         "fields": [{"title": "1", "value": "0.1", "short": True}, {"value": "v"}]}, {"fields": None, "id": 2}]


@pytest.mark.parametrize("count", [50])
def test_as_many_blocks_as_allowed(room, count):
    message = room[0].ok("chat.postMessage", channel=room[2], blocks=[{"type": "divider"}] * count)["message"]
    assert len(message["blocks"]) == count


def test_as_many_attachments_as_allowed(room):
    message = room[0].ok("chat.postMessage", channel=room[2], attachments=[{"text": "x"}] * 100)["message"]
    assert len(message["attachments"]) == 100


@pytest.mark.parametrize("encoding, value", [("json", True), ("json", False), ("form", "true"), ("form", "false"),
                                             ("form", 1), ("form", 0), ("query", "1"), ("query", "0"),
                                             ("form", "True"), ("get", "False"), ("query", "TRUE")])
def test_booleans_in_any_spelling(room, encoding, value):
    ann, _, channel = room
    root = ann.post(channel)
    ann.ok("chat.postMessage", channel=channel, text="r", thread_ts=root, reply_broadcast=value, encoding=encoding)
    shown = len(ann.history(channel))
    assert shown == (2 if str(value).lower() in ("true", "1") else 1)


def test_post_needs_membership(workspace):
    ann, bob = workspace.users(2)
    channel = workspace.channel(ann)
    bob.fails("not_in_channel", "chat.postMessage", channel=channel, text="x")
    assert ann.history(channel) == []


def test_post_to_an_archived_channel(room):
    ann, _, channel = room
    ann.ok("channels.archive", channel=channel)
    ann.fails("is_archived", "chat.postMessage", channel=channel, text="x")


def test_thread_reply(room):
    ann, bob, channel = room
    root = ann.post(channel, "root")
    reply = bob.ok("chat.postMessage", channel=channel, text="reply", thread_ts=root)
    assert reply["message"]["thread_ts"] == root
    assert reply["message"]["parent_user_id"] == ann.id
    assert [m["ts"] for m in ann.history(channel)] == [root]
    parent, child = ann.ok("channels.replies", channel=channel, ts=root)["messages"]
    assert parent["ts"] == root and child["ts"] == reply["ts"]


def test_reply_to_a_reply_joins_the_thread(room, sockets):
    """A thread has one level. Bots answer a message by its `ts`, wherever that is."""
    ann, bob, channel = room
    root = ann.post(channel)
    child = bob.post(channel, "child", thread_ts=root)
    answer = {"channel": channel, "text": "grandchild", "thread_ts": child, "client_msg_id": "once"}
    socket = sockets(bob)
    reply = ann.ok("chat.postMessage", **answer)
    assert (reply["message"]["thread_ts"], reply["message"]["parent_user_id"]) == (root, ann.id)
    again = ann.ok("chat.postMessage", **answer)
    assert again["is_duplicate"] is True and again["ts"] == reply["ts"] and again["message"] == reply["message"]
    assert socket.expect({"type": "message", "ts": reply["ts"]})["thread_ts"] == root
    shown = ann.ok("chat.meMessage", channel=channel, text="waves", thread_ts=reply["ts"], reply_broadcast=True)
    with ann.socket() as posting:
        acked = posting.request({"id": 1, "type": "message", "channel": channel, "text": "by socket", "thread_ts": child})
    told = bob.ok("channels.replies", channel=channel, ts=root)["messages"]
    assert [message["ts"] for message in told] == [root, child, reply["ts"], shown["ts"], acked["ts"]]
    assert told[0]["reply_count"] == 4
    ann.ok("chat.delete", channel=channel, ts=reply["ts"])
    ann.fails("thread_not_found", "chat.postMessage", channel=channel, text="x", thread_ts=reply["ts"])
    ann.ok("chat.delete", channel=channel, ts=root)
    ann.fails("thread_not_found", "chat.postMessage", channel=channel, text="x", thread_ts=child)


def test_reply_in_another_channel(room, workspace):
    ann, _, channel = room
    root = ann.post(channel)
    ann.fails("thread_not_found", "chat.postMessage", channel=workspace.channel(ann), text="x", thread_ts=root)


def test_reply_to_a_deleted_message(room):
    ann, _, channel = room
    root = ann.post(channel)
    ann.ok("chat.delete", channel=channel, ts=root)
    ann.fails("thread_not_found", "chat.postMessage", channel=channel, text="x", thread_ts=root)


def test_broadcast_reply_is_in_history_and_thread(room):
    ann, bob, channel = room
    root = ann.post(channel)
    reply = bob.ok("chat.postMessage", channel=channel, text="both", thread_ts=root, reply_broadcast=True)
    assert reply["message"]["subtype"] == "thread_broadcast"
    newest = ann.history(channel)[0]
    assert newest["ts"] == reply["ts"] and newest["thread_ts"] == root
    assert ann.ok("channels.replies", channel=channel, ts=root)["messages"][1]["ts"] == reply["ts"]


def test_tolerated_arguments(room):
    ann, _, channel = room
    ann.ok("chat.postMessage", channel=channel, text="x", mrkdwn=True, parse="none", link_names=True,
           unfurl_links=False, unfurl_media=False, as_user=True, team_id="T1")


def test_update(room):
    ann, bob, channel = room
    first = ann.ok("chat.postMessage", channel=channel, text="first", blocks=BLOCKS)
    reply = ann.ok("chat.update", channel=channel, ts=first["ts"], text="second")
    assert reply["ts"] == first["ts"] and reply["channel"] == channel and reply["text"] == "second"
    assert reply["seq"] == first["seq"] + 1
    assert reply["message"]["edited"]["user"] == ann.id
    message = bob.history(channel)[0]
    assert message["text"] == "second" and message["edited"]["user"] == ann.id
    assert message["seq"] == first["seq"]


def test_update_of_metadata_and_blocks(room):
    ann, _, channel = room
    ts = ann.post(channel, "t", metadata=METADATA, blocks=BLOCKS)
    ann.ok("chat.update", channel=channel, ts=ts, text="t2")
    assert ann.history(channel)[0]["metadata"] == METADATA
    ann.ok("chat.update", channel=channel, ts=ts, text="t3", metadata={}, blocks=[{"type": "divider"}])
    message = ann.history(channel)[0]
    assert "metadata" not in message
    assert [block["type"] for block in message["blocks"]] == ["divider"]


def test_update_errors(room, workspace):
    ann, bob, channel = room
    ts = ann.post(channel, "mine")
    bob.fails("cant_update_message", "chat.update", channel=channel, ts=ts, text="x")
    ann.fails("message_not_found", "chat.update", channel=channel, ts="1700000000.000000", text="x")
    ann.fails("message_not_found", "chat.update", channel=workspace.channel(ann), ts=ts, text="x")
    ann.fails("invalid_timestamp", "chat.update", channel=channel, ts="now", text="x")
    ann.fails("no_text", "chat.update", channel=channel, ts=ts, text="  ")
    ann.fails("msg_too_long", "chat.update", channel=channel, ts=ts, text="x" * 40_001)
    workspace.user().fails("not_in_channel", "chat.update", channel=channel, ts=ts, text="x")
    assert [m["text"] for m in ann.history(channel)] == ["mine"]
    assert "edited" not in ann.history(channel)[0]


def test_delete(room):
    ann, bob, channel = room
    keep, gone = ann.post(channel, "keep"), ann.ok("chat.postMessage", channel=channel, text="gone")
    reply = ann.ok("chat.delete", channel=channel, ts=gone["ts"])
    assert (reply["channel"], reply["ts"], reply["seq"]) == (channel, gone["ts"], gone["seq"] + 1)
    assert [m["ts"] for m in bob.history(channel)] == [keep]
    ann.fails("message_not_found", "chat.delete", channel=channel, ts=gone["ts"])
    ann.fails("message_not_found", "chat.update", channel=channel, ts=gone["ts"], text="x")


def test_delete_errors(room, workspace):
    ann, bob, channel = room
    ts = ann.post(channel)
    bob.fails("cant_delete_message", "chat.delete", channel=channel, ts=ts)
    ann.fails("message_not_found", "chat.delete", channel=channel, ts="1700000000.000000")
    ann.fails("invalid_timestamp", "chat.delete", channel=channel, ts="1.2.3")
    workspace.user().fails("not_in_channel", "chat.delete", channel=channel, ts=ts)
    assert [m["ts"] for m in ann.history(channel)] == [ts]


def test_delete_by_an_admin(room, workspace):
    ann, bob, channel = room
    ts = bob.post(channel)
    workspace.admin.fails("not_in_channel", "chat.delete", channel=channel, ts=ts)
    ann.ok("channels.invite", channel=channel, users=[workspace.admin.id])
    workspace.admin.fails("cant_update_message", "chat.update", channel=channel, ts=ts, text="x")
    workspace.admin.ok("chat.delete", channel=channel, ts=ts)
    assert ann.history(channel) == []


def test_notices_of_the_channel_stay_as_they_are(room, workspace):
    """Also for the users named in them, and for admins."""
    ann, _, channel = room
    ann.ok("channels.invite", channel=channel, users=[workspace.admin.id])
    before = ann.ok("channels.history", channel=channel)["messages"]
    assert {notice["subtype"] for notice in before} == {"channel_join"}
    for notice in before:
        for who in (ann, workspace.admin):
            who.fails("cant_update_message", "chat.update", channel=channel, ts=notice["ts"], text="x")
            who.fails("cant_delete_message", "chat.delete", channel=channel, ts=notice["ts"])
    assert ann.ok("channels.history", channel=channel)["messages"] == before


@pytest.mark.parametrize("end, error", [("archive", "is_archived"), ("leave", "not_in_channel")])
def test_what_one_wrote_stays_when_the_channel_is_over(room, end, error):
    ann, bob, channel = room
    ts = ann.post(channel, "mine")
    ann.ok(f"channels.{end}", channel=channel)
    ann.fails(error, "chat.update", channel=channel, ts=ts, text="x")
    ann.fails(error, "chat.delete", channel=channel, ts=ts)
    ann.fails(error, "chat.postMessage", channel=channel, text="x", thread_ts=ts)
    assert [m["text"] for m in bob.history(channel) if "subtype" not in m] == ["mine"]


def test_edit_and_delete_of_a_reply(room):
    ann, _, channel = room
    root = ann.post(channel)
    child = ann.post(channel, "r", thread_ts=root)
    ann.ok("chat.update", channel=channel, ts=child, text="r2")
    assert ann.ok("channels.replies", channel=channel, ts=root)["messages"][1]["text"] == "r2"
    ann.ok("chat.delete", channel=channel, ts=child)
    assert [m["ts"] for m in ann.ok("channels.replies", channel=channel, ts=root)["messages"]] == [root]


def test_who_is_refused_again_and_again_rolls_no_batches_back(environment, workspace):
    """The second refused post within a second is checked by itself; what else its author posts is posted."""
    instance = environment.instances[0]
    [ann] = workspace.users(1)
    ann = ann.at(instance.url)
    channel = workspace.channel(ann)
    before = metric(instance, "tidings_post_batches_refused_total")
    for number in range(20):
        ann.fails("channel_not_found", "chat.postMessage", channel="C00000000000", text="nowhere")
        ann.post(channel, f"{number}", client_msg_id=f"key-{number}")
        assert ann.ok("chat.postMessage", channel=channel, text=f"{number}", client_msg_id=f"key-{number}")["ts"]
    assert [message["text"] for message in ann.history(channel)][::-1] == [f"{number}" for number in range(20)]
    assert metric(instance, "tidings_post_batches_refused_total") - before <= 3
