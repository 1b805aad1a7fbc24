# SPDX-License-Identifier: Apache-2.0
"""Kafka returns without its data: topics are created again, and undelivered events are sent again."""
import re
import signal

import pytest

from tests.support.environment import Environment, running
from tests.support.wait import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.long]
QUIET_S = 60  # a consumer that lost its broker may need half of it to go on


def test_kafka_lost_its_disk(parts, load):
    """It returns empty: topics are created again, undelivered events are sent again, and instances still shut down cleanly."""
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
    """Also if the broker does not create topics automatically, and no instance is restarted."""
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
        wait_until(lambda: fanned_out(environment) >= before + 20, 180, what="what was posted since")
