# SPDX-License-Identifier: Apache-2.0
"""Kafka that dies, stays away or stands still under load. No post ever fails of it."""
import signal

import pytest

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
