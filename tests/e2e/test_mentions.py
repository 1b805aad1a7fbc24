# SPDX-License-Identifier: Apache-2.0
"""Mentions: what counts as one, for which users, until when."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.retention import AGE, housekeep, make_older
from tests.support.wait import wait_until

FAR_AHEAD = "9999999999.999999"
LONG_AGO = "1000000000.000000"


@pytest.fixture
def room(workspace):
    """(ann, bob, cid, channel): three members of a channel."""
    ann, bob, cid = workspace.users(3)
    return ann, bob, cid, workspace.channel(ann, bob, cid)


def at(member):
    return f"<@{member.id}>"


def mentions(member, channel):
    """The number that every reader gives: info, sync, a mark that changes nothing, and client.counts."""
    count = member.ok("channels.info", channel=channel)["channel"]["mention_count"]
    shown = {"mark": member.ok("channels.mark", channel=channel, ts=LONG_AGO)["mention_count"]}
    for method in ("unread.sync", "client.counts"):
        reply = member.ok(method)
        shown[method] = next(entry for entry in reply["channels"] if entry["id"] == channel)["mention_count"]
        shown[method, "total"] = reply["totals"]["mention_count"]
    assert set(shown.values()) == {count}, (count, shown)
    return count


def test_a_mention_counts_for_whom_it_names(room):
    ann, bob, cid, channel = room
    ann.post(channel, "nobody")
    ann.post(channel, f"{at(bob)} look")
    ann.post(channel, f"again <@{bob.id}|bob>, twice: {at(bob)}")
    assert [mentions(member, channel) for member in (ann, bob, cid)] == [0, 2, 0]
    assert bob.unread(channel) == 3


@pytest.mark.parametrize("text", ["<!channel>", "<!here>", "<!here|here>", "<!everyone> hi", "`<!channel>`", "<!group>"])
def test_the_whole_channel(room, text):
    ann, bob, cid, channel = room
    ann.post(channel, text)
    assert [mentions(member, channel) for member in (ann, bob, cid)] == [0, 1, 1]


@pytest.mark.parametrize("text", ["@channel", "<!channels>", "<@UNKNOWN0000>", "<@u123>", "<!>", "<@>", "&lt;!channel&gt;",
                                  "<#C00000001>", "<!channel", "!channel>", "<! channel>", "<!here^>", "<<!", "<@C0001>"])
def test_what_is_no_mention(room, text):
    ann, bob, _, channel = room
    assert ann.ok("chat.postMessage", channel=channel, text=text)["message"]["text"] == text
    assert mentions(bob, channel) == 0


def test_named_and_the_channel_count_once(room):
    ann, bob, cid, channel = room
    ann.post(channel, f"<!channel> and {at(bob)}, <!here>")
    ann.post(channel, f"<!here> {at(cid)}")
    assert [mentions(member, channel) for member in (ann, bob, cid)] == [0, 2, 2]


def test_ones_own_mention_of_oneself_does_not_count(room):
    ann, bob, _, channel = room
    ann.post(channel, f"{at(ann)} <!channel>")
    assert [mentions(ann, channel), mentions(bob, channel)] == [0, 1]


def test_only_members_count(room, workspace):
    ann, _, _, channel = room
    dan = workspace.user()
    ann.post(channel, f"{at(dan)} <!channel> come in")
    dan.ok("channels.join", channel=channel)
    assert mentions(dan, channel) == 0
    ann.post(channel, f"{at(dan)} welcome")
    assert mentions(dan, channel) == 1
    dan.ok("channels.leave", channel=channel)
    assert dan.ok("unread.sync")["totals"]["mention_count"] == 0
    ann.post(channel, f"{at(dan)} bye")
    dan.ok("channels.join", channel=channel)
    assert mentions(dan, channel) == 0


def test_another_workspace_is_not_reached(room, environment):
    ann, _, _, channel = room
    other = environment.workspace()
    stranger = other.user()
    there = other.channel(other.admin, stranger)
    ann.post(channel, at(stranger))
    assert mentions(stranger, there) == 0


def test_marks_take_mentions_away_and_bring_them_back(room):
    ann, bob, _, channel = room
    ts = [ann.post(channel, at(bob)) for _ in range(4)]
    reply = bob.ok("channels.mark", channel=channel, ts=ts[1])
    assert reply["mention_count"] == 2 == mentions(bob, channel)
    assert bob.ok("channels.mark", channel=channel, ts=FAR_AHEAD)["mention_count"] == 0
    assert bob.ok("channels.markUnread", channel=channel, ts=ts[1])["mention_count"] == 3 == mentions(bob, channel)


def test_a_delete_takes_its_mentions_along(room):
    ann, bob, cid, channel = room
    named, everybody = ann.post(channel, at(bob)), ann.post(channel, "<!channel>")
    ann.ok("chat.delete", channel=channel, ts=named)
    assert [mentions(bob, channel), mentions(cid, channel)] == [1, 1]
    ann.ok("chat.delete", channel=channel, ts=everybody)
    assert [mentions(bob, channel), mentions(cid, channel)] == [0, 0]


def test_an_edit_adds_and_removes_mentions(room):
    ann, bob, cid, channel = room
    ts = ann.post(channel, "nobody")
    ann.ok("chat.update", channel=channel, ts=ts, text=f"{at(bob)} and {at(cid)}")
    assert [mentions(bob, channel), mentions(cid, channel)] == [1, 1]
    ann.ok("chat.update", channel=channel, ts=ts, text=f"only {at(cid)}")
    assert [mentions(bob, channel), mentions(cid, channel)] == [0, 1]
    ann.ok("chat.update", channel=channel, ts=ts, text="<!everyone>")
    assert [mentions(bob, channel), mentions(cid, channel)] == [1, 1]
    ann.ok("chat.update", channel=channel, ts=ts, text="nobody after all")
    assert [mentions(bob, channel), mentions(cid, channel)] == [0, 0]


def test_an_edit_of_what_one_has_read_mentions_nobody_anew(room):
    ann, bob, _, channel = room
    ts = ann.post(channel, "nobody")
    bob.ok("channels.mark", channel=channel, ts=ts)
    ann.ok("chat.update", channel=channel, ts=ts, text=at(bob))
    assert mentions(bob, channel) == 0
    assert bob.ok("channels.markUnread", channel=channel, ts=ts)["mention_count"] == 1


def test_an_edit_keeps_the_mentions_of_the_part_that_it_leaves_alone(room):
    ann, bob, cid, channel = room
    blocks = [{"type": "section", "text": {"type": "mrkdwn", "text": at(cid)}}]
    ts = ann.post(channel, at(bob), blocks=blocks)
    ann.ok("chat.update", channel=channel, ts=ts, text="nobody")
    assert [mentions(bob, channel), mentions(cid, channel)] == [0, 1]
    ann.ok("chat.update", channel=channel, ts=ts, text=f"{at(bob)} {at(cid)}")
    ann.ok("chat.update", channel=channel, ts=ts, blocks=[])
    assert [mentions(bob, channel), mentions(cid, channel)] == [1, 1]
    ann.ok("chat.update", channel=channel, ts=ts, text="-")
    assert [mentions(bob, channel), mentions(cid, channel)] == [0, 0]


@pytest.mark.parametrize("elements", [
    lambda bob: [{"type": "user", "user_id": bob.id}],
    lambda bob: [{"type": "text", "text": "hey "}, {"type": "broadcast", "range": "here"}],
])
def test_mentions_in_rich_text(room, elements):
    ann, bob, _, channel = room
    inner = [{"type": "rich_text_section", "elements": elements(bob)}]
    ann.post(channel, "fallback", blocks=[{"type": "rich_text", "elements": inner}])
    assert mentions(bob, channel) == 1


def test_replies_mention_in_their_thread_unless_broadcast(room):
    ann, bob, _, channel = room
    root = ann.post(channel)
    ann.post(channel, at(bob), thread_ts=root)
    assert mentions(bob, channel) == 0
    ann.post(channel, at(bob), thread_ts=root, reply_broadcast=True)
    assert mentions(bob, channel) == 1


def test_mentions_by_socket_and_in_frames(room, sockets):
    ann, bob, _, channel = room
    socket, device = sockets(ann), sockets(bob)
    mention = {"type": "message", "channel": channel, "text": f"<!here> {at(bob)}"}
    first, second = (socket.request({"id": number, **mention}) for number in (1, 2))
    assert first["ok"] and second["ok"]
    assert mentions(bob, channel) == 2
    bob.ok("channels.mark", channel=channel, ts=first["ts"])
    frame = device.expect({"type": "channel_marked", "channel": channel})
    for name in ("mention_count", "mention_count_display", "num_mentions", "num_mentions_display"):
        assert frame[name] == 1, frame


def test_a_retry_mentions_once(room):
    ann, bob, _, channel = room
    for _ in range(3):
        ann.post(channel, at(bob), client_msg_id="once")
    assert mentions(bob, channel) == 1


def test_a_message_may_mention_so_many_and_no_more(room):
    ann, bob, _, channel = room
    ids = [f"<@U{number:08}>" for number in range(499)]
    ann.post(channel, " ".join(ids + [at(bob), at(bob), "<!channel>"]))
    assert mentions(bob, channel) == 1
    reply = ann.fails("invalid_arguments", "chat.postMessage", channel=channel, text=" ".join(ids + [at(bob), "<@U1234>"]))
    assert "text" in reply.messages and "500" in reply.messages
    blocks = [{"type": "section", "text": {"type": "mrkdwn", "text": " ".join(ids + [at(bob), "<@U1234>"])}}]
    assert "blocks" in ann.fails("invalid_arguments", "chat.postMessage", channel=channel, blocks=blocks).messages
    assert bob.unread(channel) == 1 and mentions(bob, channel) == 1


def test_mentions_in_parallel(room, workspace):
    """Simultaneous posts that mention each other's authors, and marks by all of them: no deadlock, no lost mention."""
    ann, bob, cid, channel = room
    second = workspace.channel(ann, bob, cid)
    people = [ann, bob, cid]

    def work(number):
        me, others = people[number], [p for p in people if p is not people[number]]
        client = me.at(workspace.urls[number % 2])
        for turn in range(15):
            where = channel if turn % 2 else second
            client.post(where, " ".join(map(at, others if turn % 3 else reversed(others))))
            client.ok("channels.mark", channel=where, ts=LONG_AGO)
        client.close()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    for member in people:
        totals = member.ok("unread.sync")["totals"]
        assert totals["mention_count"] == totals["unread_count"] == 30


