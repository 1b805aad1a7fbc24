# SPDX-License-Identifier: Apache-2.0
"""A local variable with cleanup is initialised in its declaration: a return before its first use must not free an undefined value."""
import re

from tools.project import ROOT

WITHOUT_VALUE = re.compile(r"^[ \t]+CLEANUP(?:_\w+)?(?:\(\w+\))? [^=;{}]*;", re.MULTILINE)


def check(root=ROOT):
    found = []
    for directory in ("src", "include"):
        for path in sorted((root / directory).rglob("*.[ch]")):
            text = path.read_text(encoding="utf-8")
            found += [f"{path.relative_to(root)}:{text.count(chr(10), 0, one.start()) + 1}: a local variable with cleanup is not initialised"
                      for one in WITHOUT_VALUE.finditer(text)]
    return found
