# SPDX-License-Identifier: Apache-2.0
"""Wrong clocks: of instances, since Postgres' clock is used for all, and of Postgres."""
import time

import pytest

from tests.faults.load import Load
from tests.support.environment import Environment, running
from tests.support.metrics import metric
from tests.support.phones import Phone, receiver
from tests.support.retention import make_older
from tests.support.skew import Skew
from tests.support.wait import wait_until
from tests.support.workspace import Workspace

HOUR_S, DAY_S = 3600, 86400


@pytest.fixture(params=[HOUR_S, -HOUR_S], ids=["an hour ahead", "an hour behind"])
def wrong(parts, request, tmp_path):
    instance = parts.instance(start=False)
    instance.environment.update(Skew(tmp_path, request.param).environment)
    instance.start()
    yield instance
    assert instance.stop() == 0


def test_a_load_on_a_clock_that_is_wrong(parts, wrong):
    with Load(parts, urls=[wrong.url, parts.urls[0]]) as load:
        load.wait_acked(100)
        load.finish()
        assert load.failed() == []


def test_tokens_end_when_postgres_says_so(parts, wrong):
    workspace = Workspace([parts.urls[0]], parts.operator_token)
    [ann] = workspace.users(1)

    def client(seconds):
        made = workspace.admin.ok("admin.tokens.create", user_id=ann.id, expires_in=seconds)
        return parts.client(made["token"], wrong.url)

    long, short = client(600), client(1)
    assert long.ok("auth.test")["user_id"] == ann.id
    wait_until(lambda: short.call("auth.test").get("error") == "token_expired", what="the end of a token")
    assert long.ok("auth.test")["user_id"] == ann.id


