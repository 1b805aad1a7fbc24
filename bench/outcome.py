# SPDX-License-Identifier: Apache-2.0
"""The results of a row's runs."""
import statistics
from dataclasses import dataclass, field

P50_MAX = 1.5  # of the floor's, where a row is about how long something takes


@dataclass
class Outcome:
    """The result of a row's runs. `fine` is false if a condition other than the value failed."""
    value: float
    runs: list
    floor: float = None
    floor_runs: list = field(default_factory=list)
    fine: bool = True
    extra: dict = field(default_factory=dict)

    @property
    def ratio(self):
        """To the floor: the middle one of the pairs that ran one after the other, where there are such."""
        if not self.floor:
            return None
        if len(self.runs) != len(self.floor_runs):
            return self.value / self.floor
        return statistics.median(run / floor for run, floor in zip(self.runs, self.floor_runs))


def middle(results, key):
    return statistics.median(result[key] for result in results)


def latencies(results, prefix=""):
    return {name: middle(results, prefix + name) for name in ("p50_ms", "p99_ms", "max_ms")}


def alternate(bench, floor, ours, pairs=None):
    """Both in turn, so that what else the machine does meets both; the floor first."""
    pairs = [(floor(), ours()) for _ in range(pairs or bench.pairs)]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def against(floors, ours, key):
    return Outcome(value=middle(ours, key), runs=[run[key] for run in ours],
                   floor=middle(floors, key), floor_runs=[run[key] for run in floors],
                   extra=latencies(ours) if "p50_ms" in ours[0] else {})


def ratio_of(floors, ours, key):
    """The middle one of the pairs' ratios."""
    return statistics.median(run[key] / floor[key] for floor, run in zip(floors, ours))


def against_waits(floors, ours, prefix="", fine=True, extra=None):
    """The p99 against the floor's, which the row's target bounds; the p50 may be P50_MAX of the floor's."""
    p50_ratio = ratio_of(floors, ours, prefix + "p50_ms")
    outcome = against(floors, ours, prefix + "p99_ms")
    outcome.fine = fine and p50_ratio <= P50_MAX
    outcome.extra = {**latencies(ours, prefix), "floor_p50_ms": middle(floors, prefix + "p50_ms"),
                     "p50_ratio": p50_ratio, "p50_target": P50_MAX, **(extra or {})}
    return outcome
