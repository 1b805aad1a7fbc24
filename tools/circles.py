# SPDX-License-Identifier: Apache-2.0
"""Checks that no files of a module include each other in a circle. A .c file and its header count as one."""
import re
from collections import defaultdict

from tools.project import ROOT

MODULES = ("gateway", "http")

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def graph(directory):
    """Each file (without its ending) below the directory, with those there that it includes."""
    edges = defaultdict(set)
    for path in sorted(directory.rglob("*.[ch]")):
        name = path.relative_to(directory).with_suffix("")
        edges[name] |= set()
        for header in INCLUDE.findall(path.read_text(encoding="utf-8")):
            target = (path.parent / header).resolve()
            if target.is_relative_to(directory) and target.exists():
                edges[name].add(target.relative_to(directory).with_suffix(""))
        edges[name].discard(name)
    return edges


def circles(edges):
    """The files in a circle: the rest after repeatedly removing files that include no remaining file, and files that no remaining file
    includes."""
    left = {name: set(targets) for name, targets in edges.items()}
    while True:
        included = set().union(*left.values()) if left else set()
        ends = {name for name, targets in left.items() if not targets or name not in included}
        if not ends:
            return sorted(left)
        left = {name: targets - ends for name, targets in left.items() if name not in ends}


def check():
    problems = []
    for module in MODULES:
        directory = (ROOT / "src" / module).resolve()
        names = circles(graph(directory))
        if names:
            problems.append(f"src/{module}: circular includes: {', '.join(map(str, names))}")
    return problems
