# SPDX-License-Identifier: Apache-2.0
"""The document, and the traffic that the e2e tests recorded."""

import json
import os
import subprocess
import sys
from collections import defaultdict

import pytest

from tests.support.environment import BINARY, ROOT
from tests.support.openapi import Document
from tests.support.recorder import RECORD


@pytest.fixture(scope="session")
def document():
    return Document()


@pytest.fixture(scope="session")
def recording():
    """The recorded calls by method. Runs the e2e tests when there is no whole recording of this binary."""
    if not is_current():
        record()
    assert is_current(), f"the e2e tests left no whole recording in {RECORD}"
    calls = defaultdict(list)
    with open(RECORD, encoding="utf-8") as lines:
        for line in lines:
            call = json.loads(line)
            if "method" in call:
                calls[call["method"]].append(call)
    return calls


def record():
    """Whoever interrupts this interrupts the e2e tests as well: they are given the time to stop their servers."""
    argv = [sys.executable, "-m", "pytest", "-q", "tests/e2e", "--numprocesses=4", "--dist=loadfile"]
    child = subprocess.Popen(argv, cwd=ROOT, env={**os.environ, "TIDINGS_RECORD": str(RECORD)})
    try:
        child.wait()
    finally:
        child.wait()


def is_current():
    """Whether there is a recording of the whole e2e suite, made with this binary or a later one."""
    if not RECORD.exists() or RECORD.stat().st_mtime < BINARY.stat().st_mtime:
        return False
    with open(RECORD, "rb") as lines:
        last = b""
        for last in lines:
            pass
    return b'"complete": true' in last
