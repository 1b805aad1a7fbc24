# SPDX-License-Identifier: Apache-2.0
"""Makes the dump of a release, once, when it is released: see README.md.

    build/venv/bin/python -m tests.upgrade.make_dump 0.1.0"""

import json
import sys
import tempfile
from pathlib import Path

from tests.support.environment import Environment, running
from tests.upgrade.data import Data
from tests.upgrade.dumps import SETTINGS, Restored, dump_path, record_path, take, write
from tools import releases

# Events for an app that refused them stay.
MAKING = {**SETTINGS, "TIDINGS_EVENTS_API_RETRY_MS": "3600000", "TIDINGS_PUSH_RETRY_MS": "3600000"}


def make_data(directory, binary):
    """The dump as text, and the cast."""
    environment = Environment(directory, instances=1, settings=MAKING, binary=binary).start()
    try:
        data = Data(environment)
        data.leave_over()
        left = environment.postgres.sql("SELECT count(*) FROM outbox WHERE NOT done")
        assert int(left) > 0, "nothing was left over"
        return take(environment.postgres), data.cast
    finally:
        environment.stop()  # that the instance was killed is as it should be


def make_record(directory, binary, text, cast):
    """The answers of the release itself on the dump, restored as by the tests."""
    for restored in running(Restored(directory, text, {"cast": cast}, binary=binary)):
        restored.wait_carried_out()
        return {"cast": cast, "answers": restored.answers(), "kept": restored.deliver()}


def main(release):
    binary = releases.build(release)
    with tempfile.TemporaryDirectory() as scratch:
        text, cast = make_data(Path(scratch) / "made", binary)
        record = make_record(Path(scratch) / "restored", binary, text, cast)
    write(dump_path(release), text)
    write(record_path(release), json.dumps(record, ensure_ascii=False, separators=(",", ":")))
    for path in (dump_path(release), record_path(release)):
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
