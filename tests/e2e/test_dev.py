# SPDX-License-Identifier: Apache-2.0
"""./dev itself, in a separate checkout without sources: its builds take for ever, or no time at all."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.support.environment import BINARY
from tests.support.push_receivers import HERE, JARS
from tests.support.wait import wait_until
from tools import demo, maven, node, stack
from tools.project import BUILD, ROOT
from tools.reference import SHA512
from tools.service import Service, state_of
from tools.services import TlsRedis, free_port

LATE_S = 180  # on a machine that does much else
FOR_EVER = """\
rule compile
  command = echo $$$$ > compiling && sleep 1000 > /dev/null
build tidings: compile
"""

PRESETS = ("dev", "release")  # of ./dev up, and of ./dev test


@pytest.fixture
def checkout(tmp_path):
    shutil.copy(ROOT / "dev", tmp_path)
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    reference = tmp_path / "build" / "reference"
    reference.mkdir(parents=True)
    (reference / "hash").write_text(SHA512, encoding="ascii")  # as if it had been brought
    for preset in PRESETS:
        (tmp_path / "build" / preset).mkdir()
        (tmp_path / "build" / preset / "build.ninja").write_text(FOR_EVER, encoding="ascii")
    return tmp_path


def dev(checkout, *arguments):
    return subprocess.run(
        [checkout / "dev", *arguments], cwd=checkout, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LATE_S, check=False
    )


def exists(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def is_asleep(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "S"


@pytest.fixture
def building(checkout):
    """A `./dev up` that builds for ever, and the pid of the compiler."""
    with subprocess.Popen(
        [checkout / "dev", "up"], cwd=checkout, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as up:
        try:
            compiling = checkout / "build" / "dev" / "compiling"
            wait_until(lambda: compiling.exists() and compiling.read_text(encoding="ascii").strip(), timeout=LATE_S)
            wait_until(lambda: is_asleep(up.pid), timeout=LATE_S)  # it waits for the build, and no longer starts it
            yield up, int(compiling.read_text(encoding="ascii"))
        finally:
            up.terminate()


@pytest.mark.parametrize("option", ["--port", "--instances"])
@pytest.mark.parametrize("value", ["0", "65520", "-1", "1.5", "x", "", "8080 "])
def test_a_bad_number_is_refused_with_its_range(checkout, option, value):
    done = dev(checkout, "up", f"{option}={value}")
    assert done.returncode == 2
    bound = {"--port": 65519, "--instances": 16}[option]
    assert f"argument {option}: {value!r}: must be a whole number from 1 to {bound}" in done.stderr
    assert len(done.stderr) < 500


def test_an_interrupt_ends_the_build_too(building):
    up, compiler = building
    up.send_signal(signal.SIGINT)
    output, _ = up.communicate(timeout=LATE_S)
    assert up.returncode == 0 and output.endswith("dev: stopping\ndev: stopped\n")
    assert not exists(compiler)


def test_a_second_up_is_refused_while_the_first_builds(checkout, building):
    done = dev(checkout, "up")
    assert done.returncode == 1
    assert done.stderr == f"dev: already running (pid {building[0].pid}); stop it with ./dev stop\n"


def test_stop_leaves_no_process(checkout, building):
    up, compiler = building
    assert dev(checkout, "stop").returncode == 0
    assert up.poll() is not None
    assert not exists(compiler)


def test_what_a_crash_left_half_written_keeps_nothing_from_starting(checkout):
    (checkout / ".run").mkdir()
    (checkout / ".run" / "up").touch()
    done = dev(checkout, "stop")
    assert (done.returncode, done.stderr) == (0, "")


def test_it_can_be_called_from_any_directory(checkout, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "tools").mkdir()
    for name in ("tools/__init__.py", "json.py"):
        (elsewhere / name).write_text("raise SystemExit('not mine')", encoding="ascii")
    done = subprocess.run([checkout / "dev", "stop"], cwd=elsewhere, capture_output=True, timeout=LATE_S, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_workspace_is_made_whatever_proxy_the_machine_has(environment, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert demo.call(environment.instances[0].url, "api.test", "")["ok"]


def test_where_it_serves_is_said_by_its_port_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(stack, "RUN", tmp_path)
    monkeypatch.setattr(stack, "STATE", tmp_path / "state.json")
    monkeypatch.setenv("TIDINGS_LISTEN", "127.0.0.1:9")
    monkeypatch.setenv("TIDINGS_TEXT_MAX", "7")
    made = stack.Stack()
    made.configure("dev", False, 1, 8080)
    (instance,) = made._instances(made.run["settings"])
    environment = instance.full_environment()
    assert (environment["TIDINGS_LISTEN"], environment["TIDINGS_TEXT_MAX"]) == ("127.0.0.1:8080", "7")


def test_a_run_keeps_its_kind_of_redis(tmp_path, monkeypatch):
    monkeypatch.setattr(stack, "RUN", tmp_path)
    monkeypatch.setattr(stack, "STATE", tmp_path / "state.json")
    made = stack.Stack()
    made.configure("dev", False, 1, 8080, redis="tls")
    for one in (made, stack.Stack()):
        assert isinstance(one.redis, TlsRedis) and one.redis.url.startswith(f"rediss://127.0.0.1:{made.state['ports']['redis']}?cacert=")
    made.configure("dev", False, 1, 8080)
    assert stack.Stack().redis.url == f"redis://127.0.0.1:{made.state['ports']['redis']}"


GIVE_PORT = """\
import random, sys
from tools.services import TlsRedis, free_port
random.seed(1)
print(free_port(), flush=True)
sys.stdin.read()
"""


class Forking(Service):
    """Starts 300 processes, one after the other."""

    name = "forking"
    programs = ("bash", "sleep")

    def command(self):
        return ["bash", "-c", "for _ in {1..300}; do sleep 1000 & sleep 0.001; done; touch ready; wait"], dict(os.environ)

    def ready(self):
        return (self.directory / "ready").exists()


def test_a_process_forked_while_its_service_is_stopped_is_stopped_too(tmp_path):
    with contextlib.ExitStack() as ends:
        service = Forking(tmp_path)
        ends.callback(service.kill)
        service.start(wait=False)
        while not service.ready():
            service.kill(signal.SIGSTOP)
            assert {state_of(Path(f"/proc/{pid}")) for pid in service.pids()} <= {"T"}
            service.kill(signal.SIGCONT)


def test_no_two_processes_are_given_one_port():
    """While its server is down, another service's could start on it; two instances of Tidings could even share it."""
    given = []
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", GIVE_PORT], cwd=ROOT, stdin=subprocess.PIPE,
                                                           stdout=subprocess.PIPE, text=True))
            given.append(process.stdout.readline())
    assert len(set(given)) == len(given), given