# Days behind which a month more is not the next month's same day, and the ends of years and days.
MOMENTS = ["2026-11-30 23:59:59.999999Z", "2026-12-01Z", "2026-12-31 23:59:59.999999Z", "2027-01-01Z", "2027-01-29 12:00Z",
           "2027-01-31 12:00Z", "2027-12-31 12:00Z", "2028-02-29 12:00Z", "2027-08-31 23:59:59Z"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_this_month_and_the_next_two_are_always_there(parts, moment):
    """Whenever it is that they are made."""
    year, month = map(int, moment.split("-")[:2])
    wanted = {f"messages_{year + (month - 1 + more) // 12}_{(month - 1 + more) % 12 + 1:02}" for more in range(3)}
    with parts.database() as database, database.transaction(force_rollback=True):
        for name, in database.execute("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'messages'::regclass").fetchall():
            database.execute(f"DROP TABLE {name}")
        database.execute("CREATE SCHEMA clock")
        database.execute(f"CREATE FUNCTION clock.now() RETURNS timestamptz LANGUAGE sql AS $$SELECT '{moment}'::timestamptz$$")
        database.execute("SET LOCAL TimeZone = UTC")
        database.execute("SELECT set_config('search_path', 'clock, ' || current_setting('search_path') || ', pg_catalog', true)")
        database.execute("SELECT message_partitions_make()")
        made = database.execute("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'messages'::regclass").fetchall()
        assert {name for name, in made} == wanted


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    matrix, settings = receiver(tmp_path_factory.mktemp("gateway"))
    yield matrix, settings
    matrix.close()


@pytest.fixture(scope="module")
def stepped(tmp_path_factory, gateway):
    """Two instances on a Postgres whose clock can be stepped: `clock`."""
    environment = Environment(tmp_path_factory.mktemp("stepped"), settings={**gateway[1], "TIDINGS_AUDIT_PAIRS": "0"})
    environment.clock = Skew(environment.postgres.home)
    environment.postgres.environment = environment.clock.environment
    yield from running(environment)


class Life:
    """Ann and Bob in a channel, with what they have there before the clock is stepped."""

    def __init__(self, stepped, gateway):
        workspace = stepped.workspace()
        self.ann, self.bob, self.cid = workspace.users(3)
        self.channel = workspace.channel(self.ann, self.bob)
        self.phone = Phone(workspace, self.bob, gateway[0])
        self.oldest = self.ann.post(self.channel, "from last month")
        self.root = self.ann.post(self.channel, "root")
        self.keyed = self.send("kept")
        self.ann.post(self.channel, f"<@{self.bob.id}> first")
        wait_until(lambda: self.phone.texts, what="a push")
        self.said = ["root", "kept"]

    def age(self, database):
        """The first message and the key are older: right clocks keep them still."""
        database.execute("SELECT channel_cool(%s)", [self.channel])
        seq = database.execute("SELECT min(seq) FROM messages WHERE channel_id = %s AND counted", [self.channel]).fetchone()[0]
        make_older(database, self.channel, seq, seq, 60 * DAY_S * 1_000_000)
        database.execute("UPDATE message_keys SET created = created - interval '6 days 23 hours 30 minutes' WHERE user_id = %s", [self.ann.id])

    def send(self, key):
        return self.ann.ok("chat.postMessage", channel=self.channel, text=key, client_msg_id=key)["ts"]

    def go_on(self, word):
        """One of each call that takes a ts; all of them must succeed."""
        ts = self.ann.post(self.channel, f"post {word}")
        gone = self.ann.post(self.channel, f"gone {word}")
        reply = self.ann.ok("chat.postMessage", channel=self.channel, thread_ts=self.root, text=f"<@{self.bob.id}> reply {word}")["ts"]
        assert ts < gone < reply
        self.ann.ok("chat.update", channel=self.channel, ts=ts, text=f"edited {word}")
        self.ann.ok("chat.delete", channel=self.channel, ts=gone)
        self.ann.ok("channels.setTopic", channel=self.channel, topic=word)
        self.cid.ok("channels.join", channel=self.channel)
        self.cid.ok("channels.leave", channel=self.channel)
        self.said.append(f"edited {word}")

    def check(self):
        """What is there, for Bob, who has read nothing of it."""
        texts = [m["text"] for m in reversed(self.bob.history(self.channel)) if not m.get("subtype")]
        assert [text for text in texts if text in self.said] == self.said
        assert texts[0] == "from last month"
        listed = self.bob.ok("threads.list")
        assert [t["unread_count"] for t in listed["threads"]] == [listed["totals"]["unread_count"]]
        assert self.bob.ok("threads.list", unread_only=True)["threads"] == listed["threads"]
        assert self.send("kept") == self.keyed

    def hears(self, word):
        """The next mention is pushed."""
        self.ann.post(self.channel, f"<@{self.bob.id}> {word}")
        wait_until(lambda: any(text.endswith(word) for text in self.phone.texts), what=f"the push of {word}")


STEPS = {"an hour back": -HOUR_S, "an hour ahead": HOUR_S, "70 days ahead": 70 * DAY_S, "400 days ahead": 400 * DAY_S}


@pytest.fixture
def clock(stepped):
    yield stepped.clock
    stepped.clock.step(0)


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_postgres_clock_is_stepped_for_one_statement(stepped, gateway, clock, step):
    life = Life(stepped, gateway)
    with stepped.database() as database:
        life.age(database)
    with Load(stepped) as load:
        load.wait_acked(30)
        clock.step(step)
        life.ann.ok("chat.update", channel=life.channel, ts=life.root, text="root")
        clock.step(0)
        life.go_on("after")
        load.wait_acked(30)
        life.check()
        life.hears("again")
        load.finish()
    wait_until(lambda: metric(stepped.instances[0], "tidings_clock_ahead_seconds") >= max(step, 0) * 0.9, what="word of a ts ahead")


def live_through(stepped, gateway, step, lasts_s):
    """An instance starts meanwhile, and so deletes what is old by that clock; another afterwards."""
    life = Life(stepped, gateway)
    with stepped.database() as database:
        life.age(database)
    with Load(stepped) as load:
        load.wait_acked(30)
        stepped.clock.step(step)
        ends = time.monotonic() + lasts_s
        started = [stepped.instance()]
        load.wait_acked(100)
        life.go_on("during")
        life.hears("wrong")
        wait_until(lambda: metric(started[0], "tidings_clock_hold_seconds") > 0, what="word of the step")
        wait_until(lambda: time.monotonic() > ends, timeout=lasts_s + 1, interval=1, what="the end of the step")
        life.go_on("at the end")
        stepped.clock.step(0)
        started.append(stepped.instance())
        load.wait_acked(100)
        life.go_on("after")
        life.check()
        life.hears("right")
        load.finish()
        for instance in started:
            assert metric(instance, "tidings_months_dropped_total") == 0
            assert instance.stop() == 0


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_postgres_clock_is_stepped_for_a_while(stepped, gateway, clock, step):
    live_through(stepped, gateway, step, 0)


@pytest.mark.long
@pytest.mark.parametrize("step", [-HOUR_S, 400 * DAY_S], ids=["an hour back", "400 days ahead"])
def test_postgres_clock_is_stepped_for_ten_minutes(stepped, gateway, clock, step):
    live_through(stepped, gateway, step, 600)
