# SPDX-License-Identifier: Apache-2.0
"""A bad row, planted in Postgres as an upgrade or a restore may leave it, harms nobody else: it is put aside, counted and logged."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

import pytest

from tests.support.command import run
from tests.support.environment import Environment, running
from tests.support.events_url import EventsUrl
from tests.support.metrics import metric
from tests.support.phones import SECRET_KEY, Phone, receiver
from tests.support.retention import month_piece, upkeep
from tests.support.wait import wait_until

OUT_OF_RANGE = 2**63 - 1


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    matrix, settings = receiver(tmp_path_factory.mktemp("gateway"))
    yield matrix, settings
    matrix.close()


@pytest.fixture(scope="module")
def environment(tmp_path_factory, recorder, gateway):
    settings = {**gateway[1], "TIDINGS_EVENTS_API_RETRY_MS": "200"}
    yield from running(Environment(tmp_path_factory.mktemp("bad-rows"), 1, settings=settings, recorder=recorder))


@pytest.fixture
def aside(environment):
    """Waits until a row was put aside, and the log names it with all these words."""
    before = metric(environment.instances[0], "tidings_rows_aside_total")

    def wait(*words):
        wait_until(lambda: metric(environment.instances[0], "tidings_rows_aside_total") > before, what="a row put aside")
        wait_until(lambda: any("put aside" in line and all(word in line for word in words)
                               for line in environment.instances[0].log.read_text().splitlines()), what=f"a log line with {words}")
    return wait


@pytest.fixture
def plant(environment):
    def run_sql(sql, *values):
        with environment.database() as database:
            assert database.execute(sql, values).rowcount > 0
    return run_sql


@pytest.fixture
def trio(workspace, gateway):
    """Ann, who posts; Bob, whose row will be bad; Cid, who must not notice. Both have phones."""
    ann, bob, cid = workspace.users(3)
    return ann, bob, cid, workspace.channel(ann, bob, cid), Phone(workspace, bob, gateway[0]), Phone(workspace, cid, gateway[0])


def around(now):
    return {"dnd_start": (now - timedelta(hours=1)).strftime("%H:%M"), "dnd_end": (now + timedelta(hours=1)).strftime("%H:%M")}


def test_a_time_zone_that_postgres_no_longer_knows(trio, plant, aside):
    """Bob's quiet hours count as in UTC, and he is told so."""
    ann, bob, cid, channel, of_bob, of_cid = trio
    bob.ok("notifications.set", tz="Pacific/Tongatapu", **around(datetime.now(timezone.utc)))
    assert "dnd_until" not in bob.ok("notifications.get")
    plant("UPDATE notification_settings SET tz = 'US/Gone' WHERE user_id = %s", bob.id)
    ann.post(channel, f"<@{bob.id}> <@{cid.id}> hello")
    of_cid.wait_texts(f"@{bob.name} @{cid.name} hello")
    of_bob.wait_badge(1)
    assert of_bob.texts == []
    aside(bob.id, "US/Gone")
    reply = bob.ok("notifications.get")
    assert (reply["tz"], reply["tz_unknown"]) == ("US/Gone", True) and reply["dnd_until"] > 0
    assert cid.ok("dnd.info", user=bob.id)["dnd_enabled"] is True
    assert "tz_unknown" not in cid.ok("notifications.get")
    assert bob.ok("notifications.set", level="all")["tz_unknown"] is True
    assert "tz_unknown" not in bob.ok("notifications.set", tz="Europe/Zurich")


@pytest.mark.parametrize("start, end", [("25:00", "07:00"), ("22:00", "morning"), ("22:00", None)])
def test_quiet_hours_that_are_no_times(trio, plant, aside, start, end):
    ann, bob, cid, channel, of_bob, of_cid = trio
    bob.ok("notifications.set", **around(datetime.now(timezone.utc)))
    plant("UPDATE notification_settings SET dnd_start = %s, dnd_end = %s WHERE user_id = %s", start, end, bob.id)
    ann.post(channel, f"<@{bob.id}> <@{cid.id}> hello")
    for phone in (of_bob, of_cid):
        phone.wait_texts(f"@{bob.name} @{cid.name} hello")
    aside(bob.id, start)
    assert cid.ok("dnd.info", user=bob.id)["dnd_enabled"] is False
    reply = bob.ok("notifications.get")
    assert "dnd_until" not in reply and (reply["dnd_start"], reply["dnd_end"]) == ("", "")


