# SPDX-License-Identifier: Apache-2.0
"""What ./dev lint says of a `void *` that becomes a struct."""
import pytest

from tools import casts, lint

C = ["cc", "-std=c17"]
START = """#include <stdlib.h>
#define CAST(name, object) ((struct name*)(object))
struct cup {
    unsigned tag;
    void *next;
};
void fill(struct cup *cup);
void pour(void *arg, const void *other, struct cup *cup, struct cup **cups)
{
"""
LINE = START.count("\n") + 1


def found(tmp_path, line):
    path = tmp_path / "src" / "bar" / "one.c"
    path.parent.mkdir(parents=True)
    path.write_text(f"{START}    {line}\n    (void)arg, (void)other, (void)cup, (void)cups;\n}}\n", encoding="utf-8")
    return casts.check(C, tmp_path)


@pytest.mark.parametrize("line", ["fill(CAST(cup, arg));", "cup = calloc(1, sizeof *cup);", "cup = arg ? malloc(sizeof *cup) : NULL;",
                                  "cups = realloc(cups, sizeof(struct cup *));", "char *text = arg;", "struct cup **all = arg;",
                                  "void *grown = realloc(cup, 2 * sizeof *cup);\n    cup = grown;", "cup = NULL;", "arg = cup;"])
def test_right(tmp_path, line):
    assert found(tmp_path, line) == []


@pytest.mark.parametrize("line", ["struct cup *one = arg;", "cup = arg;", "fill(arg);", "const struct cup *one = other;", "cup = cup->next;",
                                  "fill((struct cup *)arg);", "((struct cup *)arg)->tag = 1;", "cup = arg ? arg : NULL;"])
def test_wrong(tmp_path, line):
    assert found(tmp_path, line) == [f"src/bar/one.c:{LINE}: becomes a struct cup without CAST()"]


def test_what_does_not_compile(tmp_path):
    with pytest.raises(RuntimeError, match="does not compile"):
        found(tmp_path, "spill();\n    cup = ;")


def test_exceptions_are_needed(monkeypatch):
    """Each exception still names a place that the check would report."""
    named = set(casts.EXCEPTIONS)
    monkeypatch.setattr(casts, "EXCEPTIONS", {})
    reported = {(problem.split(":")[0], problem.split("a struct ")[1].split(" ")[0]) for problem in lint.check_casts()}
    assert reported == named
