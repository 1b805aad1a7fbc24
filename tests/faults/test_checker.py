# SPDX-License-Identifier: Apache-2.0
"""The checker finds nothing in a good history and every planted fault in a bad one."""
import copy

import pytest

from tests.faults import checker
from tests.faults.outcomes import Outcome, Outcomes

C, D = "C1", "C2"


def good_history():
    """Two channels, two users, three sockets: one open to the end, one closed, one with a gap."""
    h = checker.History()
    h.events = {C: [(1, "")], D: [(1, "")]}
    for n in range(2, 12):
        for channel in (C, D):
            ts, text = f"17000000{n:02}.000000", f"{channel}-{n}"
            h.events[channel].append((n, ts))
            h.attempts.append(checker.Attempt(f"k{channel}{n}", "U1", channel, text, "info"))
            h.attempts.append(checker.Attempt(f"k{channel}{n}", "U1", channel, text, "ok", ts, n))
            h.stored.append(checker.Stored(channel, ts, n, "U1", text))
    h.attempts.append(checker.Attempt("refused", "U1", C, "no", "fail"))
    h.attempts.append(checker.Attempt("unknown", "U1", C, "who knows", "info"))
    h.sockets = [_socket(h, "open"), _socket(h, "closed", upto=6), _socket(h, "gap", gap=range(4, 8))]
    h.sockets[1].closed = 1012
    h.sockets[2].gaps = [(C, 4, 7), (D, 4, 7)]
    h.counts = [checker.Count("info", "U2", C, 10, 10), checker.Count("sync", "U2", D, 10, 10)]
    h.cursors = [
        checker.CursorSeen("phone", "U2", C, 0, "1700000003.000000"),
        checker.CursorSeen("phone", "U2", C, 0, "1700000005.000000"),
        checker.CursorSeen("phone", "U2", C, 1, "1700000002.000000"),
        checker.CursorSeen("desk", "U2", C, 0, "1700000005.000000"),
    ]
    return h


def _socket(h, name, upto=11, gap=()):
    log = checker.SocketLog(name, "U2", {C: 1, D: 1})
    for m in h.stored:
        if m.seq <= upto and m.seq not in gap:
            log.frames.append(checker.Frame(m.channel, m.seq, "message", m.ts, m.text))
    return log


def frames_of(h, socket, channel=C):
    return [i for i, f in enumerate(h.sockets[socket].frames) if f.channel == channel]


def lose_a_post(h):
    del h.stored[3]


def lose_the_last_post(h):
    del h.stored[-1]


def alter_a_post(h):
    h.stored[3].text = "something else"


def give_a_post_to_another(h):
    h.stored[3].user = "U2"


def store_under_another_seq(h):
    h.stored[3].seq += 1


def keep_a_deleted_post(h):
    h.attempts[3].outcome = "deleted"


def double_a_post(h):
    twin = copy.copy(h.stored[3])
    twin.ts, twin.seq = "1700000099.000000", 12
    h.stored.append(twin)


def double_an_unknown_post(h):
    for n in (12, 13):
        h.stored.append(checker.Stored(C, f"17000000{n}.000000", n, "U1", "who knows"))


def answer_a_retry_with_another_ts(h):
    again = copy.copy(next(a for a in h.attempts if a.outcome == "ok"))
    again.ts = "1700000098.000000"
    h.attempts.append(again)


def store_a_refused_post(h):
    h.stored.append(checker.Stored(C, "1700000012.000000", 12, "U1", "no"))


def store_what_nobody_posted(h):
    h.stored.append(checker.Stored(C, "1700000012.000000", 12, "U1", "out of thin air"))


def leave_a_hole_in_the_log(h):
    del h.events[C][4]


def give_a_seq_twice(h):
    h.events[C].insert(4, h.events[C][4])


def let_ts_go_back(h):
    h.events[C][5] = (h.events[C][5][0], "1600000000.000000")


def lose_a_frame(h):
    del h.sockets[0].frames[frames_of(h, 0)[4]]


def lose_the_last_frame(h):
    del h.sockets[0].frames[frames_of(h, 0)[-1]]


def lose_the_first_frame(h):
    del h.sockets[0].frames[frames_of(h, 0)[0]]