def dead(environment):
    done = run("push", "dead", "list", DATABASE_URL=environment.postgres.url, REDIS_URL=environment.redis.url)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_message_that_cannot_be_read_is_a_dead_letter(environment, trio, plant, aside):
    """Bob's other conversations are still pushed, and Cid's."""
    ann, bob, cid, channel, of_bob, of_cid = trio
    for user in (bob, cid):
        user.ok("dnd.setSnooze", num_minutes=10)
    ts = ann.post(channel, f"<@{bob.id}> <@{cid.id}> bad")
    direct = ann.ok("conversations.open", users=bob.id)["channel"]["id"]
    ann.post(direct, "good")
    of_bob.wait_badge(2)
    of_cid.wait_badge(1)
    plant("UPDATE messages SET extra = '{' WHERE channel_id = %s", channel)
    bob.ok("dnd.endSnooze")
    aside(bob.id, "push")
    cid.ok("dnd.endSnooze")
    other = ann.ok("conversations.open", users=cid.id)["channel"]["id"]
    ann.post(other, "hello")
    of_cid.wait_texts("hello")
    of_bob.wait_texts("good")
    letters = [letter for letter in dead(environment) if letter["user"] == bob.id]
    assert [(letter["channel"], letter["ts"]) for letter in letters] == [(channel, ts)]
    assert "json" in letters[0]["reason"]


def test_a_badge_that_cannot_be_counted(workspace, trio, plant, aside):
    """Bob's turn is tried again, ever later, until his row is right; Cid gets his push at once."""
    ann, bob, cid, channel, of_bob, of_cid = trio
    bob.ok("notifications.set", badge="all")
    own = workspace.channel(bob)
    plant("UPDATE channel_members SET ord = -9223372036854775808 WHERE channel_id = %s", own)
    ann.post(channel, f"<@{bob.id}> <@{cid.id}> hello")
    of_cid.wait_texts(f"@{bob.name} @{cid.name} hello")
    aside(f"{bob.id}/phone/phone", "out of range")
    assert of_bob.texts == []
    plant("UPDATE channel_members SET ord = 0 WHERE channel_id = %s", own)
    of_bob.wait_texts(f"@{bob.name} @{cid.name} hello")


def test_a_count_that_cannot_be_computed(environment, workspace, trio, plant, aside):
    """An empty Redis is filled again with all other counts."""
    ann, bob, cid, channel, _, _ = trio
    ann.ok("channels.setStrategy", channel=channel, strategy="counter")
    own = workspace.channel(bob)
    ann.post(channel)
    plant("UPDATE channel_members SET ord = -9223372036854775808 WHERE channel_id = %s", own)
    environment.redis.cli("FLUSHALL")
    wait_until(lambda: environment.redis.cli("EXISTS", "unread-built").strip() == "1", what="Redis built")
    aside(f"counts of {bob.id} in {own}")
    assert environment.redis.cli("HGET", f"unread:{{{cid.id}}}:{channel}", "n").strip() == "1"
    assert cid.unread(channel) == 1
    plant("UPDATE channel_members SET ord = 0 WHERE channel_id = %s", own)


