# SPDX-License-Identifier: Apache-2.0
"""Checks that no files of src/ include each other, or use functions or variables of each other, in a circle. A .c file and the header beside
it count as one. What is called through a table of functions is not used in this sense: so lower code calls up."""
import re
import subprocess
from collections import defaultdict
from pathlib import Path

from tools.project import ROOT, build

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
DEFINES = "TDBRV"  # nm's letters for global symbols that an object defines


def includes(directory):
    """Each file (without its ending) below the directory, with those there that it includes."""
    edges = defaultdict(set)
    for path in sorted(directory.rglob("*.[ch]")):
        name = path.relative_to(directory).with_suffix("")
        for header in INCLUDE.findall(path.read_text(encoding="utf-8")):
            target = (path.parent / header).resolve()
            if target.is_relative_to(directory) and target.exists():
                edges[name].add(target.relative_to(directory).with_suffix(""))
    return edges


def symbols(directory):
    """Of each object below the directory, by its source's name below src/: the global symbols that it defines, and those that it uses."""
    found = {}
    for path in sorted(directory.glob("CMakeFiles/tidings_*.dir/src/**/*.c.o")):
        defined, used = set(), set()
        for line in subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines():
            kind, name = line.split()[-2:]
            (used if kind == "U" else defined if kind in DEFINES else set()).add(name)
        parts = path.relative_to(directory).parts  # a checkout may itself be in a directory src
        source = Path(*parts[parts.index("src") + 1:]).with_suffix("").with_suffix("")
        found[source] = (defined, used)
    return found


def uses(found):
    """Each file with those whose symbols it uses."""
    home = {symbol: name for name, (defined, _) in found.items() for symbol in defined}
    return {name: {home[symbol] for symbol in used if symbol in home} for name, (_, used) in found.items()}


def circles(edges):
    """The files in a circle: the rest after repeatedly removing files that depend on no remaining file, and files that no remaining file
    depends on."""
    left = {name: targets - {name} for name, targets in edges.items()}
    while True:
        needed = set().union(*left.values()) if left else set()
        ends = {name for name in needed | set(left) if not left.get(name) or name not in needed}
        if not ends:
            return sorted(left)
        left = {name: targets - ends for name, targets in left.items() if name not in ends}


def check():
    found = (("include", includes((ROOT / "src").resolve())), ("use", uses(symbols(build("dev", "tidings")))))
    return [f"src: files that {verb} each other in circles: {', '.join(map(str, names))}"
            for verb, names in ((verb, circles(edges)) for verb, edges in found) if names]
