# SPDX-License-Identifier: Apache-2.0
"""Reading back: channels.history, channels.replies and channels.events."""

import pytest

from tests.support.client import Client
from tests.support.retention import drop_by_retention

FAMILIES = pytest.mark.parametrize("family", ["channels", "conversations"])


@pytest.fixture
def posts(room):
    """(ann, channel, [ts of 10 posts])."""
    ann, _, channel = room
    return ann, channel, [ann.post(channel, f"m{i}") for i in range(10)]


def pages(client, method, key, **args):
    """All pages of `key`, as a list of lists."""
    found, cursor = [], ""
    while True:
        reply = client.ok(method, cursor=cursor, **args)
        found.append(reply[key])
        cursor = reply.get("response_metadata", {}).get("next_cursor", "")
        assert reply["has_more"] is bool(cursor)
        if not cursor:
            return found


@FAMILIES
def test_newest_first_with_seq(posts, family):
    ann, channel, ts = posts
    reply = ann.ok(f"{family}.history", channel=channel)
    mine = [m for m in reply["messages"] if "subtype" not in m]
    assert [m["ts"] for m in mine] == ts[::-1]
    assert [m["seq"] for m in mine] == list(range(12, 2, -1))
    assert [m["text"] for m in mine] == [f"m{i}" for i in range(9, -1, -1)]
    assert reply["has_more"] is False and reply["pin_count"] == 0


@FAMILIES
@pytest.mark.parametrize("limit", [1, 3, 5, 999])
def test_history_paging(posts, family, limit):
    ann, channel, ts = posts
    found = pages(ann, f"{family}.history", "messages", channel=channel, limit=limit)
    assert all(len(page) <= limit for page in found)
    flat = [m["ts"] for page in found for m in page if "subtype" not in m]
    assert flat == ts[::-1]


def test_history_paging_while_posts_come(posts):
    ann, channel, ts = posts
    first = ann.ok("channels.history", channel=channel, limit=4)
    ann.post(channel, "meanwhile")
    second = ann.ok("channels.history", channel=channel, limit=4,
                    cursor=first["response_metadata"]["next_cursor"])
    assert [m["ts"] for m in first["messages"] + second["messages"]] == ts[:1:-1]


@pytest.mark.parametrize("inclusive", [True, False])
def test_oldest_and_latest(posts, inclusive):
    ann, channel, ts = posts
    found = ann.history(channel, oldest=ts[2], latest=ts[7], inclusive=inclusive)
    wanted = ts[2:8] if inclusive else ts[3:7]
    assert [m["ts"] for m in found] == wanted[::-1]


def test_oldest_alone_and_latest_alone(posts):
    ann, channel, ts = posts
    assert [m["ts"] for m in ann.history(channel, oldest=ts[7])] == [ts[9], ts[8]]
    assert [m["ts"] for m in ann.history(channel, latest=ts[2])] == [ts[1], ts[0]]
    assert ann.history(channel, oldest=ts[9], latest=ts[0]) == []


@pytest.mark.parametrize("encoding", ["json", "form"])
def test_bounds_are_moments(room, encoding):
    """In the forms that programs produce: whole seconds, or as many decimals as a printed float has; also as JSON numbers, which are not
    documented and therefore not recorded."""
    ann, _, channel = room
    client = Client(ann.url, ann.token)
    ts = ann.post(channel)
    second = int(ts.split(".")[0])

    def found(**bounds):
        messages = client.ok("channels.history", encoding=encoding, channel=channel, **bounds)["messages"]
        return [m["ts"] for m in messages if "subtype" not in m]

    for before in (second, str(second), second - 0.5, str(second - 0.25), f"{second - 1}.1234567", 1, "1.0"):
        assert found(oldest=before) == [ts] and found(latest=before) == []
    for after in (second + 1, str(second + 1), second + 1.5, f"{second + 1}.12345678901234567890", "9999999999"):
        assert found(latest=after) == [ts] and found(oldest=after) == []
    assert found(oldest=f"{ts}9", inclusive=True) == [ts] and found(oldest=f"{ts}000") == []
    reply = client.ok("channels.replies", encoding=encoding, channel=channel, ts=ann.post(channel, "root"), oldest=second)
    assert [m["text"] for m in reply["messages"]] == ["root"]
    client.close()


