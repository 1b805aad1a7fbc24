# SPDX-License-Identifier: Apache-2.0
"""The load of the fault tests through nginx, with all strategies, threads and sidebars, by clients that reconnect when they are cut off.

Each call and its outcome are recorded."""
import threading

from tests.faults import checker
from tests.faults.load import Line, Load, Poster, Reader
from tests.support.reading import whole_threads

STRATEGIES = ("sequence", "zset", "counter", "bitmap")
ROOTS = 2  # threads of each channel
UNAVAILABLE_SHARE_MAX = 0.01
OUTAGE_MAX_S = 2.0


class Talker(Poster):
    """Posts in channels and threads. Some posts are repeated, as by a client without a reply, and some are deleted."""

    def place_in(self, channel):
        if self.random.random() < 0.6:
            return {}
        return {"thread_ts": self.random.choice(self.load.roots[channel]), "reply_broadcast": self.random.random() < 0.25}

    def _post(self, key, channel, first, **place):
        super()._post(key, channel, first, **place)
        chance = self.random.random()
        if chance < 0.1:
            super()._post(key, channel, 1 - first, **place)
        elif chance < 0.2 and self.attempts[-1].outcome == "ok":
            made = self.attempts[-1]
            self._done(f"delete of {key}", first, lambda member: self.try_delete(member, made))

    def try_delete(self, member, made):
        """If the reply to an earlier attempt was lost, the message may be deleted already."""
        reply = self.outcomes.call(member, "chat.delete", channel=made.channel, ts=made.ts)
        if reply and (reply["ok"] or reply["error"] == "message_not_found"):
            made.outcome = "deleted"
        return made.outcome == "deleted"


class Watcher(Reader):
    """Reads channels and threads, marks messages unread again, and keeps a sidebar up to date by deltas."""

    def __init__(self, *args):
        super().__init__(*args)
        self.sidebar = {}  # channel → its entry
        self.sync_token = None

    def step(self, member):
        last = self.recent()
        steps = [lambda: self.sync(member), lambda: super(Watcher, self).step(member)]
        if last:
            root = self.random.choice(self.load.roots[last.channel])
            steps += [lambda: self.ask(member, "channels.markUnread", channel=last.channel, ts=last.ts),
                      lambda: self.ask(member, "threads.mark", channel=last.channel, thread_ts=root, ts=last.ts)]
        self.random.choice(steps)()

    def sync(self, member):
        reply = self.ask(member, "unread.sync", **({"since": self.sync_token} if self.sync_token else {}))
        if reply is None:
            return
        if reply["full"]:
            self.sidebar = {}
        self.sidebar.update((entry["id"], entry) for entry in reply["channels"])
        self.sync_token = reply["sync_token"]


class LastingLine(Line):
    """A socket of a client that reads missed events after it was cut off."""

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.first = None  # heads when it was connected first
        self.caught_up = set()  # (channel, seq)
        self.to_be_cut = threading.Event()

    def cut(self):
        """Loses its connection; by the thread that keeps it."""
        self.to_be_cut.set()

    def tend(self):
        if self.to_be_cut.is_set() and self.socket is not None:
            self.to_be_cut.clear()
            self.socket.close()
        return super().tend()

    def synced(self, heads):
        if self.first is None:
            self.first = heads
        for channel, head in heads.items():
            self.catch_up(channel, self.newest(channel), head)
        super().synced(heads)

    def seqs(self, channel):
        """All known events; duplicates, which may occur around a new connection, count once."""
        return {f.seq for log in self.all_logs() for f in log.frames if f.channel == channel} | {
            seq for c, seq in self.caught_up if c == channel}

    def newest(self, channel):
        return max(self.seqs(channel), default=self.first[channel])

    def catch_up(self, channel, after, head):
        while after < head:
            reply = self.member.ok("channels.events", channel=channel, after_seq=after)
            self.caught_up |= {(channel, event["seq"]) for event in reply["events"]}
            after = reply["through_seq"]


class RollingLoad(Load):
    poster, reader, line = Talker, Watcher, LastingLine

    def __init__(self, environment, nginx):
        super().__init__(environment, [nginx.url] * 2, strategies=STRATEGIES)
        self.roots = {channel: [] for channel in self.channels}

    def __enter__(self):
        for channel, roots in self.roots.items():
            for number in range(ROOTS):
                self.post(self.people[0][0], channel, f"root {number} of {channel}")
                roots.append(self.history.attempts[-1].ts)
            for reader in self.readers:
                for root in roots:
                    reader.members[0].ok("threads.follow", channel=channel, thread_ts=root)
        return super().__enter__()

    def judge(self, timeout=60):
        super().judge(timeout)
        for line in self.lines:
            for channel, events in self.history.events.items():
                wanted = set(range(line.first[channel] + 1, events[-1][0] + 1))
                missing = wanted - line.seqs(channel)
                assert not missing, f"{line.member.name} never got {sorted(missing)[:10]} of {channel}"
        self.check_outages()

    def check_outages(self):
        clients = [client.outcomes for client in (*self.posters, *self.readers)]
        calls, outages = sum(len(o.all) for o in clients), [outage for o in clients for outage in o.outages()]
        assert len(outages) <= UNAVAILABLE_SHARE_MAX * calls, f"{len(outages)} of {calls} calls failed: {outages[:10]}"
        assert max(o.longest_outage() for o in clients) <= OUTAGE_MAX_S, outages[:10]

    def _infos(self, history):
        true, counts = super()._infos(history)
        return true, counts + self._threads(history)

    def _threads(self, history):
        """Each thread's own count, for all its followers, and the reply count of its root."""
        counts = []
        for member in (pair[0] for pair in self.people):
            for thread in whole_threads(member):
                replies = [m for m in history.stored if m.thread_ts == thread["thread_ts"] != m.ts]
                unread = sum(m.user != member.id and m.ts > thread["last_read"] for m in replies)
                where = f"threads.list, {thread['thread_ts']},"
                counts.append(checker.Count(where, member.id, thread["channel"], (len(replies), unread),
                                            (thread["root"]["reply_count"], thread["unread_count"])))
        assert len(counts) >= len(self.people) * len(self.channels), "nearly all follow nearly all threads"
        return counts

    def _syncs(self, true):
        counts = super()._syncs(true)
        for reader in self.readers:
            reader.sync(reader.members[0])
            counts += self._sidebar("a sidebar kept by `since`", reader.members[0], reader.sidebar.values(), true)
        return counts
