# SPDX-License-Identifier: Apache-2.0
"""The services of ./dev up, all below .run/. What must outlive a run (ports, tokens, how it was
started) is in .run/state.json; which processes there are is asked of /proc, so that any ./dev can
restart or stop what another one started."""
import os
import secrets

from tools.phones import PLATFORMS, Phones
from tools.project import BUILD, RUN, Failure, read_json, write_private
from tools.redis_sentinel import SENTINELS, SERVERS, SentinelRedis
from tools.services import Kafka, Postgres, Redis, Tidings, TlsRedis, free_port, port_is_free

STATE = RUN / "state.json"
LOG = RUN / "tidings.log"
PUSHES = RUN / "push.jsonl"
REDIS_PORTS = [f"redis-{number}" for number in range(1, SERVERS + 1)] + [f"sentinel-{number}" for number in range(1, SENTINELS + 1)]


class Stack:
    """Postgres, Redis, perhaps Kafka and phones, and the instances of Tidings, in the order they start."""

    def __init__(self):
        self.state = read_json(STATE) or {"ports": {}, "operator_token": secrets.token_urlsafe(32)}
        ports = self.state["ports"]
        for name in ("postgres", "redis", "kafka", "controller", "phones", *PLATFORMS, *REDIS_PORTS):
            ports.setdefault(name, free_port())
        self.postgres = Postgres(RUN / "postgres", ports["postgres"])
        self.redis = self._redis()
        self.kafka = Kafka(RUN / "kafka", ports["kafka"], controller_port=ports["controller"])
        self.phones = Phones(RUN / "phones", ports, PUSHES)

    def _redis(self):
        kind = self.state.get("run", {}).get("redis", "plain")  # a run of an older checkout does not say
        ports = self.state["ports"]
        if kind == "sentinel":
            return SentinelRedis(RUN / "sentinel", [ports[name] for name in REDIS_PORTS])
        return {"plain": Redis, "tls": TlsRedis}[kind](RUN / "redis", ports["redis"])

    def save(self):
        write_private(STATE, self.state)

    def configure(self, preset, kafka, instances, port, push=False, redis="plain"):
        """Stores the settings of this run. They include the caller's own TIDINGS_* settings, except those that `port` and the private
        servers determine."""
        settings = {key: value for key, value in os.environ.items()
                    if key.startswith("TIDINGS_") and key != "TIDINGS_LISTEN"}
        self.state["run"] = {"preset": preset, "kafka": kafka, "instances": instances,
                             "port": port, "push": push, "redis": redis, "settings": settings}
        if push:  # what is sealed with a key is to be read in later runs, too
            self.state.setdefault("secret_key", secrets.token_hex(32))
        self._renew_taken_ports()
        self.save()

    def _renew_taken_ports(self):
        """Called with nothing running: what holds one of our ports then is another program."""
        ports = self.state["ports"]
        for name, port in ports.items():
            if not port_is_free(port):
                ports[name] = free_port()
        self.postgres.port, self.redis = ports["postgres"], self._redis()
        self.kafka.port, self.kafka.controller_port = ports["kafka"], ports["controller"]
        self.phones.port = ports["phones"]

    @property
    def run(self):
        if "run" not in self.state:
            raise Failure("nothing has been started yet: ./dev up")
        return self.state["run"]

    @property
    def push(self):
        return self.run.get("push", False)  # a run of an older checkout does not say

    @property
    def servers(self):
        """The services that Tidings needs, in the order in which they start."""
        return [self.postgres, *self.redis.services] + [self.kafka] * self.run["kafka"] + [self.phones] * self.push

    @property
    def instances(self):
        settings = {
            **self.run["settings"],
            "TIDINGS_DATABASE_URL": self.postgres.url,
            "TIDINGS_REDIS_URL": self.redis.url,
            "TIDINGS_OPERATOR_TOKEN": self.state["operator_token"],
        }
        settings.setdefault("TIDINGS_FILES_URL", f"file://{RUN / 'files'}")
        if "secret_key" in self.state:
            settings.setdefault("TIDINGS_SECRET_KEY", self.state["secret_key"])
        if self.push:
            settings.update(self.phones.settings)
        if self.run["kafka"]:
            settings["TIDINGS_KAFKA_BROKERS"] = self.kafka.brokers
        return self._instances(settings)

    def _instances(self, settings):
        binary = BUILD / self.run["preset"] / "tidings"
        return [Tidings(RUN / f"tidings-{index}", binary,
                        {**settings, "TIDINGS_INSTANCE": f"tidings-{index}"},
                        self.run["port"] + index, LOG)
                for index in range(self.run["instances"])]

    def part(self, name):
        """The services that `./dev restart NAME` means."""
        if name == "tidings":
            return self.instances
        if name == "kafka" and not self.run["kafka"]:
            raise Failure("this run has no Kafka: ./dev up --kafka")
        if name == "phones" and not self.push:
            raise Failure("this run has no phones: ./dev up --push")
        if name in REDIS_PORTS:
            return self._redis_part(name)
        return [getattr(self, name)]

    def _redis_part(self, name):
        found = [service for service in self.redis.services if service.name == name]
        if not found:
            raise Failure(f"this run has no {name}: ./dev up --redis-sentinel")
        return found

    def start(self):
        self.redis.start(wait=False)
        for service in self.servers:  # together: the slowest one decides
            service.start(wait=False)
        for service in self.servers:
            service.start()
        self.redis.start()
        instances = self.instances
        instances[0].migrate()
        for instance in instances:
            instance.start()

    def stop(self):
        """Stops all servers, Tidings first, including those left by a killed run."""
        if "run" in self.state:
            for service in [*self._instances({}), self.phones, self.kafka, *self.redis.services, self.postgres]:
                service.stop()
