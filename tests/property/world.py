# SPDX-License-Identifier: Apache-2.0
"""One workspace on two real instances: its users, their devices, and the calls they make."""
import collections
import itertools
import threading

from tests.support.phones import AndroidPhone
from tests.support.reading import is_event, kind_of
from tests.support.wait import wait_until
from tests.support.workspace import Workspace



class Device:
    """One socket of one user on one instance, from its `hello` on.

    `since` has the head of each channel when it connected."""

    def __init__(self, socket, user, instance, native, since):
        self.socket = socket
        self.user = user
        self.instance = instance
        self.native = native
        self.since = since
        self.acked = set()  # (channel, seq) of what this socket posted itself
        self.marked = {}  # channel → (read_epoch, last_read) that it must have been told
        self.muted = {}  # channel → whether it is muted, as a native one must have been told
        self.ids = itertools.count(1)

    def events(self, channel):
        """(seq, kind, ts) of a channel's frames that carry a seq, in the order received."""
        return [
            (f["seq"], kind_of(f), f.get("ts", ""))
            for f in self.socket.frames
            if f.get("channel") == channel and is_event(f)
        ]

    def gaps(self, channel):
        frames = self.socket.matching({"type": "gap", "channel": channel})
        return {seq for f in frames for seq in range(f["from_seq"], f["to_seq"] + 1)}

    def post(self, frame):
        return self.socket.request({"id": next(self.ids), "type": "message", **frame})


class Trace:
    """The last calls and faults, to be shown when a run fails."""

    def __init__(self):
        self._lines = collections.deque(maxlen=80)

    def call(self, method, encoding, args, reply):
        """The calls that a client's recorder receives."""
        if method == "channels.info":  # asked after each step
            return
        shown = {name: reply[name] for name in ("error", "ts", "seq", "read_epoch", "last_read") if name in reply}
        self.note(f"{method} {args} → {shown or reply['ok']}")

    def note(self, line):
        self._lines.append(line[:200])

    def text(self):
        return "\n".join(self._lines)


class World:
    """A new workspace on the two instances of `services`, all up. Users are numbers, as in the model."""

    def __init__(self, services, users):
        self.services = services
        self.trace = Trace()
        environment = services.environment
        self.workspace = workspace = Workspace(environment.urls, environment.operator_token, self.trace)
        self._members = [[member, member.at(workspace.urls[1])] for member in workspace.users(users)]
        self.ids = [member.id for member, _ in self._members]

    def close(self):
        for pair in self._members:
            for member in pair:
                member.close()

    def instance(self, wanted):
        """The wanted instance, or the other one while that is dead."""
        return wanted if self.services.alive[wanted] else 1 - wanted

    def member(self, user, wanted):
        """The user as a client of that instance; of the machine's own thread."""
        return self._members[user][self.instance(wanted)]

    def other_thread(self, user, wanted):
        """The same for another thread, which closes it."""
        member = self.member(user, wanted)
        return member.at(member.url)

    def ok(self, user, wanted, method, /, **args):
        return self.member(user, wanted).ok(method, **args)

    def name(self, user):
        return self._members[user][0].name

    def phone(self, user):
        return AndroidPhone(self.workspace, self._members[user][0], self.services.gateway)

    def connect(self, user, wanted, native, since):
        instance = self.instance(wanted)
        return Device(self._members[user][instance].socket(native=native), user, instance, native, since)

    def eventually(self, check, what, timeout=60):
        """Waits until `check` raises no AssertionError; then fails with its last one."""
        last = []

        def passes():
            try:
                check()
                return True
            except AssertionError as error:
                last[:] = [error]
                return False

        try:
            wait_until(passes, timeout=timeout, interval=0.02, what=what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{last[0] if last else ''}") from None


def in_parallel(calls):
    """Runs the calls at the same time; their answers in order. An exception of one is raised here."""
    answers = [None] * len(calls)
    gate = threading.Barrier(len(calls))

    def run(n, call):
        gate.wait()
        try:
            answers[n] = call()
        except Exception as error:  # pylint: disable=broad-except
            answers[n] = error

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return answers
