# SPDX-License-Identifier: Apache-2.0
"""The documents as a program gets them, and the tools that read them."""

import subprocess
from pathlib import Path

import pytest

from tests.support.environment import ROOT
from tools import node

HERE = Path(__file__).parent
OPENAPI = ROOT / "openapi"
DOCUMENTS = {"3.1": OPENAPI / "tidings.yaml", "3.0": OPENAPI / "tidings-3.0.json"}


def run(argv, **options):
    """Runs a program, which must succeed; returns what it printed."""
    done = subprocess.run([str(part) for part in argv], check=False, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    assert done.returncode == 0, f"{argv[0]} ended with status {done.returncode}:\n{done.stdout[-20000:]}"
    return done.stdout


@pytest.fixture(scope="session")
def npm():
    """Runs a program of an npm package: `npm("tsc", "--version")`."""
    programs = node.packages(HERE) / ".bin"
    return lambda name, *arguments, **options: run([programs / name, *arguments], env=node.environment(), **options)