def test_one_message(posts):
    ann, channel, ts = posts
    found = ann.history(channel, latest=ts[4], inclusive=True, limit=1)
    assert [m["ts"] for m in found] == [ts[4]]


def test_oldest_with_paging(posts):
    ann, channel, ts = posts
    """Pages begin at the newest or, as Slack's do, at `oldest`; each is newest first, and all is there once."""
    found = [[m["ts"] for m in page]
             for page in pages(ann, "channels.history", "messages", channel=channel, oldest=ts[1], limit=3)]
    assert all(page == sorted(page, reverse=True) for page in found)
    assert sorted(one for page in found for one in page) == ts[2:]


@pytest.mark.parametrize("limit", [-5, "many", 2.5])
def test_bad_history_limits(room, limit):
    assert "limit" in room[0].fails("invalid_limit", "channels.history", channel=room[2], limit=limit).messages


@pytest.mark.parametrize("value", ["abc", "1.2.3", "-1", "17000000000", "1700000000.", ".5", "1e9", "\u0661", [1]])
@pytest.mark.parametrize("name", ["oldest", "latest"])
@pytest.mark.parametrize("method", ["channels.history", "channels.replies"])
def test_bad_bounds(room, method, name, value):
    ann, _, channel = room
    ts = ann.post(channel)
    reply = ann.fails(f"invalid_ts_{name}", method, **{"channel": channel, "ts": ts, name: value})
    assert name in reply.messages


def test_deleted_messages_are_gone(posts):
    ann, channel, ts = posts
    for gone in ts[::2]:
        ann.ok("chat.delete", channel=channel, ts=gone)
    assert [m["ts"] for m in ann.history(channel)] == ts[1::2][::-1]
    found = pages(ann, "channels.history", "messages", channel=channel, limit=2)
    assert [m["ts"] for page in found for m in page if "subtype" not in m] == ts[1::2][::-1]


@FAMILIES
def test_replies(room, family):
    ann, bob, channel = room
    root = ann.post(channel, "root")
    children = [bob.post(channel, f"r{i}", thread_ts=root) for i in range(5)]
    messages = ann.ok(f"{family}.replies", channel=channel, ts=root)["messages"]
    assert [m["ts"] for m in messages] == [root, *children]
    parent = messages[0]
    assert (parent["reply_count"], parent["latest_reply"]) == (5, children[-1])
    assert parent["reply_users"] == [bob.id] and parent["reply_users_count"] == 1
    assert parent["thread_ts"] == root
    assert all(m["parent_user_id"] == ann.id and m["thread_ts"] == root for m in messages[1:])


@FAMILIES
def test_replies_paging(room, family):
    ann, _, channel = room
    root = ann.post(channel, "root")
    children = [ann.post(channel, f"r{i}", thread_ts=root) for i in range(7)]
    found = pages(ann, f"{family}.replies", "messages", channel=channel, ts=root, limit=3)
    flat = []
    for page in found:
        assert page[0]["ts"] == root or flat, "the root comes first"
        flat += [m["ts"] for m in page if m["ts"] != root]
    assert flat == children


def test_replies_within_bounds(room):
    ann, _, channel = room
    root = ann.post(channel)
    children = [ann.post(channel, "r", thread_ts=root) for _ in range(5)]
    messages = ann.ok("channels.replies", channel=channel, ts=root, oldest=children[0], latest=children[4])["messages"]
    assert [m["ts"] for m in messages if m["ts"] != root] == children[1:4]


def test_replies_of_a_message_without_any(room):
    ann, _, channel = room
    root = ann.post(channel)
    assert [m["ts"] for m in ann.ok("channels.replies", channel=channel, ts=root)["messages"]] == [root]


def test_replies_of_no_message(room):
    ann, _, channel = room
    ann.fails("thread_not_found", "channels.replies", channel=channel, ts="1700000000.000000")
    for ts in ("x", "1700000000", ""):
        ann.fails(("invalid_timestamp", "invalid_arguments", "missing_argument"), "channels.replies",
                  channel=channel, ts=ts)


