# SPDX-License-Identifier: Apache-2.0
"""Values that must not grow with time: read from the processes and the servers, and judged by fitted lines."""
import os
from dataclasses import dataclass

MIB = 1 << 20
WARM = 0.25  # of the time: until then caches and pools fill


def slope(points):
    """The slope of the best-fitting line; 0 for fewer than two different x."""
    count = len(points)
    mean_x = sum(x for x, _ in points) / count if points else 0
    mean_y = sum(y for _, y in points) / count if points else 0
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def warm(points):
    """Without the values of the first part of the time."""
    return points[int(len(points) * WARM):]


@dataclass
class Verdict:
    name: str
    first: float
    last: float
    rise: float  # `per` so much, by the line
    per: str
    is_good: bool

    def __str__(self):
        return (f"{self.name:28} {self.first:12.1f} {self.last:12.1f} {self.rise:+12.3f} {self.per:13}"
                f" {'ok' if self.is_good else 'GROWS'}")


def steady(name, points, room, share):
    """Points of (hour, value): over the warm part of the time the line rises by at most `room`, or `share` of its beginning."""
    kept = warm(points)
    rise = slope(kept)
    hours = kept[-1][0] - kept[0][0]
    is_good = rise * hours <= max(room, share * kept[0][1])
    return Verdict(name, kept[0][1], kept[-1][1], rise, "per hour", is_good)


def proportional(name, points, most, room):
    """Points of (messages, bytes): a message of the later half costs at most `room`, or `most` times one of the earlier half."""
    kept = warm(points)
    middle = len(kept) // 2
    earlier, later = slope(kept[:middle + 1]), slope(kept[middle:])
    return Verdict(name, kept[0][1] / MIB, kept[-1][1] / MIB, later, "B per message", later <= max(most * earlier, room))


def resident_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def redis_bytes(redis):
    return int(next(line.split(":")[1] for line in redis.cli("INFO", "memory").splitlines() if line.startswith("used_memory:")))


def postgres_bytes(database):
    return database.execute("SELECT pg_database_size(current_database())").fetchone()[0]
