# SPDX-License-Identifier: Apache-2.0
"""The table and the plots of docs/unread.md: SVG, written as text, readable on light and on dark."""
import math
from pathlib import Path

from bench import strategies

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 340, 78, 96, 40, 48
COLOURS = {"sequence": "#3b82c4", "zset": "#d1495b", "counter": "#d98a1f", "bitmap": "#3a9d6c"}
TEXT = "#808080"


def number(value):
    """1,000 as 1,000; small numbers with their significant digits."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.3g}"


def decades(low, high):
    return [10.0 ** power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


class Axis:
    """Logarithmic, over whole decades."""

    def __init__(self, values, start, end):
        self.ticks = decades(min(values), max(values))
        self.start, self.end = start, end

    def place(self, value):
        first, last = math.log10(self.ticks[0]), math.log10(self.ticks[-1])
        return self.start + (math.log10(value) - first) / (last - first) * (self.end - self.start)


def text(x, y, words, anchor="middle", colour=TEXT):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{words}</text>'


def line(x1, y1, x2, y2):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{TEXT}" stroke-opacity="0.3"/>'


def document(title, parts):
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
            f' font-family="sans-serif" font-size="12" role="img" aria-label="{title}">')
    return "\n".join([head, text(LEFT, 20, title, "start"), *parts, "</svg>"]) + "\n"


def spread(places, least=14):
    """Labels of lines that end side by side, moved apart."""
    moved, last = {}, -math.inf
    for name, place in sorted(places.items(), key=lambda item: item[1]):
        moved[name] = last = max(place, last + least)
    return moved


def lines_plot(title, xs, series, x_title):
    """Lines over `xs`, named where they end; both axes logarithmic."""
    x_axis = Axis(xs, LEFT, WIDTH - RIGHT)
    y_axis = Axis([value for values in series.values() for value in values], HEIGHT - BOTTOM, TOP)
    parts = [part for tick in y_axis.ticks for part in (
        line(LEFT, y_axis.place(tick), WIDTH - RIGHT, y_axis.place(tick)),
        text(LEFT - 8, y_axis.place(tick) + 4, number(tick), "end"))]
    parts += [text(x_axis.place(x), HEIGHT - BOTTOM + 18, number(x)) for x in xs]
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x_title))
    labels = spread({name: y_axis.place(values[-1]) for name, values in series.items()})
    for name, values in series.items():
        points = " ".join(f"{x_axis.place(x):.1f},{y_axis.place(y):.1f}" for x, y in zip(xs, values))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[name]}" stroke-width="2"/>')
        parts.append(text(WIDTH - RIGHT + 8, labels[name] + 4, name, "start", COLOURS[name]))
    return document(title, parts)


def bars_plot(title, values):
    """A bar per strategy, with its number; logarithmic."""
    axis = Axis(list(values.values()), LEFT, WIDTH - RIGHT)
    parts = []
    for place, (name, value) in enumerate(values.items()):
        y, end = TOP + 10 + place * 34, axis.place(value)
        parts.append(f'<rect x="{LEFT}" y="{y}" width="{end - LEFT:.1f}" height="20" fill="{COLOURS[name]}"/>')
        parts += [text(LEFT - 8, y + 14, name, "end"), text(end + 6, y + 14, number(value), "start")]
    return document(title, parts).replace(f'0 0 {WIDTH} {HEIGHT}"', f'0 0 {WIDTH} {TOP + 20 + 34 * len(values)}"').replace(
        f'height="{HEIGHT}" ', f'height="{TOP + 20 + 34 * len(values)}" ', 1)


def table(costs):
    heads = ["strategy", "memory of a member", *[f"post, {size:,} members" for size in strategies.SIZES], "read"]
    rows = [[f"`{cost.strategy}`", f"{cost.member_bytes:,.2f} B", *[f"{us:,.1f} µs" for us in cost.post_us], f"{cost.read_us:.1f} µs"]
            for cost in costs]
    return "\n".join("| " + " | ".join(row) + " |" for row in [heads, ["---"] * len(heads), *rows])


def run(directory):
    """Measures, prints the table, and draws into `directory`."""
    with strategies.private_redis() as redis:
        costs = strategies.all_costs(redis)
    print(table(costs))
    posts = lines_plot("Redis' time for one post, µs", strategies.SIZES, {cost.strategy: cost.post_us for cost in costs},
                       "members of the channel")
    memory = bars_plot("Memory of a member in Redis, bytes (logarithmic)", {cost.strategy: cost.member_bytes for cost in costs})
    for name, drawn in (("unread-post.svg", posts), ("unread-memory.svg", memory)):
        (Path(directory) / name).write_text(drawn, encoding="utf-8")
