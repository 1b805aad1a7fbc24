# SPDX-License-Identifier: Apache-2.0
"""A client for Rust, by progenitor with its defaults: it is made while the program is compiled, and calls a server."""

import os
import shutil

import pytest

from tests.openapi.conftest import HERE, ROOT, run


@pytest.mark.long
def test_rust(served, converse, tmp_path):
    there = shutil.copytree(HERE / "clients" / "rust", tmp_path / "rust")
    shutil.copy(served, there)
    target = ROOT / "build" / "rust"
    run(["cargo", "build", "--locked", "--quiet"], cwd=there, env={**os.environ, "CARGO_TARGET_DIR": str(target)})
    converse([target / "debug" / "hello"], "Rust")
