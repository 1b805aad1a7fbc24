# SPDX-License-Identifier: Apache-2.0
"""The check for circles of files finds those that are planted for it, and no others."""

from pathlib import Path

import pytest

from tools import circles


def made(directory, files):
    """The files of a module, as seen by the check: {name: included files}."""
    for name, included in files.items():
        path = directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f'#include "{header}"\n' for header in included), encoding="utf-8")
    return [str(name) for name in circles.circles(circles.graph(directory.resolve()))]


@pytest.mark.parametrize("files, found", [
    ({"a.c": ["a.h", "b.h"], "a.h": [], "b.c": ["b.h"], "b.h": []}, []),
    ({"a.c": ["a.h", "b.h"], "a.h": [], "b.c": ["b.h", "a.h"], "b.h": []}, ["a", "b"]),
    ({"a.c": ["b.h"], "a.h": [], "b.h": ["c/c.h"], "c/c.c": ["../a.h"], "c/c.h": [], "d.c": ["a.h"], "d.h": []}, ["a", "b", "c/c"]),
    ({"a.c": ["a.h", "base/b.h"], "a.h": [], "base.c": ["a.h"]}, []),
])
def test_circles_are_found(tmp_path, files, found):
    assert made(tmp_path, files) == found


def test_the_modules_have_none():
    assert circles.check() == []
    assert all((Path(circles.ROOT) / "src" / module).is_dir() for module in circles.MODULES)
