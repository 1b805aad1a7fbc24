# SPDX-License-Identifier: Apache-2.0
"""The servers of a bench run, private to it, and the load program that drives them."""
import fcntl
import json
import os
import shutil
import subprocess
import time

from tools.services import Kafka, Postgres, Redis, ServiceError, Tidings, free_port

OPERATOR_TOKEN = "bench-operator-token-of-a-private-server"
# As in use, but for the log of every request: the peers were measured without theirs.
SETTINGS = {"TIDINGS_LOG_LEVEL": "warn", "TIDINGS_ACCESS_LOG": "false",
            "TIDINGS_OPERATOR_TOKEN": OPERATOR_TOKEN,
            # Calls are counted as ever, and none is refused.
            "TIDINGS_RATE_LIMIT": "1000000000", "TIDINGS_RATE_CHANNEL": "1000000000"}


# A cluster in use writes its log into segments that were there before; a new one makes each of them first.
WAL_SEGMENTS = 64
WAL_SQL = "SELECT pg_logical_emit_message(true, 'bench', 'x'); SELECT pg_switch_wal();"


CALM_MS = 3
CALM_WITHIN_S = 15


class SetUpError(Exception):
    """Tidings refused a call of the set-up."""


class LoadError(Exception):
    """tidings-bench failed: there is no result."""


def cpu_of_tree(pid):
    """Seconds of CPU of a process, of its children, and of those that it has waited for."""
    def fields(of):
        with open(f"/proc/{of}/stat", encoding="utf-8") as stat:
            return stat.read().rsplit(")", 1)[1].split()

    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
        found = [fields(child)[11:13] for child in children.read().split()]
    ticks = sum(int(part) for part in fields(pid)[11:15]) + sum(int(part) for parts in found for part in parts)
    return ticks / os.sysconf("SC_CLK_TCK")


