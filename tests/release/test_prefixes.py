# SPDX-License-Identifier: Apache-2.0
"""Findings of ./dev lint for names without the prefix of their struct, header or module."""
import pytest

from tools import prefixes
from tools.project import ROOT


def found(tmp_path, name, text):
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return prefixes.check(tmp_path)


def test_this_tree():
    assert prefixes.check(ROOT) == []


@pytest.mark.parametrize("text", [
    "struct cup;\nint cup_fill(void);", "enum colour { RED };\nconst char *colour_name(int colour);", "struct cup;\nvoid cups_wash(void);",
    "void held_drinks_pour(void);", "void drink_pour(void);", "void bar_open(void);", "NODISCARD int spoon_stir(struct spoon *spoon);",
    "bool spoon_is_clean(const struct spoon *spoon);", "static inline void anything(void)\n{\n    other();\n}", "// int nothing(void);",
    "#define POUR(x) \\\n    pour(x)\n",
])
def test_names_that_say_it(tmp_path, text):
    assert found(tmp_path, "src/bar/held_drinks.h", text + "\n") == []


@pytest.mark.parametrize("text, name", [
    ("int fill(void);", "fill"), ("struct cup;\nint cupfill(void);", "cupfill"), ("struct cup *pour(int number);", "pour"),
    ("void spoon_stir(int number, struct spoon *spoon);", "spoon_stir"), ("void f(int *a,\n       int b);", "f"),
])
def test_names_that_do_not(tmp_path, text, name):
    assert found(tmp_path, "src/bar/held_drinks.h", text + "\n") == [
        f"src/bar/held_drinks.h: {name}() lacks the prefix of its struct, header or module"]
