# SPDX-License-Identifier: Apache-2.0
"""tidings migrate, and what instances make of a database that is not theirs: as an operator and their scripts see it."""

import subprocess
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.support.command import argv, full_environment, run
from tests.support.wait import wait_until
from tools.services import Redis

MISSING, MISSING_AND_BLOCKING = 3, 4
FUNCTIONS = "SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname LIKE 'tidings_%'"
SHAPE = ("SELECT n.nspname, c.relname, c.relkind FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
         " WHERE n.nspname = 'public' OR n.nspname LIKE 'tidings_%' ORDER BY 1, 2")


@pytest.fixture
def database(environment, request):
    """Makes databases of this test alone, by number: (url, a function that runs SQL there)."""
    def make(number=0):
        name = f"{request.node.originalname}_{number}"[-60:]
        environment.postgres.sql(f'DROP DATABASE IF EXISTS "{name}"', "postgres")
        url = environment.postgres.create_database(name)
        return url, lambda statement: environment.postgres.sql(statement, name)
    return make


def migrate(url, *arguments):
    return run("migrate", *arguments, DATABASE_URL=url)


def test_check_tells_scripts_what_is_missing(database):
    url, sql = database()
    done = migrate(url, "--check")
    assert done.returncode == MISSING and "001_tables.sql" in done.stdout and "functions tidings_" in done.stdout
    assert sql("SELECT to_regclass('schema_migrations')") == "", "it changes nothing"
    assert migrate(url).returncode == 0
    done = migrate(url, "--check")
    assert done.returncode == 0 and "nothing is missing" in done.stdout
    sql(f"DROP SCHEMA {sql('SELECT functions FROM versions_in_use')} CASCADE")
    done = migrate(url, "--check")
    assert done.returncode == MISSING and ".sql" not in done.stdout and "takes a second" in done.stdout
    assert migrate(url).returncode == 0 and migrate(url, "--check").returncode == 0
    sql("DELETE FROM schema_migrations WHERE version = 1")  # which says that nothing of the release before runs on it
    done = migrate(url, "--check")
    assert done.returncode == MISSING_AND_BLOCKING and "stop instances of the previous release first" in done.stdout
    assert migrate(url, "--chekc").returncode == 2


def test_check_of_a_database_that_is_away():
    assert migrate("postgres://nobody@127.0.0.1:1/nothing", "--check").returncode == 1


@pytest.mark.parametrize("command", ["migrate", "serve"])
def test_a_database_of_a_newer_release_is_refused_by_name(environment, database, command):
    url, sql = database()
    assert migrate(url).returncode == 0
    sql("INSERT INTO schema_migrations (version, name, release) VALUES (900, '900_later.sql', '9.0.0')")
    done = run(command, DATABASE_URL=url, REDIS_URL=environment.redis.url, LISTEN="127.0.0.1:0")
    assert done.returncode == 1 and "900_later.sql" in done.stderr and "newer release" in done.stderr


@pytest.mark.parametrize("command", [["serve"], ["unread", "verify"], ["admin", "tokens.list", "workspace=T1", "user_id=U1"]])
def test_without_its_functions_a_command_says_what_to_run(environment, database, command):
    url, _ = database()
    done = run(*command, DATABASE_URL=url, REDIS_URL=environment.redis.url, LISTEN="127.0.0.1:0")
    assert done.returncode != 0 and "run tidings migrate" in done.stderr


def test_an_edited_migration_is_refused_by_name(database):
    url, sql = database()
    assert migrate(url).returncode == 0
    sql("UPDATE schema_migrations SET sha256 = 'other' WHERE version = 1")
    for arguments in ([], ["--check"]):
        done = migrate(url, *arguments)
        assert done.returncode == 1 and "001_tables.sql" in done.stderr


def test_a_migrate_that_is_killed_leaves_whole_steps(database):
    """At whatever moment it is killed: the next migrate continues, and the result is the same as without an interruption."""
    url, sql = database("whole")
    assert migrate(url).returncode == 0
    whole, all_functions = sql(SHAPE), sql(FUNCTIONS)
    for number in range(12):
        url, sql = database(number)
        child = subprocess.Popen(argv("migrate"), env=full_environment(DATABASE_URL=url), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            child.wait(0.015 * number)
        except subprocess.TimeoutExpired:
            child.kill()
        child.communicate()
        wait_until(lambda: sql("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                               " AND pid <> pg_backend_pid() AND backend_type = 'client backend'") == "0", what="its end")
        assert sql("SELECT (to_regclass('workspaces') IS NULL) = (to_regclass('change_log_start') IS NULL)") == "t", "half of the tables"
        assert sql(FUNCTIONS) in ("0", all_functions)
        done = migrate(url)
        assert done.returncode == 0, done.stderr
        assert sql(SHAPE) == whole


def test_a_second_migrate_waits_for_the_first(database):
    url, _ = database()
    with psycopg.connect(url, autocommit=True) as first, ThreadPoolExecutor(1) as pool:
        first.execute("SELECT pg_advisory_lock(x'71d195'::integer)")
        second = pool.submit(migrate, url)
        wait_until(lambda: first.execute("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_try_advisory_lock%'"
                                         " AND state = 'idle' AND pid <> pg_backend_pid()").fetchone()[0],
                   what="the second one, which tries again and again")
        assert first.execute("SELECT to_regclass('channels')").fetchone() == (None,)
        first.execute("SELECT pg_advisory_unlock(x'71d195'::integer)")
        assert second.result().returncode == 0


@pytest.fixture
def redis(tmp_path):
    with Redis(tmp_path) as redis:
        yield redis


def test_functions_that_no_instance_needs_any_more_are_dropped(database, redis, extra_instance):
    url, sql = database()
    assert migrate(url).returncode == 0
    for name, age in (("tidings_unused", "1 hour"), ("tidings_used", "1 second"), ("tidings_with_a_table", "1 hour")):
        sql(f"CREATE SCHEMA {name}; CREATE FUNCTION {name}.one() RETURNS integer LANGUAGE sql AS 'SELECT 1'")
        sql(f"INSERT INTO versions_in_use (functions, library, release, made_at, used_at)"
            f" VALUES ('{name}', '', '0.0.1', now() - interval '2 hours', now() - interval '{age}')")
    sql("CREATE TABLE tidings_with_a_table.mine (n integer)")
    sql("UPDATE versions_in_use SET library = functions WHERE library = ''")
    for name in ("tidings_unused", "tidings_used"):
        redis.cli("FUNCTION", "LOAD", f"#!lua name={name}\nredis.register_function('one_{name}', function() return 1 end)")
    there = "SELECT string_agg(nspname, ' ' ORDER BY nspname) FROM pg_namespace WHERE nspname LIKE 'tidings\\_%'"
    own = sql("SELECT functions FROM versions_in_use ORDER BY made_at DESC LIMIT 1")
    extra_instance(database_url=url, redis_url=redis.url, versions_keep_s=600)
    wait_until(lambda: "tidings_unused" not in sql(there), what="the end of what is unused")
    assert sql(there).split() == sorted([own, "tidings_used", "tidings_with_a_table"])
    wait_until(lambda: "tidings_unused" not in redis.cli("FUNCTION", "LIST"), what="the end of its library")
    assert "tidings_used" in redis.cli("FUNCTION", "LIST")