def copies_itself(checkout):
    """The build results exist already."""
    rule = f"rule copy\n  command = cp {BINARY} tidings\nbuild tidings: copy\n"
    for preset in PRESETS:
        (checkout / "build" / preset / "build.ninja").write_text(rule, encoding="ascii")


@pytest.fixture
def up(checkout):
    """Starts `./dev up` with settings, by its port, and waits until it serves; stops it after the test."""
    copies_itself(checkout)
    started = []

    def start(*options, **settings):
        port = free_port()
        environment = {**os.environ, **{f"TIDINGS_{name.upper()}": str(value) for name, value in settings.items()}}
        log = checkout / "up.log"
        with open(log, "wb") as out:
            started.append(subprocess.Popen([checkout / "dev", "up", "--port", str(port), *options], cwd=checkout,
                                            env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT))
        is_there = checkout / ".run" / "demo.json"
        wait_until(lambda: is_there.exists() or started[-1].poll() is not None, timeout=LATE_S, what=f"{log}")
        assert started[-1].poll() is None, log.read_text(encoding="utf-8")
        return started[-1], log

    yield start
    for process in started:
        process.terminate()
        assert process.wait(LATE_S) == 0


def test_it_serves_on_a_machine_of_many_cores(checkout, up):
    """Each loop has its own connections to Postgres."""
    up(loops=16)
    status = dev(checkout, "status")
    assert status.returncode == 0 and status.stdout.count(" answers\n") == 3, status.stdout


def test_who_ends_by_itself_is_told(checkout, up):
    _, log = up()
    pids = json.loads((checkout / ".run" / "demo.json").read_text(encoding="utf-8"))["pids"]
    os.kill(pids["tidings"][0], signal.SIGKILL)
    wait_until(lambda: "has stopped, see .run/tidings.log; ./dev restart tidings" in log.read_text(encoding="utf-8"), timeout=LATE_S)
    assert dev(checkout, "restart", "tidings").returncode == 0
    assert dev(checkout, "status").returncode == 0
    assert dev(checkout, "restart", "redis").returncode == 0
    assert dev(checkout, "restart", "phones").stderr == "dev: this run has no phones: ./dev up --push\n"
    assert log.read_text(encoding="utf-8").count("has stopped") == 1


@pytest.fixture
def phones(checkout, up):
    """`./dev up --push`, in a checkout with all that the phones require."""
    maven.fetch(HERE / "pom.xml", JARS)
    node.packages(HERE)
    for there in (BUILD / "venv", JARS, BUILD / "npm"):
        (checkout / "build" / there.name).symlink_to(there)
    for part in ("support", "phones"):
        shutil.copytree(ROOT / "tests" / part, checkout / "tests" / part)
    shutil.copy(ROOT / "tests" / "requirements.txt", checkout / "tests")
    up("--push")


def read_demo(checkout):
    return json.loads((checkout / ".run" / "demo.json").read_text(encoding="utf-8"))


def push_to(written, device):
    reply = demo.call(written["url"], "admin.push.test", written["admin_token"], user_id=device["user_id"], device_id=device["device_id"])
    return reply["outcome"]


