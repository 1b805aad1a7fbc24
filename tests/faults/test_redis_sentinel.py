# SPDX-License-Identifier: Apache-2.0
"""The master fails over to a replica, by Sentinel, under load. No post fails because of it, and all is right afterwards."""
import signal
import time

import pytest

from tests.support.environment import Environment, running
from tests.support.wait import wait_until
from tools.redis_sentinel import DOWN_AFTER_MS, SENTINELS, SERVERS, SentinelRedis
from tools.services import free_port

PAUSE_S = 1  # after the Sentinels name the new master


@pytest.fixture(scope="module")
def in_process(tmp_path_factory):
    directory = tmp_path_factory.mktemp("sentinel")
    redis = SentinelRedis(directory / "redis", [free_port() for _ in range(SERVERS + SENTINELS)])
    yield from running(Environment(directory, settings={"TIDINGS_AUDIT_PAIRS": "0"}, redis=redis))


@pytest.fixture
def steady(load):
    """A load in which every post must be acked at the first attempt."""
    yield load
    assert load.failed() == []


def wait_other_master(redis, before):
    wait_until(lambda: redis.master() is not before, what="a new master")
    return time.monotonic()


def wait_followed(parts):
    for instance in parts.instances:
        wait_until(instance.ready, what="the new master is used")
    return time.monotonic()


def finish(parts, load):
    load.wait_acked(50)
    load.finish()
    assert ", 0 wrong" in parts.instances[0].run("unread", "verify")


def test_the_master_is_killed(parts, steady):
    before = parts.redis.master()
    killed = time.monotonic()
    before.kill()
    named = wait_other_master(parts.redis, before)
    followed = wait_followed(parts)
    print(f"named after {named - killed:.2f} s, used after {followed - named:.2f} s more")
    assert named - killed > DOWN_AFTER_MS / 1000 / 2 and followed - named <= PAUSE_S
    finish(parts, steady)


@pytest.mark.clusters
def test_a_failover_by_hand(parts, steady):
    """The former master lives on, as a replica."""
    before = parts.redis.master()
    parts.redis.sentinels[0].cli("SENTINEL", "FAILOVER", "tidings")
    wait_other_master(parts.redis, before)
    wait_followed(parts)
    finish(parts, steady)
    wait_until(lambda: before.cli("ROLE").startswith("slave"), what="the end of the former master")


@pytest.mark.clusters
def test_the_master_stands_still_and_comes_back(parts, steady):
    """It takes itself for the master until a Sentinel tells it otherwise."""
    before = parts.redis.master()
    before.kill(signal.SIGSTOP)
    wait_other_master(parts.redis, before)
    wait_followed(parts)
    steady.wait_acked(50)
    before.kill(signal.SIGCONT)
    finish(parts, steady)


@pytest.mark.clusters
def test_a_sentinel_is_dead(parts, steady):
    """Those that are left are asked, and fail over."""
    parts.redis.sentinels[0].kill()
    before = parts.redis.master()
    before.kill()
    wait_other_master(parts.redis, before)
    wait_followed(parts)
    finish(parts, steady)
