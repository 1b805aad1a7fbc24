# SPDX-License-Identifier: Apache-2.0
"""Private Postgres, Redis, perhaps Kafka, and the instances of Tidings that use them, below one directory."""

import os
import re
import secrets
import signal
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.support.client import Client
from tests.support.metrics import metric
from tests.support.wait import wait_until
from tests.support.workspace import Workspace
from tools.services import Kafka, Postgres, Redis, Tidings, TlsRedis

ROOT = Path(__file__).resolve().parents[2]
BINARY = (ROOT / os.environ.get("TIDINGS_BINARY", "build/release/tidings")).resolve()

REDIS = {"plain": Redis, "tls": TlsRedis}[os.environ.get("TIDINGS_TEST_REDIS", "plain")]

# What sanitizers, assertions and aborts leave in a log.
TROUBLE = re.compile(
    r"AddressSanitizer|LeakSanitizer|ThreadSanitizer|UndefinedBehaviorSanitizer|runtime error:|"
    r"[Aa]ssertion .*failed|stack smashing|buffer overflow detected|free\(\)|"
    r"(?<!possibly )corrupted|double free"  # "possibly" says Postgres to whoever connects while it crashes
)

# The search_path of an instance: the functions that were made last, then the tables.
WITH_FUNCTIONS = ("SELECT set_config('search_path', functions || ', ' || current_setting('search_path'), false)"
                  " FROM versions_in_use ORDER BY made_at DESC LIMIT 1")


@contextmanager
def standing_still(service):
    """Stops it: it answers nothing, and receives all pending data at once when it continues."""
    service.kill(signal.SIGSTOP)
    try:
        yield
    finally:
        service.kill(signal.SIGCONT)


class Environment:
    """All servers for one set of tests. Call start() before use; stop() reports errors from inside.

    Tests kill processes, never the machine: their writes are safe with the kernel, and a slow disk slows no test.
    """

    def __init__(self, directory, instances=2, kafka=False, settings=None, recorder=None, binary=BINARY, redis=None):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.recorder = recorder
        self.binary = binary
        self.operator_token = secrets.token_urlsafe(32)
        self.settings = dict(settings or {})
        self.postgres = Postgres(self.directory / "postgres", settings={"fsync": "off"})
        self.redis = redis or REDIS(self.directory / "redis", options={"appendfsync": "no"})
        self.kafka = Kafka(self.directory / "kafka") if kafka else None
        self.instances = []
        self._count = instances
        self._made = 0

    def start(self):
        assert os.access(self.binary, os.X_OK), f"{self.binary} is not there: build it, or set TIDINGS_BINARY"
        for part in (self.postgres, self.redis, self.kafka):
            if part:
                part.start()
        self.instances = [self.instance(start=False) for _ in range(self._count)]
        self.prepare()
        for instance in self.instances:
            instance.start()
        return self

    def prepare(self):
        """Prepares the database before the first instance starts."""
        self.instances[0].migrate()

    def instance(self, start=True, **settings):
        """One more instance; `settings` by their lower-case names without TIDINGS_. The caller stops it."""
        self._made += 1
        chosen = {f"TIDINGS_{name.upper()}": str(value) for name, value in settings.items()}
        instance = Tidings(self.directory / f"tidings-{self._made}", self.binary, self._environment(chosen))
        if start:
            instance.start()
        return instance

    @contextmanager
    def apart(self, database, **settings):
        """An instance on a new database of that name; `settings` as for instance()."""
        instance = self.instance(start=False, database_url=self.postgres.create_database(database), **settings)
        instance.migrate()
        instance.start()
        try:
            yield instance
        finally:
            assert instance.stop() == 0

    def _environment(self, chosen):
        settings = {
            "TIDINGS_DATABASE_URL": self.postgres.url,
            "TIDINGS_REDIS_URL": self.redis.url,
            "TIDINGS_OPERATOR_TOKEN": self.operator_token,
            "TIDINGS_INSTANCE": f"test-{self._made}",
            "TIDINGS_GOODBYE_MS": "500",
            "TIDINGS_GAP_TIMEOUT_MS": "10000",  # Postgres may be slow: that is no gap
        }
        if self.kafka:
            settings["TIDINGS_KAFKA_BROKERS"] = self.kafka.brokers
        return {**settings, **self.settings, **chosen}

    @property
    def urls(self):
        return [instance.url for instance in self.instances]

    def workspace(self):
        """A new workspace on the first instance."""
        return Workspace(self.urls, self.operator_token, self.recorder)

    def client(self, token=None, url=None):
        return Client(url or self.urls[0], token, self.recorder)

    def database(self, url=None):
        """A connection to Postgres in autocommit mode, with the functions of the build; the caller closes it."""
        database = psycopg.connect(url or self.postgres.url, autocommit=True)
        if database.execute("SELECT to_regclass('versions_in_use')").fetchone()[0]:
            database.execute(WITH_FUNCTIONS)
        return database

    @contextmanager
    def held_snapshot(self):
        """Somebody holds one for as long, and all instances know."""
        for instance in self.instances:
            wait_until(lambda one=instance: metric(one, "tidings_postgres_oldest_snapshot_seconds") == 0, what="the end of others")
        with self.database() as holder:
            holder.autocommit = False
            holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            holder.execute("SELECT count(*) FROM channels")
            for instance in self.instances:
                wait_until(lambda one=instance: metric(one, "tidings_postgres_oldest_snapshot_seconds") >= 1, what="word of the snapshot")
            yield
            holder.rollback()

    def wait_fanned_out(self, channel):
        """Waits until the fan-out has brought on all that happened in the channel."""
        with self.database() as database:
            wait_until(lambda: database.execute("SELECT count(*) FROM outbox WHERE NOT done AND %s = ANY (channels)",
                                                [channel]).fetchone()[0] == 0, what="the end of the fan-out")

    def heal(self):
        """Starts dead processes and continues stopped ones."""
        for service in filter(None, (self.postgres, self.redis, self.kafka, *self.instances)):
            service.kill(signal.SIGCONT)
            service.start()
        self.redis.cli("CONFIG", "SET", "maxmemory", "0")

    def stop(self):
        """Stops everything and deletes the data (logs of Tidings stay); returns what went wrong."""
        trouble = []
        for instance in self.instances:
            trouble += end_of(instance)
        for part in (self.kafka, self.redis, self.postgres):
            if part:
                part.stop()
                part.wipe()
        return trouble


def running(environment):
    """For fixtures (yield from): the environment, started; fails if an error occurred inside."""
    try:
        yield environment.start()
    finally:
        trouble = environment.stop()
    assert not trouble, "\n".join(trouble)


def end_of(instance):
    """Stops an instance by SIGTERM and returns its trouble: an exit code other than 0, sanitizer output in its log."""
    if instance.pid is None:
        return [f"{instance.url} had ended with {instance.exit_code}", *log_trouble(instance)]
    trouble = []
    code = instance.stop()
    if code != 0:
        trouble.append(f"{instance.url} exited with {code} on SIGTERM")
    return trouble + log_trouble(instance)


def log_trouble(instance):
    """The lines of an instance's log that tell of sanitizer reports or failed assertions; none when it never started."""
    if not instance.log.exists():
        return []
    with open(instance.log, encoding="utf-8", errors="replace") as log:
        return [f"{instance.log}: {line.rstrip()}" for line in log if TROUBLE.search(line)]
