# SPDX-License-Identifier: Apache-2.0
"""./dev test: runs groups of tests, each of which builds its programs, and adds up the results."""
import os
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from tools import fuzz, image, lint, model, reference, releases
from tools.project import BUILD, ROOT, RUN, Failure, build, call, catch_signals
from tools.services import ServiceError, Tidings, sanitizer_prefix

REPORTS = BUILD / "reports"
VENV = BUILD / "venv"
GROUP_TIMEOUT = 30 * 60  # a group that hangs is stopped, and has failed


class Result:
    """Counts of passed and failed tests. One that was skipped has failed: it proved nothing."""

    def __init__(self, passed=0, failed=0):
        self.passed = passed
        self.failed = failed

    def __add__(self, other):
        return Result(self.passed + other.passed, self.failed + other.failed)

    @classmethod
    def of_report(cls, path, status):
        """From a JUnit file. A run that failed as a whole counts as a failure at least."""
        result = cls()
        if path.exists():
            for case in ElementTree.parse(path).iter("testcase"):
                bad = any(child.tag in ("failure", "error", "skipped") for child in case)
                bad = bad or case.get("status") in ("fail", "notrun", "disabled")
                result += cls(failed=1) if bad else cls(passed=1)
        if result.failed == 0 and (status != 0 or result.passed == 0):
            result += cls(failed=1)
        return result


def run_bounded(argv, environment):
    """Runs a test program. One that is late is interrupted, so that it can stop its servers; so it is when this is stopped."""
    child = subprocess.Popen([str(part) for part in argv], cwd=ROOT, env=environment, start_new_session=True)
    try:
        return child.wait(GROUP_TIMEOUT)
    except subprocess.TimeoutExpired:
        print(f"dev: {argv[0]} timed out: interrupted", flush=True)
        return interrupt(child)
    except BaseException:
        interrupt(child)
        raise


def interrupt(child):
    """Once, it and all that it has started but servers: a second time would cut its own end short."""
    os.killpg(child.pid, signal.SIGINT)
    try:
        child.wait(60)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
    return child.wait() or 1


def fresh_report(name):
    REPORTS.mkdir(parents=True, exist_ok=True)
    report = REPORTS / f"{name}.xml"
    report.unlink(missing_ok=True)
    return report


def unit(preset="dev"):
    directory = build(preset)
    report = fresh_report(f"unit-{preset}")
    status = run_bounded(
        [*sanitizer_prefix(directory), "ctest", "--test-dir", directory, "--parallel", "4",
         "--output-on-failure", "--no-tests=error", "--output-junit", report],
        {**Tidings.SANITIZERS, **os.environ})
    return Result.of_report(report, status)


def python():
    """The interpreter of a virtual environment that holds just tests/requirements.txt."""
    wanted = (ROOT / "tests" / "requirements.txt").read_text(encoding="utf-8")
    stamp = VENV / "requirements.txt"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        shutil.rmtree(VENV, ignore_errors=True)
        call([sys.executable, "-m", "venv", VENV])
        call([VENV / "bin" / "pip", "install", "-q", "--disable-pip-version-check",
              "-r", ROOT / "tests" / "requirements.txt"])
        stamp.write_text(wanted, encoding="utf-8")
    return VENV / "bin" / "python"


def side_by_side(workers):
    """Options for so many processes, each with servers of its own: most of the time tests wait."""
    return [f"--numprocesses={workers}", "--dist=loadfile", "--no-loadscope-reorder"]


# Files that take longest, longest first: begun last, they would keep one process busy while the others have nothing left.
LONG = {"e2e": ("events_api", "sse", "socket_mode", "strategies", "dev"), "faults": ("kafka", "postgres", "redis"), "openapi": ("fuzz",)}


def files(directory):
    """The arguments for pytest, in this order; a repeated file counts once."""
    where = ROOT / "tests" / directory
    return [*(where / f"test_{name}.py" for name in LONG.get(directory, ())), where]


