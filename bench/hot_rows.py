# SPDX-License-Identifier: Apache-2.0
"""Rows about posts at full rate to one channel, of one instance and of two, and for a quarter of an hour."""
import json
from concurrent.futures import ThreadPoolExecutor

from bench.outcome import Outcome, against, alternate, latencies, middle
from tools.services import Tidings

CLIENTS = 64


def to_many(bench):
    return bench.turn("posts", clients=CLIENTS)


def add_hot(bench):
    bench.add_group("hot", bench.data["groups"]["small"][:1])


def measure_hot(bench):
    add_hot(bench)
    floors, ours = alternate(bench, lambda: to_many(bench), lambda: bench.turn("posts", group="hot", clients=CLIENTS))
    return against(floors, ours, "rate")


class Second:
    """Another instance on the same servers, for as long as it is needed; `data` is the set-up with its address."""

    def __init__(self, rig):
        self.tidings = Tidings(rig.home / "second", rig.programs / "tidings", rig.environment)
        self.data = rig.home / "second.json"
        self.data.write_text(json.dumps({**json.loads(rig.data.read_text()), "url": self.tidings.url}))

    def __enter__(self):
        self.tidings.start()
        return self

    def __exit__(self, *_):
        self.tidings.stop()


def measure_hot_two(bench):
    """Half of the clients at each instance; the floor is one instance alone, with all of them and 50 channels."""
    add_hot(bench)
    second = Second(bench.rig)

    def both():
        with second, ThreadPoolExecutor(2) as pool:
            halves = [pool.submit(bench.turn, "posts", data=data, group="hot", clients=CLIENTS // 2, warm_ms=1000)
                      for data in (bench.rig.data, second.data)]
            runs = [half.result() for half in halves]
        return {"rate": sum(run["rate"] for run in runs),
                **{key: max(run[key] for run in runs) for key in ("p50_ms", "p99_ms", "max_ms")}}

    floors, ours = alternate(bench, lambda: to_many(bench), both)
    return against(floors, ours, "rate")


def measure_minutes(bench):
    """A minute's posts/s to the floor's, after `full_minutes` of them, against the first one's."""
    def of_floor():
        return middle([bench.turn("posts", data=bench.rig.floor_data, clients=CLIENTS) for _ in range(3)], "rate")

    bench.rig.start_post_floor(False)
    before = of_floor()
    minutes = [bench.load("posts", clients=CLIENTS, seconds=bench.minute_s, warm_ms=1000) for _ in range(bench.full_minutes + 1)]
    after = of_floor()
    bench.rig.stop_floor()
    rates = [minute["rate"] for minute in minutes]
    return Outcome(rates[-1] / after / (rates[0] / before), rates,
                   extra={**latencies(minutes[-1:]), "first_rate": rates[0], "last_rate": rates[-1], "of_first": rates[-1] / rates[0],
                          "floor_before": before, "floor_after": after})
