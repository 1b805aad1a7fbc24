# SPDX-License-Identifier: Apache-2.0
"""Findings of ./dev lint for names with two meanings."""
import pytest

from tools import names
from tools.project import ROOT


@pytest.fixture
def write(tmp_path):
    def write_file(path, text="int x;\n"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    return write_file


def test_the_tree_as_it_is():
    assert names.check(ROOT) == []


def test_a_file_and_its_header(tmp_path, write):
    write("src/base/text.c", "struct text *text_new(void);\n")
    write("include/base/text.h", "struct text;\nstruct text {\n    int length;\n};\n")
    assert names.check(tmp_path) == []


@pytest.mark.parametrize("kind", ["struct", "union", "enum", "static const struct"])
def test_a_tag_twice(tmp_path, write, kind):
    write("src/base/one.c", f"{kind} thing {{ int a; }};\n")
    write("src/chat/two.c", "struct thing {\n    int b;\n};\n")
    assert names.check(tmp_path) == ["the tag thing is in src/base/one.c and in src/chat/two.c"]


def test_a_file_name_twice(tmp_path, write):
    write("src/base/one.c")
    write("src/chat/one.c")
    assert names.check(tmp_path) == ["a file one.c is in src/base/one.c and in src/chat/one.c"]
