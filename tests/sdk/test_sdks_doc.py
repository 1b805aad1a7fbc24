# SPDX-License-Identifier: Apache-2.0
"""docs/sdks.md: every program in it is run unmodified, in the workspace created by ./dev up."""

import json
import os
import re
import subprocess
import sys

import pytest

from tests.support.chromium import chromium
from tests.sdk.conftest import JAVA
from tests.support.client import Client
from tests.support.environment import ROOT
from tests.support.script import Script
from tests.support.wait import wait_until
from tools import demo, node
from tools.services import free_port

DOCUMENT = (ROOT / "docs" / "sdks.md").read_text(encoding="utf-8")
PROGRAMS = {name: text for name, text in re.findall(r"^```\w+ (\S+)\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)}
PROGRAMS_THAT_LISTEN = ["socket-mode.mjs", "rtm.py", "socket_mode.py", "events.mjs"]
PROGRAMS_THAT_POST = ["rtm.mjs", "websocket.mjs"]
RUN_ELSEWHERE = {"generated.py": ROOT / "tests" / "openapi" / "clients" / "hello.py"}
OTHERS = ["environment.sh", "hello.sh", "web.mjs", "web.py", "Web.java", "bolt.mjs", "Bolt.java", "make-app.sh",
          "bolt-http.mjs", "events.sh", "browser.js"]


def test_nothing_is_left_out():
    assert set(PROGRAMS) == {*PROGRAMS_THAT_LISTEN, *PROGRAMS_THAT_POST, *RUN_ELSEWHERE, *OTHERS}
    assert len(re.findall("^```", DOCUMENT, re.MULTILINE)) == 2 * len(PROGRAMS), "each has a name"
    for name, path in RUN_ELSEWHERE.items():
        assert path.read_text(encoding="utf-8").endswith(f"\n{PROGRAMS[name]}"), f"{name} is another than {path}"


def test_the_packages_are_those_of_the_tests():
    pinned = json.loads((ROOT / "tests" / "sdk" / "package.json").read_text(encoding="utf-8"))["dependencies"]
    named = re.findall(r"`npm install (@?[^`@]+)(?:@([\d.]+))?`", DOCUMENT)
    assert len(named) == 5
    for name, version in named:
        assert name in pinned and version in ("", pinned[name])


class Demo:
    """The demo workspace, a directory with all the programs, and the environment that environment.sh makes."""

    def __init__(self, directory, modules, environment):
        self.directory = directory
        url = environment.urls[0]
        self.demo = {"url": url, **demo.make_workspace(url, environment.operator_token)}
        self.channel = self.demo["channels"][0]["id"]
        self.ann, self.bob, self.cid = (Client(url, user["token"]) for user in self.demo["users"])
        (directory / "node_modules").symlink_to(modules / "node_modules")
        for name, text in PROGRAMS.items():
            (directory / name).write_text(text, encoding="utf-8")
        (directory / ".run").mkdir()
        (directory / ".run" / "demo.json").write_text(json.dumps(self.demo), encoding="utf-8")
        self.environment = {**node.environment(), **self.exported(), "PORT": str(free_port())}

    def exported(self):
        """The variables that environment.sh exports."""
        out = self.shell(". ./environment.sh; env -0", os.environ)
        return dict(line.split("=", 1) for line in out.split("\0") if line)

    def shell(self, script, environment=None):
        done = subprocess.run(["bash", "-euc", script], cwd=self.directory, env=environment or self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def argv(self, name):
        interpreters = {"mjs": [node.node()], "py": [sys.executable], "sh": ["bash", "-eu"], "java": JAVA}
        return [*interpreters[name.rsplit(".", 1)[1]], name]

    def run(self, name, **more):
        """Runs a program to its end, and returns its output."""
        done = subprocess.run(self.argv(name), cwd=self.directory, env={**self.environment, **more}, timeout=120,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def texts(self):
        return [message["text"] for message in self.bob.history(self.channel)]

    def said(self, text):
        wait_until(lambda: text in self.texts(), interval=0.05, what=text)


@pytest.fixture(scope="module")
def here(tmp_path_factory, modules, java, environment):
    return Demo(tmp_path_factory.mktemp("clients"), modules, environment)


@pytest.fixture
def start(here):
    """Starts programs that run until stopped, and stops them."""
    running = []

    def start(name, **more):
        running.append(Script(here.argv(name), cwd=here.directory, env={**here.environment, **more}))
        return running[-1]

    yield start
    for program in running:
        program.kill()


def printed(program, line):
    wait_until(lambda: line in program.noise, what=f"{line!r}: {program.noise}")


@pytest.mark.parametrize("name, text", [("web.mjs", "Hello from JavaScript"), ("web.py", "Hello from Python"),
                                        ("Web.java", "Hello from Java")])
def test_post_and_read(here, name, text):
    out = here.run(name)
    assert f"{here.demo['users'][0]['id']}: {text}" in out.split("\n")
    assert text in here.texts()
    if name == "web.py":
        assert out.endswith("message_not_found\n")


def test_curl(here):
    posted, history = map(json.loads, here.run("hello.sh").replace("}{", "}\n{").split("\n"))
    assert posted["ok"] is True and history["messages"][0]["ts"] == posted["ts"]
    assert here.texts()[0] == "Hello from curl"


@pytest.mark.parametrize("name", PROGRAMS_THAT_LISTEN)
def test_listen(here, start, name):
    program = start(name)
    printed(program, "listening")
    here.bob.post(here.channel, f"for {name}")
    printed(program, f"{here.demo['users'][1]['id']}: for {name}")


@pytest.mark.parametrize("name, text", [*zip(PROGRAMS_THAT_POST, ["Hello by RTM", "Hello by WebSocket"])])
def test_post_and_listen(here, start, name, text):
    program = start(name)
    here.said(text)
    ts = here.bob.history(here.channel)[0]["ts"]
    printed(program, f"posted {ts}")
    here.bob.post(here.channel, f"for {name}")
    printed(program, f"{here.demo['users'][1]['id']}: for {name}")


def test_curl_listens(here, start):
    program = start("events.sh")
    printed(program, "event: hello")
    here.bob.post(here.channel, "for events.sh")
    wait_until(lambda: any(line.startswith("data: ") and "for events.sh" in line for line in program.noise))


@pytest.mark.parametrize("name, greeting", [("bolt.mjs", "Hello"), ("Bolt.java", "Hello from Java")])
def test_bolt(here, start, name, greeting):
    program = start(name)
    printed(program, "listening")
    text = f"{greeting}, <@{here.demo['users'][1]['id']}>"

    def greeted():
        """The SDK for Java does not wait for hello, after which an app receives all events."""
        here.bob.post(here.channel, "hello, bot")
        return text in here.texts()

    wait_until(greeted, interval=0.5, what=text)


@pytest.mark.parametrize("in_thread", [False, True])
def test_bolt_answers_a_mention_where_it_was(here, start, in_thread):
    program = start("bolt.mjs")
    printed(program, "listening")
    root = mention = here.bob.post(here.channel, "root" if in_thread else f"<@{here.demo['bots'][0]['id']}>")
    if in_thread:
        mention = here.bob.post(here.channel, f"<@{here.demo['bots'][0]['id']}>", thread_ts=root)

    def replies():
        messages = here.bob.ok("conversations.replies", channel=here.channel, ts=root)["messages"]
        return [m for m in messages if m["ts"] > mention and m["text"] == "You called?"]

    wait_until(replies, interval=0.2, what=f"an answer: {program.noise}")


def test_bolt_over_http(here, start):
    app = json.loads(here.run("make-app.sh"))["app"]
    random = here.demo["channels"][1]["id"]
    program = start("bolt-http.mjs", SIGNING_SECRET=app["signing_secret"])
    printed(program, "listening")

    def welcomed():
        """Until its URL has answered the challenge, an app receives no events."""
        here.cid.ok("conversations.leave", channel=random)
        here.cid.ok("conversations.join", channel=random)
        return [m for m in here.bob.history(random) if m["text"] == f"Welcome, <@{here.demo['users'][2]['id']}>"]

    wait_until(welcomed, interval=0.2, what=f"a welcome: {program.noise}")


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


def test_in_a_browser(here, browser, extra_instance):
    """It continues from its position when its instance dies."""
    instance = extra_instance()
    page = browser.new_page(bypass_csp=True)
    page.goto(f"{instance.url}/app")
    page.evaluate("(token) => { %s window.texts = []; listen(token, ({ type, text }) => texts.push(text ?? type)); }"
                  % PROGRAMS["browser.js"], here.demo["users"][0]["token"])
    page.wait_for_function("texts.includes('hello')")
    here.bob.post(here.channel, "for a browser")
    page.wait_for_function("texts.includes('for a browser')")
    instance.kill()
    here.bob.post(here.channel, "while it was away")
    instance.start()
    page.wait_for_function("texts.includes('while it was away')")
    page.close()