def pytest(directory, preset="release", *options, **environment):
    reference.bring(python())
    binary = build(preset, "tidings") / "tidings"
    if directory == "e2e":
        build("release", "tidings-bench")  # for tests with many clients
    name = f"{directory}-{preset}"
    report = fresh_report(name)
    scratch = RUN / "tests" / name
    scratch.parent.mkdir(parents=True, exist_ok=True)
    try:
        status = run_bounded(
            [python(), "-m", "pytest", "-q", "-c", ROOT / "tests" / "pytest.ini",
             *files(directory), f"--junitxml={report}", f"--basetemp={scratch}", *options],
            {**os.environ, **environment, "TIDINGS_BINARY": str(binary)})
    finally:
        left = left_behind(scratch)
    return Result.of_report(report, status) + left


def left_behind(scratch):
    """Kills servers that a test run has not stopped; each is a failure."""
    result = Result()
    for record in scratch.rglob("pid"):
        pid = int(record.read_text(encoding="ascii"))
        try:
            where = Path(os.readlink(f"/proc/{pid}/cwd"))
        except OSError:
            continue
        if where.is_relative_to(scratch) or where.match("/var/tmp/tidings-*/data"):
            print(f"dev: {record.parent} was left running: killed", flush=True)
            os.kill(pid, signal.SIGKILL)
            result += Result(failed=1)
    return result


# Not the program itself, but what stands around it; or what Postgres does.
NOT_UNDER_ASAN = ("dev", "nginx", "hot_channels", "migrate", "plans")
# Many seconds, nearly all of them Postgres' and Redis' own, or on ways that other files go: under ASan in `./dev test long`.
LONG_UNDER_ASAN = ("app_wishes", "authorization", "bad_rows", "events_api", "files", "history", "login", "login_attacks", "operating",
                   "push_screens", "pushes", "reactions_at_once", "redis_sentinel", "retention", "slack_at_home", "strategies")
# What a loop does alone (arguments, errors, shapes), or Postgres: no two threads for TSan to watch; or what goes the ways between threads
# that the others go, too.
NOT_UNDER_TSAN = (*NOT_UNDER_ASAN, "admin", "admin_many", "app_mention", "app_wishes", "auth_providers", "authorization", "bad_input", "bad_rows",
                  "basics", "channels", "chat_more", "conversations", "cors", "devices", "dms", "email", "error_statuses", "front_door", "history",
                  "idempotency", "info_kept", "isolation", "later_events", "later_forms", "login_attacks", "many_clients", "mark_messages",
                  "mentions", "names", "notifications", "older_names", "operating", "pins", "posting", "previews", "profiles", "push_apps",
                  "push_screens", "rate_limits", "reactions", "reactions_at_once", "retention", "rtm_since", "rtm_start", "scopes", "secrets",
                  "settings", "slack_at_home", "slack_tools", "streams", "threads", "tokens", "user_notifications", "vectors", "webhooks")

# Many seconds of waiting, on threads that other files watch, too: under TSan in `./dev test long`.
LONG_UNDER_TSAN = ("events_api", "limits", "strategies")


def e2e_but(preset, names, **environment):
    without = [f"--ignore={ROOT / 'tests' / 'e2e' / f'test_{name}.py'}" for name in names]
    return pytest("e2e", preset, *side_by_side(4), "-m", "not large and not long", *without, **environment)


def e2e_only(preset, names):
    others = {path.stem.removeprefix("test_") for path in (ROOT / "tests" / "e2e").glob("test_*.py")} - set(names)
    return e2e_but(preset, sorted(others))


def sanitizers():
    """e2e under ASan and UBSan, tests of multithreaded parts under TSan, and the unit tests under both."""
    return (unit("asan") + e2e_but("asan", NOT_UNDER_ASAN + LONG_UNDER_ASAN) +
            unit("tsan") + e2e_but("tsan", NOT_UNDER_TSAN + LONG_UNDER_TSAN))