def test_an_event_that_cannot_be_stored(workspace, trio, plant, aside):
    """Events that are stored together with it still are."""
    ann, bob, cid, channel, of_bob, of_cid = trio
    bob.ok("notifications.set", level="all")
    ann.post(channel, f"<@{cid.id}> hello")
    of_cid.wait_texts(f"@{cid.name} hello")  # the instance knows of the workspace's devices, and ignores its events no longer
    of_bob.wait_texts(f"@{cid.name} hello")
    good = [workspace.channel(ann, cid) for _ in range(10)]
    bad = [workspace.channel(ann, bob) for _ in range(10)]
    plant("UPDATE channels SET member_count = -1 WHERE id = ANY (%s)", bad)
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda channel: ann.post(channel, f"<@{cid.id}> hello"), [one for pair in zip(good, bad) for one in pair]))
    wait_until(lambda: len(of_cid.texts) == 11, what="all pushes of Cid")
    aside("event 3 of channel " + bad[0])
    assert len(of_bob.texts) == 1


def test_fields_of_a_push_app_that_cannot_be_read(environment, workspace, trio, gateway, plant, aside):
    """A dead letter of its devices; a silent push is not sent."""
    ann, bob, cid, channel, of_bob, of_cid = trio
    other = Phone(workspace, bob, gateway[0], name="other", device_id="other")
    plant("UPDATE push_apps SET fields = jsonb_build_object('x', (SELECT jsonb_agg(n) FROM generate_series(1, 200) n))"
          " WHERE name = 'other' AND workspace_id = %s", workspace.id)
    ann.post(channel, f"<@{bob.id}> <@{cid.id}> hello")
    for phone in (of_bob, of_cid):
        phone.wait_texts(f"@{bob.name} @{cid.name} hello")
    aside(f"{bob.id}/other/other")
    letter = wait_until(lambda: [one for one in dead(environment) if one["user"] == bob.id], what="a dead letter")[0]
    assert (letter["app"], letter["channel"]) == ("other", channel) and "cannot be read" in letter["reason"]
    assert other.texts == []


def test_an_outcome_of_a_push_that_cannot_be_stored(environment, workspace, trio, gateway, plant, aside):
    """Those stored together with it are."""
    ann, bob, cid, channel, *_ = trio
    for user in (bob, cid):
        Phone(workspace, user, gateway[0], name="other", device_id="other")
    plant("UPDATE push_apps SET fields = jsonb_build_object('x', (SELECT jsonb_agg(n) FROM generate_series(1, 200) n))"
          " WHERE name = 'other' AND workspace_id = %s", workspace.id)
    plant("UPDATE push_turns SET badge = 77, due_at = now(), tries = CASE WHEN user_id = %s THEN %s ELSE 0 END"
          " WHERE app = 'other' AND workspace_id = %s", bob.id, OUT_OF_RANGE, workspace.id)
    aside("outcome of a push", bob.id)
    with environment.database() as database:
        wait_until(lambda: database.execute("SELECT FROM push_turns WHERE leased_at IS NULL AND tries = 1 AND user_id = %s", [cid.id]).rowcount,
                   what="the outcome of Cid's push")


@pytest.fixture
def app(workspace):
    """Makes apps with an events_url, and a channel of their bots, where Ann posts."""
    servers = []

    def make(verified=True):
        server, bot, ann = EventsUrl(), workspace.bot(), workspace.user()
        servers.append(server)
        made = workspace.admin.ok("admin.apps.create", name=f"app {len(servers)}", bot_user_id=bot.id, events_url=server.url)
        if verified:
            wait_until(lambda: server.challenges, what="a challenge")
        return SimpleNamespace(id=made["app"]["id"], server=server, ann=ann, channel=workspace.channel(ann, bot))
    yield make
    for server in servers:
        server.close()


def is_served(app, text="hello"):
    """Whether everything posted in the app's channel arrives."""
    texts = [f"{text} {number}" for number in range(5)]
    for one in texts:
        app.ann.post(app.channel, one)
    wait_until(lambda: set(texts) <= set(app.server.texts()), what="the events of the other app")


@pytest.mark.parametrize("column, value", [("signing_secret", "repeat('x', 5000)"), ("events_url", "'http://127.0.0.1/' || repeat('x', 9000000)")])
def test_an_app_to_which_no_request_can_be_made(app, plant, aside, column, value):
    bad, good = app(), app()
    plant(f"UPDATE apps SET {column} = {value} WHERE id = %s", bad.id)
    for number in range(5):
        bad.ann.post(bad.channel, f"lost {number}")
    is_served(good)
    aside(bad.id)
    assert not any("lost" in text for text in bad.server.texts() if text)