def test_deleted_replies_leave_the_count(room):
    ann, _, channel = room
    root = ann.post(channel)
    first, second = ann.post(channel, "1", thread_ts=root), ann.post(channel, "2", thread_ts=root)
    ann.ok("chat.delete", channel=channel, ts=second)
    parent = ann.ok("channels.replies", channel=channel, ts=root)["messages"][0]
    assert (parent["reply_count"], parent["latest_reply"]) == (1, first)


@FAMILIES
def test_events_tell_everything_in_order(room, workspace, family):
    ann, bob, channel = room
    cid = workspace.user()
    post = ann.ok("chat.postMessage", channel=channel, text="one")
    reply = bob.ok("chat.postMessage", channel=channel, text="in thread", thread_ts=post["ts"])
    edit = ann.ok("chat.update", channel=channel, ts=post["ts"], text="two")
    cid.ok("channels.join", channel=channel)
    delete = bob.ok("chat.delete", channel=channel, ts=reply["ts"])
    cid.ok("channels.leave", channel=channel)
    got = ann.ok(f"{family}.events", channel=channel, after_seq=0)
    events = got["events"]
    assert [e["seq"] for e in events] == list(range(1, 9))
    assert got["through_seq"] == 8 and got["has_more"] is False and not got.get("truncated")
    assert [e["type"] for e in events] == ["member_joined_channel"] * 2 + ["message"] * 3 + [
        "member_joined_channel", "message", "member_left_channel"]
    assert (events[2]["ts"], events[2]["text"]) == (post["ts"], "two"), "the message as it now is"
    assert events[3]["subtype"] == "tombstone" and not events[3].get("text")
    assert events[4]["subtype"] == "message_changed" and events[4]["seq"] == edit["seq"]
    assert events[4]["message"]["text"] == "two"
    assert events[5]["user"] == cid.id and events[7]["user"] == cid.id
    assert events[6]["subtype"] == "message_deleted" and events[6]["deleted_ts"] == reply["ts"]
    assert events[6]["seq"] == delete["seq"]
    assert all(e["channel"] == channel for e in events)


def test_events_are_as_their_frames(room, workspace, sockets):
    """Events read to fill a gap equal the frames on the socket, except that a root may also report its replies."""
    ann, bob, channel = room
    bot = workspace.bot()
    ann.ok("channels.invite", channel=channel, users=[bot.id])
    socket = sockets(bob)
    root = bot.ok("chat.postMessage", channel=channel, text="framed", client_msg_id="k", blocks=[{"type": "divider"}],
                  attachments=[{"text": "a"}], metadata={"event_type": "e", "event_payload": {"a": 1}})
    socket.expect({"type": "message", "seq": root["seq"]})  # read back behind its replies it would tell of them
    ann.post(channel, "in thread", thread_ts=root["ts"])
    last = ann.ok("chat.postMessage", channel=channel, text="for all", thread_ts=root["ts"], reply_broadcast=True)
    socket.expect({"type": "message", "seq": last["seq"]})
    frames = socket.matching(lambda frame: frame.get("channel") == channel and frame["seq"] >= root["seq"])
    events = bob.ok("channels.events", channel=channel, after_seq=root["seq"] - 1)["events"]
    assert len(events) == len(frames) == 3
    for event, frame in zip(events, frames):
        assert {name: event.get(name) for name in frame} == frame


@pytest.mark.parametrize("limit", [1, 4, 1000])
def test_events_paging(posts, limit):
    ann, channel, _ = posts
    seen, after = [], 0
    while True:
        reply = ann.ok("channels.events", channel=channel, after_seq=after, limit=limit)
        seen += [event["seq"] for event in reply["events"]]
        assert reply["through_seq"] == seen[-1]
        after = reply["through_seq"]
        if not reply["has_more"]:
            break
    assert seen == list(range(1, 13))


def test_no_events_after_the_head(posts):
    ann, channel, _ = posts
    reply = ann.ok("channels.events", channel=channel, after_seq=12)
    assert reply["events"] == [] and reply["has_more"] is False and reply["through_seq"] == 12


@pytest.mark.parametrize("args, name, error", [
    ({}, "after_seq", ("invalid_arguments", "missing_argument")), ({"after_seq": -1}, "after_seq", "invalid_arguments"),
    ({"after_seq": "x"}, "after_seq", "invalid_arguments"), ({"after_seq": 1.5}, "after_seq", "invalid_arguments"),
    ({"after_seq": 10**30}, "after_seq", "invalid_arguments"), ({"after_seq": 0, "limit": -1}, "limit", "invalid_limit"),
])
def test_bad_event_arguments(room, args, name, error):
    assert name in room[0].fails(error, "channels.events", channel=room[2], **args).messages


