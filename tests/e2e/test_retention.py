# SPDX-License-Identifier: Apache-2.0
"""A month of messages is dropped in pieces: results of calls meanwhile, interruptions and resumption."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.command import run
from tests.support.retention import AGE, drop_by_retention, forget_copies, housekeep, make_events_older, month_piece, month_pieces, upkeep
from tests.support.wait import wait_until
from tests.support.workspace import Workspace, fresh_name

OLD, KEPT = 6, 3
EVERY_STEP = ("calm", "read", "move", "heads", "thread_members", "threads", "mentions", "changes", "detach", "drop", "end")


class Rooms:
    """Channels with OLD messages of a month that is dropped next, and KEPT younger ones; neither member has read any."""

    def __init__(self, environment, workspace, count=2, strategies=("sequence",)):
        self.environment = environment
        self.ann, self.bob = workspace.user(), workspace.user()
        self.channels = {}
        for number in range(count):
            channel = workspace.channel(self.ann, self.bob)
            self.ann.ok("channels.setStrategy", channel=channel, strategy=strategies[number % len(strategies)])
            self.channels[channel] = self.fill(channel)
        environment.wait_fanned_out(channel)
        with environment.database() as database:
            database.execute("UPDATE channel_members SET ts = 0, ord = 0, own = 0, mention_ts = 9000000000000000 WHERE user_id = ANY (%s)",
                             [[self.ann.id, self.bob.id]])
            for channel, ts in self.channels.items():
                make_events_older(database, channel, self.seq_of(database, channel, ts[OLD - 1]))
                database.execute("UPDATE mentions SET ts = ts - %s WHERE channel_id = %s AND ts <= %s", [AGE, channel, micros(ts[OLD - 1])])
        forget_copies(environment)

    def fill(self, channel):
        """Bob writes one message of each part; one more of the old ones is deleted, and each part mentions him once."""
        ts = []
        for number in range(OLD + KEPT):
            author = self.bob if number in (1, OLD) else self.ann
            ts.append(author.post(channel, f"<@{self.bob.id}>" if number in (0, OLD + 1) else f"text {number}"))
        self.ann.ok("chat.delete", channel=channel, ts=ts[2])
        self.ann.ok("chat.update", channel=channel, ts=ts[OLD - 1], text="edited")
        return ts

    def seq_of(self, database, channel, ts):
        return database.execute("SELECT seq FROM messages WHERE channel_id = %s AND ts = %s", [channel, micros(ts)]).fetchone()[0]

    def before(self, channel):
        return OLD - 2 + KEPT - 1, 2, ts_text(micros(self.channels[channel][0]) - AGE)

    def after(self, channel):
        return KEPT - 1, 1, self.channels[channel][OLD + 1]

    def shown(self, channel):
        """The state of the channel for Bob, which must be the same on every instance and in every call."""
        shown = set()
        for url in self.environment.urls:
            bob = self.bob.at(url)
            info = bob.ok("channels.info", channel=channel)["channel"]
            entry = next(e for e in bob.ok("unread.sync")["channels"] if e["id"] == channel)
            shown |= {(state["unread_count"], state["mention_count"], info["oldest_unread_ts"]) for state in (info, entry)}
        assert len(shown) == 1, shown
        return shown.pop()


def micros(ts):
    return int(ts.replace(".", ""))


def ts_text(us):
    return f"{us // 1_000_000:010}.{us % 1_000_000:06}"


def step_until(database, wanted):
    """Works on the month until the step `wanted` is next."""
    def is_next():
        month_piece(database, budget_ms=0)
        found = database.execute("SELECT (month_steps())[step] FROM month_expiring").fetchone()
        return found and found[0] == wanted
    wait_until(is_next, what=f"the step {wanted}")


def goes_on(database):
    return database.execute("SELECT 1 FROM month_expiring").fetchone() is not None


def test_counts_are_exact_after_every_piece(environment, workspace):
    """For each channel and member the month is either entirely unread or entirely read."""
    rooms = Rooms(environment, workspace, count=4, strategies=("sequence", "zset", "counter"))
    read = set()
    seen = []
    with upkeep(environment) as database:
        for step in month_pieces(database, budget_ms=0):
            seen.append(step)
            for channel in rooms.channels:
                shown = rooms.shown(channel)
                if shown == rooms.after(channel):
                    read.add(channel)
                else:
                    assert shown == rooms.before(channel) and channel not in read, step
    assert read == set(rooms.channels)
    assert sorted(set(seen)) == sorted(EVERY_STEP)
    done = run("unread", "verify", DATABASE_URL=environment.postgres.url, REDIS_URL=environment.redis.url)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_was_shown_before_is_told_to_have_changed(environment, workspace):
    rooms = Rooms(environment, workspace, count=1)
    (channel,) = rooms.channels
    token = rooms.bob.ok("unread.sync")["sync_token"]
    with upkeep(environment) as database:
        housekeep(database)
    delta = rooms.bob.ok("unread.sync", since=token)
    assert delta["full"] is False
    assert [(e["id"], e["unread_count"]) for e in delta["channels"]] == [(channel, KEPT - 1)]


@pytest.mark.parametrize("step", ["calm", "move", "heads", "detach", "drop", "end"])
def test_nobody_goes_back_into_a_month_that_is_being_dropped(environment, workspace, step):
    """Neither by markUnread nor by a mark; whichever step is next."""
    rooms = Rooms(environment, workspace, count=1)
    ((channel, ts),) = rooms.channels.items()
    old = ts_text(micros(ts[1]) - AGE)
    with upkeep(environment) as database:
        if step == "calm":
            month_piece(database, budget_ms=0)
        else:
            step_until(database, step)
        shown = rooms.bob.ok("channels.markUnread", channel=channel, ts=old)
        assert shown["unread_count"] == KEPT - 1
        rooms.bob.ok("channels.mark", channel=channel, ts=old)
        assert rooms.shown(channel) == rooms.after(channel)
        for _ in month_pieces(database, budget_ms=0):
            assert rooms.shown(channel) == rooms.after(channel)


def test_a_mark_unread_that_began_before_the_month_did(environment, workspace):
    """It holds its member's lock, and may have read that the month still exists: its cursor is moved after it."""
    rooms = Rooms(environment, workspace, count=1)
    ((channel, ts),) = rooms.channels.items()
    with upkeep(environment) as database, environment.database() as late, ThreadPoolExecutor(1) as pool:
        with late.transaction():
            late.execute("SELECT * FROM mark_unread(%s, %s, %s, %s, %s)",
                         [fresh_name("row"), workspace.id, rooms.bob.id, channel, micros(ts[1]) - AGE])
            work = pool.submit(housekeep, database)
            with environment.database() as watch:
                wait_until(lambda: watch.execute("SELECT (month_steps())[step] FROM month_expiring").fetchone() == ("move",), what="the moves")
        work.result()
    assert rooms.shown(channel) == rooms.after(channel)