def test_an_events_url_that_is_none(environment, app, plant):
    """Its events end like those of any URL that does not answer."""
    bad, good = app(), app()
    plant("UPDATE apps SET events_url = '::::' WHERE id = %s", bad.id)
    bad.ann.post(bad.channel, "lost")
    is_served(good)
    with environment.database() as database:
        wait_until(lambda: database.execute("SELECT FROM app_events WHERE app_id = %s AND frame IS NULL AND reason <> ''", [bad.id]).rowcount,
                   what="the end of the event")


def test_a_count_of_tries_that_is_out_of_range(environment, app, plant):
    """Of a queued event, and of one of an app in Socket Mode."""
    bad, good = app(), app()
    plant("INSERT INTO app_events (app_id, channel_id, seq, happened, frame, tries) VALUES (%s, %s, 1000, 0, '{}', %s)",
          bad.id, bad.channel, OUT_OF_RANGE)
    is_served(good)
    plant("UPDATE apps SET events_url = NULL WHERE id = ANY (%s)", [bad.id, good.id])
    for one, tries in ((bad, OUT_OF_RANGE), (good, 0)):
        plant("INSERT INTO app_events (app_id, channel_id, seq, happened, frame, tries) VALUES (%s, %s, 2000, 0, '{}', %s)",
              one.id, one.channel, tries)
    with environment.database() as database:
        taken = database.execute("SELECT app, frame FROM link_events_take(%s, '{9,9}', 1000, 4)", [[bad.id, good.id]]).fetchall()
    assert (good.id, "{}") in taken and (bad.id, None) in taken


def test_an_outcome_of_a_request_that_cannot_be_stored(app, plant, aside):
    """The others are, and the Events API goes on."""
    good, bad = app(), app()
    plant("UPDATE apps SET url_verified = false, verify_at = now(), verify_tries = -5000 WHERE id = %s", bad.id)
    is_served(good)
    aside("outcome of a request", bad.id)
    is_served(good, "again")


def test_a_time_of_creation_that_is_none(environment, workspace, app, plant):
    """An app of another workspace is still noticed."""
    bad = app()
    plant("UPDATE apps SET created = %s, events_url = NULL WHERE id = %s", OUT_OF_RANGE, bad.id)
    other = environment.workspace()
    server, ann, bot = EventsUrl(), other.user(), other.bot()
    other.admin.ok("admin.apps.create", name="an app", bot_user_id=bot.id, events_url=server.url)
    wait_until(lambda: server.challenges, what="a challenge")
    is_served(SimpleNamespace(server=server, ann=ann, channel=other.channel(ann, bot)))
    server.close()


def test_a_channel_of_no_known_type(workspace, trio, plant):
    """Counts as private. Its own members can go on, too."""
    ann, bob, cid, channel, _, of_cid = trio
    bad = workspace.channel(ann, bob)
    plant("UPDATE channels SET type = 9 WHERE id = %s", bad)
    ts = ann.post(bad, "hello")
    bob.ok("conversations.mark", channel=bad, ts=ts)
    bob.ok("unread.sync")
    ann.post(channel, f"<@{cid.id}> hello")
    of_cid.wait_texts(f"@{cid.name} hello")


def test_a_channel_whose_strategy_cannot_be_changed(environment, workspace, plant):
    ann, bob = workspace.users(2)
    bad, good = sorted(workspace.channel(ann, bob) for _ in range(2))
    plant("UPDATE channels SET strategy_in_use = 3, generation = CASE WHEN id = %s THEN %s ELSE 0 END WHERE id = ANY (%s)", bad, OUT_OF_RANGE,
          [bad, good])
    with environment.database() as database:
        database.execute("SELECT strategies_auto('bad-row', '{100000,100000,100000}', '', 100000)")
        assert database.execute("SELECT strategy_in_use = 3 FROM channels WHERE id = ANY (%s) ORDER BY id", [[bad, good]]).fetchall() == [
            (True,), (False,)]


