# SPDX-License-Identifier: Apache-2.0
"""Programs of the preset asan, and fixtures that the tests share."""
import random
import time
from pathlib import Path

import pytest

from tests.support.environment import BINARY, Environment, log_trouble
from tests.torture.control import Control

BUILD = Path(BINARY).parent  # build/asan
ABORTS = ("handle_abort=2:handle_segv=2:handle_sigfpe=2:handle_sigill=2:"  # reports come before what cmocka says
          "detect_leaks=1:allocator_may_return_null=1")


@pytest.fixture
def control(tmp_path):
    return Control(tmp_path / "control")


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Postgres and Redis, migrated; no instance yet."""
    environment = Environment(tmp_path_factory.mktemp("torture"), instances=1)
    environment.postgres.start()
    environment.redis.start()
    instance = environment.instance(start=False, loops=1, header_timeout_ms=2000, statement_timeout_ms=3000)
    instance.migrate()
    environment.instances = [instance]
    yield environment
    environment.instances = []  # each test ends its own
    environment.stop()


def sample(count, size):
    """Numbers from 1 to `count`: all, or so many of them that differ from run to run."""
    numbers = list(range(1, count + 1))
    return numbers if count <= size else sorted(random.Random(time.time_ns()).sample(numbers, size))


def reports(instance):
    return "\n".join(log_trouble(instance))
