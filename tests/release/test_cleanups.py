# SPDX-License-Identifier: Apache-2.0
"""Variables with cleanup are initialised before the function can return."""
import pytest

from tools import cleanups
from tools.project import ROOT


def check(tmp_path, line):
    source = tmp_path / "src" / "base" / "one.c"
    source.parent.mkdir(parents=True)
    source.write_text(f"void one(void)\n{{\n    {line}\n}}\n", encoding="utf-8")
    return cleanups.check(tmp_path)


@pytest.mark.parametrize("line", ["CLEANUP(buffer_done) struct buffer out;", "CLEANUP_FREE char *text;", "CLEANUP_JSON json_t *message;"])
def test_no_value(tmp_path, line):
    assert check(tmp_path, line) == ["src/base/one.c:3: a local variable with cleanup is not initialised"]


@pytest.mark.parametrize("line", ["CLEANUP(buffer_done) struct buffer out = BUFFER(10);", "CLEANUP_FREE char *text = NULL;", "struct buffer out;"])
def test_value(tmp_path, line):
    assert check(tmp_path, line) == []


def test_the_sources():
    assert cleanups.check(ROOT) == []
