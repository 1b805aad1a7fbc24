# SPDX-License-Identifier: Apache-2.0
"""Processes of the fault tests' own, made whole again after each test."""
import pytest

from tests.faults.followers import Follower, SocketFollower
from tests.faults.load import Load
from tests.support.environment import Environment, log_trouble, running
from tests.support.wait import wait_until


@pytest.fixture(scope="session")
def in_process(tmp_path_factory):
    # Tests make counts in Redis wrong: what audits them is an instance of their own.
    yield from running(Environment(tmp_path_factory.mktemp("faults"), settings={"TIDINGS_AUDIT_PAIRS": "0"}))


@pytest.fixture(scope="session")
def with_kafka(tmp_path_factory):
    yield from running(Environment(tmp_path_factory.mktemp("faults-kafka"), kafka=True))


@pytest.fixture
def parts(request):
    """Two instances and their services; with Kafka for tests marked so. All run before and after."""
    marked = request.node.get_closest_marker("kafka")
    environment = request.getfixturevalue("with_kafka" if marked else "in_process")
    yield environment
    environment.heal()
    trouble = [line for instance in environment.instances for line in log_trouble(instance)]
    assert not trouble, "\n".join(trouble)


@pytest.fixture
def load(parts):
    with Load(parts) as running:
        running.wait_acked(50)
        yield running


@pytest.fixture
def followers(load, parts):
    """Six clients of two users who only read, half of them beginning on each instance: of each user two with streams, one with sockets."""
    readers = [pair[0] for pair in load.people[-2:]]
    made = [Follower(reader, urls) for reader in readers for urls in (parts.urls, parts.urls[::-1])]
    made += [SocketFollower(reader, urls) for reader, urls in zip(readers, (parts.urls, parts.urls[::-1]))]
    wait_until(lambda: all(f.frames for f in made), what="all streams")
    yield made
    for follower in made:
        follower.stop()
