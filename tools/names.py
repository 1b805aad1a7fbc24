# SPDX-License-Identifier: Apache-2.0
"""A name means one thing: tags of structs, unions and enums, and names of files, are unique below src/ and include/."""
import re
from collections import defaultdict

from tools.project import ROOT

DEFINITION = re.compile(r"^(?:[ \t]*(?:static |const |typedef )*)(?:struct|union|enum) (\w+) *\{", re.MULTILINE)


def sources(root):
    return sorted(path for directory in ("src", "include") for path in (root / directory).rglob("*.[ch]"))


def doubled(places, what):
    return [f"{what} {name} is in {' and in '.join(sorted(where))}" for name, where in sorted(places.items()) if len(where) > 1]


def check(root=ROOT):
    tags, files = defaultdict(set), defaultdict(set)
    for path in sources(root):
        name = str(path.relative_to(root))
        files[path.name].add(name)
        for found in DEFINITION.finditer(path.read_text(encoding="utf-8")):
            tags[found[1]].add(name)
    return doubled(files, "a file") + doubled(tags, "the tag")