def test_a_reply_to_what_is_being_dropped_leaves_no_thread(environment, workspace):
    rooms = Rooms(environment, workspace, count=1)
    ((channel, ts),) = rooms.channels.items()
    root = ts_text(micros(ts[0]) - AGE)
    with upkeep(environment) as database:
        step_until(database, "detach")
        rooms.bob.post(channel, "late", thread_ts=root)
        assert rooms.ann.ok("threads.list")["totals"]["unread_count"] == 1
        housekeep(database)
        left = database.execute("SELECT (SELECT count(*) FROM threads WHERE channel_id = %(c)s),"
                                " (SELECT count(*) FROM thread_members WHERE channel_id = %(c)s)", {"c": channel}).fetchone()
    assert left == (0, 0)
    assert rooms.ann.ok("threads.list")["totals"]["unread_count"] == 0


@pytest.mark.parametrize("step", ["read", "move", "detach"])
def test_a_month_that_somebody_else_drops(environment, workspace, step):
    """An instance of 0.2.0 drops it all at once."""
    rooms = Rooms(environment, workspace, count=1)
    (channel,) = rooms.channels
    with upkeep(environment) as database:
        step_until(database, step)
        month, = database.execute("SELECT month FROM month_expiring").fetchone()
        with database.transaction():
            database.execute("UPDATE channel_members m SET ord = e.ord, own = (SELECT max(p.author_posts) FROM messages p WHERE p.channel_id ="
                             " m.channel_id AND p.user_id = m.user_id AND p.ts <= e.ts) FROM (SELECT max(ts) AS ts, max(ord) AS ord FROM"
                             f" {month} WHERE channel_id = %(c)s) e WHERE m.channel_id = %(c)s AND m.ord < e.ord", {"c": channel})
            database.execute("DELETE FROM mentions WHERE channel_id = %s AND ts < %s", [channel, micros(rooms.channels[channel][OLD])])
            database.execute(f"DROP TABLE {month}")
        assert rooms.shown(channel) == rooms.after(channel)
        housekeep(database)
        assert not goes_on(database)
    assert rooms.shown(channel) == rooms.after(channel)


