# SPDX-License-Identifier: Apache-2.0
"""The faults of a soak with faults. The first instance is never killed, so that its memory is measured to the end."""
import time

import psycopg

from tests.support.environment import standing_still

WHILE_S = 3


def stands_still(service, load):
    with standing_still(service):
        load.works_for(WHILE_S)


def is_killed(service, load):
    service.kill()
    load.works_for(WHILE_S)
    service.start()


def redis_stands_still(parts, load):
    stands_still(parts.redis, load)


def redis_is_killed(parts, load):
    is_killed(parts.redis, load)


def redis_forgets(parts, load):
    parts.redis.cli("FLUSHALL")
    load.wait_acked(20)


def kafka_stands_still(parts, load):
    stands_still(parts.kafka, load)


def kafka_is_killed(parts, load):
    is_killed(parts.kafka, load)


def postgres_is_killed(parts, load):
    parts.postgres.kill()
    parts.postgres.start()
    load.wait_acked(20)


def an_instance_is_killed(parts, load):
    is_killed(parts.instances[1], load)


def an_instance_is_restarted(parts, load):
    assert parts.instances[1].stop() == 0
    load.works_for(WHILE_S)
    parts.instances[1].start()


def a_row_is_locked(parts, load):
    with psycopg.connect(parts.postgres.url) as holder:
        holder.execute("SELECT 1 FROM channels WHERE id = %s FOR UPDATE", [load.channels[0]])
        time.sleep(WHILE_S)  # no number of posts: sooner or later each poster waits for the row
        holder.rollback()


def a_snapshot_is_held(parts, load):
    with parts.held_snapshot():
        load.works_for(WHILE_S)


ALL = (redis_stands_still, redis_is_killed, redis_forgets, kafka_stands_still, kafka_is_killed, postgres_is_killed,
       an_instance_is_killed, an_instance_is_restarted, a_row_is_locked, a_snapshot_is_held)
