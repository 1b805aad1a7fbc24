# SPDX-License-Identifier: Apache-2.0
"""The documents as a program gets them, and the tools that read them."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.environment import BINARY, ROOT
from tools import maven, node

HERE = Path(__file__).parent
OPENAPI = ROOT / "openapi"
JARS = ROOT / "build" / "openapi-jars"
DOCUMENTS = {"3.1": BINARY.parent / "openapi" / "openapi.json", "3.0": OPENAPI / "tidings-3.0.json"}


def run(argv, **options):
    """Runs a program, which must succeed; returns its output."""
    done = subprocess.run([str(part) for part in argv], check=False, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    assert done.returncode == 0, f"{argv[0]} ended with status {done.returncode}:\n{done.stdout[-20000:]}"
    return done.stdout


@pytest.fixture(scope="session")
def npm():
    """Runs a program of an npm package: `npm("tsc", "--version")`."""
    programs = node.packages(HERE) / ".bin"
    return lambda name, *arguments, **options: run([programs / name, *arguments], env=node.environment(), **options)


@pytest.fixture(scope="session")
def generator():
    """The command of openapi-generator."""
    maven.fetch(HERE / "pom.xml", JARS)
    return ["java", "-jar", *JARS.glob("openapi-generator-cli-*.jar")]


@pytest.fixture
def served(environment, tmp_path):
    """The document for generators, as a server has it, in a file."""
    path = tmp_path / "openapi-3.0.json"
    path.write_bytes(environment.client().page("/openapi-3.0.json").content)
    return path


@pytest.fixture
def converse(room):
    """Runs a program as a member with one unread message; it posts, reads in each way, is refused once, and prints its results."""

    def converse(argv, name, **environment):
        ann, bob, channel = room
        bob.post(channel, text="Hello from Bob")
        settings = {"API": f"{ann.url}/api", "TOKEN": ann.token, "CHANNEL": channel}
        said = run(argv, env={**os.environ, **environment, **settings})
        assert said.splitlines() == [f"posted Hello from {name}", f"info {channel} 1", f"sync {channel} 1",
                                     f"history Hello from {name}", "history Hello from Bob", "error 404 channel_not_found"]

    return converse
