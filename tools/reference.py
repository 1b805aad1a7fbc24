# SPDX-License-Identifier: Apache-2.0
"""Redoc, which shows the API's reference at /docs: its bundle from npm, pinned by hash, into
build/reference, where the build finds it.

    python3 -m tools.reference

If no registry answers, it only prints a message: the build continues, and /docs links to the document."""
import base64
import fcntl
import hashlib
import io
import sys
import tarfile
import tempfile
from pathlib import Path

from tools import node
from tools.project import BUILD, ROOT, Failure, status_of

PACKAGE = "redoc@2.5.4"
SHA512 = "M6jWhG1qoBnH6TFmzJnstyCZ87HmOY/UzDm78mHiYihEdlV/YcS9ogOo1NlElnJMeLsyxHFe2yFc4sNjHTrABQ=="
FILES = {
    "package/LICENSE": "redoc.LICENSE.txt",
    "package/bundles/redoc.standalone.js.LICENSE.txt": "redoc.standalone.js.LICENSE.txt",
    "package/bundles/redoc.standalone.js": "redoc.standalone.js",
}
DIRECTORY = BUILD / "reference"


def is_there():
    stamp = DIRECTORY / "hash"
    return stamp.exists() and stamp.read_text(encoding="ascii") == SHA512


def bring(python=sys.executable):
    """Brings the bundle unless it is there, with the Node of `python` if that has one."""
    if not is_there():
        status_of([python, "-m", "tools.reference"], cwd=ROOT)


def package():
    """The package as npm packs it."""
    with tempfile.TemporaryDirectory() as scratch:
        node.npm("pack", "--loglevel=error", PACKAGE, cwd=scratch)
        (archive,) = Path(scratch).glob("*.tgz")
        return archive.read_bytes()


def main():
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    with open(DIRECTORY / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_there():
            return
        packed = package()
        if base64.b64encode(hashlib.sha512(packed).digest()).decode() != SHA512:
            raise Failure(f"{PACKAGE} does not match the pinned hash")
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            for name, here in FILES.items():
                (DIRECTORY / here).write_bytes(archive.extractfile(name).read())
        (DIRECTORY / "hash").write_text(SHA512, encoding="ascii")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        print(f"dev: /docs will have no API reference: {failure}", file=sys.stderr)
