# SPDX-License-Identifier: Apache-2.0
"""A program in another language that a test talks to: both sides exchange lines of JSON."""

import itertools
import json
import os
import signal
import subprocess
import threading
import time

from tests.support.sockets import contains
from tests.support.wait import LIMIT_S


class ScriptError(Exception):
    """The request has failed; `error` is the error that the script saw."""

    def __init__(self, error):
        super().__init__(error)
        self.error = error


class Script:
    """A running program. Lines of its output that are not JSON objects, and its stderr, are in `noise`."""

    def __init__(self, argv, listener=None, **options):
        """`listener`, if given, is called with each line, on a thread of its own."""
        self._told = []
        self._listener = listener
        self.noise = []
        self._changed = threading.Condition()
        self._ids = itertools.count(1)
        self._process = subprocess.Popen([str(part) for part in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, text=True, encoding="utf-8",
                                         start_new_session=True, **options)
        self._readers = [threading.Thread(target=self._read, args=(stream,), daemon=True)
                         for stream in (self._process.stdout, self._process.stderr)]
        for reader in self._readers:
            reader.start()

    @property
    def told(self):
        """All lines of the script so far, in order."""
        with self._changed:
            return list(self._told)

    def matching(self, match):
        return [line for line in self.told if contains(line, match)]

    def expect(self, match, timeout=LIMIT_S, count=1):
        """Waits until `count` lines contain `match`, and returns the last of these."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while True:
                found = [line for line in self._told if contains(line, match)]
                if len(found) >= count:
                    return found[count - 1]
                left = deadline - time.monotonic()
                if left <= 0 or self._ended():
                    raise AssertionError(f"no {match!r}, {self._state()}; told: {self._told!r}; noise: {self.noise!r}")
                self._changed.wait(min(left, 0.2))

    def ask(self, order, *args, timeout=LIMIT_S):
        """Has the script do something, and returns the result. ScriptError when it failed."""
        answer = self.answer(self.order(order, *args), timeout)
        if answer["what"] == "failed":
            raise ScriptError(answer["error"])
        return answer.get("result")

    def say(self, line):
        """Gives the script a line that is no order."""
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def order(self, order, *args):
        """Asks without waiting; `answer` of what this returns waits."""
        number = next(self._ids)
        self._process.stdin.write(json.dumps({"id": number, "order": order, "args": args}) + "\n")
        self._process.stdin.flush()
        return number

    def answer(self, number, timeout=LIMIT_S):
        return self.expect({"id": number}, timeout)

    def fails(self, order, *args):
        """Makes the script do something that must fail, and returns the error that it saw."""
        try:
            result = self.ask(order, *args)
        except ScriptError as failure:
            return failure.error
        raise AssertionError(f"{order}{args!r} did not fail: {result!r}")

    def signal(self, number):
        self._process.send_signal(number)

    def kill(self):
        """Kills a program that does not end by itself, with its children."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self.close()

    def close(self):
        """Lets the program end, and returns its status."""
        if not self._process.stdin.closed:
            try:
                self._process.stdin.close()
            except BrokenPipeError:
                pass  # it was quicker
        try:
            status = self._process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        for reader in self._readers:
            reader.join(5)
        return status

    def _ended(self):
        return self._process.poll() is not None and not any(reader.is_alive() for reader in self._readers)

    def _state(self):
        status = self._process.poll()
        return "the script runs" if status is None else f"the script has ended with {status}"

    def _read(self, stream):
        for line in stream:
            try:
                told = json.loads(line)
            except ValueError:
                told = None
            is_told = isinstance(told, dict) and "what" in told
            if is_told and self._listener:
                self._listener(told)
            with self._changed:
                if is_told:
                    self._told.append(told)
                else:
                    self.noise.append(line.rstrip("\n"))
                self._changed.notify_all()
