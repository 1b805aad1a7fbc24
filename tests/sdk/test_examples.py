# SPDX-License-Identifier: Apache-2.0
"""examples/: each does what its README says; with the mark `long` by all commands of the README, as they are pasted."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.phones.arrivals import Arrivals, of_matrix
from tests.support.client import Client
from tests.support.environment import ROOT, Environment, running
from tests.support.phones import receiver
from tests.support.push_receivers import Matrix
from tests.support.script import Script
from tests.support.wait import wait_until
from tools import demo, go, node

EXAMPLES = ROOT / "examples"
BLOCK = re.compile(r"^```sh (\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAMS = {"bot": "bot.py", "sidebar": "sidebar.ts", "phone": "phone.ts", "job": "job.go"}


def blocks(example=""):
    """The commands of a README, by their names."""
    return dict(BLOCK.findall((EXAMPLES / example / "README.md").read_text(encoding="utf-8")))


class Checkout:
    """A directory as in a fresh clone, beside a server with a demo workspace."""

    def __init__(self, directory, environment, url):
        self.directory = directory
        self.demo = {"url": url, **demo.make_workspace(url, environment.operator_token)}
        self.general = self.demo["channels"][0]["id"]
        self.ann, self.bob, self.cid = (Client(environment.urls[0], user["token"]) for user in self.demo["users"])
        shutil.copytree(EXAMPLES, directory / "examples", ignore=shutil.ignore_patterns("node_modules", "tidings", "tidings.ts"))
        (directory / "build").mkdir()
        (directory / ".run").mkdir()
        (directory / ".run" / "demo.json").write_text(json.dumps(self.demo), encoding="utf-8")
        self.environment = {**go.environment(), "PATH": node.environment()["PATH"]}
        self.running = []

    def equip(self, example):
        """Supplies the results of the block `prepare` from the tests' own tools."""
        if example == "bot":
            python = self.directory / "build" / "bot" / "bin" / "python"
            python.parent.mkdir(parents=True)
            python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
            python.chmod(0o755)
        else:
            (self.directory / "examples" / example / "node_modules").symlink_to(node.packages(EXAMPLES / example))

    def prepare(self, example):
        """Runs it as on a machine without any of the tools: for long tests."""
        done = subprocess.run(["bash", "-ec", blocks()["tools"] + blocks(example)["prepare"]], cwd=self.directory, env=self.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        assert done.returncode == 0, done.stdout[-20000:]
        self.environment["PATH"] = f"{self.directory}/build/tools/bin{os.pathsep}{self.environment['PATH']}"

    def start(self, text):
        """A shell with the commands; it is killed with the test."""
        self.running.append(Script(["bash", "-ec", text], cwd=self.directory, env=self.environment))
        return self.running[-1]

    def run(self, text):
        done = subprocess.run(["bash", "-ec", text], cwd=self.directory, env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def make_checkout(tmp_path, environment):
    made = []

    def make(url):
        made.append(Checkout(tmp_path, environment, url))
        return made[-1]

    yield make
    for program in (program for checkout in made for program in checkout.running):
        program.kill()


def printed(program, pattern, count=1):
    """Waits until so many lines match, and returns these."""
    def lines():
        return [line for line in program.noise if re.fullmatch(pattern, line)]
    wait_until(lambda: len(lines()) >= count, what=f"{pattern!r}: {program.noise}")
    return lines()


@pytest.mark.parametrize("example, program", PROGRAMS.items())
def test_they_are_short(example, program):
    assert len((EXAMPLES / example / program).read_text(encoding="utf-8").splitlines()) <= 150
    assert "run" in blocks(example) and "prepare" in blocks(example)


def use_bot(checkout, _):
    """It answers mentions, in their threads."""
    bot = checkout.start(blocks("bot")["run"])
    printed(bot, r"helper \(U\w+\) listens")

    def answers(root):
        return [m["text"] for m in checkout.ann.ok("conversations.replies", channel=checkout.general, ts=root)["messages"][1:]]

    root = json.loads(checkout.run(blocks("bot")["try"]))["ts"]
    wait_until(lambda: answers(root) == ["1 to bring: cake"], what=f"an answer: {bot.noise}")
    other = checkout.ann.post(checkout.general, f"<@{checkout.demo['bots'][0]['id']}> who?")
    wait_until(lambda: answers(other) == ["I know: bring, done, list."], what="the answer to what it does not know")


def use_sidebar(checkout, instance):
    """It shows messages and counts; events while its instance is dead arrive afterwards, each once."""
    sidebar = checkout.start(blocks("sidebar")["run"])
    printed(sidebar, "live")
    assert printed(sidebar, "#general: 0 unread")
    checkout.run(blocks("sidebar")["try"])
    printed(sidebar, "#general ann: Hello, Bob")
    printed(sidebar, "#general: 1 unread")
    instance.kill()
    printed(sidebar, "away")
    for number in range(3):
        checkout.ann.post(checkout.general, f"missed {number}")
    instance.start()
    printed(sidebar, "live", count=2)
    printed(sidebar, "#general: 4 unread")
    checkout.cid.post(checkout.general, "Hi")
    printed(sidebar, "#general cid: Hi")
    said = printed(sidebar, "#general (ann|cid): .*", count=5)
    assert [line.split(": ")[1] for line in said] == ["Hello, Bob", "missed 0", "missed 1", "missed 2", "Hi"]
    checkout.bob.ok("channels.mark", channel=checkout.general, ts=checkout.ann.post(checkout.general, "read elsewhere"))
    printed(sidebar, "#general: 0 unread", count=2)


def use_phone(checkout, instance):
    """Messages written offline are posted once, even if the phone forgets that it posted them; marks and messages go both ways."""
    run, general = blocks("phone")["run"], checkout.general
    checkout.ann.post(general, "for the phone")
    shown = checkout.run(run).split("general: ")[1:]
    assert shown[0].startswith("0 unread\n    ann: for the phone\n    me: Written in a tunnel (waits)\n")
    assert shown[1].startswith("0 unread\n    ann: for the phone\n    cid: Written in a tunnel\n")
    assert checkout.cid.ok("channels.info", channel=general)["channel"]["unread_count"] == 0

    phone = "\n".join(line for line in run.splitlines() if not line.startswith("phone ")) + "\n"
    instance.kill()
    assert "offline" in checkout.run(f"{phone} phone say general 'No network'; phone sync 2>&1")
    store = checkout.directory / "build" / "phone.json"
    before = store.read_bytes()
    instance.start()
    edited = checkout.ann.post(general, "before")
    checkout.ann.ok("chat.update", channel=general, ts=edited, text="after")
    secret = checkout.ann.ok("channels.create", name=f"s-{general.lower()}", is_private=True)["channel"]
    checkout.ann.post(secret["id"], "in the new one")
    checkout.ann.ok("channels.invite", channel=secret["id"], users=checkout.demo["users"][2]["id"])
    first = checkout.run(f"{phone} phone sync; phone show")
    store.write_bytes(before)
    assert checkout.run(f"{phone} phone sync; phone show") == first
    assert "general: 1 unread\n" in first and "    ann: after\n" in first and "    ann: in the new one\n" in first
    texts = [message["text"] for message in checkout.ann.history(general)]
    assert texts.count("No network") == 1 and texts.count("Written in a tunnel") == 1


def test_the_phone_is_woken(tmp_path, recorder):
    """It is offline in the middle of a burst; a push wakes it, and it shows the server's messages and badge."""
    (tmp_path / "checkout").mkdir()
    arrivals = Arrivals(tmp_path / "push.jsonl")
    matrix, settings = receiver(tmp_path, lambda request: arrivals.take("matrix", of_matrix(request)))
    try:
        for environment in running(Environment(tmp_path / "server", 1, settings=settings, recorder=recorder)):
            wake_phone(Checkout(tmp_path / "checkout", environment, environment.urls[0]), arrivals, matrix)
    finally:
        matrix.close()


def wake_phone(checkout, arrivals, matrix):
    general, cid_id = checkout.general, checkout.demo["users"][2]["id"]
    checkout.equip("phone")
    checkout.environment["PUSHES"] = str(checkout.directory.parent / "push.jsonl")
    Client(checkout.demo["url"], checkout.demo["admin_token"]).ok("admin.pushApps.create", name="phones", platform="matrix")
    arrivals.name("key of cid", "cid-iphone", "cid")
    checkout.cid.ok("devices.register", device_id="cid-iphone", app="phones", url=matrix.url + Matrix.PATH, pushkey="key of cid")
    setting = "\n".join(line for line in blocks("phone")["run"].splitlines() if not line.startswith("phone ")) + "\n"
    for number in range(10):
        if number == 5:
            checkout.run(f"{setting} phone sync")  # and is offline from here on
        checkout.ann.post(general, f"burst {number}")
    phone = checkout.start(setting + blocks("phone")["wake"])
    try:
        printed(phone, "cid-iphone sleeps")
        checkout.ann.post(general, f"<@{cid_id}>, wake up")
        printed(phone, r"\[1\] #general · ann · @cid, wake up")
        printed(phone, "general: 11 unread")
        assert f"    ann: <@{cid_id}>, wake up" in phone.noise and "    ann: burst 9" in phone.noise
        assert checkout.cid.ok("unread.sync")["totals"]["badge"] == 1
        checkout.cid.ok("channels.markAll")  # on another device
        printed(phone, r"\[0\]")
        printed(phone, "general: 0 unread")
    finally:
        phone.kill()


def use_job(checkout, _):
    first, second = checkout.run(blocks("job")["run"]).splitlines()
    ts = first.split()[-1]
    assert first == f"3 people, 3 added, posted at {ts}" and second == f"3 people, 0 added, posted at {ts}"
    assert [m["text"] for m in checkout.bob.history(checkout.general) if m["ts"] == ts] == ["Welcome to 3 people"]


@pytest.fixture
def instance(extra_instance):
    return extra_instance()


@pytest.mark.parametrize("example, use", [("bot", use_bot), ("sidebar", use_sidebar), ("phone", use_phone)])
def test_an_example(make_checkout, instance, example, use):
    checkout = make_checkout(instance.url)
    checkout.equip(example)
    use(checkout, instance)


@pytest.mark.long
@pytest.mark.parametrize("example, use", [("bot", use_bot), ("sidebar", use_sidebar), ("phone", use_phone), ("job", use_job)])
def test_as_pasted(make_checkout, instance, example, use):
    checkout = make_checkout(instance.url)
    checkout.prepare(example)
    use(checkout, instance)
