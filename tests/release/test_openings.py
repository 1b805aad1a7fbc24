# SPDX-License-Identifier: Apache-2.0
"""Findings of ./dev lint for .c files without an opening sentence about their purpose."""

import pytest

from tools import openings
from tools.project import ROOT

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
CODE = '#include "base/text.h"\n'


def said(tree, text):
    (tree.root / "src/base").mkdir()
    tree.write("src/base/text.c", text)
    return [problem for problem in openings.check(tree.root) if problem.startswith("src/base/")]


def test_the_tree_as_it_is():
    assert openings.check(ROOT) == []


@pytest.mark.parametrize("opening", ["// Checks UTF-8.\n", "// Checks\n// UTF-8.\n", "// Checks UTF-8. Any thread\n//\n",
                                     "// text.is: checks UTF-8.\n"])
def test_a_file_that_says_what_it_does(tree, opening):
    assert said(tree, f"{SPDX}{opening}{CODE}") == []


@pytest.mark.parametrize("text", [
    f"{SPDX}{CODE}", f"{SPDX}\n{CODE}", f"{SPDX}{CODE}// Checks UTF-8.\n", f"{SPDX}\n// Checks UTF-8.\n{CODE}",
    f"{SPDX}//\n{CODE}", f"{SPDX}// UTF-8\n{CODE}", f"{SPDX}// text.c\n{CODE}", "// Checks UTF-8.\n" + CODE,
])
def test_a_file_that_does_not(tree, text):
    assert said(tree, text) == ["src/base/text.c: the SPDX line must be followed by a sentence about the file's purpose"]
