# SPDX-License-Identifier: Apache-2.0
"""Reactions: adding, removing, reading, bounds, and what they leave alone."""
from urllib.parse import urlsplit

import pytest
import requests

from tests.support.wait import LIMIT_S


@pytest.fixture
def talk(workspace):
    """Ann and bob in a channel with a message of ann's."""
    ann, bob = workspace.users(2)
    channel = workspace.channel(ann, bob)
    return ann, bob, channel, ann.post(channel, "one")


def react(user, channel, ts, name="thumbsup", method="reactions.add"):
    return user.ok(method, channel=channel, timestamp=ts, name=name)


def shown(user, channel, ts):
    """The reactions to a message as each way of reading it shows them."""
    def of(message):
        return message.get("reactions")
    found = [of(next(m for m in user.ok("channels.history", channel=channel)["messages"] if m["ts"] == ts)),
             of(user.ok("channels.replies", channel=channel, ts=ts)["messages"][0]),
             of(next(e for e in user.ok("channels.events", channel=channel, after_seq=0)["events"] if e.get("ts") == ts)),
             of(user.ok("reactions.get", channel=channel, timestamp=ts)["message"])]
    assert all(one == found[0] for one in found), found
    return found[0]


def test_adding_and_removing(talk):
    ann, bob, channel, ts = talk
    assert shown(bob, channel, ts) is None
    first = react(bob, channel, ts)["seq"]
    assert react(ann, channel, ts)["seq"] == first + 1
    react(ann, channel, ts, "+1::skin-tone-2")
    thumbs, tone = {"name": "thumbsup", "count": 2}, {"name": "+1::skin-tone-2", "users": [ann.id], "count": 1}
    assert shown(bob, channel, ts) == [{**thumbs, "users": [bob.id, ann.id]}, tone]
    assert shown(ann, channel, ts) == [{**thumbs, "users": [ann.id, bob.id]}, tone]  # the caller's own first
    ann.fails("already_reacted", "reactions.add", channel=channel, timestamp=ts, name="thumbsup")
    react(ann, channel, ts, "+1::skin-tone-2", "reactions.remove")
    react(bob, channel, ts, "thumbsup", "reactions.remove")
    assert shown(bob, channel, ts) == [{"name": "thumbsup", "users": [ann.id], "count": 1}]
    bob.fails("no_reaction", "reactions.remove", channel=channel, timestamp=ts, name="thumbsup")
    react(ann, channel, ts, "thumbsup", "reactions.remove")
    assert shown(bob, channel, ts) is None


@pytest.mark.parametrize("name", ["", ":tada:", "Tada", "a b", "tada::skin-tone-1", "tada::skin-tone-7", "::skin-tone-2", "é", "x" * 101])
def test_names_that_no_emoji_has(talk, name):
    ann, _, channel, ts = talk
    for method in ("reactions.add", "reactions.remove"):
        ann.fails("invalid_name", method, channel=channel, timestamp=ts, name=name)
    assert shown(ann, channel, ts) is None


@pytest.mark.parametrize("name", ["+1", "-1", "it's_a-me", "x" * 100, "x" * 100 + "::skin-tone-6"])
def test_names_that_some_emoji_has(talk, name):
    ann, _, channel, ts = talk
    react(ann, channel, ts, name)
    assert shown(ann, channel, ts) == [{"name": name, "users": [ann.id], "count": 1}]


def test_what_names_no_message(talk):
    ann, _, channel, ts = talk
    for method in ("reactions.add", "reactions.remove", "reactions.get", "pins.add", "pins.remove"):
        ann.fails("no_item_specified", method, channel=channel, name="tada")
        ann.fails("bad_timestamp", method, channel=channel, timestamp="yesterday", name="tada")
        ann.fails("message_not_found", method, channel=channel, timestamp="1700000000.000100", name="tada")
        ann.fails("channel_not_found", method, channel="C1", timestamp=ts, name="tada")


