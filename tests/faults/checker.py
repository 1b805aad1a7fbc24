# SPDX-License-Identifier: Apache-2.0
"""Judges the clients' records from a time in which parts of Tidings were failing.

Pure functions over a History; each returns a list of violations in words, empty if there are none.
The letters are those of the invariants: I1 durability, I2 idempotence, I3 the order of the log,
I4 delivery, I5 unread counts, I6 cursors.
"""
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Attempt:
    """One attempt at one post. `outcome`: ok, fail (refused: nothing may be stored), info (unknown) or deleted (both the post and its
    delete were acked)."""

    key: str
    user: str
    channel: str
    text: str
    outcome: str
    ts: str = ""
    seq: int = 0
    error: str = ""  # for the reader of a failed test


@dataclass
class Stored:
    """One message in the public API at the end. `counted`: it is not only in a thread."""

    channel: str
    ts: str
    seq: int
    user: str
    text: str
    counted: bool = True
    thread_ts: str = ""


@dataclass
class Frame:
    channel: str
    seq: int
    kind: str
    ts: str = ""
    text: str = ""


@dataclass
class SocketLog:
    """The frames of one socket between its `hello` and its end. `since`: the head of each of its user's channels when it connected;
    `own_posts`: the messages posted on it, for which it receives only acks."""

    name: str
    user: str
    since: dict
    frames: list = field(default_factory=list)
    gaps: list = field(default_factory=list)  # (channel, from_seq, to_seq)
    own_posts: set = field(default_factory=set)  # (channel, seq)
    closed: object = None  # the close code (0 = connection lost); None: open to the end


@dataclass
class Count:
    """The unread count returned to a reader after the load: a number, or the form that the strategy shows."""

    where: str
    user: str
    channel: str
    expected: object
    seen: object


@dataclass
class CursorSeen:
    """One reply about a cursor by one server, in the order in which one reader received them."""

    reader: str
    user: str
    channel: str
    epoch: int
    last_read: str


@dataclass
class History:
    attempts: list = field(default_factory=list)
    stored: list = field(default_factory=list)
    events: dict = field(default_factory=dict)  # channel → [(seq, ts of a new message or "")]
    sockets: list = field(default_factory=list)
    counts: list = field(default_factory=list)
    cursors: list = field(default_factory=list)


def check_durability(history):
    """I1: every acked message is stored, once, as acked, unless its delete was acked."""
    stored = {(m.channel, m.ts): m for m in history.stored}
    bad = []
    for a in history.attempts:
        found = stored.get((a.channel, a.ts))
        if a.outcome == "deleted" and found:
            bad.append(f"I1 not deleted: {a.key} is stored as {a.ts} in {a.channel}")
        if a.outcome != "ok":
            continue
        if found is None:
            bad.append(f"I1 lost: {a.key} acked as {a.ts} in {a.channel} is not stored")
        elif (found.seq, found.user, found.text) != (a.seq, a.user, a.text):
            bad.append(f"I1 altered: {a.key} acked as seq {a.seq} by {a.user}, stored: {found}")
    return bad


def check_idempotence(history):
    """I2: a key has one row at most, one answer, and no row when it was only ever refused."""
    rows = Counter((m.user, m.channel, m.text) for m in history.stored)
    answers, outcomes = {}, {}
    for a in history.attempts:
        place = (a.key, a.user, a.channel, a.text)
        outcomes.setdefault(place, set()).add(a.outcome)
        if a.outcome == "ok":
            answers.setdefault(place, set()).add((a.ts, a.seq))
    bad = []
    for place, seen in outcomes.items():
        found = rows.pop(place[1:], 0)
        if found > 1:
            bad.append(f"I2 doubled: {place[0]} is stored {found} times")
        if found and seen == {"fail"}:
            bad.append(f"I2 refused and stored: {place[0]}")
        if len(answers.get(place, ())) > 1:
            bad.append(f"I2 two answers: {place[0]} got {sorted(answers[place])}")
    bad += [f"I2 stored, never posted: {row}" for row in rows]
    return bad


