# SPDX-License-Identifier: Apache-2.0
"""Findings of ./dev lint in the table of outcomes per method and caller."""

import pytest

from tools import authorization
from tools.project import ROOT

METHODS = "src/api/methods.c"
LINE = "channels.kick              private "


def said(tree):
    return authorization.check(tree.root)


def test_the_tree_as_it_is():
    assert authorization.check(ROOT) == []


def test_a_method_without_a_line(tree):
    tree.replace(METHODS, '{"api.test",', '{"api.news", ACCESS_OPEN, NULL, api_test},\n    {"api.test",')
    assert said(tree) == [f"{authorization.TABLE}: line api.news - is missing"]


def test_a_line_without_a_method(tree):
    tree.replace(METHODS, '{"api.test",', '{"api.older",')
    assert said(tree) == [f"{authorization.TABLE}: line api.older - is missing", f"{authorization.TABLE}: there is no method api.test"]


@pytest.mark.parametrize("planted, problems", [
    (f"#{LINE}", ["line channels.kick private is missing"]),
    (LINE.replace("private", "secret"), ["line channels.kick private is missing", "channels.kick is not called on channels of kind secret"]),
    (LINE.replace("private", "public"), ["duplicate line for channels.kick public", "line channels.kick private is missing"]),
    (f"{LINE} ok", ["has 15 outcomes, but the heading has 14 callers", "line channels.kick private is missing"]),
])
def test_a_line_that_is_wrong(tree, planted, problems):
    tree.replace(authorization.TABLE, LINE, planted)
    found = said(tree)
    assert len(found) == len(problems) and all(text.endswith(problem) for text, problem in zip(found, problems, strict=True)), found


def test_a_method_that_takes_no_channel(tree):
    tree.replace(authorization.TABLE, "users.list                 -      ", "users.list                 public ")
    assert said(tree) == [f"{authorization.TABLE}: line users.list - is missing",
                          f"{authorization.TABLE}: users.list is not called on channels of kind public"]