def log_of_pushes(checkout, written):
    return [json.loads(line) for line in (checkout / written["push"]["log"]).read_text(encoding="utf-8").splitlines()]


def only_its_own_page_reads_it(page):
    with demo.DIRECTLY.open(page) as reply:
        assert "default-src 'none'" in reply.headers["Content-Security-Policy"]
    for path, headers, status in (("pushes", {"Host": "example.com"}, 403), ("register", {"Content-Type": "text/plain"}, 404)):
        request = urllib.request.Request(page + path, headers=headers, data=b"{}" if path == "register" else None)
        with pytest.raises(urllib.error.HTTPError) as refused:
            demo.DIRECTLY.open(request)
        assert refused.value.code == status


def test_phones_of_the_demo_get_pushes(checkout, phones):
    written = read_demo(checkout)
    push, users = written["push"], {user["name"] for user in written["users"]}
    devices = {platform: push[platform]["devices"] for platform in ("apns", "fcm", "webpush", "matrix")}
    assert all({device["user"] for device in of_platform} == users for of_platform in devices.values())
    firsts = [of_platform[0] for of_platform in devices.values()]
    assert [push_to(written, device) for device in firsts] == ["delivered"] * 4
    lines = log_of_pushes(checkout, written)
    assert [(line["platform"], line["device"], line["user"]) for line in lines] == [
        (device["platform"], device["device_id"], device["user"]) for device in firsts]
    assert all((line["title"], line["body"], line["badge"], line["silent"]) == ("Tidings", "This is a test.", None, False) for line in lines)
    with demo.DIRECTLY.open(f"{push['page']}pushes") as reply:
        assert json.load(reply)["pushes"] == lines

    only_its_own_page_reads_it(push["page"])
    os.kill(written["pids"]["phones"], signal.SIGKILL)
    wait_until(lambda: "phones " in (status := dev(checkout, "status").stdout) and "is not running" in status, timeout=LATE_S)
    assert dev(checkout, "restart", "phones").returncode == 0  # with keys and addresses of its own
    written = read_demo(checkout)
    assert [push_to(written, written["push"][platform]["devices"][1]) for platform in devices] == ["delivered"] * 4
    assert dev(checkout, "status").returncode == 0


def test_a_second_interrupt_does_not_cut_short_the_end_of_what_failed(checkout):
    """Postgres is up when Tidings fails, and takes some time to stop."""
    copies_itself(checkout)
    environment = {**os.environ, "TIDINGS_LOOPS": "none"}
    with subprocess.Popen([checkout / "dev", "up", "--port", str(free_port())], cwd=checkout, env=environment, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as failing:
        postgres = checkout / ".run" / "postgres" / "pid"
        pid = int(wait_until(lambda: postgres.exists() and postgres.read_text(encoding="ascii").strip(), timeout=LATE_S))
        wait_until(lambda: is_stopping(failing.pid), timeout=LATE_S)
        failing.send_signal(signal.SIGINT)
        output, _ = failing.communicate(timeout=LATE_S)
    assert failing.returncode == 1 and "TIDINGS_LOOPS" in output
    wait_until(lambda: not exists(pid), timeout=LATE_S)


def is_stopping(pid):
    """Whether a ./dev up ignores signals (or has stopped)."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as status:
            ignored = next(int(line.split()[1], 16) for line in status if line.startswith("SigIgn"))
    except FileNotFoundError:
        return True
    return bool(ignored & 1 << signal.SIGINT - 1)


TEST_RUN = """\
#!/usr/bin/python3
import pathlib, signal
run = pathlib.Path("run")
try:
    run.write_text("runs")
    signal.sigtimedwait([], 120)  # an end of its own, should the test fail
except KeyboardInterrupt:
    run.write_text("has stopped its servers")
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_test_run_whose_caller_is_ended_stops_its_servers(checkout, number):
    """Also if the parent process ignores interrupts, as a script does that runs it in the background."""
    copies_itself(checkout)
    (checkout / "tests").mkdir()
    venv = checkout / "build" / "venv"
    (venv / "bin").mkdir(parents=True)
    for requirements in (checkout / "tests" / "requirements.txt", venv / "requirements.txt"):
        requirements.write_text("nothing\n", encoding="ascii")
    python = venv / "bin" / "python"
    python.write_text(TEST_RUN, encoding="ascii")
    python.chmod(0o755)
    script = 'trap "" INT; exec "$0" test property'
    with subprocess.Popen(["env", "--default-signal=HUP", "sh", "-c", script, checkout / "dev"], cwd=checkout,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as testing:
        run = checkout / "run"
        try:
            wait_until(lambda: run.exists() and run.read_text(encoding="ascii") == "runs", timeout=LATE_S)
            wait_until(lambda: is_asleep(testing.pid), timeout=LATE_S)  # it waits for the run, and no longer starts it
            testing.send_signal(number)
            assert testing.wait(LATE_S) == 130
        finally:
            testing.kill()
    assert run.read_text(encoding="ascii") == "has stopped its servers"
