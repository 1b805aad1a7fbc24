# SPDX-License-Identifier: Apache-2.0
"""Kafka that dies, stays down or hangs under load: no post ever fails because of it. Also instances that die or stop at the same time."""
import random
import re
import signal
import time

import pytest

from tests.faults.followers import all_came, heads
from tests.support.wait import wait_until

pytestmark = pytest.mark.kafka
QUIET_S = 60  # a consumer that lost its broker may need half of it to go on


def test_kill_9_of_kafka_and_its_return(parts, load):
    parts.kafka.kill()
    load.works_for(1)
    parts.kafka.start()
    load.wait_acked(50)
    load.finish(QUIET_S)
    assert load.failed() == []


def test_kafka_stays_away_for_a_while(parts, load):
    parts.kafka.kill()
    load.works_for(5)
    parts.kafka.start()
    load.finish(QUIET_S)
    assert load.failed() == []


def test_kafka_stands_still(parts, load):
    parts.kafka.kill(signal.SIGSTOP)
    load.works_for(3)
    parts.kafka.kill(signal.SIGCONT)
    load.wait_acked(50)
    load.finish(QUIET_S)
    assert load.failed() == []


def test_instance_and_kafka_die_together(parts, load):
    """Events that were committed but not produced are left in the outbox for the other instance."""
    parts.kafka.kill()
    load.wait_acked(50)
    parts.instances[0].kill()
    load.wait_acked(20)
    parts.kafka.start()
    parts.instances[0].start()
    load.finish(QUIET_S)


def test_many_kills_with_kafka(parts, load):
    chance = random.Random(8)
    for number in range(4):
        victim = parts.instances[number % 2]
        load.wait_acked(chance.randrange(5, 40))
        victim.kill()
        load.wait_acked(20)
        victim.start()
    load.finish(QUIET_S)


def test_killed_with_work_that_kafka_was_not_told_of(parts, load):
    load.stop()
    parts.kafka.kill(signal.SIGSTOP)
    for channel in load.channels:
        load.post(load.people[0][0], channel, f"untold in {channel}")
    parts.instances[0].kill()
    parts.kafka.kill(signal.SIGCONT)
    parts.instances[0].start()
    load.settle(QUIET_S, last_posts=False)
    load.judge(QUIET_S)


def test_many_workers_end_together_while_kafka_stands_still(parts):
    """Each waits some seconds for the broker's reply to its leaving the group."""
    instance = parts.instance(workers=8, drain_ms=1000)
    workspace = parts.workspace()
    channels = [workspace.channel(workspace.admin) for _ in range(8)]

    def has_joined():
        for channel in channels:
            workspace.admin.post(channel)
        return re.search(r"^tidings_events_fanned_out_total [1-9]", workspace.admin.at(instance.url).page("/metrics").text, re.MULTILINE)

    try:
        wait_until(has_joined, 60, what="a share of the group's work")
        parts.kafka.kill(signal.SIGSTOP)
        begun = time.monotonic()
        assert instance.stop() == 0
        assert time.monotonic() - begun < 1 + 24  # one after the other they would take a minute
    finally:
        parts.kafka.kill(signal.SIGCONT)
        instance.stop()


def test_sigterm_under_load_with_kafka(parts, load):
    for instance in parts.instances:
        assert instance.stop() == 0
        instance.start()
        load.wait_acked(20)
    load.finish(QUIET_S)


def test_kills_under_load_with_kafka(parts, load, followers):
    since = heads(load)
    for number in range(4):
        victim = parts.instances[number % 2]
        load.wait_acked(30)
        victim.kill()
        load.wait_acked(20)
        victim.start()
    all_came(load, followers, since, 60)
    load.settle(60)
    load.judge(60)
