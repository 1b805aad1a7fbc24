# SPDX-License-Identifier: Apache-2.0
"""./dev soak: a mixed load of all methods on two instances, Postgres, Redis and Kafka, in rounds. Each round has its own workspace, is
judged by the checker of the fault tests, and may have faults; values that must not grow are measured across all rounds."""
import argparse
import random
import sys
import tempfile
import threading
import time

import requests

from tests.faults.load import Load
from tests.soak import figures, troubles
from tests.support.cast import Cast, Scene, arguments_of, filled
from tests.support.environment import Environment, log_trouble, running
from tools import authorization

CALM_S = 15  # at the beginning of each round, in which answers are timed
ROUND_S = 45
FAULTS = 2  # in a round
QUIET_S = 90  # a consumer that lost its broker may need half of it
CALLERS = ("member", "creator", "bot", "admin_in", "admin", "outsider")


class Visitor(threading.Thread):
    """Calls all methods one after the other, as different users. Its only requirement is a reply to each."""

    def __init__(self, environment, chance):
        super().__init__(daemon=True)
        self.cast = Cast(environment)
        self.chance = chance
        self.lines = list(authorization.table().rows)
        self.stopping = threading.Event()
        self.calls = 0

    def run(self):
        while not self.stopping.wait(0.01):
            try:
                self.call(*self.chance.choice(self.lines), self.chance.choice(CALLERS))
                self.calls += 1
            except (requests.RequestException, ValueError, AssertionError, KeyError):
                self.cast.forget_channels()  # a fault: what was made may be half made

    def call(self, method, kind, name):
        caller = self.cast.callers[name]
        reply = caller.call(method, **filled(arguments_of(method, kind), Scene(self.cast, kind, caller)))
        if reply["ok"]:
            self.cast.forget_channels()

    def stop(self):
        self.stopping.set()
        self.join()


class Soak:
    def __init__(self, environment, minutes, faults, seed):
        self.environment = environment
        self.minutes = minutes
        self.faults = faults
        self.chance = random.Random(seed)
        self.began = time.monotonic()
        self.series = {name: [] for name in ("rss", "descriptors", "p99")}
        self.sizes = {"postgres": [], "redis": []}
        self.messages = self.calls = self.rounds = 0

    @property
    def hours(self):
        return (time.monotonic() - self.began) / 3600

    def run(self):
        while self.hours * 60 < self.minutes:
            self.round()
            self.measure()
            print(f"round {self.rounds}, {self.hours * 60:.1f} min: {self.messages} messages, {self.calls} other calls,"
                  f" {self.series['rss'][-1][1]:.1f} MiB, p99 {self.series['p99'][-1][1]:.1f} ms", flush=True)
        return self.verdicts()

    def round(self):
        visitor = Visitor(self.environment, self.chance)
        with Load(self.environment, seed=self.chance.randrange(1 << 30)) as load:
            visitor.start()
            time.sleep(CALM_S)
            self.series["p99"].append((self.hours, p99_ms(load)))
            for _ in range(FAULTS if self.faults else 0):
                trouble = self.chance.choice(troubles.ALL)
                print(f"  {trouble.__name__}", flush=True)
                trouble(self.environment, load)
            time.sleep(max(0, ROUND_S - CALM_S - FAULTS * troubles.WHILE_S))
            visitor.stop()
            self.environment.heal()
            load.finish(QUIET_S)
            self.messages += load.acked
        self.calls += visitor.calls
        self.rounds += 1
        trouble = [line for instance in self.environment.instances for line in log_trouble(instance)]
        assert not trouble, "\n".join(trouble)

    def measure(self):
        pid = self.environment.instances[0].pid
        self.series["rss"].append((self.hours, figures.resident_mib(pid)))
        self.series["descriptors"].append((self.hours, figures.descriptors(pid)))
        with self.environment.database() as database:
            self.sizes["postgres"].append((self.messages, figures.postgres_bytes(database)))
        self.sizes["redis"].append((self.messages, figures.redis_bytes(self.environment.redis)))

    def verdicts(self):
        return [
            figures.steady("resident memory, MiB", self.series["rss"], 4, 0.10),
            figures.steady("descriptors", self.series["descriptors"], 8, 0.10),
            figures.steady("p99 of calls, ms", self.series["p99"], 20, 0.50),
            figures.proportional("Postgres, MiB", self.sizes["postgres"], 1.25, 1000),
            figures.proportional("Redis, MiB", self.sizes["redis"], 1.25, 100),
        ]


def p99_ms(load):
    """The p99 of all calls of the posters and readers so far."""
    taken = sorted(outcome.ended - outcome.began for thread in (*load.posters, *load.readers) for outcome in list(thread.outcomes.all))
    return 1000 * taken[int(len(taken) * 0.99)]


def main():
    parser = argparse.ArgumentParser(prog="./dev soak")
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    seed = random.randrange(1 << 30) if arguments.seed is None else arguments.seed
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="tidings-soak-") as directory:
        for environment in running(Environment(directory, kafka=True)):
            soak = Soak(environment, arguments.minutes, arguments.faults, seed)
            verdicts = soak.run()
    print(f"\n{soak.rounds} rounds, {soak.messages} messages, {soak.calls} other calls; nothing lost, doubled or miscounted")
    print(f"{'':28} {'first':>12} {'last':>12} {'rises by':>12}")
    print("\n".join(map(str, verdicts)))
    return 0 if all(verdict.is_good for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
