# SPDX-License-Identifier: Apache-2.0
"""Paths in the checkout, builds, and the small files under .run/."""
import contextlib
import fcntl
import json
import os
import signal
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUN = ROOT / ".run"
BUILD = ROOT / "build"


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Failure(Exception):
    """An error for the user, shown without a traceback."""


def catch_signals(handler, numbers=SIGNALS):
    """These end this program by `handler`, also where they were ignored; but nohup's stays ignored."""
    for number in numbers:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


def status_of(argv, **options):
    """Runs a command that prints for itself, and returns its status. If an interrupt cuts this short, the whole command ends: ninja, if
    killed at once, would leave its compilers running."""
    child = subprocess.Popen([str(part) for part in argv], start_new_session=True, **options)
    try:
        return child.wait()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
        child.wait()
        raise


def call(argv, **options):
    """Runs a command that prints for itself; Failure when it fails."""
    status = status_of(argv, **options)
    if status != 0:
        raise Failure(f"{argv[0]} exited with status {status}")


def configure(preset):
    """Makes the build directory of a preset; ninja itself keeps it up to date from then on."""
    directory = BUILD / preset
    if not (directory / "build.ninja").exists():
        call(["cmake", "--preset", preset, "--log-level=NOTICE"], cwd=ROOT)
    return directory


def build(preset, *targets):
    """Builds targets, or everything, and returns where they are."""
    directory = configure(preset)
    call(["ninja", "-C", directory, "--quiet", *targets], cwd=ROOT)
    return directory


def write_private(path, document):
    """Writes JSON that only its owner may read, whole or not at all."""
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    with open(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w",
              encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
    temporary.rename(path)


def read_json(path):
    """The JSON document in path, or None when there is no such file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def locked():
    """Held while the services of .run/ are started, stopped or restarted."""
    RUN.mkdir(exist_ok=True)
    with open(RUN / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def process_identity(pid):
    """A text that no other process has, now or later, or None when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()  # the name before it may hold anything
    state, started = fields[0], fields[19]
    return None if state == "Z" else f"{pid} {started}"
