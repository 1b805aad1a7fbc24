# SPDX-License-Identifier: Apache-2.0
"""Each alert of deploy/prometheus fires for its fault, on real servers; none fires without a fault."""
import json
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest
import requests

from tests.support.environment import standing_still
from tests.support.metrics import metric
from tests.support.prometheus import Prometheus
from tests.support.retention import make_older
from tests.support.wait import wait_until
from tools.alerts import rules
from tools.service import free_port

pytestmark = pytest.mark.kafka
# So that faults show within seconds; an increase over minutes is that of the time that there is.
SHORTER = {"push_oldest_seconds) > 300": "push_oldest_seconds) > 3", "offset 30s": "offset 3s", "oldest_seconds) > 30": "oldest_seconds) > 3", "> 600": "> 3", "> 3600": "> 3",
           "unfinished_total[10m])) > 20": "unfinished_total[10m])) > 2",
           "refused_total[5m])) > 300": "refused_total[5m])) > 3",
           "housekeeping_failed_total[15m])) > 10": "housekeeping_failed_total[15m])) > 2"}
CALLS = 110  # more than a rule lets pass
STALLS = 5
WAITING = 60  # posts: twice as many as may
REFUSED = 8  # users
BROKEN = 4  # event streams
PUSH_TTL_S = 10  # tried last after 17 s: many measurements see that it is late


@pytest.fixture
def watched(parts):
    """An instance that its users meet the limits of at once, and audits all the time."""
    instance = parts.instance(rate_limits="auth.test=5", queue_max=32, audit_interval_s=1, loops=1, gap_events_max=1, gap_reads_max=1,
                              secret_key="00" * 32, events_api_private="true", push_ttl_s=PUSH_TTL_S)
    yield instance
    instance.kill(signal.SIGCONT)
    instance.kill()


@pytest.fixture
def prometheus(parts, watched, tmp_path):
    with Prometheus(tmp_path / "prometheus", [*parts.instances, watched], SHORTER) as server:
        yield server


class People:
    def __init__(self, parts, watched):
        workspace = parts.workspace()
        self.admin = workspace.admin.at(watched.url)
        self.ann, self.bob, *self.strangers = workspace.users(2 + REFUSED)
        self.there = self.bob.at(watched.url)
        self.channel = self.ann.ok("channels.create", name="room", strategy="counter")["channel"]["id"]
        self.ann.ok("channels.invite", channel=self.channel, users=[self.bob.id])
        for number in range(3):
            self.ann.post(self.channel, f"number {number}")
        self.others = [self.ann.ok("channels.create", name=f"other-{number}")["channel"]["id"] for number in range(8)]
        for channel in self.others:
            self.ann.ok("channels.invite", channel=channel, users=[self.bob.id])
        parts.wait_fanned_out(self.channel)


@pytest.fixture
def people(parts, watched):
    return People(parts, watched)


def too_many_calls(watched, people):
    for _ in range(CALLS):
        people.there.call("auth.test")


def too_large_bodies(watched, people):
    """Sent by strangers."""
    body = json.dumps({"text": "x" * 100_000})
    for _ in range(20):
        try:
            requests.post(f"{watched.url}/api/chat.postMessage", data=body, headers={"Content-Type": "application/json"}, timeout=30)
        except requests.ConnectionError:
            pass  # closed while it was sent


def locked_rows_and_a_full_queue(parts, watched, people):
    """More posts wait for a row than may; and some wait for each of several."""
    def post(channel):
        people.there.at(watched.url).call("chat.postMessage", channel=channel, text="waits")

    with parts.database() as database, ThreadPoolExecutor(WAITING) as pool, database.transaction():
        database.execute("SELECT 1 FROM channels WHERE id = ANY (%s) FOR UPDATE", [people.others])
        for channel in people.others:
            pool.submit(post, channel)
        wait_until(lambda: metric(watched, "tidings_store_locked_total") >= len(people.others), what="posts put aside")
        for _ in range(WAITING - len(people.others)):
            pool.submit(post, people.others[0])
        wait_until(lambda: metric(watched, "tidings_post_queue_full_total") > 0, what="posts that are refused")


def deadlock(parts):
    """Two sessions take two locks in opposite orders."""
    def take(session, key):
        try:
            session.execute("SELECT pg_advisory_lock(%s)", [key])
            return 0
        except psycopg.errors.DeadlockDetected:
            session.execute("SELECT pg_advisory_unlock_all()")  # for the other one, which still waits
            return 1

    with parts.database() as one, parts.database() as two, ThreadPoolExecutor(1) as pool:
        assert take(one, 4711) + take(two, 4712) == 0
        waiting = pool.submit(take, one, 4712)
        assert take(two, 4711) + waiting.result() == 1


def posts_that_are_refused(watched, people):
    """Each of another user, whose first one is not checked apart."""
    for user in people.strangers:
        user.at(watched.url).fails("channel_not_found", "chat.postMessage", channel="C0000000000", text="to nobody")