def test_one_that_is_kept_after_all(environment, workspace):
    """TIDINGS_RETENTION_DAYS was raised: the part that is not dropped yet stays."""
    rooms = Rooms(environment, workspace, count=1)
    (channel,) = rooms.channels
    with upkeep(environment) as database:
        step_until(database, "read")
        assert month_piece(database, days=36500)[0] == "none"
        assert not goes_on(database)
        assert rooms.shown(channel) == rooms.before(channel)
        housekeep(database)
    assert rooms.shown(channel) == rooms.after(channel)


def test_one_at_a_time_does_upkeep(environment, workspace):
    rooms = Rooms(environment, workspace, count=1)
    (channel,) = rooms.channels
    with environment.database() as database, upkeep(environment) as other:
        assert database.execute("SELECT state FROM month_expire(90, 40, true)").fetchone() == ("elsewhere",)
        assert database.execute("SELECT state FROM rows_expire('tickets', 0, 7, 40)").fetchone() == ("elsewhere",)
        assert rooms.shown(channel) == rooms.before(channel)
        other.execute("SELECT upkeep_end()")
        housekeep(database)
    assert rooms.shown(channel) == rooms.after(channel)


def test_an_instance_goes_on_where_it_was_killed(environment, extra_instance):
    """Killed while a member's row is locked, and while a long reader such as pg_dump holds messages. Steps that need neither continue."""
    url = environment.postgres.create_database("killed")
    assert run("migrate", DATABASE_URL=url).returncode == 0
    instance = extra_instance(database_url=url)
    workspace = Workspace([instance.url], environment.operator_token, environment.recorder)
    ann, bob = workspace.user(), workspace.user()
    channels = sorted(workspace.channel(ann, bob) for _ in range(2))
    posts = {channel: [ann.post(channel, client_msg_id=f"{channel}-{n}") for n in range(3)] for channel in channels}

    def unread():
        return [bob.ok("channels.info", channel=channel)["channel"]["unread_count"] for channel in channels]

    with environment.database(url) as database, environment.database(url) as holder:
        def step():
            return database.execute("SELECT (month_steps())[step], last_channel FROM month_expiring").fetchone()

        for channel, ts in posts.items():
            make_events_older(database, channel, database.execute(
                "SELECT seq FROM messages WHERE channel_id = %s AND ts = %s", [channel, micros(ts[1])]).fetchone()[0])
        database.execute("UPDATE channel_members SET ts = 0 WHERE user_id = %s", [bob.id])
        instance.kill()
        with holder.transaction():
            holder.execute("SELECT 1 FROM channel_members WHERE channel_id = %s FOR UPDATE", [channels[1]])
            instance.start()
            wait_until(lambda: (step() or "")[:1] == ("move",), what="the moves")
            assert unread()[1] == 3
            instance.kill()
        with holder.transaction():
            holder.execute("SELECT 1 FROM messages LIMIT 1")
            database.execute("UPDATE message_keys SET created = now() - interval '8 days'")
            instance.start()
            wait_until(lambda: step()[0] == "detach", what="what needs messages for itself")
            assert database.execute("SELECT count(*) FROM message_keys").fetchone()[0] == 0
            assert unread() == [1, 1]
            ann.post(channels[0])
            instance.kill()
        instance.start()
        wait_until(lambda: step() is None, what="the end of the month")
        wait_until(lambda: " is dropped: " in instance.log.read_text(), what="a line of the log")
        assert unread() == [2, 1]
        assert len(bob.ok("channels.history", channel=channels[1])["messages"]) == 1


def test_reactions_and_pins_go_with_their_messages(environment, workspace):
    ann, bob = workspace.users(2)
    channel = workspace.channel(ann, bob)
    old, kept = ann.ok("chat.postMessage", channel=channel, text="old"), ann.ok("chat.postMessage", channel=channel, text="kept")
    for message in (old, kept):
        for user in (ann, bob):
            user.ok("reactions.add", channel=channel, timestamp=message["ts"], name="tada")
        bob.ok("pins.add", channel=channel, timestamp=message["ts"])
    drop_by_retention(environment, channel, old["seq"])
    with environment.database() as database:
        housekeep(database)
        counts = [database.execute(f"SELECT count(*) FROM {table} WHERE channel_id = %s", [channel]).fetchone()[0]
                  for table in ("reactions", "reaction_counts", "pins")]
    assert counts == [2, 1, 1]
    assert [item["message"]["text"] for item in bob.ok("pins.list", channel=channel)["items"]] == ["kept"]
    assert [item["message"]["text"] for item in bob.ok("reactions.list")["items"]] == ["kept"]
    assert bob.ok("channels.history", channel=channel)["pin_count"] == 1