def test_rows_that_retention_cannot_understand(environment, workspace, plant):
    """A part of messages that is no month, and a member with more singles than there are messages."""
    ann, bob = workspace.users(2)
    channel = workspace.channel(ann, bob)
    with upkeep(environment) as database:
        database.execute("CREATE TABLE messages_attic (LIKE messages INCLUDING ALL);"
                         " ALTER TABLE messages ATTACH PARTITION messages_attic FOR VALUES FROM (0) TO (1000)")
        database.execute("SELECT message_partition_make('2020-01-15')")
        database.execute("INSERT INTO messages (channel_id, ts, seq, ord, user_id, counted, body) VALUES (%s, 1579046400000000, 1, 1, %s, true, '')",
                         [channel, ann.id])
        plant("UPDATE channel_members SET ts = 1, ord = 0, singles = 2147483647 WHERE channel_id = %s AND user_id = %s", channel, bob.id)
        steps = []
        while not steps or steps[-1] != "none":
            steps.append(wait_until(lambda: month_piece(database), what="a piece")[0])
        assert database.execute("SELECT to_regclass('messages_2020_01'), to_regclass('messages_attic')").fetchone() == (None, "messages_attic")
        database.execute("DROP TABLE messages_attic")


def test_secrets_that_cannot_be_read_are_left(environment, workspace, trio, plant):
    """Rotation goes on with the rest."""
    _, bob, cid, *_ = trio
    plant("UPDATE devices SET address = 'garbage' WHERE user_id = %s", bob.id)
    keys = ",".join(("11" * 32, SECRET_KEY))
    done = run("secrets", "rotate", DATABASE_URL=environment.postgres.url, REDIS_URL=environment.redis.url, SECRET_KEY=keys)
    assert done.returncode == 1 and bob.id in done.stderr
    with environment.database() as database:
        stale = database.execute("SELECT user_id FROM devices WHERE address NOT LIKE (SELECT left(address, 17) || '%%' FROM devices WHERE user_id = %s)"
                                 " AND user_id = ANY (%s)", [cid.id, [bob.id, cid.id]]).fetchall()
    assert stale == [(bob.id,)]


def test_outbox_rows_that_cannot_be_read_back(environment, trio, plant):
    """They are given up, and those beside them are relayed."""
    ann, bob, cid, channel, _, of_cid = trio
    rows = {
        "null": ([channel, None], [None, 1], [None, None], None, [None, "post"], [None, None]),
        "lengths": ([channel], [1, 2, 3], [], None, ["mark"], []),
        "overflow": ([channel], [OUT_OF_RANGE], [1], [9], ["post"], [ann.id]),
        "many": ([channel], [1], [1], [2_000_000_000], ["post"], [ann.id]),
        "stranger": ([channel], [0], [0], None, ["mark"], ["UNOBODY"]),
        "thread": ([channel, "CNOWHERE"], [0, 0], [1, -1], None, ["thread_mark", "thread_follow"], ["UNOBODY", bob.id]),
        "unknown": ([channel], [7], [1], None, ["what"], [bob.id]),
        "good": ([channel], [0], [0], None, ["mark"], [bob.id]),
    }
    for name, row in rows.items():
        plant("INSERT INTO outbox (id, channels, seqs, tss, counts, kinds, users, created) VALUES (%s, %s, %s, %s, %s, %s, %s, now() - interval '1 minute')",
              f"bad-rows-{name}", *row)
    ann.post(channel, f"<@{cid.id}> hello")
    of_cid.wait_texts(f"@{cid.name} hello")
    with environment.database() as database:
        wait_until(lambda: database.execute("SELECT FROM outbox WHERE id LIKE 'bad-rows-%%' AND NOT done").rowcount == 0, what="all rows done")
