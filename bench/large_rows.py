# SPDX-License-Identifier: Apache-2.0
"""Rows about a channel of 1,000,000 messages in a database that is far larger than Postgres' memory, against one of 1,000 on the same
Postgres: two databases, each with its own Redis and Tidings, and with the same users and channels."""
import json
from contextlib import ExitStack, contextmanager

from bench.data import Api, forget_copies, make_channel, make_user
from bench.outcome import against, alternate
from bench.rig import OPERATOR_TOKEN, SETTINGS
from tools.services import Postgres, Redis, Tidings

BUFFERS_MB = 16
SIZES = {"small": 1_000, "large": 1_000_000}
MEMBERS = 20
CHANNELS = 100  # that the reader is in besides
SPAN_S = 500_000  # between the first message and the last
# In the channel's order after what the API made there; nobody has read any.
MESSAGES_SQL = """
SET search_path = {functions}, public;
CREATE TEMP TABLE span AS SELECT (extract(epoch FROM date_trunc('second', now()))::bigint - {span}) * 1000000 AS began;
SELECT message_partition_make(to_timestamp((SELECT began FROM span) / 1e6));
INSERT INTO messages (channel_id, ts, seq, ord, user_id, author_posts, counted, body)
SELECT c.id, began + n * ({span} * 1000000::bigint / {messages}), c.seq + n, c.ord + n, (ARRAY[{users}])[1 + n % {members}],
       1 + n / {members}, true, repeat('x', 256)
FROM channels c, span, generate_series(1, {messages}) n WHERE c.id = '{channel}';
UPDATE channels c SET (seq, ord, last_ts, updated_ts, latest_ts, latest_user, latest_preview) = (
    SELECT m.seq, m.ord, m.ts, m.ts, m.ts, m.user_id, 'x' FROM messages m WHERE m.channel_id = c.id ORDER BY m.ts DESC LIMIT 1)
WHERE c.id = '{channel}';
UPDATE channel_members SET posts = {messages} / {members} + 1 WHERE channel_id = '{channel}';
"""
FUNCTIONS_SQL = "SELECT functions FROM versions_in_use ORDER BY made_at DESC LIMIT 1"
BEGAN_SQL = "SELECT (min(ts) / 1000000)::bigint FROM messages WHERE channel_id = '{channel}'"
TABLE_MB_SQL = "SELECT sum(pg_total_relation_size(inhrelid)) / 1048576 FROM pg_inherits WHERE inhparent = 'messages'::regclass"


class Place:
    """A database with its Redis and its Tidings, as data.forget_copies() knows them."""

    def __init__(self, rig, postgres, name):
        self.name = name
        self.postgres = postgres
        self.redis = Redis(rig.home / f"{name}-redis")
        self.database_url = postgres.create_database(name)
        environment = {**SETTINGS, "TIDINGS_DATABASE_URL": self.database_url, "TIDINGS_REDIS_URL": self.redis.url}
        self.tidings = Tidings(rig.home / f"{name}-tidings", rig.programs / "tidings", environment)
        self.data = rig.home / f"{name}.json"
        self.began_s = None

    def __enter__(self):
        self.redis.start()
        self.tidings.migrate()
        self.tidings.start()
        return self

    def __exit__(self, *_):
        self.tidings.stop()
        self.redis.stop()

    def sql(self, text):
        return self.postgres.sql(text, self.name)

    def make(self):
        """Users, channels by the API, messages by SQL."""
        api = Api(self.tidings.port)
        admin = api(OPERATOR_TOKEN, "admin.workspaces.create", name="Large", domain="large")["admin"]["token"]
        users = [make_user(api, admin, f"user-{n}") for n in range(MEMBERS)]
        one = make_channel(api, users, "one", range(MEMBERS))
        others = [make_channel(api, users, f"other-{n}", range(2)) for n in range(CHANNELS)]
        self.data.write_text(json.dumps({"url": self.tidings.url, "users": users, "groups": {"one": [one], "others": others}}))
        self.make_messages(one["id"], users)

    def make_messages(self, channel, users):
        functions = self.sql(FUNCTIONS_SQL)
        self.sql(MESSAGES_SQL.format(functions=functions, channel=channel, messages=SIZES[self.name], span=SPAN_S, members=MEMBERS,
                                     users=", ".join(f"'{user['id']}'" for user in users)))
        self.sql("VACUUM ANALYZE")
        self.began_s = int(self.sql(BEGAN_SQL.format(channel=channel)))
        forget_copies(self)


@contextmanager
def places(rig):
    """The small one and the large one."""
    postgres = Postgres(rig.home / "large-postgres", settings={"shared_buffers": f"{BUFFERS_MB}MB", "min_wal_size": "1GB"})
    with ExitStack() as stack:
        stack.callback(postgres.wipe)
        stack.callback(postgres.stop)
        postgres.start()
        made = [stack.enter_context(Place(rig, postgres, name)) for name in SIZES]
        for place in made:
            place.make()
        postgres.sql("CHECKPOINT")
        yield made


def measure_all(bench):
    """One set-up for all three rows. Posts come last, since they make more messages."""
    def compare(command, **arguments):
        small, large = (lambda place=place: bench.turn(command, data=place.data, **arguments, **span(place, command)) for place in made)
        outcome = against(*alternate(bench, small, large, bench.wait_pairs), "rate")
        outcome.extra["messages_mb"] = float(made[1].sql(TABLE_MB_SQL))
        return outcome

    def span(place, command):
        return {"from_s": place.began_s, "span_s": SPAN_S} if command == "history" else {}

    with places(bench.rig) as made:
        for place in made:
            bench.turn("posts", data=place.data, group="others", total=CHANNELS * 10)
        return {"large_history": compare("history", group="one", clients=16),
                "large_sync": compare("sync", user=0),
                "large_posts": compare("posts", group="one", clients=64)}


def large_of(name):
    def measure(bench):
        if not bench.large:
            bench.large = measure_all(bench)
        return bench.large[name]
    return measure
