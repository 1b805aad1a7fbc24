# SPDX-License-Identifier: Apache-2.0
"""Schemathesis, with the configuration that is shipped and ids that exist: whatever it sends, no reply is a failure of
the server or other than documented, in either mode of errors."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.openapi.conftest import OPENAPI, run
from tools import openapi

SCHEMATHESIS = Path(sys.executable).parent / "schemathesis"
# Whatever has to do with the arguments alone is the same in both: its long list of edge cases is tried in one.
MODES = {"slack": ["--phases", "examples,fuzzing", "--exclude-checks", "ignored_auth,missing_required_header"],
         "http": ["--header", "X-Tidings-Errors: http"]}
# Debian 12's Python 3.11 counts the depth of ast.parse() for all threads together, and fails by chance when two of Hypothesis' parse at once:
# "AST constructor recursion depth mismatch".
WORKERS = "1"


@pytest.fixture
def place(workspace, tmp_path):
    """A directory with the configuration and the document, both with ids of a workspace; and its admin."""
    ann, others = workspace.admin, workspace.users(3)
    channels = [workspace.channel(ann, *others) for _ in range(3)]
    ids = {"channels": channels, "users": [user.id for user in others],
           "messages": [ann.post(channel) for channel in channels for _ in range(2)]}
    document = openapi.to_json(openapi.read())  # not as it is served: with forms
    shutil.copy(OPENAPI / "fuzz" / "schemathesis.toml", tmp_path)
    for name, values in ids.items():
        example = (OPENAPI / "fuzz" / f"{name}.dict").read_text(encoding="ascii").strip()
        assert example in document
        document = document.replace(example, f'"{values[0]}"')
        (tmp_path / f"{name}.dict").write_text("".join(f'"{value}"\n' for value in values), encoding="ascii")
    (tmp_path / "openapi.json").write_text(document, encoding="utf-8")
    return tmp_path, ann


@pytest.mark.parametrize("mode", MODES)
def test_fuzz(environment, place, mode):
    there, admin = place
    said = run([SCHEMATHESIS, "--config-file", "schemathesis.toml", "run", *MODES[mode], "--workers", WORKERS, "openapi.json",
                "--url", f"{environment.urls[0]}/api"], cwd=there,
               env={**os.environ, "TIDINGS_TOKEN": admin.token, "TIDINGS_OPERATOR_TOKEN": environment.operator_token})
    admin.ok("auth.test")  # it has not locked itself out
    print(said)
