# SPDX-License-Identifier: Apache-2.0
"""A small load on two instances that records all replies and frames, and the verdict afterwards.

    with Load(environment) as load:
        load.wait_acked(100)
        environment.redis.kill()
        load.wait_acked(100)
        environment.redis.start()
        load.finish()      # stops posting, waits for quiet, asserts that the checker finds nothing

finish() is stop(), settle() and judge(), for tests that do something in between.

Three users post, two mark and read, and each of the five has a socket on both instances, one of
them native. Every post has a client_msg_id and is retried on the other instance until it is acked.
"""
import itertools
import random
import threading
import time

import requests
import websocket

from tests.faults import checker
from tests.faults.outcomes import UNAVAILABLE, Outcomes
from tests.support.reading import is_event, kind_of, whole_history, whole_log, whole_thread
from tests.support.wait import wait_until
from tests.support.workspace import Workspace

POSTERS = 3
READERS = 2
STRATEGIES = ("auto",) * 4  # of each channel
ZSET_MAX = 100  # TIDINGS_UNREAD_MAX
PAUSE_S = 0.008  # between the posts of one user
CALL_TIMEOUT_S = 30
RETRY_PAUSE_S = 0.05
GIVE_UP_S = 90


def shown_of(strategy, unread):
    """The form in which a strategy shows this number of unread messages, as in told_by()."""
    if strategy == "bitmap":
        return unread > 0, None, False
    most = min(unread, ZSET_MAX) if strategy == "zset" else unread
    return unread > 0, most, most < unread


def told_by(shown):
    return shown["has_unreads"], shown.get("unread_count"), shown["unread_capped"]


class Poster(threading.Thread):
    """A user who posts in a loop, retrying each post until it is acked."""

    def __init__(self, load, members, seed):
        super().__init__(daemon=True)
        self.load = load
        self.members = [_patient(member) for member in members]
        self.random = random.Random(seed)
        self.attempts = []
        self.acked = 0
        self.given_up = []
        self.outcomes = Outcomes()

    def run(self):
        for number in itertools.count():
            if self.load.stopping.wait(PAUSE_S):
                return
            key = f"{self.members[0].name}-{number}"
            channel = self.random.choice(self.load.channels)
            self._post(key, channel, self.random.randrange(2), **self.place_in(channel))

    def place_in(self, channel):
        """Further arguments of a post there."""
        return {}

    def _post(self, key, channel, first, **place):
        text = f"text of {key}"
        if self._done(key, first, lambda member: self._try(member, key, channel, text, **place)):
            self.acked += 1

    def _done(self, key, first, attempt):
        """Makes attempts, on one instance and the other, until one says that it was the last. False when it gives up."""
        deadline = time.monotonic() + GIVE_UP_S
        for number in itertools.count(first):
            if attempt(self.members[number % 2]):
                return True
            if time.monotonic() > deadline:
                self.given_up.append(key)
                return False
            time.sleep(RETRY_PAUSE_S)

    def _try(self, member, key, channel, text, **place):
        made = checker.Attempt(key, member.id, channel, text, "info")
        reply = self.outcomes.call(member, "chat.postMessage", channel=channel, text=text, client_msg_id=key, **place)
        made.error = self.outcomes.last.error
        if reply and reply["ok"]:
            made.outcome, made.ts, made.seq = "ok", reply["ts"], reply["seq"]
        elif reply and reply["error"] != UNAVAILABLE:
            made.outcome = "fail"
        self.attempts.append(made)
        return made.outcome == "ok"


