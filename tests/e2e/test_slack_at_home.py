# SPDX-License-Identifier: Apache-2.0
"""slack.com at home: the commands of docs/slack-tools.md as they stand, and tools that know no other name."""
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The names of this machine are changed for the commands only, in a mount namespace of their own. The root of a chroot is no mount that could
# be made private: what is mounted there goes with the commands, too.
SCRIPT = """
set -eu
mount --make-rprivate / 2>/dev/null || true
cp /etc/hosts hosts && mount --bind hosts /etc/hosts
trap 'umount /etc/hosts' EXIT
{commands}
trap 'nginx -p "$PWD" -c nginx.conf -s quit; umount /etc/hosts' EXIT
curl -sS --fail https://slack.com/api/api.test?foo=bar
echo
for name in www api hooks files acme; do curl -sS --fail -o /dev/null https://$name.slack.com/healthz; done
{python} - <<'PROGRAM'
import threading
from slack_sdk import WebClient
from slack_sdk.rtm_v2 import RTMClient

client = WebClient(token="{token}")
print(client.auth_test()["url"])
rtm, heard = RTMClient(token="{token}"), threading.Event()
rtm.on("message")(lambda client, event: heard.set())
rtm.connect()
WebClient(token="{other}").chat_postMessage(channel="{channel}", text="from home")
assert heard.wait(30)
rtm.close()
print(client.conversations_history(channel="{channel}")["messages"][0]["text"])
PROGRAM
"""


def commands():
    page = (ROOT / "docs/slack-tools.md").read_text(encoding="utf-8")
    block = re.search(r"^```sh\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[1]
    assert len(block.splitlines()) == 5
    return block


@pytest.fixture
def home(plain_environment, tmp_path):
    """The directory of the commands, with the configuration for an instance that clients know as slack.com."""
    instance = plain_environment.instance(public_url="https://slack.com/")
    directory = tmp_path / "slack-tools"
    shutil.copytree(ROOT / "deploy/slack-tools", directory)
    configuration = directory / "nginx.conf"
    text, found = re.subn(r"127\.0\.0\.1:8080", f"127.0.0.1:{instance.port}", configuration.read_text(encoding="utf-8"))
    assert found == 1
    configuration.write_text(text, encoding="utf-8")
    yield directory
    assert instance.stop() == 0


def test_the_commands_as_they_stand(plain_environment, home):
    workspace = plain_environment.workspace()
    ann, bob = workspace.users(2)
    script = SCRIPT.format(commands=commands(), python=sys.executable, token=ann.token, other=bob.token,
                           channel=workspace.channel(ann, bob))
    done = subprocess.run(["unshare", "--mount", "--propagation", "unchanged", "bash", "-c", script], cwd=home, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert '"args":{"foo":"bar"}' in lines[0] and lines[1:] == ["https://slack.com/", "from home"]
