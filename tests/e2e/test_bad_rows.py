# SPDX-License-Identifier: Apache-2.0
"""A bad row, planted in Postgres as an upgrade or a restore may leave it, harms nobody else: it is put aside, counted and logged."""

import json
from datetime import datetime, timedelta, timezone

import pytest

from tests.support.command import run
from tests.support.environment import Environment, running
from tests.support.metrics import metric
from tests.support.phones import Phone, receiver
from tests.support.wait import wait_until


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    matrix, settings = receiver(tmp_path_factory.mktemp("gateway"))
    yield matrix, settings
    matrix.close()


@pytest.fixture(scope="module")
def environment(tmp_path_factory, recorder, gateway):
    yield from running(Environment(tmp_path_factory.mktemp("bad-rows"), 1, settings=gateway[1], recorder=recorder))


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
    assert "dnd_until" not in bob.ok("notifications.get")


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
