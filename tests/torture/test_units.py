# SPDX-License-Identifier: Apache-2.0
"""Unit tests while one allocation, or one system call, of ours fails: a test may fail then, and says so; nothing crashes, and what
passes leaves no memory behind. Some programs, and some numbers, other ones in each run; more in `./dev test long`."""
import os
import random
import re
import subprocess
import time

import pytest

from tests.torture.conftest import ABORTS, BUILD
from tests.torture.control import KINDS, Control

SECONDS = 12  # for as many programs as that is enough for
EACH = 2  # numbers of each kind, of a program
LIMIT_S = 60
QUIET_S = 4
DENSE_S = 60
PROGRAMS = sorted(BUILD.glob("tests/unit/test_*"))
# Their servers, 200,000 inputs, or waiting for what does not come take many seconds; what these modules do is in test_serve.py as well.
SLOW = ("test_gateway_feed", "test_group", "test_http_json_plain", "test_log_kafka", "test_migrate", "test_relay")
REFUSED = re.compile(r"\[ +(FAILED|ERROR) +\]")  # says cmocka
FRAME = re.compile(r"#\d+ \S+ in \S+ ((?:/\S*|\.\./\.\.)/(?:src|include|tests)/\S+)")  # ccache may make paths relative to build/asan
BROKEN = re.compile(r"ERROR: AddressSanitizer|runtime error:|UndefinedBehaviorSanitizer|Assertion .* failed")


def is_the_tests_own(text):
    """Whether a report concerns a test that used a failed result: the innermost frame of our code is the test's."""
    where = [path for path in FRAME.findall(text) if "/tests/torture/" not in path]
    return bool(where) and "/tests/unit/" in where[0]


def wait(process, output):
    """Its exit status. TimeoutExpired if it is late, or prints nothing more after a test that gave up: the ones behind it may wait for what that
    left, a server that it had stopped, say."""
    printed = 0
    for _ in range(LIMIT_S // QUIET_S):
        try:
            return process.wait(QUIET_S)
        except subprocess.TimeoutExpired:
            text = output.read_text(encoding="utf-8", errors="replace")
            if REFUSED.search(text) and len(text) == printed:
                break
            printed = len(text)
    process.kill()
    process.wait()
    raise subprocess.TimeoutExpired(process.args, LIMIT_S)


def run(program, control):
    """Its exit status and output. The output goes to a file, so that servers left behind hold no pipe open."""
    output = control.path.with_suffix(".output")
    with open(output, "w+b") as file:
        process = subprocess.Popen([program], cwd=BUILD, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                                   env={**os.environ, **control.environment, "ASAN_OPTIONS": ABORTS,
                                        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"})
        code = wait(process, output)
    return code, output.read_text(encoding="utf-8", errors="replace")


def attempt(program, control, kind, number):
    """Whether `number` was reached. A forbidden outcome is an AssertionError."""
    control.clear()
    control.fail(kind, number)
    try:
        code, text = run(program, control)
    except subprocess.TimeoutExpired:
        assert REFUSED.search(control.path.with_suffix(".output").read_text(encoding="utf-8", errors="replace"))
        return True
    assert code >= 0 and (not BROKEN.search(text) or is_the_tests_own(text)), f"{program.name}: {kind} {number}: ended with {code}\n{text[-6000:]}"
    # A test that gave up leaves its own memory behind; one that went on must not.
    gave_up = REFUSED.search(text) or BROKEN.search(text)
    assert "LeakSanitizer" not in text or gave_up, f"{program.name}: {kind} {number}:\n{text[-6000:]}"
    return control.failed(kind) > 0


def test_units_that_run_short(tmp_path):
    control = Control(tmp_path / "control")
    programs = [program for program in PROGRAMS if program.name not in SLOW and os.access(program, os.X_OK)]
    random.shuffle(programs)
    deadline = time.monotonic() + SECONDS
    while programs and time.monotonic() < deadline:
        program = programs.pop()
        control.clear()
        code, text = run(program, control)
        assert code == 0, text[-6000:]
        counts = {kind: control.counted(kind) for kind in KINDS.values() if control.counted(kind) > 0}
        for kind, count in counts.items():
            for number in random.sample(range(1, count + 1), min(count, EACH)):
                if time.monotonic() < deadline:
                    attempt(program, control, kind, number)


@pytest.mark.long
@pytest.mark.parametrize("name", [program.name for program in PROGRAMS if program.name not in SLOW])
@pytest.mark.parametrize("kind", KINDS)
def test_units_at_many_numbers(name, kind, control):
    """What comes late is much like what came before; of a program that takes seconds, fewer numbers are tried."""
    number, began = 1, time.monotonic()
    while attempt(BUILD / "tests" / "unit" / name, control, KINDS[kind], number):
        number += 1 + number // (8 if time.monotonic() - began < DENSE_S else 2)
