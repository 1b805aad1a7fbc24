# SPDX-License-Identifier: Apache-2.0
"""The document, and the traffic that the e2e tests recorded."""

import json
import os
import sys
from collections import defaultdict

import pytest

from tests.support.environment import BINARY
from tests.support.openapi import Document
from tests.support.recorder import RECORD
from tools.testing import run_bounded, side_by_side


@pytest.fixture(scope="session")
def document():
    return Document()


@pytest.fixture(scope="session")
def recording():
    """The recorded calls by method. Runs the e2e tests when there is no whole recording of this binary."""
    if not is_current():
        run_bounded([sys.executable, "-m", "pytest", "-q", "tests/e2e", *side_by_side(4)],
                    {**os.environ, "TIDINGS_RECORD": str(RECORD)})
    assert is_current(), f"the e2e tests left no whole recording in {RECORD}"
    calls = defaultdict(list)
    with open(RECORD, encoding="utf-8") as lines:
        for line in lines:
            call = json.loads(line)
            if "method" in call:
                calls[call["method"]].append(call)
    return calls


def is_current():
    """Whether there is a recording of the whole e2e suite, made with this binary or a later one."""
    if not RECORD.exists() or RECORD.stat().st_mtime < BINARY.stat().st_mtime:
        return False
    with open(RECORD, "rb") as lines:
        last = b""
        for last in lines:
            pass
    return b'"complete": true' in last
