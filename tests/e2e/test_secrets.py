# SPDX-License-Identifier: Apache-2.0
"""Secrets in Postgres: encrypted under TIDINGS_SECRET_KEY, read under either key, and rotated."""

import base64
import json
from types import SimpleNamespace

import pytest
from slack_sdk.signature import SignatureVerifier

from tests.support.command import run
from tests.support.environment import Environment, running
from tests.support.events_url import EventsUrl
from tests.support.metrics import metric
from tests.support.wait import wait_until

NEW = base64.b64encode(bytes(range(32))).decode()
OLD, OTHER = bytes(range(100, 132)).hex(), bytes(range(200, 232)).hex()


@pytest.fixture(scope="module")
def environment(tmp_path_factory, recorder):
    """An instance in the middle of a rotation."""
    settings = {"TIDINGS_EVENTS_API_PRIVATE": "true", "TIDINGS_SECRET_KEY": f"{NEW},{OLD}"}
    yield from running(Environment(tmp_path_factory.mktemp("secrets"), 1, settings=settings, recorder=recorder))


@pytest.fixture
def server():
    server = EventsUrl()
    yield server
    server.close()


def command(environment, *arguments, key):
    return run(*arguments, DATABASE_URL=environment.postgres.url, REDIS_URL=environment.redis.url, SECRET_KEY=key)


def make_app(environment, workspace, url, key=None):
    """An app, made by the instance; or by the command, under a key ("": none)."""
    arguments = {"name": "an app", "bot_user_id": workspace.bot().id, "events_url": url}
    if key is None:
        made = workspace.admin.ok("admin.apps.create", **arguments)
    else:
        done = command(environment, "admin", "apps.create", f"workspace={workspace.id}", *map("=".join, arguments.items()), key=key)
        made = json.loads(done.stdout)
    return SimpleNamespace(id=made["app"]["id"], secret=made["app"]["signing_secret"])


def stored(environment, app):
    with environment.database() as database:
        return database.execute("SELECT signing_secret FROM apps WHERE id = %s", [app.id]).fetchone()[0]


def signed(server, apps):
    """Waits for the challenge of each app; returns whether each is signed with the app's own secret."""
    wait_until(lambda: len(server.challenges) >= len(apps), what="a challenge of each app")
    verifiers = [SignatureVerifier(app.secret) for app in apps]
    return {app.id for app, verifier in zip(apps, verifiers) for request in server.challenges
            if verifier.is_valid_request(request.body, request.headers)}


def rotated(environment, key=f"{NEW},{OLD}"):
    return command(environment, "secrets", "rotate", key=key)


def test_a_signing_secret_is_stored_encrypted_and_signs(environment, workspace, server):
    app = make_app(environment, workspace, server.url)
    text = stored(environment, app)
    assert text.startswith("sealed1.") and app.secret not in text
    assert signed(server, [app]) == {app.id}
    assert app.secret not in environment.instances[0].log.read_text()


def test_rotation(environment, workspace, server):
    old, clear, new = (make_app(environment, workspace, server.url, key) for key in (OLD, "", NEW))
    before = [stored(environment, app) for app in (old, clear, new)]
    assert before[1] == clear.secret
    assert signed(server, [old, clear, new]) == {old.id, clear.id, new.id}  # each is read as it lies there
    done = rotated(environment)
    assert (done.returncode, done.stdout) == (0, "2 encrypted, 0 undecryptable\n")
    after = [stored(environment, app) for app in (old, clear, new)]
    assert len({text.split(".")[1] for text in after}) == 1 and after[2] == before[2]
    assert (rotated(environment, NEW).returncode, rotated(environment, NEW).stdout) == (0, "0 encrypted, 0 undecryptable\n")
    again = EventsUrl()
    try:
        with environment.database() as database:
            database.execute("UPDATE apps SET events_url = %s, url_verified = false, verify_at = now() WHERE workspace_id = %s",
                             [again.url, workspace.id])
        assert signed(again, [old, clear, new]) == {old.id, clear.id, new.id}
    finally:
        again.close()


def test_what_no_key_opens_stays_and_is_told(environment, workspace, server):
    instance = environment.instances[0]
    before = metric(instance, "tidings_secrets_refused_total")
    app = make_app(environment, workspace, server.url, OTHER)
    text = stored(environment, app)
    wait_until(lambda: metric(instance, "tidings_secrets_refused_total") > before, what="a secret that does not open")
    assert not server.requests and f"cannot decrypt the signing secret of app {app.id}" in instance.log.read_text()
    done = rotated(environment)
    assert done.returncode == 1 and "1 undecryptable" in done.stdout
    assert f"no key decrypts apps.signing_secret/{app.id}" in done.stderr and stored(environment, app) == text
    workspace.admin.ok("admin.apps.delete", app_id=app.id)


@pytest.mark.parametrize("key", ["hush", f"{NEW},", f"{NEW},{OLD},{OTHER}", NEW[:-8]])
def test_a_bad_key_is_refused_and_not_shown(key):
    done = run("serve", SECRET_KEY=key)
    assert done.returncode == 2 and "TIDINGS_SECRET_KEY=…: must be" in done.stderr
    assert key not in done.stderr and NEW[:8] not in done.stderr


def test_the_command(environment):
    without = command(environment, "secrets", "rotate", key="")
    assert without.returncode == 2 and "TIDINGS_SECRET_KEY is not set" in without.stderr
    assert command(environment, "secrets", key=NEW).returncode == 2
    assert command(environment, "secrets", "--help", key=NEW).stdout.startswith("usage: tidings secrets rotate")