def test_deltas_carry_mentions(room):
    ann, bob, _, channel = room
    ts = ann.post(channel, "x")
    token = bob.ok("unread.sync")["sync_token"]
    ann.ok("chat.update", channel=channel, ts=ts, text=at(bob))

    def told():
        delta = bob.ok("unread.sync", since=token)
        return [entry["mention_count"] for entry in delta["channels"]] == [1] and delta["totals"]["mention_count"] == 1

    wait_until(told, what="the delta with the mention")


def test_an_edit_of_mentions_is_told_to_native_sockets(room, sockets):
    ann, bob, cid, channel = room
    keep = ann.post(channel, "x")
    device, other, slack = sockets(bob, native=True), sockets(cid, native=True), sockets(bob)
    ann.ok("chat.update", channel=channel, ts=keep, text=at(bob))
    device.expect({"type": "unread_changed", "channel": channel, "mention_count": 1, "unread_count": 1})
    ann.ok("chat.update", channel=channel, ts=keep, text="nobody again")
    device.expect({"type": "unread_changed", "channel": channel, "mention_count": 0})
    last = ann.post(channel, "<!here>")
    ann.ok("chat.delete", channel=channel, ts=last)
    device.expect(lambda frame: frame["type"] == "unread_changed" and len(device.matching({"type": "unread_changed"})) == 3)
    other.expect({"type": "unread_changed", "channel": channel, "mention_count": 0, "unread_count": 1})
    assert len(other.matching({"type": "unread_changed"})) == 1, "edits changed nothing for cid"
    assert not slack.matching({"type": "unread_changed"})