def test_archive_is_an_event(room):
    ann, _, channel = room
    ann.ok("channels.archive", channel=channel)
    events = ann.ok("channels.events", channel=channel, after_seq=2)["events"]
    assert [(event["seq"], event["type"]) for event in events] == [(3, "channel_archive")]


def test_pages_of_the_largest_messages(room):
    """A hundred of them, the usual page, are more than a reply may have."""
    ann, _, channel = room
    large = {"text": "large", "attachments": [{"text": "x" * 1040000}], "reply_broadcast": True}
    root = ann.post(channel, "root")
    ts = [ann.post(channel, thread_ts=root, **large) for _ in range(70)]
    for method, args, wanted in (("channels.history", {}, ts[::-1]),
                                 ("channels.replies", {"ts": root}, ts)):
        found = pages(ann, method, "messages", channel=channel, **args)
        assert [m["ts"] for page in found for m in page if m["text"] == "large"] == wanted
    upward = pages(ann, "channels.history", "messages", channel=channel, oldest=root)
    assert [m["ts"] for page in upward for m in page[::-1]] == ts
    seqs, has_more = [0], True
    while has_more:
        reply = ann.ok("channels.events", channel=channel, after_seq=seqs[-1])
        seqs += [event["seq"] for event in reply["events"]]
        assert reply["through_seq"] == seqs[-1]
        has_more = reply["has_more"]
    assert seqs == list(range(74))


def test_events_that_retention_dropped(environment, posts, sockets):
    """Dropped events are reported as a gap; all stored and later ones are returned."""
    ann, channel, ts = posts
    drop_by_retention(environment, channel, 7)
    got = ann.ok("channels.events", channel=channel, after_seq=0)
    assert got["truncated"] is True and got["has_more"] is False and got["through_seq"] == 12
    assert [event["seq"] for event in got["events"]] == list(range(8, 13))
    assert not ann.ok("channels.events", channel=channel, after_seq=7).get("truncated")
    assert [message["ts"] for message in ann.history(channel)] == ts[:4:-1]
    socket = sockets(ann)
    seq = ann.ok("chat.postMessage", channel=channel, text="next")["seq"]
    assert socket.expect({"type": "message", "channel": channel})["seq"] == seq == 13


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_replies_whose_root_retention_dropped(environment, room, limit):
    """The remaining replies are returned, page by page."""
    ann, bob, channel = room
    root = ann.ok("chat.postMessage", channel=channel, text="root")
    ts = [bob.post(channel, thread_ts=root["ts"]) for _ in range(5)]
    drop_by_retention(environment, channel, root["seq"])
    found = pages(ann, "channels.replies", "messages", channel=channel, ts=root["ts"], limit=limit)
    assert [len(page) for page in found] == [limit] * (5 // limit) + [1] * (5 % limit > 0)
    assert [message["ts"] for page in found for message in page] == ts


def test_changes_of_what_retention_dropped(environment, posts):
    """Changes expire at the same age as messages. A later change reports that the message is deleted."""
    ann, channel, ts = posts
    ann.ok("chat.update", channel=channel, ts=ts[0], text="edited when it was young")
    last_dropped = ann.ok("chat.postMessage", channel=channel, text="as old")["seq"]
    late = ann.ok("chat.update", channel=channel, ts=ts[1], text="edited when it was old")
    kept = ann.ok("chat.postMessage", channel=channel, text="kept")
    drop_by_retention(environment, channel, last_dropped)
    got = ann.ok("channels.events", channel=channel, after_seq=last_dropped - 1)
    assert got["truncated"] is True
    assert [event["seq"] for event in got["events"]] == [late["seq"], kept["seq"]]
    gone = got["events"][0]
    assert gone["subtype"] == "message_deleted" and float(gone["deleted_ts"]) < float(ts[1]) and "message" not in gone
    with environment.database() as database:
        assert database.execute("SELECT array_agg(seq) FROM changes WHERE channel_id = %s", [channel]).fetchone()[0] == [late["seq"]]
