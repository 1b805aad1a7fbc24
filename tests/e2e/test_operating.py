# SPDX-License-Identifier: Apache-2.0
"""Situations of operators: typos, too few descriptors, no stderr, a standby, a first host that hangs, newer tables."""

import json
import os
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import pytest
import requests

from tests.support.command import run
from tests.support.environment import log_trouble
from tests.support.retention import housekeep, upkeep
from tests.support.wait import wait_until
from tools import openapi


@pytest.fixture
def by_shell(environment):
    """Starts an instance by a shell that runs a line first; ends it after the test."""
    started = []

    def start(line, wait=True, **settings):
        instance = environment.instance(start=False, **settings)
        argv, full = instance.command()
        instance.command = lambda: (["sh", "-c", line, "sh", *argv], full)
        started.append(instance)
        instance.start(wait=wait)
        return instance

    yield start
    for instance in started:
        assert instance.stop() == 0 and not log_trouble(instance)


def readiness(instance):
    """The status of /readyz and its report on Postgres; None while the port is closed."""
    try:
        page = requests.get(f"{instance.url}/readyz", timeout=30)
    except requests.ConnectionError:
        return None
    return page.status_code, page.json()["postgres"]


def values(instance, metric):
    """The samples of a metric by their labels."""
    lines = requests.get(f"{instance.url}/metrics", timeout=30).text.splitlines()
    found = [line.rpartition(" ") for line in lines if line.startswith((metric + " ", metric + "{"))]
    return {name.removeprefix(metric): float(value) for name, _, value in found}


def test_an_old_name_of_a_setting_is_read_and_told(extra_instance):
    log = extra_instance(hole_delay_ms=40, link_life_s=99, app_socket_life_s=100).log.read_text()
    assert "TIDINGS_HOLE_DELAY_MS was renamed to TIDINGS_GAP_DELAY_MS in 0.3.0; the next release drops the old name" in log
    assert "TIDINGS_LINK_LIFE_S was renamed to TIDINGS_APP_SOCKET_LIFE_S in 0.3.0; both are set, so the old one is ignored" in log


def test_a_setting_that_there_is_not_is_told(environment, extra_instance):
    instance = extra_instance(listn="hush:1", redis_timeout="hush", empty="")
    log = instance.log.read_text()
    for name in ("TIDINGS_LISTN", "TIDINGS_REDIS_TIMEOUT"):
        assert f'"level":"warn","instance":"{instance.environment["TIDINGS_INSTANCE"]}"' in log and f"{name} is not a setting" in log
    assert log.count("is not a setting") == 2 and "hush" not in log
    for command in ("check", "migrate"):
        done = run(command, LISTEN=f"127.0.0.1:{instance.port}", DATABASE_URL=environment.postgres.url, LISTN="hush")
        assert done.returncode == 0 and "TIDINGS_LISTN is not a setting" in done.stderr
        assert "is not a setting" not in done.stdout and "hush" not in done.stderr


@pytest.mark.parametrize("command", ["serve", "check"])
def test_help_of_a_command_is_the_help(command):
    done = run(command, "--help", LOOPS="many")
    assert done.returncode == 0 and done.stdout == run("--help").stdout and not done.stderr


def test_help_of_migrate_has_each_exit_status():
    done = run("migrate", "--help", DATABASE_URL="none")
    assert done.returncode == 0 and not done.stderr
    listed = [line.split()[0] for line in done.stdout.splitlines() if line.startswith(" " * 11) and line.split()[0].isdigit()]
    assert "--check" in done.stdout and sorted(listed) == ["0", "1", "3", "4"]


def test_help_of_unread():
    done = run("unread", "--help", DATABASE_URL="none")
    assert done.returncode == 0 and not done.stderr
    for word in ("verify", "rebuild", "--workspace", "--channel", "--user"):
        assert word in done.stdout