def test_bounds(workspace):
    users = workspace.users(4)
    channel = workspace.channel(*users)
    ts = users[0].post(channel)
    for number in range(50):
        react(users[number // 20], channel, ts, f"e{number}")
        if number == 19:
            users[0].fails("too_many_reactions", "reactions.add", channel=channel, timestamp=ts, name="e20")
    users[3].fails("too_many_emoji", "reactions.add", channel=channel, timestamp=ts, name="e50")
    react(users[3], channel, ts, "e49")  # one that is there
    assert [reaction["name"] for reaction in shown(users[0], channel, ts)] == [f"e{number}" for number in range(50)]
    react(users[0], channel, ts, "e0", "reactions.remove")
    react(users[0], channel, ts, "e50")


def test_users_are_cut_and_the_count_is_not(workspace):
    users = workspace.users(53)
    channel = workspace.channel(*users)
    ts = users[0].post(channel)
    for user in users:
        react(user, channel, ts)
    ids = [user.id for user in users]
    assert shown(users[0], channel, ts) == [{"name": "thumbsup", "users": ids[:50], "count": 53}]
    assert shown(users[52], channel, ts) == [{"name": "thumbsup", "users": ids[52:] + ids[:49], "count": 53}]
    react(users[3], channel, ts, method="reactions.remove")
    assert shown(users[0], channel, ts) == [{"name": "thumbsup", "users": ids[:3] + ids[4:51], "count": 52}]


def test_the_answer_to_a_repeated_post_and_to_an_edit(talk):
    ann, bob, channel, _ = talk
    ts = ann.ok("chat.postMessage", channel=channel, text="x", client_msg_id="once")["ts"]
    react(bob, channel, ts)
    wanted = [{"name": "thumbsup", "users": [bob.id], "count": 1}]
    assert ann.ok("chat.postMessage", channel=channel, text="x", client_msg_id="once")["message"]["reactions"] == wanted
    assert ann.ok("chat.update", channel=channel, ts=ts, text="y")["message"]["reactions"] == wanted
    assert "reactions" not in ann.ok("chat.postMessage", channel=channel, text="z")["message"]


def test_a_deleted_message_has_none(environment, talk):
    ann, bob, channel, ts = talk
    react(bob, channel, ts)
    bob.ok("pins.add", channel=channel, timestamp=ts)
    ann.ok("chat.delete", channel=channel, ts=ts)
    for method in ("reactions.add", "reactions.remove", "reactions.get", "pins.remove"):
        bob.fails("message_not_found", method, channel=channel, timestamp=ts, name="thumbsup")
    assert bob.ok("reactions.list")["items"] == bob.ok("pins.list", channel=channel)["items"] == []
    deleted = next(e for e in bob.ok("channels.events", channel=channel, after_seq=0)["events"] if e.get("subtype") == "message_deleted")
    assert "reactions" not in str(deleted)
    with environment.database() as database:
        database.execute("SELECT reactions_expire(clock_timestamp() + interval '1 minute')")
        for table in ("reactions", "reaction_counts", "reactions_gone", "pins"):
            assert database.execute(f"SELECT count(*) FROM {table} WHERE channel_id = %s", [channel]).fetchone() == (0,)


def test_listing(workspace):
    ann, bob, eve = workspace.users(3)
    shared, other = workspace.channel(ann, bob), workspace.channel(bob, eve)
    tss = [ann.post(shared, f"{number}") for number in range(5)]
    for ts in tss:
        react(bob, shared, ts, "one")
    react(bob, other, bob.post(other, "unseen"))
    react(bob, shared, tss[0], "two")  # the newest now
    order = [tss[0], *reversed(tss[1:])]

    def listed(user, **arguments):
        reply = user.ok("reactions.list", user=bob.id, **arguments)
        assert all(item["type"] == "message" and item["channel"] in (shared, other) and item["message"]["permalink"] for item in reply["items"])
        return [item["message"]["ts"] for item in reply["items"]], reply
    assert listed(ann)[0] == order
    assert len(listed(bob)[0]) == 6 and len(listed(eve)[0]) == 1
    assert bob.ok("reactions.list")["items"] == listed(bob)[1]["items"]
    seen, cursor = [], ""
    while cursor is not None:
        page, reply = listed(ann, limit=2, cursor=cursor)
        seen += page
        cursor = reply["response_metadata"]["next_cursor"] or None
    assert seen == order
    page, reply = listed(ann, count=2, page=2)
    assert page == order[2:4] and reply["paging"] == {"count": 2, "total": 5, "page": 2, "pages": 3}
    assert listed(ann, count=2, page=4)[0] == []
    ann.fails("user_not_found", "reactions.list", user="U0000000000")
    ann.fails("invalid_cursor", "reactions.list", cursor="rl1.x")
    ann.fails("invalid_limit", "reactions.list", limit=1001)


def test_nothing_is_counted(talk):
    ann, bob, channel, ts = talk

    def state(user):
        entry = next(e for e in user.ok("unread.sync")["channels"] if e["id"] == channel)
        return {key: value for key, value in entry.items() if key != "seq"}
    for strategy in ("sequence", "zset", "counter", "bitmap"):
        ann.ok("channels.setStrategy", channel=channel, strategy=strategy)
        before = state(ann), state(bob)
        react(bob, channel, ts, strategy)
        react(ann, channel, ts, strategy)
        react(ann, channel, ts, strategy, "reactions.remove")
        assert (state(ann), state(bob)) == before


def test_a_webhooks_message_has_no_author(workspace, talk, sockets):
    ann, _, channel, _ = talk
    hook = workspace.admin.ok("admin.webhooks.create", channel=channel, name="ci")["webhook"]
    assert requests.post(f"{ann.url}{urlsplit(hook['url']).path}", json={"text": "built"}, timeout=LIMIT_S).text == "ok"
    ts = next(m["ts"] for m in ann.history(channel) if m["text"] == "built")
    socket = sockets(ann, native=True)
    react(ann, channel, ts)
    ann.ok("pins.add", channel=channel, timestamp=ts)
    for type in ("reaction_added", "pin_added"):
        assert "item_user" not in socket.expect({"type": type})


@pytest.mark.parametrize("native", [True, False])
def test_frames(talk, sockets, native):
    ann, bob, channel, ts = talk
    socket = sockets(bob, native=native)
    seqs = [react(ann, channel, ts)["seq"], react(ann, channel, ts, method="reactions.remove")["seq"],
            ann.ok("pins.add", channel=channel, timestamp=ts)["seq"], ann.ok("pins.remove", channel=channel, timestamp=ts)["seq"]]
    added, removed, pinned, unpinned = (socket.expect({"type": type}) for type in (
        "reaction_added", "reaction_removed", "pin_added", "pin_removed"))
    assert [frame["seq"] for frame in (added, removed, pinned, unpinned)] == seqs
    assert added == {"type": "reaction_added", "user": ann.id, "reaction": "thumbsup", "item_user": ann.id, "count": 1,
                     "item": {"type": "message", "channel": channel, "ts": ts}, "channel": channel, "channel_type": "channel",
                     "event_ts": added["event_ts"], "seq": seqs[0]}
    assert removed == {**added, "type": "reaction_removed", "count": 0, "event_ts": removed["event_ts"], "seq": seqs[1]}
    assert (pinned["channel_id"], pinned["user"], pinned["item_user"], pinned["has_pins"]) == (channel, ann.id, ann.id, True)
    assert (pinned["item"]["type"], pinned["item"]["created_by"], pinned["item"]["message"]["text"]) == ("message", ann.id, "one")
    assert (unpinned["has_pins"], unpinned["item"]["message"]["ts"]) == (False, ts)
    assert bob.ok("channels.events", channel=channel, after_seq=seqs[0] - 1)["events"] == [added, removed, pinned, unpinned]


def test_a_resume_does_not_send_again_what_was_reacted_to(talk):
    """The first reaction rewrites the row of its message, whose transaction tells what a position has seen."""
    ann, bob, channel, _ = talk
    ts = ann.post(channel, "two")
    position = bob.ok("unread.sync")["position"]
    seqs = [react(ann, channel, ts)["seq"], react(bob, channel, ts)["seq"]]
    with bob.stream(position) as stream:
        last = ann.ok("chat.postMessage", channel=channel, text="three")["seq"]
        stream.expect({"type": "message", "seq": last})
        assert [frame["seq"] for frame in stream.frames if frame.get("channel") == channel and "seq" in frame] == [*seqs, last]
