# SPDX-License-Identifier: Apache-2.0
"""Slack's own SDKs, as npm, PyPI and Maven bring them. Only the base URL is another."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.environment import ROOT, Environment, running
from tests.support.script import Script
from tools import maven, node

HERE = Path(__file__).parent
JARS = ROOT / "build" / "slack-jars"
# One file of Java is compiled as it is started.
JAVA = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-cp", f"{JARS}/*"]


# Events may go to apps at local addresses. An app that is slow to take one, as on a busy machine, does not get it again.
SETTINGS = {"TIDINGS_EVENTS_API_PRIVATE": "true", "TIDINGS_EVENTS_API_TIMEOUT_MS": "30000", "TIDINGS_APP_SOCKET_ACK_MS": "10000"}


@pytest.fixture(scope="session")
def environment(tmp_path_factory):
    """Two instances."""
    directory = tmp_path_factory.mktemp("sdk")
    yield from running(Environment(directory, settings={**SETTINGS, "TIDINGS_FILES_URL": f"file://{directory}/stored"}))


@pytest.fixture(scope="session")
def modules(tmp_path_factory):
    """A directory from which scripts find the SDKs that package-lock.json pins."""
    directory = tmp_path_factory.mktemp("node")
    (directory / "node_modules").symlink_to(node.packages(HERE))
    shutil.copytree(HERE / "scripts", directory, dirs_exist_ok=True)
    return directory


@pytest.fixture(scope="session")
def java():
    """The command, without its last word, that runs a Java file with the SDK pinned in pom.xml."""
    maven.fetch(HERE / "pom.xml", JARS)
    return JAVA


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


@pytest.fixture
def make_app(workspace):
    """Makes an app with its bot, one who talks to it, and a channel of both."""

    def make(events_url=None):
        ann, bot = workspace.user(), workspace.bot()
        args = {"events_url": events_url} if events_url else {}
        made = workspace.admin.ok("admin.apps.create", name="an app", bot_user_id=bot.id, **args)
        return SimpleNamespace(id=made["app"]["id"], secret=made["app"]["signing_secret"], token=made["app_token"],
                               bot=bot, ann=ann, channel=workspace.channel(ann, bot))

    return make


@pytest.fixture
def app(make_app):
    return make_app()
