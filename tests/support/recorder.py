# SPDX-License-Identifier: Apache-2.0
"""The HTTP traffic of the tests as JSON lines, for the contract check."""

import json
import os
import threading
from pathlib import Path

RECORD = Path(os.environ.get("TIDINGS_RECORD", Path(__file__).parents[2] / ".run" / "tests" / "record.jsonl"))


def part_path():
    """The path of this process's recording: a part, if several processes run the tests in parallel."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    return RECORD.with_name(f"{RECORD.stem}-{worker}.jsonl") if worker else RECORD


def parts():
    return sorted(RECORD.parent.glob(f"{RECORD.stem}-gw*.jsonl"))


def join_parts():
    """Makes one recording of all parts, if there are any: complete when each of them is."""
    lines, ends = [], []
    for part in parts():
        own = part.read_text(encoding="utf-8").splitlines(keepends=True)
        lines += own[:-1]
        ends.append('"complete": true' in own[-1] if own else False)
        part.unlink()
    if ends:
        end = json.dumps({"end": True, "complete": all(ends)})
        RECORD.write_text("".join([*lines, end, "\n"]), encoding="utf-8")


class Recorder:
    """Appends one line a call to `path`. Shared by all clients and threads of a run."""

    def __init__(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, "w", encoding="utf-8")
        self._lock = threading.Lock()

    def call(self, method, encoding, args, reply):
        line = {
            "method": method,
            "encoding": encoding,
            "args": args,
            "status": reply.status,
            "content_type": reply.headers.get("Content-Type", ""),
            "reply": reply,
        }
        self._write(line)

    def close(self, complete):
        """Ends the recording; `complete` says that it contains the whole e2e suite."""
        self._write({"end": True, "complete": complete})
        self._file.close()

    def _write(self, line):
        text = json.dumps(line, ensure_ascii=True)
        with self._lock:
            self._file.write(text + "\n")


class Silence:
    """Stands where nothing is recorded."""

    def call(self, method, encoding, args, reply):
        pass