def test_help_of_admin_has_each_method_with_its_arguments():
    done = run("admin", "--help", DATABASE_URL="none")
    assert done.returncode == 0 and not done.stderr
    text = re.sub(r"\n {10,}", " ", done.stdout)  # arguments may go on in the next line
    lines = {line.split()[0]: line for line in text.splitlines() if line.startswith("  ")}
    document = openapi.read()
    methods = {path.removeprefix("/admin."): path for path in document["paths"] if path.startswith("/admin.")}
    del methods["push.test"]  # which a running instance sends
    assert lines.keys() == methods.keys()
    for name, path in methods.items():
        body = document["paths"][path]["post"]["requestBody"]
        if "$ref" in body:
            body = document["components"]["requestBodies"][body["$ref"].rpartition("/")[2]]
        schema = body["content"]["application/json"]["schema"]
        if "$ref" in schema:
            schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        required = lines[name].partition("[")[0]
        for argument in schema.get("properties", {}):
            assert f" {argument}=" in lines[name].replace("[", " "), (name, argument)
        for argument in schema.get("required", ()):
            assert f" {argument}=" in required, (name, argument)


def test_wrong_usage_shows_the_commands_and_no_empty_list():
    done = run("dance")
    assert done.returncode == 2 and "usage:" in done.stderr and not done.stderr.rstrip().endswith(":")


def test_the_log_goes_nowhere_when_stderr_is_closed(by_shell, workspace):
    """Not to another file that gets its descriptor, such as a connection to Postgres."""
    instance = by_shell('exec "$@" 0<&- 1>&- 2>&-', log_level="debug")
    for number in (0, 1, 2):
        assert os.readlink(f"/proc/{instance.pid}/fd/{number}") == "/dev/null"
    ann = workspace.user().at(instance.url)
    assert ann.post(workspace.channel(ann), "heard")


def test_the_soft_limit_of_open_files_is_no_limit(by_shell, workspace):
    instance = by_shell('ulimit -Sn 40; ulimit -Hn 1000; exec "$@"')
    assert values(instance, "process_max_fds") == {"": 1000}
    assert "at most 1000 open files" in instance.log.read_text()
    ann = workspace.user().at(instance.url)
    sockets = [ann.socket() for _ in range(60)]
    for client in sockets:
        client.close()


def test_too_few_descriptors_are_told(by_shell):
    instance = by_shell('ulimit -n 120; exec "$@"')
    links = [socket.create_connection(("127.0.0.1", instance.port)) for _ in range(150)]
    wait_until(lambda: "limit of open files" in instance.log.read_text(), what="a word in the log")
    for link in links:
        link.close()
    wait_until(instance.ready, what="room for a connection")
    found = values(instance, "tidings_http_connections_refused_total")
    assert found['{reason="open_files"}'] > 0 and found['{reason="full"}'] == 0
    assert instance.log.read_text().count("limit of open files") == 1


def test_a_postgres_that_takes_no_writes_is_not_ready(environment, extra_instance):
    url = environment.postgres.create_database("standby")
    assert run("migrate", DATABASE_URL=url).returncode == 0
    environment.postgres.sql("ALTER DATABASE standby SET default_transaction_read_only = on")
    instance = environment.instance(start=False, database_url=url)
    instance.start(wait=False)
    try:
        wait_until(lambda: "read-only" in instance.log_tail(100), what="the reason in the log")
        wait_until(lambda: readiness(instance) is not None, what="an answer")
        assert readiness(instance) == (503, "missing")
        environment.postgres.sql("ALTER DATABASE standby SET default_transaction_read_only = off")
        instance.wait_ready()
    finally:
        assert instance.stop() == 0


@contextmanager
def dead_host(takes_connections):
    """The port of a host that hangs: its kernel drops connections, or accepts them, and no data follows."""
    with socket.socket() as dead, ExitStack() as waiting:
        dead.bind(("127.0.0.1", 0))
        dead.listen(100 if takes_connections else 0)
        for _ in range(0 if takes_connections else 3):
            link = waiting.enter_context(socket.socket())
            link.setblocking(False)
            link.connect_ex(dead.getsockname())
        yield dead.getsockname()[1]


