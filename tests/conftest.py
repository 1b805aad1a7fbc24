# SPDX-License-Identifier: Apache-2.0
"""Fixtures of all Python tests: real Postgres, Redis, Kafka, two instances, a fresh workspace for each test."""

from pathlib import Path

import pytest

from tests.support.environment import Environment, end_of, running
from tests.support.recorder import Recorder, Silence, join_parts, part_path, parts
from tools.services import Redis

E2E = Path(__file__).parent / "e2e"
USUAL = "not long and not clusters"  # of pytest.ini; none of e2e are
# Sidebars are kept and brought up to date for all users, not only for those in many channels. A Redis that is slow, as
# on a busy machine, is not away. All tests come from one address, and send large bodies without a token.
SETTINGS = {"TIDINGS_SIDEBAR_MIN": "0", "TIDINGS_REDIS_TIMEOUT_MS": "5000", "TIDINGS_RATE_STRANGERS_BYTES": "1000000000",
            "TIDINGS_SECRET_KEY": "5" * 64}


def with_files(directory):
    """The settings, and where files are."""
    return {**SETTINGS, "TIDINGS_FILES_URL": f"file://{directory}/stored"}


def is_worker(session):
    return hasattr(session.config, "workerinput")


def pytest_sessionstart(session):
    if not is_worker(session):
        for part in parts():
            part.unlink()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if not is_worker(session):
        join_parts()


@pytest.fixture(scope="session")
def recorder(request):
    """Records for the contract check when e2e tests run (other groups make the same calls over and over)."""
    session = request.session
    files = {item.path for item in session.items if item.path.parent == E2E}
    if not files:
        yield Silence()
        return
    recorder = Recorder(part_path())
    yield recorder
    chosen = session.config.option.keyword or session.config.option.markexpr not in ("", USUAL)
    cut_short = session.shouldstop or session.shouldfail
    recorder.close(complete=files == set(E2E.glob("test_*.py")) and not chosen and not cut_short)


@pytest.fixture(scope="session")
def plain_environment(tmp_path_factory, recorder):
    directory = tmp_path_factory.mktemp("plain")
    yield from running(Environment(directory, settings=with_files(directory), recorder=recorder))


@pytest.fixture(scope="session")
def kafka_environment(tmp_path_factory, recorder):
    yield from running(Environment(tmp_path_factory.mktemp("kafka"), kafka=True, recorder=recorder))


@pytest.fixture
def environment(request):
    """Two instances on one Postgres and one Redis; with Kafka for tests marked so."""
    marked = request.node.get_closest_marker("kafka")
    return request.getfixturevalue("kafka_environment" if marked else "plain_environment")


@pytest.fixture
def workspace(environment):
    """A workspace that nobody else uses."""
    return environment.workspace()


@pytest.fixture
def room(workspace):
    """(ann, bob, channel): two members of a channel, whose joins are events 1 and 2."""
    ann, bob = workspace.users(2)
    return ann, bob, workspace.channel(ann, bob)


@pytest.fixture
def extra_instance(environment):
    """Starts instances with settings of their own on the services of `environment`; ends them after the test."""
    started = []

    def start(**settings):
        started.append(environment.instance(**settings))
        return started[-1]

    yield start
    trouble = [line for instance in started for line in end_of(instance)]
    assert not trouble, "\n".join(trouble)


@pytest.fixture
def own_redis(tmp_path):
    """A Redis of its own, for state that instances with other settings would share."""
    redis = Redis(tmp_path / "redis")
    redis.start()
    yield redis
    redis.stop()
    redis.wipe()


@pytest.fixture
def streams():
    """Opens event streams of members (`streams(member, last_id)`) and closes them after the test."""
    opened = []

    def open_stream(member, last_id=None, **args):
        opened.append(member.stream(last_id, **args))
        return opened[-1]

    yield open_stream
    for stream in opened:
        stream.close()


@pytest.fixture
def sockets():
    """Opens sockets of members (`sockets(member, native=True)`) and closes them after the test."""
    opened = []

    def open_socket(member, **args):
        opened.append(member.socket(**args))
        return opened[-1]

    yield open_socket
    for socket in opened:
        socket.close()