class Reader(threading.Thread):
    """A user who marks new posts as read, and reads the count, on either instance."""

    def __init__(self, load, members, seed):
        super().__init__(daemon=True)
        self.load = load
        self.members = [_patient(member) for member in members]
        self.random = random.Random(seed)
        self.cursors = []
        self.refused = []
        self.outcomes = Outcomes()

    def run(self):
        while not self.load.stopping.wait(2 * PAUSE_S):
            self.step(self.random.choice(self.members))

    def step(self, member):
        last = self.recent()
        if last and self.random.random() < 0.5:
            self.ask(member, "channels.mark", channel=last.channel, ts=last.ts)
        else:
            self.ask(member, "channels.info", channel=self.random.choice(self.load.channels))

    def recent(self):
        """An acked post of late; None when the one that chance chose was not."""
        attempts = self.random.choice(self.load.posters).attempts
        last = attempts[-self.random.randrange(1, 20):][:1]
        return last[0] if last and last[0].ts else None

    def ask(self, member, method, **args):
        """The reply, if it succeeds; its cursor is recorded."""
        reply = self.outcomes.call(member, method, **args)
        if reply is None:
            return None
        if not reply["ok"]:
            if reply["error"] != UNAVAILABLE:
                self.refused.append(dict(reply))
            return None
        shown = reply["channel"] if method == "channels.info" else reply
        if "read_epoch" in shown:
            self.saw(member, args["channel"], shown)
        return reply

    def saw(self, member, channel, shown):
        if shown.get("unread_count", 0) < 0:
            self.refused.append(dict(shown))
        name = f"{member.name} itself"
        self.cursors.append(checker.CursorSeen(name, member.id, channel, shown["read_epoch"], shown["last_read"]))


class Line:
    """The socket of one user on one instance: opened again whenever it is closed."""

    def __init__(self, member, native):
        self.member = _patient(member)
        self.native = native
        self.logs = []  # of sockets that ended
        self.socket = None
        self.since = {}

    def open(self):
        """Whether it opened. From then on it must receive all events after the heads read after its hello."""
        if self.socket is not None:
            return True
        socket = None
        try:
            socket = self.member.socket(native=self.native)
            self.synced({entry["id"]: entry["seq"] for entry in self.member.ok("unread.sync")["channels"]})
        except (requests.RequestException, OSError, websocket.WebSocketException, ValueError, AssertionError):
            if socket is not None:
                socket.close()
            return False
        self.socket = socket
        return True

    def synced(self, heads):
        """The heads of the channels, asked for after hello."""
        self.since = heads

    def tend(self):
        if self.socket is not None and not self.socket.is_open:
            code, _ = self.socket.wait_closed()
            self.logs.append(self._log(code))
            self.socket.close()
            self.socket = None
        return self.open()

    def _log(self, code):
        name = f"{self.member.name} on {self.member.url} #{len(self.logs)}"
        log = checker.SocketLog(name, self.member.id, self.since, closed=code)
        for f in self.socket.frames:
            if is_event(f):
                ts, text = f.get("ts", ""), f.get("text", "")
                log.frames.append(checker.Frame(f["channel"], f["seq"], kind_of(f), ts, text))
            elif f.get("type") == "gap":
                log.gaps.append((f["channel"], f["from_seq"], f["to_seq"]))
        return log

    def all_logs(self):
        return self.logs + ([self._log(None)] if self.socket is not None else [])

    def reached(self, heads):
        """Whether it has received the last event of every channel, or a gap."""
        log = self._log(None)
        got = {(f.channel, f.seq) for f in log.frames}
        told = {channel: high for channel, _, high in log.gaps}
        return all((c, head) in got or told.get(c, 0) >= head for c, head in heads.items() if head > self.since[c])

    def close(self):
        if self.socket is not None:
            self.socket.close()
        self.member.close()


def _patient(member):
    """A client of the thread's own. Its calls may wait as long as the server may take to answer."""
    own = member.at(member.url)
    own.timeout = CALL_TIMEOUT_S
    return own