@pytest.mark.parametrize("takes_connections", [False, True])
def test_the_second_host_of_the_url_is_found_when_the_first_stands_still(environment, workspace, takes_connections):
    """The situation after a failover from a machine that hangs."""
    with dead_host(takes_connections) as port:
        hosts = f"127.0.0.1:{port},127.0.0.1:{environment.postgres.port}"
        url = f"postgres://tidings:{environment.postgres.password}@{hosts}/tidings"
        instance = environment.instance(start=False, database_url=url)
        try:
            instance.start(timeout=60)
            ann = workspace.user().at(instance.url)
            assert ann.post(workspace.channel(ann), "through")
        finally:
            instance.stop()


def test_a_url_with_more_ports_than_hosts_is_refused_with_the_reason():
    done = run("migrate", DATABASE_URL="postgres:///tidings?host=127.0.0.1,127.0.0.1&port=1,2,3")
    assert done.returncode != 0 and "could not match 3 port numbers to 2 hosts" in done.stderr


def test_what_postgres_says_while_one_connects_is_in_the_log_as_all_else(environment):
    url = environment.postgres.create_database("moved")
    assert run("migrate", DATABASE_URL=url).returncode == 0
    environment.postgres.sql("UPDATE pg_database SET datcollversion = '0' WHERE datname = 'moved'")  # as after an upgrade of the C library
    instance = environment.instance(database_url=url)
    assert instance.stop() == 0
    lines = [json.loads(line) for line in instance.log.read_text().splitlines()]
    assert any("collation version" in line.get("message", "") for line in lines)


@pytest.mark.usefixtures("room")
def test_a_redis_that_hangs_up_ends_no_command_without_a_word(environment, tmp_path):
    with socket.socket(socket.AF_UNIX) as redis, ThreadPoolExecutor(1) as pool:
        redis.bind(str(tmp_path / "redis"))
        redis.listen()

        def answer():
            connection, _ = redis.accept()
            with connection:
                connection.recv(4096)
                connection.shutdown(socket.SHUT_RD)
                connection.sendall(b"*0\r\n")  # it has no functions: they come next

        answering = pool.submit(answer)
        done = run("unread", "verify", DATABASE_URL=environment.postgres.url, REDIS_URL=f"unix://{tmp_path}/redis")
        answering.result()
    assert done.returncode == 2 and "unread: service_unavailable" in done.stderr


def test_upkeep_does_not_wait_behind_a_backup_and_nobody_behind_upkeep(environment, room):
    """pg_dump holds every table for as long as it takes. Months are made all the same; to drop one takes messages for itself."""
    ann, _, channel = room
    with upkeep(environment) as database, ThreadPoolExecutor(1) as pool:
        with environment.database() as dump, dump.transaction():
            dump.execute("SELECT count(*) FROM messages")
            database.execute("SELECT message_partition_make('2001-01-01Z')")
            keeping = pool.submit(housekeep, database)
            with environment.database() as watch:
                wait_until(lambda: watch.execute("SELECT (month_steps())[step] FROM month_expiring").fetchone() == ("detach",),
                           what="the end of what needs no lock")
            for _ in range(20):
                ann.post(channel, "meanwhile")
            assert not keeping.done()
        keeping.result()
        assert database.execute("SELECT to_regclass('messages_2001_01')").fetchone()[0] is None


def test_housekeeping_that_fails_is_counted(environment, extra_instance):
    url = environment.postgres.create_database("unkept")
    assert run("migrate", DATABASE_URL=url).returncode == 0
    schema = environment.postgres.sql("SELECT functions FROM versions_in_use", "unkept")
    environment.postgres.sql(f"DROP FUNCTION {schema}.rows_expire", "unkept")
    instance = extra_instance(database_url=url)
    wait_until(lambda: values(instance, "tidings_housekeeping_failed_total")[""] > 0, what="a count of what failed")
    assert "deleting old rows failed" in instance.log.read_text()


def test_a_role_that_may_not_use_the_tables_is_told_at_start(environment):
    environment.postgres.sql("CREATE ROLE poor LOGIN PASSWORD 'poor'")
    url = f"postgres://poor:poor@127.0.0.1:{environment.postgres.port}/tidings"
    done = run("serve", DATABASE_URL=url, REDIS_URL=environment.redis.url, LISTEN="127.0.0.1:0")
    assert done.returncode == 1 and "permission denied" in done.stderr and "must own the tables" in done.stderr
