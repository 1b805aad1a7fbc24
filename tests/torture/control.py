# SPDX-License-Identifier: Apache-2.0
"""The counters that a program of the preset asan shares with a test: see torture.c."""
import mmap
import struct

ALLOCATION, CALL = 0, 1
KINDS = {"allocation": ALLOCATION, "call": CALL}
COUNTED, FAILS_AT, FAILED, FIELDS = 0, 2, 4, 6


class Control:
    """All zero: nothing fails."""

    def __init__(self, path):
        self.path = path
        path.write_bytes(bytes(8 * FIELDS))
        with open(path, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 8 * FIELDS)

    def _get(self, field):
        return struct.unpack_from("=q", self._memory, 8 * field)[0]

    def _set(self, field, value):
        struct.pack_into("=q", self._memory, 8 * field, value)

    def counted(self, kind):
        return self._get(COUNTED + kind)

    def failed(self, kind):
        return self._get(FAILED + kind)

    def fail(self, kind, number):
        """The `number`th from the program's beginning fails."""
        self._set(FAILS_AT + kind, number)

    def fail_next(self, kind, number):
        """The `number`th from now on fails."""
        self.fail(kind, self.counted(kind) + number)

    def clear(self):
        for field in range(FIELDS):
            self._set(field, 0)

    def spare(self):
        """Nothing fails from now on."""
        for kind in KINDS.values():
            self.fail(kind, 0)

    @property
    def environment(self):
        return {"TORTURE_FILE": str(self.path)}
