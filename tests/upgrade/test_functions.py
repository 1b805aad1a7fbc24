# SPDX-License-Identifier: Apache-2.0
"""The functions of 0.1.0, which are among the tables: they stay as long as an instance of it is connected, and a day longer."""

import psycopg
import pytest

from tests.support.environment import running
from tests.support.wait import wait_until
from tests.upgrade.dumps import Restored

OF_0_1_0 = "SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
VIEWS = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'v'"
CONNECTED = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tidings' AND pid <> pg_backend_pid()"
DROP = "SELECT versions_drop(current_schema(), 60)"


@pytest.fixture(scope="module")
def restored(tmp_path_factory):
    yield from running(Restored.of(tmp_path_factory.mktemp("functions"), "0.1.0"))


def age(database):
    """Makes it look as if no instance had run for an hour."""
    database.execute("UPDATE versions_in_use SET used_at = now() - interval '1 hour', made_at = now() - interval '1 day'"
                     " WHERE library = 'tidings_v1'")


def test_they_go_when_no_instance_of_0_1_0_was_there_for_a_while(restored):
    client = restored.client(restored.record["cast"]["tokens"]["ann"])
    with restored.database() as database:
        all_of_them, = database.execute(OF_0_1_0).fetchone()
        assert all_of_them > 100
        database.execute("CREATE FUNCTION public.mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'")
        restored.redis.cli("FUNCTION", "LOAD", "#!lua name=tidings_v1\nredis.register_function('heads_apply', function() return 1 end)")
        age(database)
        with psycopg.connect(restored.postgres.url, application_name="tidings"):  # as 0.1.0 calls its connections
            assert database.execute(DROP).fetchall() == []
            assert database.execute(OF_0_1_0).fetchone() == (all_of_them + 1,)
        wait_until(lambda: database.execute(CONNECTED).fetchone() == (0,), what="the end of its connection")
        assert database.execute(DROP).fetchall() == [], "one was there a moment ago"
        age(database)
        assert database.execute(DROP).fetchall() == [("public",)]
        assert database.execute("SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY 1").fetchall() == [
            ("hot_channels_end",), ("mine",)]  # a trigger on a table calls the first
        assert database.execute(VIEWS).fetchone() == (0,)
    restart(restored.instances[0])
    wait_until(lambda: "tidings_v1" not in restored.redis.cli("FUNCTION", "LIST"), what="the end of its library in Redis")
    assert client.ok("unread.sync")["channels"]


def restart(instance):
    assert instance.stop() == 0
    instance.start()
