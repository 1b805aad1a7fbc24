# SPDX-License-Identifier: Apache-2.0
"""Clients for Go, by oapi-codegen and ogen with their defaults: each is compiled, and calls a server."""

import shutil

import pytest

from tests.openapi.conftest import HERE, run
from tools import go

GENERATORS = {
    "oapi-codegen": ("oapi", ["-generate", "types,client", "-package", "tidings", "-o", "oapi/tidings/client.go"]),
    "ogen": ("ogen", ["-target", "ogen/tidings", "-package", "tidings"]),
}


@pytest.mark.long
@pytest.mark.parametrize("generator", GENERATORS)
def test_go(generator, served, converse, tmp_path):
    package, options = GENERATORS[generator]
    there = shutil.copytree(HERE / "clients" / "go", tmp_path / "go")
    (there / package / "tidings").mkdir()
    run([go.program(), "tool", generator, *options, served], cwd=there, env=go.environment())
    run([go.program(), "build", "-o", tmp_path / "hello", f"./{package}"], cwd=there, env=go.environment())
    converse([tmp_path / "hello"], generator)