@pytest.mark.parametrize("args", [{"link_names": True}, {"link_names": "1", "encoding": "form"}, {"parse": "full"}])
def test_names_are_linked_when_asked_for(room, args):
    ann, bob, cid, channel = room
    text = f"@{bob.name}, see @{cid.name}. @nobody-of-that-name x@{bob.name} <https://x/@{cid.name}> \u00e9@{bob.name}"
    message = ann.ok("chat.postMessage", channel=channel, text=text, **args)["message"]
    assert message["text"] == text.replace(f"@{bob.name},", f"{at(bob)},").replace(f" @{cid.name}.", f" {at(cid)}.").replace(
        f"\u00e9@{bob.name}", f"\u00e9{at(bob)}")
    assert ann.history(channel)[0]["text"] == message["text"]
    assert [mentions(member, channel) for member in (ann, bob, cid)] == [0, 1, 1]


@pytest.mark.parametrize("spelling", [
    "@{}\uff0c", "@{}\u3002", "\uff08@{}\uff09", "\u300c@{}\u300d", "@{}\u2019s", "@{}\u2026", "\u201c@{}\u201d", "\u2018@{}\u2019",
    "\u00ab@{}\u00bb", "@{}\u2014yes", "@{}\uff01", "@{}\uff1f", "@{}\uff1a", "@{}\u3001", "@{}\u060c", "@{}\u0964", "@{}\u00a0x",
    "@{}\u3000x", "@{}\u200b", "@{}\U0001f389"])