class Load:
    poster, reader, line = Poster, Reader, Line

    def __init__(self, environment, urls=None, seed=1, strategies=STRATEGIES):
        self.workspace = Workspace(urls or environment.urls, environment.operator_token)
        self.stopping = threading.Event()
        people = self.workspace.users(POSTERS + READERS)
        self.strategies = {self._channel(people, strategy): strategy for strategy in strategies}
        self.channels = list(self.strategies)
        pairs = [[member, member.at(self.workspace.urls[1])] for member in people]
        self.posters = [self.poster(self, pair, seed + n) for n, pair in enumerate(pairs[:POSTERS])]
        self.readers = [self.reader(self, pair, seed + n) for n, pair in enumerate(pairs[POSTERS:])]
        sides = [(n, side, member) for n, pair in enumerate(pairs) for side, member in enumerate(pair)]
        self.lines = [self.line(member, native=n % 2 == side) for n, side, member in sides]
        self.people = pairs
        self.history = checker.History()
        self._keeper = threading.Thread(target=self._keep_lines, daemon=True)

    def _channel(self, people, strategy):
        channel = self.workspace.channel(people[0], *people[1:])
        people[0].ok("channels.setStrategy", channel=channel, strategy=strategy)
        return channel

    def __enter__(self):
        for line in self.lines:
            assert line.open(), "a socket cannot be opened"
        for thread in [*self.posters, *self.readers, self._keeper]:
            thread.start()
        return self

    def __exit__(self, *unused):
        self.stop()
        for line in self.lines:
            line.close()
        for pair in self.people:
            for member in pair:
                member.close()

    def stop(self):
        """Ends the load; calls in progress are retried until acked."""
        self.stopping.set()
        for thread in [*self.posters, *self.readers, self._keeper]:
            thread.join()

    def _keep_lines(self):
        while not self.stopping.wait(0.05):
            for line in self.lines:
                if not self.stopping.is_set():
                    line.tend()

    @property
    def acked(self):
        return sum(poster.acked for poster in self.posters)

    def wait_acked(self, more, timeout=120):
        """Waits until so many more posts are acked."""
        goal = self.acked + more
        wait_until(lambda: self.acked >= goal, timeout, what=f"{more} more acked posts")

    def works_for(self, seconds):
        """Keeps a fault for this time, and checks that posts continue."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.wait_acked(5)

    def works_on(self, url, seconds):
        """The same for one instance, while users of the other one are stuck."""
        member = _patient(self.people[0][0].at(url))
        until = time.monotonic() + seconds
        for number in itertools.count():
            if time.monotonic() > until:
                return
            self.post(member, self.channels[0], f"{number} on {url}")
            time.sleep(PAUSE_S)

    def post(self, member, channel, text, **args):
        """One post by the caller's own thread, without a client_msg_id, which must be acked at the first attempt."""
        reply = member.ok("chat.postMessage", channel=channel, text=text, **args)
        made = checker.Attempt(text, member.id, channel, text, "ok", reply["ts"], reply["seq"])
        self.history.attempts.append(made)

    def attempts(self):
        return [attempt for poster in self.posters for attempt in list(poster.attempts)]

    def failed(self):
        """The attempts that were not acked."""
        return [attempt for attempt in self.attempts() if attempt.outcome != "ok"]

    def slowest(self):
        """The longest that a poster waited for an answer, in seconds."""
        return max(poster.outcomes.slowest() for poster in self.posters)

    # The judgement.

    def finish(self, timeout=60):
        """All parts must be up again. `timeout` is for the quiet after the last post."""
        self.stop()
        self.settle(timeout)
        self.judge(timeout)

    def settle(self, timeout=60, last_posts=True):
        """Last posts, and the wait until every socket has all there is."""
        assert [key for poster in self.posters for key in poster.given_up] == [], "posts never acked"
        assert [reply for reader in self.readers for reply in reader.refused] == []
        assert [attempt for attempt in self.attempts() if attempt.outcome == "fail"] == []
        wait_until(self._all_ready, timeout, what="all instances ready")
        wait_until(self._all_open, timeout, what="all sockets open")
        history = self.history
        history.attempts += self.attempts()
        if last_posts:
            self._fences(history)
        self._stored(history)
        heads = {channel: events[-1][0] for channel, events in history.events.items()}
        self._wait_delivered(heads, timeout)

    def judge(self, timeout=60):
        self.history.sockets = [log for line in self.lines for log in line.all_logs()]
        self._read_cursors(self.history)
        self._count(self.history, timeout)
        violations = checker.check(self.history)
        assert violations == [], "\n".join(violations[:40])

    def _all_ready(self):
        return all(member.page("/readyz").status_code == 200 for member in self.people[0])

    def _all_open(self):
        return all([line.tend() for line in self.lines])

    def _fences(self, history):
        """A last post in each channel on each instance: late or duplicate frames arrive before it."""
        for channel in self.channels:
            for side, member in enumerate(self.people[0]):
                made = checker.Attempt(f"fence-{side}-{channel}", member.id, channel, f"fence {side}", "ok")
                reply = wait_until(lambda: self._fence(member, made), GIVE_UP_S, 0.1, f"a post on {member.url}")
                made.ts, made.seq = reply["ts"], reply["seq"]
                history.attempts.append(made)

    @staticmethod
    def _fence(member, made):
        try:
            reply = member.call("chat.postMessage", channel=made.channel, text=made.text, client_msg_id=made.key)
            return reply if reply["ok"] else None
        except (requests.RequestException, ValueError):
            return None

    def _stored(self, history):
        member = self.people[0][0]
        for channel in self.channels:
            history.stored += self._stored_in(member, channel)
            history.events[channel] = [
                (f["seq"], f["ts"] if f["type"] == "message" else "") for f in whole_log(member, channel)
            ]

    @staticmethod
    def _stored_in(member, channel):
        """Each message once: broadcast replies are in the channel's history and in their thread's."""
        messages = {m["ts"]: (m, True) for m in whole_history(member, channel)}
        for root in [ts for ts, (m, _) in messages.items() if m.get("reply_count")]:
            for reply in whole_thread(member, channel, root):
                messages.setdefault(reply["ts"], (reply, False))
        return [checker.Stored(channel, ts, m["seq"], m["user"], m["text"], counted, m.get("thread_ts", ""))
                for ts, (m, counted) in messages.items()]

    def _wait_delivered(self, heads, timeout):
        """Waits until every socket has the last events, or `timeout`: the checker reports missing ones."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self._all_open() and all(line.reached(heads) for line in self.lines):
                return
            time.sleep(0.05)

    def _read_cursors(self, history):
        for reader in self.readers:
            for member in reader.members:
                for channel in self.channels:
                    reader.saw(member, channel, member.ok("channels.info", channel=channel)["channel"])
            history.cursors += reader.cursors
            reader.cursors = reader.cursors[-1:]

    def _count(self, history, timeout):
        """Every count of every member: in channels.info at once, in unread.sync within seconds."""
        true, counts = self._infos(history)
        deadline = time.monotonic() + timeout
        while True:
            history.counts = counts + self._syncs(true)
            if checker.check_counts(history) == [] or time.monotonic() > deadline:
                return
            time.sleep(0.05)

    def _infos(self, history):
        """The true counts, by the cursors that channels.info shows, and the counts that it shows."""
        true, counts = {}, []
        for member, channel in ((m, c) for pair in self.people for m in pair for c in self.channels):
            shown = member.ok("channels.info", channel=channel)["channel"]
            unread = sum(m.counted and m.channel == channel and m.user != member.id and m.ts > shown["last_read"]
                         for m in history.stored)
            true[member.id, channel] = shown_of(self.strategies[channel], unread)
            where = f"channels.info on {member.url}"
            counts.append(checker.Count(where, member.id, channel, true[member.id, channel], told_by(shown)))
        return true, counts

    def _syncs(self, true):
        counts = []
        for member in (member for pair in self.people for member in pair):
            counts += self._sidebar(f"unread.sync on {member.url}", member, member.ok("unread.sync")["channels"], true)
        return counts

    @staticmethod
    def _sidebar(where, member, entries, true):
        return [checker.Count(where, member.id, entry["id"], true[member.id, entry["id"]], told_by(entry)) for entry in entries]
