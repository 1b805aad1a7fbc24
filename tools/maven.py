# SPDX-License-Identifier: Apache-2.0
"""Jars that a pom.xml pins, brought once by Maven."""
import fcntl
import hashlib
import shutil
import subprocess

from tools.service import ServiceError


def fetch(pom, directory):
    """Brings what `pom` names, dependencies included, into `directory` unless it is there."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with open(directory.with_name(directory.name + ".lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several groups of tests may want the same
        stamp = directory / ".complete"
        wanted = hashlib.sha256(pom.read_bytes()).hexdigest()
        if stamp.exists() and stamp.read_text(encoding="ascii") == wanted:
            return
        shutil.rmtree(directory, ignore_errors=True)
        done = subprocess.run(
            ["mvn", "-B", "-q", "-f", pom, "dependency:copy-dependencies",
             f"-DoutputDirectory={directory}"], stdin=subprocess.DEVNULL, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise ServiceError(f"mvn: {done.stdout.decode(errors='replace')}")
        stamp.write_text(wanted, encoding="ascii")