def test_a_name_ends_before_punctuation_of_any_script(room, spelling):
    ann, bob, _, channel = room
    text = f"{spelling.format(bob.name)} {spelling.format('here')}"
    linked = text.replace(f"@{bob.name}", at(bob)).replace("@here", "<!here>")
    assert ann.ok("chat.postMessage", channel=channel, text=text, link_names=True)["message"]["text"] == linked
    assert mentions(bob, channel) == 1


@pytest.mark.parametrize("name", ["\u00e9lodie", "\u674e\u56db", "\u0627\u062d\u0645\u062f", "\u0939\u093f\u0928\u094d\u0926\u0940", "bob-2.x"])
def test_names_of_any_script_are_linked(room, workspace, name):
    ann, *_, channel = room
    member = workspace.user(name)
    ann.ok("channels.invite", channel=channel, users=member.id)
    text = f"\uff08@{name}\uff09 @{name}x"
    assert ann.ok("chat.postMessage", channel=channel, text=text, link_names=True)["message"]["text"] == f"\uff08{at(member)}\uff09 @{name}x"


def test_names_stay_text_when_not_asked_for(room):
    ann, bob, _, channel = room
    for args in ({}, {"link_names": False}, {"parse": "none"}):
        ann.post(channel, f"@{bob.name} @channel", **args)
    assert mentions(bob, channel) == 0


def test_the_channel_by_name(room):
    ann, bob, _, channel = room
    ts = ann.post(channel, "@here, @channel and @everyone", link_names=True)
    assert ann.history(channel)[0]["text"] == "<!here>, <!channel> and <!everyone>"
    assert mentions(bob, channel) == 1
    reply = ann.ok("chat.update", channel=channel, ts=ts, text=f"@{bob.name} alone", link_names=True)
    assert reply["text"] == f"{at(bob)} alone" == reply["message"]["text"]
    assert mentions(bob, channel) == 1


def test_a_retry_with_names_is_the_same_message(room, workspace):
    ann, _, _, channel = room
    args = {"channel": channel, "text": "@later-user hello", "link_names": True, "client_msg_id": "k"}
    first = ann.ok("chat.postMessage", **args)
    workspace.user("later-user")
    again = ann.ok("chat.postMessage", **args)
    assert again["is_duplicate"] and again["ts"] == first["ts"] and again["message"]["text"] == "@later-user hello"
    other = dict(args, client_msg_id="k2")
    assert ann.ok("chat.postMessage", **other)["message"]["text"].startswith("<@U")


