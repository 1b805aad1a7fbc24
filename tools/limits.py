# SPDX-License-Identifier: Apache-2.0
"""Every limit, whether a setting or fixed, and every counter of what is refused or dropped, is described for operators."""
import re

from tools.project import ROOT

LIMITS = "docs/limits.md"
PAGES = (LIMITS, "docs/metrics.md", "docs/operations.md")
METRICS = "include/base/metrics.h"
SETTING = re.compile(r"\bINTEGER\([\s\\]*\w+, (\w+_(?:MAX|MAX_BYTES|MAX_EVENTS|BYTES|PARALLEL|BURST))(?<!_MIN_BYTES),")
FIXED = re.compile(r"\bLIMIT\([\s\\]*\w+, (\w+),")
COUNTER = re.compile(r'counter,[\s\\]*"(tidings_\w*(?:refused|dropped|full|too_many|too_large|waited|left|not_held)\w*_total)"')


def check(root=ROOT):
    """What none of the pages names."""
    pages = "".join(path.read_text(encoding="utf-8") for path in map(root.joinpath, PAGES) if path.exists())
    told = set(re.findall(r"`(\w+)", pages))
    settings = "".join(path.read_text(encoding="utf-8") for path in sorted(root.glob("include/*/*settings.h")))
    names = [f"TIDINGS_{name}" for name in SETTING.findall(settings)] + FIXED.findall(settings)
    names += dict.fromkeys(COUNTER.findall((root / METRICS).read_text(encoding="utf-8")))
    return [f"{LIMITS}: nothing about {name}" for name in names if name not in told]
