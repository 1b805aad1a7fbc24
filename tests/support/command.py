# SPDX-License-Identifier: Apache-2.0
"""The program as a command: its exit status and output."""

import os
import subprocess

from tests.support.environment import BINARY
from tools.services import sanitizer_prefix


def full_environment(**settings):
    """The environment of this process, with only these settings (without TIDINGS_)."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TIDINGS_")}
    return environment | {f"TIDINGS_{name}": value for name, value in settings.items()}


def argv(*arguments):
    return [*sanitizer_prefix(BINARY), BINARY, *arguments]


def run(*arguments, **settings):
    return subprocess.run(argv(*arguments), env=full_environment(**settings), capture_output=True,
                          text=True, timeout=60, stdin=subprocess.DEVNULL, check=False)