def check_log(history):
    """I3: the events of a channel are 1, 2, 3 … and the ts of its messages rise with them."""
    bad = []
    for channel, events in history.events.items():
        seqs = [seq for seq, _ in events]
        if seqs != list(range(1, len(seqs) + 1)):
            bad.append(f"I3 not dense: {channel} has {_holes(seqs)}")
        stamps = [ts for _, ts in events if ts]
        bad += [f"I3 ts goes back: {channel} {a} then {b}" for a, b in zip(stamps, stamps[1:]) if b <= a]
    return bad


def _holes(seqs):
    missing = sorted(set(range(1, max(seqs, default=0) + 1)) - set(seqs))
    double = sorted(s for s, n in Counter(seqs).items() if n > 1)
    return f"missing {missing[:10]}, double {double[:10]}, in order: {seqs == sorted(seqs)}"


def check_delivery(history):
    """I4: every socket receives every event after its `since` once, in order, or a gap."""
    heads = {channel: max((seq for seq, _ in events), default=0) for channel, events in history.events.items()}
    truth = {(m.channel, m.seq): m for m in history.stored}
    deleted = {(a.channel, a.seq) for a in history.attempts if a.outcome == "deleted"}
    bad = []
    for log in history.sockets:
        for channel, since in log.since.items():
            bad += _check_socket(log, channel, since, heads.get(channel, 0))
        bad += _check_contents(log, truth, deleted)
    return bad


def _check_socket(log, channel, since, head):
    seqs = [f.seq for f in log.frames if f.channel == channel and f.seq]
    told = {s for c, low, high in log.gaps if c == channel for s in range(low, high + 1)}
    own = {s for c, s in log.own_posts if c == channel}
    bad = [f"I4 double: {log.name} got {channel} {s} {n} times" for s, n in Counter(seqs).items() if n > 1]
    bad += [f"I4 inversion: {log.name} got {channel} {b} after {a}" for a, b in zip(seqs, seqs[1:]) if b < a]
    bad += [f"I4 ack and frame: {log.name} got {channel} {s} that it posted" for s in sorted(own & set(seqs))]
    # A socket that was closed has all up to its last frame; one still open has all up to the head.
    end = head if log.closed is None else max(seqs, default=since)
    missing = sorted(set(range(since + 1, end + 1)) - set(seqs) - told - own)
    if missing:
        bad.append(f"I4 missing: {log.name} has no {channel} {missing[:10]} ({len(missing)} in all)")
    return bad


def _check_contents(log, truth, deleted):
    bad = []
    for f in log.frames:
        if f.kind != "message" or (f.channel, f.seq) in deleted:
            continue
        message = truth.get((f.channel, f.seq))
        if message is None:
            bad.append(f"I4 ghost: {log.name} got {f.channel} {f.seq} {f.text!r}, which is not stored")
        elif (message.ts, message.text) != (f.ts, f.text):
            bad.append(f"I4 altered: {log.name} got {f} for {message}")
    return bad


def check_counts(history):
    """I5: every count that a reader sees is the true one."""
    return [
        f"I5 wrong count: {c.where} says {c.seen} of {c.user} in {c.channel}, true is {c.expected}"
        for c in history.counts
        if c.seen != c.expected
    ]


def check_cursors(history):
    """I6: to one reader, a cursor never goes back within an epoch, and epochs only rise."""
    last, bad = {}, []
    for seen in history.cursors:
        place = (seen.reader, seen.user, seen.channel)
        now = (seen.epoch, seen.last_read)
        if now < last.get(place, now):
            bad.append(f"I6 cursor back: {place} from {last[place]} to {now}")
        last[place] = now
    return bad


CHECKS = (check_durability, check_idempotence, check_log, check_delivery, check_counts, check_cursors)


def check(history):
    return [violation for one in CHECKS for violation in one(history)]