def upgrade():
    """The release before is built first: pytest would show a failure of that as one of each test."""
    releases.build(releases.before())
    return pytest("upgrade", "release", *side_by_side(2))


def properties(*options):
    build("dev")  # a program of the unit tests gives the verdicts on JWTs
    return pytest("property", "release", *options)


def torture(*options):
    build("asan")  # the unit tests, too
    return pytest("torture", "asan", *options)


def long():
    """Tests that take a minute or more each: run them before a release, and before changing the code that they test."""
    return (pytest("faults", "release", "-m", "long", *side_by_side(2)) + pytest("e2e", "release", "-m", "long") +
            e2e_only("asan", LONG_UNDER_ASAN) + e2e_only("tsan", LONG_UNDER_TSAN) +
            torture("-m", "long", "--numprocesses=2", "--dist=worksteal") + pytest("openapi", "release", "-m", "long", *side_by_side(2)) +
            pytest("sdk", "release", "-m", "long") + properties("-m", "long"))


# What goes through Redis, on all its ways.
THROUGH_REDIS = ("delivery", "presence", "rate_limits", "socket_marks", "unread", "websocket")


def e2e_by_tls():
    others = {path.stem.removeprefix("test_") for path in (ROOT / "tests" / "e2e").glob("test_*.py")} - set(THROUGH_REDIS)
    return e2e_but("release", sorted(others), TIDINGS_TEST_REDIS="tls")


def clusters():
    """Parts that are several servers, of which one fails; and Redis by TLS."""
    return pytest("faults", "release", "-m", "clusters") + e2e_by_tls()


def checks():
    return Result(*lint.run())


GROUPS = {
    "lint": checks,
    "unit": unit,
    "release": lambda: pytest("release"),
    "e2e": lambda: pytest("e2e", "release", *side_by_side(5)),
    "contract": lambda: pytest("contract"),
    "openapi": lambda: pytest("openapi", "release", *side_by_side(3)),
    "model": lambda: Result(*model.run()),
    "fuzz": lambda: Result(*fuzz.test()) + pytest("fuzz"),
    "property": lambda: properties("--numprocesses=2", "--dist=load"),
    "faults": lambda: pytest("faults", "release", *side_by_side(3)),
    "web": lambda: pytest("web", "release", *side_by_side(2)),
    "sdk": lambda: pytest("sdk", "release", *side_by_side(5)),
    "upgrade": upgrade,
    "sanitizers": sanitizers,
    "torture": torture,
    "long": long,
    "clusters": clusters,
    "image": lambda: Result(*image.test()),
}


ASKED_FOR = ("long", "clusters", "image")  # run by name only
SETS = {"quick": ("lint", "unit", "e2e", "contract")}  # names for several groups


def run_group(name):
    print(f"\n=== {name}", flush=True)
    try:
        return GROUPS[name]()
    except (Failure, ServiceError) as failure:
        print(f"dev: {failure}", file=sys.stderr, flush=True)
        return Result(failed=1)


def main(arguments):
    groups = [name for word in arguments.groups for name in SETS.get(word, (word,))]
    unknown = [name for name in groups if name not in GROUPS]
    if unknown:
        raise Failure(f"no such group: {' '.join(unknown)}; there are {' '.join(GROUPS)}, and {' '.join(SETS)} for several")
    catch_signals(signal.default_int_handler)  # not ignored, so neither by what is started here
    chosen = groups or [name for name in GROUPS if name not in ASKED_FOR]
    total, lines = Result(), []
    for name in chosen:
        started = time.monotonic()
        result = run_group(name)
        took = time.monotonic() - started
        lines.append(f"{name:11} {result.passed:5} passed {result.failed:4} failed {took:7.1f} s")
        total += result
    print("\n" + "\n".join(lines))
    print(f"{total.passed} passed, {total.failed} failed", flush=True)
    return 1 if total.failed else 0
