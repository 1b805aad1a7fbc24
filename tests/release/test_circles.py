# SPDX-License-Identifier: Apache-2.0
"""The check for circles of files finds those that are planted for it, and no others."""

import subprocess

import pytest

from tools import circles

CIRCLES = [
    ({"a.c": ["a.h", "b.h"], "a.h": [], "b.c": ["b.h"], "b.h": []}, []),
    ({"a.c": ["a.h", "b.h"], "a.h": [], "b.c": ["b.h", "a.h"], "b.h": []}, ["a", "b"]),
    ({"a.c": ["b.h"], "a.h": [], "b.h": ["c/c.h"], "c/c.c": ["../a.h"], "c/c.h": [], "d.c": ["a.h"], "d.h": []}, ["a", "b", "c/c"]),
    ({"a.c": ["a.h", "base/b.h"], "a.h": [], "base.c": ["a.h"]}, []),
]


def names(edges):
    return [str(name) for name in circles.circles(edges)]


@pytest.mark.parametrize("files, found", CIRCLES)
def test_circles_of_includes_are_found(tmp_path, files, found):
    for name, included in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f'#include "{header}"\n' for header in included), encoding="utf-8")
    assert names(circles.includes(tmp_path.resolve())) == found


@pytest.mark.parametrize("texts, found", [
    ({"a": "int b(void); int a(void) { return b(); }", "b": "int b(void) { return 1; }"}, []),
    ({"a": "int b(void); int a(void) { return b(); }", "b": "extern int one; int b(void) { return one; }", "c": "int a(void); int one = 1; int c(void) { return a(); }"},
     ["m/a", "m/b", "m/c"]),
    ({"a": "int b(int (*)(void)); int a(void) { return b(a); }", "b": "int b(int (*fn)(void)) { return fn(); }"}, []),
])
def test_circles_of_uses_are_found(tmp_path, texts, found):
    """As a build leaves its objects. What is called through a pointer makes no circle."""
    objects = tmp_path / "CMakeFiles" / "tidings_m.dir" / "src" / "m"
    objects.mkdir(parents=True)
    for name, text in texts.items():
        subprocess.run(["cc", "-c", "-xc", "-", "-o", objects / f"{name}.c.o"], input=text, text=True, check=True)
    assert names(circles.uses(circles.symbols(tmp_path))) == found


def test_the_modules_have_none():
    assert circles.check() == []
