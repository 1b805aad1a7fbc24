# SPDX-License-Identifier: Apache-2.0
"""Earlier releases, each built from its commit in this clone, as the start of an upgrade.

    python3 -m tools.releases    # builds the release before the version of this tree

A release stays in build/releases until its commit in that file changes."""
import contextlib
import fcntl
import shutil
import subprocess
import sys

from tools import release as version
from tools.project import BUILD, ROOT, Failure, call, read_json

TABLE = ROOT / "tests" / "upgrade" / "releases.json"
DIRECTORY = BUILD / "releases"
# A release knows the compilers of its time: what a later one warns of is no reason not to build it.
OPTIONS = ("TIDINGS_TESTS=OFF", "TIDINGS_BENCH=OFF", "TIDINGS_WERROR=OFF")


def commits():
    """Release → the full hash of its commit, oldest first."""
    return read_json(TABLE)


def before():
    """The release before the version of this tree: the one that this is an upgrade from."""
    earlier = [release for release in commits() if version.number(release) < version.number(version.version())]
    return max(earlier, key=version.number)


def build(release):
    """Builds a release unless that was done; returns the path of its `tidings`."""
    commit = commits()[release]
    home = DIRECTORY / release
    home.mkdir(parents=True, exist_ok=True)
    stamp = home / "commit"
    with locked(home):
        if not stamp.exists() or stamp.read_text(encoding="ascii") != commit:
            stamp.unlink(missing_ok=True)
            unpack(release, commit, home / "source")
            compile_source(home / "source")
            stamp.write_text(commit, encoding="ascii")
    return home / "source" / "build" / "release" / "tidings"


@contextlib.contextmanager
def locked(home):
    """Test processes that run side by side want the same release."""
    with open(home / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def unpack(release, commit, source):
    check_present(release, commit)
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir()
    archive = source.with_name("source.tar")
    call(["git", "archive", f"--output={archive}", commit], cwd=ROOT)
    call(["tar", "-xf", archive, "-C", source])
    archive.unlink()


def check_present(release, commit):
    """A shallow clone has to be deepened first."""
    if not is_present(commit):
        git("fetch", "--quiet", "--unshallow")
    if not is_present(commit):
        raise Failure(f"release {release} cannot be built: its commit {commit} is not in this clone, even after git fetch --unshallow")


def is_present(commit):
    return git("cat-file", "-e", f"{commit}^{{commit}}") == 0


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=False, stdin=subprocess.DEVNULL, capture_output=True).returncode


def compile_source(source):
    call(["cmake", "--preset", "release", "--log-level=NOTICE", *(f"-D{option}" for option in OPTIONS)], cwd=source)
    call(["ninja", "-C", source / "build" / "release", "--quiet", "tidings"], cwd=source)


def main():
    print(build(before()), flush=True)


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"dev: {failure}")