class Rig:
    """Postgres, Redis, Tidings and the floor; Kafka once it is asked for."""

    def __init__(self, programs, home):
        self.home = home
        self.home.mkdir(parents=True, exist_ok=True)
        self._lock = open(self.home / "lock", "w", encoding="ascii")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LoadError(f"another bench is running in {self.home}") from None
        for left in self.home.iterdir():
            if left.is_dir():
                shutil.rmtree(left)
        self.programs = programs
        self.data = self.home / "data.json"
        self.floor_data = self.home / "floor.json"
        self.postgres = Postgres(self.home / "postgres", settings={"min_wal_size": f"{WAL_SEGMENTS * 16}MB"})
        self.redis = Redis(self.home / "redis")
        self.kafka = None
        self.tidings = None
        self.environment = None
        self.floor = None

    def start(self):
        self.postgres.start()
        for _ in range(WAL_SEGMENTS):
            self.postgres.sql(WAL_SQL)
        self.postgres.sql("CHECKPOINT")
        self.redis.start()
        self.environment = {**SETTINGS, "TIDINGS_DATABASE_URL": self.postgres.url,
                            "TIDINGS_REDIS_URL": self.redis.url}
        self.tidings = Tidings(self.home / "tidings", self.programs / "tidings", self.environment)
        self.tidings.migrate()
        self.tidings.start()

    def settle(self):
        """Vacuums and syncs everything written so far, so that the next measurement pays only for its own writes."""
        for database in ("tidings", "floor"):
            if self.postgres.sql(f"SELECT 1 FROM pg_database WHERE datname = '{database}'"):
                self.postgres.sql("VACUUM", database)
        self.postgres.sql("CHECKPOINT")
        os.sync()
        self._wait_for_disk()

    def _wait_for_disk(self):
        """A disk behind a hypervisor keeps stalling for some 15 s after a gigabyte was written, synced or not."""
        end = time.monotonic() + CALM_WITHIN_S
        while self.load("disk", file=self.home / "disk")["p99_ms"] > CALM_MS and time.monotonic() < end:
            pass

    def stop(self):
        self.stop_floor()
        for service in (self.tidings, self.kafka, self.redis, self.postgres):
            if service is not None:
                service.stop()
        self.postgres.wipe()

    def restart_tidings(self, kafka=False, settings=None):
        """Restarts it, with Kafka or with its own log, and with other settings than usual."""
        brokers = {"TIDINGS_KAFKA_BROKERS": self.kafka.brokers} if kafka else {}
        self.tidings.stop()
        self.tidings.environment.clear()
        self.tidings.environment.update({**self.environment, **brokers, **(settings or {})})
        self.tidings.start()

    def start_kafka(self):
        if self.kafka is None:
            self.kafka = Kafka(self.home / "kafka")
        self.kafka.start()

    def start_floor(self, *arguments):
        """Starts tidings-floor and returns its port."""
        self.stop_floor()
        port = free_port()
        with open(self.home / "floor.log", "ab") as log:
            self.floor = subprocess.Popen(
                [self.programs / "tidings-floor", arguments[0], "--port", str(port),
                 *map(str, arguments[1:])], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=log, text=True)
        if self.floor.stdout.readline() != "ready\n":
            raise ServiceError(f"tidings-floor does not answer, see {self.home / 'floor.log'}")
        return port

    def _floor_database(self):
        if not self.postgres.sql("SELECT 1 FROM pg_database WHERE datname = 'floor'"):
            self.postgres.create_database("floor")
        return self.postgres.database_url("floor")

    def _write_floor_data(self, port, data=None):
        """The floor's own copy of the data, with its address."""
        data = {**json.loads((data or self.data).read_text()), "url": f"http://127.0.0.1:{port}"}
        self.floor_data.write_text(json.dumps(data))

    def start_post_floor(self, bare):
        """The floor of posts, with heads and a count in Redis unless it is `bare`."""
        redis = [] if bare else ["--redis", self.redis.port]
        self._write_floor_data(self.start_floor("posts", "--database", self._floor_database(), *redis))

    def start_delivery_floor(self):
        """The floor of posts whose frames go to sockets, and of marks."""
        self._write_floor_data(self.start_floor("posts", "--database", self._floor_database(), "--data", self.data))

    def start_reads_floor(self, place=None):
        """The floor of channels.info and unread.sync: it reads Tidings' own rows, or those of another place. Returns its port."""
        url, data = (place.database_url, place.data) if place else (self.postgres.url, self.data)
        port = self.start_floor("reads", "--database", url, "--data", data)
        self._write_floor_data(port, data)
        return port

    def stop_floor(self):
        if self.floor is not None:
            self.floor.terminate()
            self.floor.wait()
            self.floor.stdout.close()
            self.floor = None

    def load(self, command, **arguments):
        """Runs one measurement of tidings-bench and returns its output."""
        arguments = {"data": self.data, **arguments}
        if command in ("listen", "pauses", "disk"):
            del arguments["data"]
        argv = [self.programs / "tidings-bench", command]
        for name, value in arguments.items():
            argv += [f"--{name.replace('_', '-')}", str(value)]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise LoadError(f"{command}: {done.stderr.strip()[:500]}")
        return json.loads(done.stdout)

    def cpu_s(self):
        """The CPU time of Tidings, Redis and Postgres so far, with all their processes."""
        return sum(cpu_of_tree(service.pid) for service in (self.tidings, self.redis, self.postgres))

    def tidings_cpu_s(self):
        return cpu_of_tree(self.tidings.pid)

    def resident_mb(self):
        """Resident memory of Tidings, once it does not move any more."""
        def read():
            with open(f"/proc/{self.tidings.pid}/status", encoding="ascii") as status:
                return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
        last = read()
        for _ in range(10):
            time.sleep(0.3)
            if read() == last:
                break
            last = read()
        return last / 1024


__all__ = ["LoadError", "OPERATOR_TOKEN", "Rig", "ServiceError", "SetUpError"]
