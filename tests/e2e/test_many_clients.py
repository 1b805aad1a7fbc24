# SPDX-License-Identifier: Apache-2.0
"""256 clients post as fast as they are answered: commits follow one another at any point of an instance's turn."""
import json
import subprocess

import pytest

from tests.support.environment import ROOT

BENCH = ROOT / "build" / "release" / "tidings-bench"
CHANNELS = 50
MEMBERS = 20
CLIENTS = 256
POSTS = 50_000
UNLIMITED = "1000000000"


@pytest.fixture
def instance(environment):
    instance = environment.instance(rate_limit=UNLIMITED, rate_channel=UNLIMITED, access_log="false")
    yield instance
    assert instance.stop() == 0


def write_data(path, url, members, channels):
    """What tidings-bench reads: all members are in each channel."""
    path.write_text(json.dumps({
        "url": url, "users": [{"id": member.id, "token": member.token} for member in members],
        "groups": {"small": [{"id": channel, "members": list(range(len(members)))} for channel in channels]}}))


def test_posts_of_many_clients_at_once(workspace, instance, tmp_path):
    reader, *members = workspace.users(1 + MEMBERS)
    channels = [workspace.channel(members[0], reader, *members[1:]) for _ in range(CHANNELS)]
    data = tmp_path / "data.json"
    write_data(data, instance.url, members, channels)
    done = subprocess.run([BENCH, "posts", "--data", data, "--clients", str(CLIENTS), "--total", str(POSTS), "--seconds", "60"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    counts = {entry["id"]: entry["unread_count"] for entry in reader.ok("unread.sync")["channels"]}
    assert counts == {channel: POSTS // CHANNELS for channel in channels}