def lose_every_frame(h):
    h.sockets[0].frames = []


def lose_a_frame_before_a_close(h):
    del h.sockets[1].frames[frames_of(h, 1)[2]]


def lose_a_frame_beside_a_gap(h):
    del h.sockets[2].frames[frames_of(h, 2)[0]]


def send_a_frame_twice(h):
    at = frames_of(h, 0)[4]
    h.sockets[0].frames.insert(at, h.sockets[0].frames[at])


def send_a_frame_twice_much_later(h):
    h.sockets[0].frames.append(h.sockets[0].frames[0])


def swap_two_frames(h):
    a, b = frames_of(h, 0)[4:6]
    frames = h.sockets[0].frames
    frames[a], frames[b] = frames[b], frames[a]


def send_a_ghost(h):
    h.sockets[0].frames.append(checker.Frame(C, 12, "message", "1700000012.000000", "never stored"))


def send_another_text(h):
    h.sockets[0].frames[4].text = "not this"


def send_a_frame_for_what_was_acked(h):
    h.sockets[0].own_posts.add((C, 5))


def count_one_too_many(h):
    h.counts[0].seen += 1


def count_one_too_few(h):
    h.counts[1].seen -= 1


def move_a_cursor_back(h):
    h.cursors.insert(2, checker.CursorSeen("phone", "U2", C, 0, "1700000004.000000"))


def move_an_epoch_back(h):
    h.cursors.append(checker.CursorSeen("phone", "U2", C, 0, "1700000009.000000"))


MUTANTS = {
    "I1": [lose_a_post, lose_the_last_post, alter_a_post, give_a_post_to_another, store_under_another_seq,
           keep_a_deleted_post],
    "I2": [double_a_post, double_an_unknown_post, answer_a_retry_with_another_ts, store_a_refused_post,
           store_what_nobody_posted],
    "I3": [leave_a_hole_in_the_log, give_a_seq_twice, let_ts_go_back],
    "I4": [lose_a_frame, lose_the_last_frame, lose_the_first_frame, lose_every_frame, lose_a_frame_before_a_close,
           lose_a_frame_beside_a_gap, send_a_frame_twice, send_a_frame_twice_much_later, swap_two_frames,
           send_a_ghost, send_another_text, send_a_frame_for_what_was_acked],
    "I5": [count_one_too_many, count_one_too_few],
    "I6": [move_a_cursor_back, move_an_epoch_back],
}


def test_a_good_history_passes():
    assert checker.check(good_history()) == []


def test_an_unknown_post_that_was_stored_passes():
    h = good_history()
    h.events[C].append((12, "1700000012.000000"))
    h.stored.append(checker.Stored(C, "1700000012.000000", 12, "U1", "who knows"))
    for log in h.sockets:
        if log.closed is None:
            log.frames.append(checker.Frame(C, 12, "message", "1700000012.000000", "who knows"))
    assert checker.check(h) == []


@pytest.mark.parametrize(
    "invariant, mutate",
    [pytest.param(invariant, mutant, id=mutant.__name__) for invariant, mutants in MUTANTS.items() for mutant in mutants],
)
def test_each_planted_fault_is_caught(invariant, mutate):
    h = good_history()
    mutate(h)
    assert any(v.startswith(invariant) for v in checker.check(h)), f"{mutate.__name__} went unseen"


def test_a_deleted_post_may_have_come():
    """On a socket, before its delete."""
    h = good_history()
    gone = h.attempts[3]
    gone.outcome = "deleted"
    h.stored = [m for m in h.stored if (m.channel, m.ts) != (gone.channel, gone.ts)]
    assert checker.check(h) == []


def test_an_outage_lasts_from_the_first_failure_to_the_next_success():
    outcomes = Outcomes()
    for began, error in ((1, ""), (2, "service_unavailable"), (3, ""), (4, "no reply"), (5, "service_unavailable"), (7, "not_in_channel")):
        outcomes.all.append(Outcome("api.test", began, began + 0.5, error, error != "no reply"))
    assert len(outcomes.outages()) == 3
    assert outcomes.longest_outage() == 3.5
    outcomes.all.append(Outcome("api.test", 8, 20, "service_unavailable", True))
    assert outcomes.longest_outage() == 12
