# SPDX-License-Identifier: Apache-2.0
"""Redis with two replicas and three Sentinels, which make a replica the master when the master fails."""
from tools.service import wait_until
from tools.services import REDIS, Redis

MASTER = "tidings"  # the name that the Sentinels give it
SERVERS = SENTINELS = 3
DOWN_AFTER_MS = 2000


class Member(Redis):
    """One of the servers."""

    def __init__(self, directory, port, name, options=None):
        self.name = name
        super().__init__(directory, port, options=options)


class Sentinel(Redis):
    """One of the Sentinels. It keeps in its file what it finds out. `lines` are added to that."""

    def __init__(self, directory, port, name, master_port, lines=""):
        self.name = name
        super().__init__(directory, port)
        self.file = self.directory / "sentinel.conf"
        self.master_port = master_port
        self.lines = lines

    def prepare(self):
        if not self.file.exists():
            self.file.write_text(f"port {self.port}\nbind 127.0.0.1\ndir {self.directory}\n"
                                 f"sentinel monitor {MASTER} 127.0.0.1 {self.master_port} 2\n"
                                 f"sentinel down-after-milliseconds {MASTER} {DOWN_AFTER_MS}\n"
                                 f"sentinel failover-timeout {MASTER} 6000\n{self.lines}", encoding="ascii")

    def command(self):
        return [f"{REDIS}-server", self.file, "--sentinel"], super().command()[1]

    def state(self):
        """Its view of the master, by field."""
        words = self.cli("SENTINEL", "MASTER", MASTER).splitlines()
        return dict(zip(words[::2], words[1::2]))

    def is_settled(self):
        state = self.state()
        return int(state["num-slaves"]) == SERVERS - 1 and int(state["num-other-sentinels"]) == SENTINELS - 1


class SentinelRedis:
    """All six. What Tidings and the tests do to a Redis is done to the one that is the master."""

    name = "redis"

    def __init__(self, directory, ports, options=None):
        self.members = [Member(directory / f"redis-{number}", ports[number - 1], f"redis-{number}", options) for number in range(1, SERVERS + 1)]
        self.sentinels = [Sentinel(directory / f"sentinel-{number}", ports[SERVERS + number - 1], f"sentinel-{number}", ports[0])
                          for number in range(1, SENTINELS + 1)]
        for member in self.members[1:]:
            member.options["replicaof"] = f"127.0.0.1 {ports[0]}"

    @property
    def services(self):
        return self.members + self.sentinels

    @property
    def url(self):
        return f"redis+sentinel://{','.join(f'127.0.0.1:{sentinel.port}' for sentinel in self.sentinels)}/{MASTER}"

    def start(self, wait=True, timeout=None):
        if not any(service.pid for service in self.services):
            for sentinel in self.sentinels:  # the first server is the master again
                sentinel.file.unlink(missing_ok=True)
        for service in self.services:
            service.start(wait=False)
        if wait:
            for service in self.services:
                service.wait_ready(timeout)
            wait_until(self._is_settled, 60, "the Sentinels do not know all servers, or some are no replicas")

    def _is_settled(self):
        return (all(sentinel.is_settled() for sentinel in self.sentinels)
                and f"connected_slaves:{SERVERS - 1}" in self.cli("INFO", "replication"))

    def master(self):
        """The server that the Sentinels name."""
        sentinel = next(sentinel for sentinel in self.sentinels if sentinel.pid)
        port = int(sentinel.cli("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER).splitlines()[1])
        return next(member for member in self.members if member.port == port)

    def cli(self, *arguments):
        return self.master().cli(*arguments)

    def kill(self, *signals):
        for service in self.services:
            service.kill(*signals)

    def stop(self):
        for service in reversed(self.services):
            service.stop()

    def restart(self):
        self.stop()
        self.start()

    def wipe(self):
        for service in self.services:
            service.wipe()
