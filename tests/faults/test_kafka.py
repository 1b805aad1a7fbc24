# SPDX-License-Identifier: Apache-2.0
"""Kafka that dies, stays away or stands still under load: no post ever fails of it. And instances that die or end with it."""
import random
import re
import signal
import time

import pytest

from tests.faults.followers import all_came, heads
from tests.support.environment import Environment, running
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
    """What was committed and never produced is left in the outbox for the other instance."""
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
    """Each waits some seconds for it to hear that they leave."""
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


def test_kafka_lost_its_disk(parts, load):
    """It comes back empty: topics are made anew, what was not carried is sent again, and instances still end in order."""
    parts.kafka.kill()
    parts.kafka.wipe_data()
    load.works_for(8)  # longer than consumers are waited for
    parts.kafka.start()
    for instance in parts.instances:
        instance.kill(signal.SIGTERM)
    wait_until(lambda: all(instance.exit_code is not None for instance in parts.instances), 60, what="the end of both instances")
    for instance in parts.instances:
        assert instance.exit_code == 0
        instance.start()
    load.wait_acked(50)
    load.finish(QUIET_S)


def fanned_out(environment):
    pages = [environment.client(url=url).page("/metrics").text for url in environment.urls]
    return sum(int(n) for page in pages for n in re.findall(r"^tidings_events_fanned_out_total (\d+)", page, re.MULTILINE))


def test_topics_that_are_gone_are_made_anew(tmp_path_factory):
    """Also where the broker makes none by itself, and no instance is started again."""
    environment = Environment(tmp_path_factory.mktemp("topics"), kafka=True)
    environment.kafka.SETTINGS = {**environment.kafka.SETTINGS, "auto.create.topics.enable": "false"}
    for _ in running(environment):
        workspace = environment.workspace()
        ann = workspace.user()
        channel = workspace.channel(ann)
        ann.post(channel)
        environment.wait_fanned_out(channel)
        environment.kafka.kill()
        environment.kafka.wipe_data()
        environment.kafka.start()
        before = fanned_out(environment)
        for _ in range(20):
            ann.post(channel)
        wait_until(lambda: fanned_out(environment) >= before + 20, 60, what="what was posted since")
