# SPDX-License-Identifier: Apache-2.0
"""Posting again what may have been posted: one message, whatever the retries."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.retention import housekeep


def by_argument(key):
    return {"client_msg_id": key}


def by_header(key):
    return {"headers": {"Idempotency-Key": key}}


BOTH = pytest.mark.parametrize("named", [by_argument, by_header])


@BOTH
def test_a_retry_answers_the_first_message(room, named):
    ann, bob, channel = room
    first = ann.ok("chat.postMessage", channel=channel, text="once", **named("k"))
    again = ann.ok("chat.postMessage", channel=channel, text="once", **named("k"))
    assert again["is_duplicate"] is True
    assert (again["ts"], again["seq"]) == (first["ts"], first["seq"])
    assert again["message"]["text"] == "once"
    assert len(bob.history(channel)) == 1 and bob.unread(channel) == 1


@BOTH
def test_a_retry_on_the_other_instance(environment, room, named):
    ann, _, channel = room
    first = ann.ok("chat.postMessage", channel=channel, text="once", **named("k"))
    again = ann.at(environment.urls[1]).ok("chat.postMessage", channel=channel, text="once", **named("k"))
    assert again["is_duplicate"] is True and again["ts"] == first["ts"]
    assert len(ann.history(channel)) == 1


@BOTH
def test_other_content_is_refused(room, named):
    ann, _, channel = room
    ann.ok("chat.postMessage", channel=channel, text="one", **named("k"))
    ann.fails("idempotency_key_reused", "chat.postMessage", channel=channel, text="two", **named("k"))
    assert [m["text"] for m in ann.history(channel)] == ["one"]


@BOTH
def test_another_channel_is_other_content(room, workspace, named):
    ann, _, channel = room
    other = workspace.channel(ann)
    ann.ok("chat.postMessage", channel=channel, text="one", **named("k"))
    ann.fails("idempotency_key_reused", "chat.postMessage", channel=other, text="one", **named("k"))
    assert ann.history(other) == []


@pytest.mark.parametrize("difference", [
    {"blocks": [{"type": "divider"}]}, {"attachments": [{"text": "a"}]},
    {"metadata": {"event_type": "e", "event_payload": {}}},
])
def test_blocks_attachments_and_metadata_are_content(room, difference):
    ann, _, channel = room
    ann.post(channel, "one", client_msg_id="k")
    ann.fails("idempotency_key_reused", "chat.postMessage", channel=channel, text="one", client_msg_id="k",
              **difference)


def test_the_thread_is_content(room):
    ann, _, channel = room
    root = ann.post(channel)
    ann.post(channel, "one", client_msg_id="k")
    ann.fails("idempotency_key_reused", "chat.postMessage", channel=channel, text="one", client_msg_id="k",
              thread_ts=root)


@BOTH
def test_parallel_retries_make_one_message(environment, room, named):
    ann, bob, channel = room
    for round_number in range(5):
        clients = [ann.at(url) for url in environment.urls * 8]
        with ThreadPoolExecutor(len(clients)) as pool:
            replies = list(pool.map(lambda client: client.ok("chat.postMessage", channel=channel, text="once",
                                                             **named(f"k{round_number}")), clients))
        assert len({(reply["ts"], reply["seq"]) for reply in replies}) == 1
        assert sum(1 for reply in replies if not reply.get("is_duplicate")) == 1
        assert len(bob.history(channel)) == round_number + 1
    assert bob.unread(channel) == 5


def test_parallel_posts_of_different_content_with_one_key(environment, room):
    ann, _, channel = room
    clients = [ann.at(url) for url in environment.urls * 4]
    with ThreadPoolExecutor(len(clients)) as pool:
        replies = list(pool.map(lambda pair: pair[1].call("chat.postMessage", channel=channel, text=f"t{pair[0]}",
                                                          client_msg_id="k"), enumerate(clients)))
    assert sum(1 for reply in replies if reply["ok"]) == 1
    assert {reply["error"] for reply in replies if not reply["ok"]} == {"idempotency_key_reused"}
    assert len(ann.history(channel)) == 1


def test_keys_are_per_author(room):
    ann, bob, channel = room
    first = ann.ok("chat.postMessage", channel=channel, text="x", client_msg_id="k")
    second = bob.ok("chat.postMessage", channel=channel, text="x", client_msg_id="k")
    assert not second.get("is_duplicate") and second["ts"] != first["ts"]


def test_header_keys_are_per_token(environment, room, workspace):
    ann, _, channel = room
    other = environment.client(workspace.admin.ok("admin.tokens.create", user_id=ann.id)["token"])
    first = ann.ok("chat.postMessage", channel=channel, text="x", **by_header("k"))
    second = other.ok("chat.postMessage", channel=channel, text="x", **by_header("k"))
    assert first["ts"] != second["ts"]


def test_client_msg_id_holds_over_tokens_of_the_author(environment, room, workspace):
    ann, _, channel = room
    other = environment.client(workspace.admin.ok("admin.tokens.create", user_id=ann.id)["token"])
    ts = ann.post(channel, "x", client_msg_id="k")
    assert other.post(channel, "x", client_msg_id="k") == ts


def test_a_retry_shows_the_message_as_it_now_is(room):
    ann, _, channel = room
    first = ann.ok("chat.postMessage", channel=channel, text="one", client_msg_id="k")
    ann.ok("chat.update", channel=channel, ts=first["ts"], text="edited")
    again = ann.ok("chat.postMessage", channel=channel, text="one", client_msg_id="k")
    assert again["is_duplicate"] is True and again["ts"] == first["ts"]
    assert again["message"]["text"] == "edited" and again["message"]["edited"]["user"] == ann.id


def test_a_retry_of_a_deleted_message(room):
    ann, bob, channel = room
    first = ann.ok("chat.postMessage", channel=channel, text="one", client_msg_id="k")
    ann.ok("chat.delete", channel=channel, ts=first["ts"])
    again = ann.ok("chat.postMessage", channel=channel, text="one", client_msg_id="k")
    assert again["is_duplicate"] is True
    assert (again["ts"], again["seq"]) == (first["ts"], first["seq"])
    assert again["message"]["subtype"] == "tombstone" and not again["message"].get("text")
    assert ann.history(channel) == [] and bob.unread(channel) == 0


def test_keys_are_kept_for_some_days(environment, room):
    ann, _, channel = room
    old, young = [ann.post(channel, "once", client_msg_id=key) for key in ("old", "young")]
    with environment.database() as database:
        for ts, days in ((old, 8), (young, 6)):
            database.execute("UPDATE message_keys SET created = now() - make_interval(days => %s) WHERE channel_id = %s AND ts_text(ts) = %s",
                             [days, channel, ts])
        housekeep(database)
    assert ann.post(channel, "once", client_msg_id="young") == young
    assert ann.post(channel, "once", client_msg_id="old") > young


@pytest.mark.parametrize("key", [b"\xff", b"k" + b"\x80" * 1000, b"\xed\xa0\x80", b"x" * 129])
def test_bad_header_keys(room, key):
    ann, _, channel = room
    reply = ann.fails("invalid_arguments", "chat.postMessage", channel=channel, text="x", **by_header(key))
    assert "Idempotency-Key" in reply.messages
    assert ann.history(channel) == []


def test_client_msg_id_of_128_characters(room):
    ann, _, channel = room
    for letter in ("x", "\u00e9"):
        key = letter * 128
        reply = ann.ok("chat.postMessage", channel=channel, text="t", client_msg_id=key)
        assert reply["message"]["client_msg_id"] == key
        assert ann.post(channel, "t", client_msg_id=key) == reply["ts"]


def test_client_msg_id_of_129_characters(room):
    ann, _, channel = room
    reply = ann.fails("invalid_arguments", "chat.postMessage", channel=channel, text="t", client_msg_id="x" * 129)
    assert "client_msg_id" in reply.messages
    assert ann.history(channel) == []


def test_a_refused_post_does_not_use_up_its_key(room):
    ann, _, channel = room
    ann.fails("no_text", "chat.postMessage", channel=channel, text=" ", client_msg_id="k")
    assert not ann.ok("chat.postMessage", channel=channel, text="x", client_msg_id="k").get("is_duplicate")


def test_form_and_json_are_the_same_content(room):
    ann, _, channel = room
    blocks = [{"type": "divider"}]
    ts = ann.post(channel, "x", client_msg_id="k", blocks=blocks)
    assert ann.post(channel, "x", client_msg_id="k", blocks=blocks, encoding="form") == ts
