# SPDX-License-Identifier: Apache-2.0
"""A client for Python, by openapi-python-client with its defaults: all of it can be imported, and it calls a server."""

import os
import sys
from pathlib import Path

import pytest

from tests.openapi.conftest import HERE, run

PROGRAMS = Path(sys.executable).parent
IMPORT_ALL = """
import importlib, pkgutil, tidings_client
for module in pkgutil.walk_packages(tidings_client.__path__, "tidings_client."):
    importlib.import_module(module.name)
"""


@pytest.mark.parametrize("document", ["openapi.json", "openapi-3.0.json"])
def test_openapi_python_client(environment, document, converse, tmp_path):
    (tmp_path / document).write_bytes(environment.client().page(f"/{document}").content)
    said = run([PROGRAMS / "openapi-python-client", "generate", "--path", tmp_path / document, "--output-path", tmp_path / "client"],
               env={**os.environ, "PATH": f"{PROGRAMS}:{os.environ['PATH']}"})
    assert "arning" not in said and "Skipping" not in said
    run([sys.executable, "-c", IMPORT_ALL], cwd=tmp_path / "client")
    converse([sys.executable, HERE / "clients" / "generated.py"], "Python", PYTHONPATH=str(tmp_path / "client"))