def test_names_of_others_workspaces_and_inactive_users_stay_text(room, workspace, environment):
    ann, bob, cid, channel = room
    stranger = environment.workspace().user("a-stranger")
    workspace.admin.ok("admin.users.setActive", user_id=cid.id, active=False)
    text = f"@{stranger.name} @{cid.name} @{bob.name.upper()}"
    assert ann.ok("chat.postMessage", channel=channel, text=text, link_names=True)["message"]["text"] == text


@pytest.mark.parametrize("how", ["post", "edit"])
def test_posts_wait_for_members_in_the_order_of_marks(room, environment, how):
    """A batch of marks locks its members by id. Who is mentioned is locked in that order too, or they would wait for each other."""
    low, middle, high = sorted(room[:3], key=lambda member: member.id)
    channel = room[3]
    ts = high.post(channel, "x")
    text = f"{at(middle)} {at(low)}" if how == "edit" else at(low)
    lock = "SELECT 1 FROM channel_members WHERE channel_id = %s AND user_id = %s FOR NO KEY UPDATE"
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE %s"
    client = high.at(high.url)
    with environment.database() as marks, environment.database() as watch, ThreadPoolExecutor(1) as pool:
        with marks.transaction():
            marks.execute(lock, (channel, low.id))
            args = {"channel": channel, "text": text, **({"ts": ts} if how == "edit" else {})}
            reply = pool.submit(client.call, "chat.update" if how == "edit" else "chat.postMessage", **args)
            name = "%message_update%" if how == "edit" else "%post_batch%"
            wait_until(lambda: watch.execute(waiting, (name,)).fetchone()[0], what="the post waits")
            marks.execute("SET LOCAL lock_timeout = '100ms'")
            for member in (middle, high):
                marks.execute(lock, (channel, member.id))
        assert reply.result()["ok"], reply.result()
    client.close()
    assert mentions(low, channel) == 1


def test_in_a_thread_that_one_followed_while_the_reply_was_under_way(room, environment):
    """It is not counted as the reply that made its reader follow, and does not mark earlier replies as read."""
    ann, bob, cid, channel = room
    reply = {"type": "message", "channel": channel, "thread_ts": ann.post(channel, "root")}
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%post_batch%'"
    with environment.database() as database, environment.database() as watch, bob.socket() as socket:
        with database.transaction():
            database.execute("SELECT channel_cool(%s)", [channel])
            database.execute("SELECT 1 FROM channels WHERE id = %s FOR NO KEY UPDATE", [channel])
            socket.send_at_once({"id": 1, "text": "one", **reply}, {"id": 2, "text": f"two {at(cid)}", **reply})
            wait_until(lambda: watch.execute(waiting).fetchone()[0], what="the replies wait")
            cid.ok("threads.follow", channel=channel, thread_ts=reply["thread_ts"])
        for number in (1, 2):
            assert socket.expect({"reply_to": number})["ok"] is True
    assert cid.ok("threads.list")["totals"] == {"has_unreads": True, "unread_count": 2, "mention_count": 1}


def test_mentions_go_with_the_messages_that_retention_drops(room, environment):
    ann, bob, _, channel = room
    ts = ann.post(channel, f"<!here> {at(bob)}")
    ann.post(channel, at(bob))
    micros = int(ts.replace(".", ""))
    seq = next(message["seq"] for message in ann.history(channel) if message["ts"] == ts)
    with environment.database() as database:
        make_older(database, channel, seq, seq)
        database.execute("UPDATE mentions SET ts = ts - %s WHERE channel_id = %s AND ts = %s", [AGE, channel, micros])
        database.execute("UPDATE channel_members SET ts = 0 WHERE channel_id = %s AND user_id = %s", [channel, bob.id])
        assert mentions(bob, channel) == 2
        housekeep(database)
        assert mentions(bob, channel) == 1
        left = database.execute("SELECT count(*) FROM mentions WHERE channel_id = %s", [channel]).fetchone()[0]
    assert left == 1, "the rows of what was dropped are gone"
