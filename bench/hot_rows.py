# SPDX-License-Identifier: Apache-2.0
"""The row about posts at full rate to one channel."""
from bench.outcome import against, alternate

CLIENTS = 64


def measure_hot(bench):
    bench.add_group("hot", bench.data["groups"]["small"][:1])
    floors, ours = alternate(bench, lambda: bench.turn("posts", clients=CLIENTS), lambda: bench.turn("posts", group="hot", clients=CLIENTS))
    return against(floors, ours, "rate")
