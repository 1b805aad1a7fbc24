# SPDX-License-Identifier: Apache-2.0
"""Findings of ./dev lint for limits and counters that operators read nothing about."""
import pytest

from tools import limits
from tools.project import ROOT

FILES = {
    "include/cup/cup_settings.h": '    INTEGER(cup_max, CUP_MAX, 5, 1, 9, "cups") \\\n    INTEGER( \\\n        cup_ms, CUP_MS, 5, 1, 9, "time") \\\n'
                                   '    INTEGER(cup_min_bytes, CUP_MIN_BYTES, 5, 1, 9, "bytes") \\\n    LIMIT( \\\n        cup_s, CUP_S, 5, "time")\n',
    "include/base/metrics.h": '    X(CUPS, counter, "tidings_cups_refused_total", "reason=\\"full\\"", "Cups") \\\n    X(CUP, gauge, "tidings_cups", "", "")\n',
    "docs/limits.md": "| cups | `TIDINGS_CUP_MAX`, `CUP_S` | `tidings_cups_refused_total{reason=\"full\"}` |\n",
}


@pytest.fixture
def tree(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_the_tree_as_it_is():
    assert limits.check(ROOT) == []


def test_all_is_there(tree):
    assert limits.check(tree) == []


@pytest.mark.parametrize("name", ["TIDINGS_CUP_MAX", "CUP_S", "tidings_cups_refused_total"])
def test_one_is_missing(tree, name):
    path = tree / "docs/limits.md"
    path.write_text(path.read_text(encoding="utf-8").replace(name, f"{name}x"), encoding="utf-8")
    assert limits.check(tree) == [f"docs/limits.md: nothing about {name}"]


def test_one_in_a_row_of_two_lines(tree):
    path = tree / "include/base/metrics.h"
    path.write_text('    X(CUPS, counter, \\\n      "tidings_cups_dropped_total", "", "Cups")\n', encoding="utf-8")
    assert limits.check(tree) == ["docs/limits.md: nothing about tidings_cups_dropped_total"]
