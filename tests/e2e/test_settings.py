# SPDX-License-Identifier: Apache-2.0
"""The command line: settings that are refused by name, --help, --version, migrate."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from tests.support.command import argv, run
from tests.support.wait import wait_until

ROOT = Path(__file__).resolve().parents[2]

SETTINGS = """LISTEN DATABASE_URL REDIS_URL KAFKA_BROKERS KAFKA_TOPIC LOOPS PUBLIC_URL OPERATOR_TOKEN LOG_LEVEL ACCESS_LOG
INSTANCE BODY_MAX_BYTES HEADER_TIMEOUT_MS BODY_TIMEOUT_MS CONNECTIONS_MAX SOCKET_QUEUE_MAX_BYTES IDEMPOTENCY_DAYS
RETENTION_DAYS""".split()


@pytest.mark.parametrize("name, value", [
    ("BODY_MAX_BYTES", "lots"), ("BODY_MAX_BYTES", "-1"), ("BODY_MAX_BYTES", "1"),
    ("BODY_MAX_BYTES", "99999999999999999999"), ("HEADER_TIMEOUT_MS", "0"), ("HEADER_TIMEOUT_MS", "5s"),
    ("LOOPS", "-1"), ("LOOPS", "100000"), ("LOOPS", "two"), ("CONNECTIONS_MAX", "0"),
    ("SOCKET_QUEUE_MAX_BYTES", "x"), ("IDEMPOTENCY_DAYS", "1.5"), ("RETENTION_DAYS", " 90"), ("LISTEN", "nowhere"),
    ("LISTEN", "127.0.0.1:99999"), ("LOG_LEVEL", "loud"), ("ACCESS_LOG", "perhaps"),
    ("RATE_LIMITS", "chat.postMessage"), ("RATE_LIMITS", "chat.post=1"), ("RATE_LIMITS", "auth.test=-1"),
    ("RATE_LIMITS", "auth.test=1,,users.info=1"),
    ("REDIS_URL", "http://127.0.0.1"), ("DATABASE_URL", "mysql://x"), ("LOG_LEVEL", "information"),
    ("REDIS_URL", "rediss://127.0.0.1:0"), ("REDIS_URL", "redis+cluster://127.0.0.1:1"), ("REDIS_URL", "redis+sentinel://127.0.0.1"),
    ("REDIS_URL", "redis://127.0.0.1:99999"), ("REDIS_URL", "redis://127.0.0.1:1/x"), ("REDIS_URL", "unix://here"),
    ("KAFKA_BROKERS", "kafka"), ("KAFKA_BROKERS", ",,"), ("KAFKA_BROKERS", "kafka:9092,"), ("KAFKA_BROKERS", ":9092"),
    ("KAFKA_BROKERS", "a:1,b:0"), ("KAFKA_BROKERS", "a:1, b:1"), ("KAFKA_BROKERS", "a:65536"), ("KAFKA_TOPIC", "two words"), ("KAFKA_TOPIC", "t" * 245), ("PUBLIC_URL", "chat.example.com"),
    ("PUBLIC_URL", "ws://chat.example.com"), ("PUBLIC_URL", "https://"), ("PUBLIC_URL", "https://a/?b"),
    ("CORS_ORIGINS", "a.example"), ("CORS_ORIGINS", "https://a.example/"), ("CORS_ORIGINS", "*,https://a.example"),
    ("CORS_ORIGINS", "https://a.example,"),
])
def test_bad_settings_are_refused_by_name(environment, name, value):
    settings = {"DATABASE_URL": environment.postgres.url, "REDIS_URL": environment.redis.url,
                "LISTEN": "127.0.0.1:1", name: value}
    done = run("serve", **settings)
    assert done.returncode == 2, done.stderr
    assert f"TIDINGS_{name}" in done.stderr and value in done.stderr


@pytest.mark.parametrize("name, value", [
    ("DATABASE_URL", "postgre://u:hush@db.example/x"), ("DATABASE_URL", "mysql://db.example/x?password=hush"),
    ("DATABASE_URL", "host=db.example password=hush"), ("DATABASE_URL", "postgres://u:hush%zz@db.example/x"),
    ("DATABASE_URL", "postgres://u:hush@db.example/x?sslmod=require"),
    ("DATABASE_URL", "postgres://u:hu@sh@db.example/x"), ("DATABASE_URL", "postgres://u:hush/hush@db.example/x"), ("REDIS_URL", "rediss://u:hush@db.example?cert=/hush"),
    ("REDIS_URL", "redis://u:hu@sh@db.example:99999"), ("REDIS_URL", "hush"),
])
def test_a_refused_url_is_told_without_its_password(name, value):
    done = run("serve", **{name: value})
    assert done.returncode == 2 and f"TIDINGS_{name}=" in done.stderr
    assert "hush" not in done.stderr and "hu@sh" not in done.stderr
    assert "db.example" in done.stderr or "://" not in value


@pytest.mark.parametrize("name, value", [("BODY_MAX_BYTES", "1"), ("LOOPS", "100000"), ("HEADER_TIMEOUT_MS", "0")])
def test_a_number_out_of_range_is_told_its_range(environment, name, value):
    done = run("serve", DATABASE_URL=environment.postgres.url, REDIS_URL=environment.redis.url, **{name: value})
    listed = next(line for line in run("--help").stdout.splitlines() if f"TIDINGS_{name}" in line)
    bounds = [word for word in done.stderr.replace("..", " ").replace(",", " ").split() if word.isdigit()]
    assert [bound for bound in bounds if bound in listed], f"{done.stderr!r} has no bound of {listed!r}"


def test_help_lists_every_setting():
    done = run("--help")
    assert done.returncode == 0
    for name in SETTINGS:
        assert f"TIDINGS_{name}" in done.stdout, name
    for command in ("serve", "migrate", "check", "admin"):
        assert command in done.stdout


def test_version(environment):
    version = (ROOT / "VERSION").read_text(encoding="ascii").strip()
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"tidings {version}\n")
    client = environment.client()
    assert f'tidings_build_info{{version="{version}"}} 1' in client.page("/metrics").text.splitlines()
    assert [client.page(path).json()["info"]["version"] for path in ("/openapi.json", "/openapi-3.0.json")] == [version] * 2


@pytest.mark.parametrize("arguments", [["dance"], [], ["serve", "now"], ["--serve"]])
def test_unknown_commands(arguments):
    done = run(*arguments)
    assert done.returncode == 2 and "tidings" in (done.stderr + done.stdout)


def test_a_port_that_is_taken(environment):
    done = run("serve", DATABASE_URL=environment.postgres.url, REDIS_URL=environment.redis.url,
               LISTEN=f"127.0.0.1:{environment.redis.port}")
    assert done.returncode not in (0, -6, -11) and str(environment.redis.port) in done.stderr


@pytest.mark.parametrize("arguments", [
    ["admin"], ["admin", "users.creat"], ["admin", "users.create", "name"], ["admin", "users.create", b"name=\xff"],
    ["unread"], ["unread", "verify", "--workspace"], ["unread", "verify", "--workspace", ""],
    ["unread", "verify", "--workspace", "C0000000000"], ["unread", "verify", "--channel", "general"],
    ["unread", "rebuild", "--user", "u0000000000"],
])
def test_wrong_usage(environment, arguments):
    done = run(*arguments, DATABASE_URL=environment.postgres.url, REDIS_URL=environment.redis.url)
    assert done.returncode == 2 and f"usage: tidings {arguments[0]}" in done.stderr


@pytest.mark.parametrize("arguments", [
    ["--help"], ["--version"], ["check"], ["migrate"], ["admin", "tokens.list", "workspace=T0000000000"],
])
def test_output_that_cannot_be_written_is_no_success(environment, arguments):
    settings = {"TIDINGS_DATABASE_URL": environment.postgres.url, "TIDINGS_LISTEN": environment.instances[0].url[7:]}
    with open("/dev/full", "wb") as full:
        done = subprocess.run(argv(*arguments), env={**os.environ, **settings}, stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 1 and "cannot write the output: No space left on device" in done.stderr


def test_a_closed_stdout_is_no_success(environment, workspace):
    """The token would be lost."""
    arguments = ["admin", "tokens.create", f"workspace={workspace.id}", f"user_id={workspace.admin.id}"]
    done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *argv(*arguments)],
                          env={**os.environ, "TIDINGS_DATABASE_URL": environment.postgres.url}, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 1 and "cannot write the output: Bad file descriptor" in done.stderr


@pytest.mark.parametrize("workspace", [[], ["workspace=T0000000000"], ["workspace=';--"]])
def test_admin_of_no_workspace(environment, workspace):
    done = run("admin", "users.create", "name=x", *workspace, DATABASE_URL=environment.postgres.url)
    assert done.returncode == 1 and "workspace: must be the id of a workspace" in done.stdout and not done.stderr


def test_check_of_an_instance_at_an_ipv6_address(environment):
    instance = environment.instance(start=False)
    instance.environment["TIDINGS_LISTEN"] = f"[::1]:{instance.port}"
    instance.start(wait=False)
    try:
        settings = {"DATABASE_URL": environment.postgres.url, "REDIS_URL": environment.redis.url,
                    "LISTEN": f"[::1]:{instance.port}"}
        wait_until(lambda: run("check", **settings).returncode == 0, what="an answer at [::1]")
    finally:
        instance.stop()


def test_check_of_nothing(environment):
    done = run("check", DATABASE_URL=environment.postgres.url, REDIS_URL=environment.redis.url, LISTEN="127.0.0.1:1")
    assert done.returncode == 1 and done.stdout + done.stderr


def test_migrate_is_idempotent_and_safe_at_once(environment):
    url = environment.postgres.create_database("migrated")
    with ThreadPoolExecutor(4) as pool:
        for done in pool.map(lambda _: run("migrate", DATABASE_URL=url), range(4)):
            assert done.returncode == 0, done.stderr
    assert run("migrate", DATABASE_URL=url).returncode == 0


def test_a_second_migrate_has_nothing_to_tell(environment):
    done = run("migrate", DATABASE_URL=environment.postgres.url)
    assert done.returncode == 0 and done.stderr == ""


def test_serve_on_a_database_that_was_not_migrated(environment):
    """It is not ready and reports the reason, or does not start at all."""
    instance = environment.instance(start=False, database_url=environment.postgres.create_database("empty"))
    instance.start(wait=False)
    try:
        wait_until(lambda: says_to_migrate(instance), what="the hint to migrate")
    finally:
        instance.stop()


def says_to_migrate(instance):
    if instance.pid is None:
        return instance.exit_code != 0 and "migrat" in instance.log_tail()
    try:
        response = requests.get(f"{instance.url}/readyz", timeout=30)
    except requests.ConnectionError:
        return False
    return response.status_code == 503 and "migrat" in response.text


def test_the_document_of_settings_is_what_help_prints():
    text = run("--help").stdout
    document = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert text[text.index("Settings,"):].strip() in document