def streams_that_break(parts, watched, people):
    """Their backlog cannot be read while the table is locked."""
    last_id = people.there.stream().close()
    people.ann.post(people.channel, "missed")
    with parts.database() as database, ThreadPoolExecutor(BROKEN) as pool, database.transaction():
        database.execute("LOCK TABLE messages IN ACCESS EXCLUSIVE MODE")
        for broken in [pool.submit(lambda: people.there.stream(last_id).close()) for _ in range(BROKEN)]:
            broken.result()


def push_that_nobody_takes(people):
    """The address of its gateway is a closed port."""
    people.admin.ok("admin.pushApps.create", name="phones", platform="matrix")
    people.there.ok("devices.register", device_id="phone", app="phones", pushkey="key", url=f"http://127.0.0.1:{free_port()}/_matrix/push/v1/notify")
    people.ann.post(people.channel, f"<@{people.bob.id}>: are you there?")


def wrong_counts(parts, watched, people):
    key = f"unread:{{{people.bob.id}}}:{people.channel}"

    def drifted():
        people.bob.unread(people.channel)  # brings it to Redis
        if parts.redis.cli("HEXISTS", key, "n").strip() == "1":
            parts.redis.cli("HINCRBY", key, "n", "4")
        return metric(watched, "tidings_unread_drift_total") > 0
    wait_until(drifted, interval=0.3, what="an audit that finds it")


def records_that_are_no_events(parts):
    argv, environment = parts.kafka._java("kafka.tools.ConsoleProducer", "--bootstrap-server", parts.kafka.brokers,
                                          "--topic", "tidings.messages")
    subprocess.run(argv, env=environment, input=b"no event\n", check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def slow_instance(watched, people):
    """It is kept from running, while others post to its socket."""
    with people.there.socket() as socket:
        for number in range(STALLS):
            with standing_still(watched):
                people.ann.post(people.channel, f"stalled {number}")
                time.sleep(1.5)  # is what the fault is
            socket.expect({"text": f"stalled {number}"})


@contextmanager
def old_month_that_somebody_reads(parts, people):
    """As by pg_dump: the month cannot be detached. An instance looks for old months when it starts."""
    with parts.database() as database, parts.database() as reader:
        seqs = [database.execute("SELECT seq FROM messages WHERE channel_id = %s ORDER BY seq LIMIT 1", [people.channel]).fetchone()[0]]
        make_older(database, people.channel, seqs[0], seqs[0])
        with reader.transaction():
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            reader.execute("SELECT count(*) FROM messages")
            upkeep = parts.instance()
            try:
                yield
            finally:
                upkeep.kill()


def clock_that_was_stepped(parts):
    """As if it had been two hours ahead when it was noted last."""
    with parts.database() as database:
        database.execute("UPDATE clock_seen SET us = us + 7200 * 1000000::bigint")


def post_some(people):
    for number in range(20):
        people.ann.post(people.channel, f"to carry {number}")


def test_each_alert_fires_for_its_fault(parts, watched, prometheus, people):
    wait_until(lambda: len(prometheus.query("tidings_part_up == 1")) == 9, what="all that is scraped")
    assert prometheus.fired() <= {"TidingsKafkaLag"}, "all is well"  # the group is being joined
    push_that_nobody_takes(people)
    streams_that_break(parts, watched, people)
    with old_month_that_somebody_reads(parts, people), ThreadPoolExecutor(8) as pool:
        under_way = [pool.submit(records_that_are_no_events, parts), pool.submit(too_many_calls, watched, people),
                     pool.submit(too_large_bodies, watched, people), pool.submit(deadlock, parts),
                     pool.submit(posts_that_are_refused, watched, people)]
        locked_rows_and_a_full_queue(parts, watched, people)
        wrong_counts(parts, watched, people)
        for each in under_way:
            each.result()
        slow_instance(watched, people)
        prometheus.wait_fired("TidingsDeadlocks", "TidingsPostsRefused", "TidingsStreamsUnfinished", "TidingsRateLimited",
                              "TidingsBodiesRefused", "TidingsRowsLocked", "TidingsQueueFull", "TidingsLoopStall", "TidingsDeliverySlow",
                              "TidingsUnreadCountsWrong", "TidingsDeadLetters", "TidingsOldSnapshot",
                              "TidingsRetentionBehind", "TidingsPushesLate", "TidingsPushesDied")
    with people.there.socket(native=True) as socket, standing_still(parts.redis):
        post_some(people)
        socket.expect({"type": "gap"})
        prometheus.wait_fired("TidingsRedisUnreachable", "TidingsKafkaLag", "TidingsGaps")
    with standing_still(parts.kafka):
        post_some(people)
        prometheus.wait_fired("TidingsKafkaUnreachable", "TidingsOutboxOld")
    clock_that_was_stepped(parts)
    prometheus.wait_fired("TidingsClockStepped")
    parts.postgres.kill()
    watched.kill()
    prometheus.wait_fired("TidingsPostgresUnreachable", "TidingsInstanceDown", "TidingsHousekeepingFails")
    assert prometheus.fired() == {rule["alert"] for rule in rules()}
