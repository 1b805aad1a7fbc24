# SPDX-License-Identifier: Apache-2.0
"""Instances of Tidings that die, stop or hang under load."""
import random
import signal

from tests.support.wait import wait_until

KILLS = 8


def test_many_kills_between_commit_and_reply(parts, load):
    """Each kill -9 hits a busy instance at some moment; clients retry on the other one."""
    chance = random.Random(7)
    for number in range(KILLS):
        victim = parts.instances[number % 2]
        load.wait_acked(chance.randrange(5, 40))
        victim.kill()
        load.wait_acked(20)
        victim.start()
    load.finish()
    assert any(attempt.outcome == "info" for attempt in load.attempts()), "no kill ever hit a post"


def test_killed_with_work_that_nobody_was_told_of(parts, load):
    """Committed while Redis was stopped, by an instance that then died; no later event follows."""
    load.stop()
    parts.redis.kill(signal.SIGSTOP)
    for channel in load.channels:
        for number in range(3):
            load.post(load.people[0][0], channel, f"untold {number} in {channel}")
    parts.instances[0].kill()
    parts.redis.kill(signal.SIGCONT)
    parts.instances[0].start()
    load.settle(last_posts=False)
    load.judge()


def test_both_instances_killed_at_once(parts, load):
    for instance in parts.instances:
        instance.kill()
    for instance in parts.instances:
        instance.start()
    load.wait_acked(50)
    load.finish()


def test_sigterm_under_load_loses_nothing_and_exits_0(parts, load):
    for instance in parts.instances * 2:
        assert instance.stop() == 0
        load.wait_acked(20)
        instance.start()
        load.wait_acked(20)
    load.finish()
    closed = {log.closed for line in load.lines for log in line.logs}
    assert closed <= {1001, 1012}, f"sockets of an instance that ends were closed with {closed}"


def test_a_second_sigterm_does_not_hang(parts, load):
    victim = parts.instances[0]
    for _ in range(2):
        victim.kill(signal.SIGTERM)
    wait_until(lambda: victim.pid is None, what="the end of the instance")
    victim.start()
    load.wait_acked(20)
    load.finish()


def test_an_instance_stands_still_and_goes_on(parts, load):
    victim = parts.instances[0]
    victim.kill(signal.SIGSTOP)
    load.works_on(parts.urls[1], 3)
    victim.kill(signal.SIGCONT)
    load.wait_acked(50)
    load.finish()
