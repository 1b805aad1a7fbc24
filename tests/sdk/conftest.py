# SPDX-License-Identifier: Apache-2.0
"""Slack's own SDKs, as npm and PyPI bring them. Only the base URL is another."""

import json
import shutil
from pathlib import Path

import pytest

from tests.support.script import Script
from tools import node

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def modules(tmp_path_factory):
    """A directory from which scripts find the SDKs that package-lock.json pins."""
    directory = tmp_path_factory.mktemp("node")
    (directory / "node_modules").symlink_to(node.packages(HERE))
    shutil.copytree(HERE / "scripts", directory, dirs_exist_ok=True)
    return directory


@pytest.fixture
def scripts(modules):
    """Runs scripts of this directory (`scripts("web_api.mjs", token=...)`). They end with the test, well."""
    running = []

    def run(name, **given):
        script = Script([node.node(), name, json.dumps(given)], cwd=modules, env=node.environment())
        running.append(script)
        script.expect({"what": "ready"})
        return script

    yield run
    ends = [(script.close(), script.noise) for script in running]
    assert all(status == 0 for status, _ in ends), ends
