# SPDX-License-Identifier: Apache-2.0
"""Instances with wrong clocks: Postgres' clock is used for all."""
import pytest

from tests.faults.load import Load
from tests.support.skew import skewed
from tests.support.wait import wait_until
from tests.support.workspace import Workspace

HOUR_S = 3600


@pytest.fixture(params=[HOUR_S, -HOUR_S], ids=["an hour ahead", "an hour behind"])
def wrong(parts, request, tmp_path):
    instance = parts.instance(start=False)
    instance.environment.update(skewed(tmp_path, request.param))
    instance.start()
    yield instance
    assert instance.stop() == 0


def test_a_load_on_a_clock_that_is_wrong(parts, wrong):
    with Load(parts, urls=[wrong.url, parts.urls[0]]) as load:
        load.wait_acked(100)
        load.finish()
        assert load.failed() == []


def test_tokens_end_when_postgres_says_so(parts, wrong):
    workspace = Workspace([parts.urls[0]], parts.operator_token)
    [ann] = workspace.users(1)

    def client(seconds):
        made = workspace.admin.ok("admin.tokens.create", user_id=ann.id, expires_in=seconds)
        return parts.client(made["token"], wrong.url)

    long, short = client(600), client(1)
    assert long.ok("auth.test")["user_id"] == ann.id
    wait_until(lambda: short.call("auth.test").get("error") == "token_expired", what="the end of a token")
    assert long.ok("auth.test")["user_id"] == ann.id


# Days behind which a month more is not the next month's same day, and the ends of years and days.
MOMENTS = ["2026-11-30 23:59:59.999999Z", "2026-12-01Z", "2026-12-31 23:59:59.999999Z", "2027-01-01Z", "2027-01-29 12:00Z",
           "2027-01-31 12:00Z", "2027-12-31 12:00Z", "2028-02-29 12:00Z", "2027-08-31 23:59:59Z"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_this_month_and_the_next_two_are_always_there(parts, moment):
    """Whenever it is that they are made."""
    year, month = map(int, moment.split("-")[:2])
    wanted = {f"messages_{year + (month - 1 + more) // 12}_{(month - 1 + more) % 12 + 1:02}" for more in range(3)}
    with parts.database() as database, database.transaction(force_rollback=True):
        for name, in database.execute("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'messages'::regclass").fetchall():
            database.execute(f"DROP TABLE {name}")
        database.execute("CREATE SCHEMA clock")
        database.execute(f"CREATE FUNCTION clock.now() RETURNS timestamptz LANGUAGE sql AS $$SELECT '{moment}'::timestamptz$$")
        database.execute("SET LOCAL TimeZone = UTC")
        database.execute("SELECT set_config('search_path', 'clock, ' || current_setting('search_path') || ', pg_catalog', true)")
        database.execute("SELECT message_partitions_make()")
        made = database.execute("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'messages'::regclass").fetchall()
        assert {name for name, in made} == wanted
