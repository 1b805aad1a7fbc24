# SPDX-License-Identifier: Apache-2.0
"""A tree with the files that the checks of a release read, to plant faults in; its version is not released."""

import shutil

import pytest

from tools import release
from tools.project import ROOT

PARTS = ("VERSION", "CHANGELOG.md", "compose.yaml", "Dockerfile", "include/app/settings.h", "migrations", "openapi",
         "src/api/methods.c", "tests/e2e/authorization.txt")


class Tree:
    def __init__(self, root):
        self.root = root
        for name in PARTS:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, root / name)
        newest = release.sections(root)[0][0]
        self.replace("CHANGELOG.md", f"## {newest}", f"## {newest.partition(' ')[0]} (unreleased)")

    def read(self, name):
        return (self.root / name).read_text(encoding="utf-8")

    def write(self, name, text):
        (self.root / name).write_text(text, encoding="utf-8")

    def replace(self, name, old, new):
        text = self.read(name)
        assert old in text
        self.write(name, text.replace(old, new, 1))


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)
