# SPDX-License-Identifier: Apache-2.0
"""channels.setNotifications: muting hides the unread count from totals, and nothing else."""

import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.wait import wait_until

FAMILIES = pytest.mark.parametrize("family", ["channels", "conversations"])


def entry_of(sync, channel):
    return next(entry for entry in sync["channels"] if entry["id"] == channel)


@FAMILIES
def test_each_value_stays_when_it_is_not_given(room, family):
    _, bob, channel = room

    def put(**args):
        reply = bob.ok(f"{family}.setNotifications", channel=channel, **args)
        return reply["muted"], reply["notify"]

    assert put() == (False, "default")
    assert put(muted=True) == (True, "default")
    assert put(notify="mentions") == (True, "mentions")
    assert put(encoding="form", muted=False) == (False, "mentions")
    assert put(notify="all") == (False, "all")
    assert put(encoding="form", notify="none", muted="1") == (True, "none")
    assert put(encoding="form", notify="", muted="") == (True, "none")
    assert put() == (True, "none")


@pytest.mark.parametrize("args, named", [({"notify": "some"}, "notify: must be default, all, mentions or none"), ({"notify": "ALL"}, "notify"),
                                         ({"muted": "maybe"}, "muted"), ({"notify": ["all"]}, "notify"),
                                         ({"muted": True, "notify": "x"}, "notify")])
@FAMILIES
def test_bad_values_change_nothing(room, args, named, family):
    _, bob, channel = room
    assert named in bob.fails("invalid_arguments", f"{family}.setNotifications", channel=channel, **args).messages
    reply = bob.ok(f"{family}.setNotifications", channel=channel)
    assert (reply["muted"], reply["notify"]) == (False, "default")


def test_for_members_only(room, workspace):
    ann, bob, channel = room
    stranger = workspace.user()
    stranger.fails("not_in_channel", "channels.setNotifications", channel=channel, muted=True)
    hidden = workspace.channel(ann, private=True)
    bob.fails("channel_not_found", "channels.setNotifications", channel=hidden, muted=True)
    bob.fails("channel_not_found", "channels.setNotifications", channel="C0000000000", muted=True)
    assert "channel" in bob.fails("invalid_arguments", "channels.setNotifications", muted=True).messages


def test_muting_leaves_totals_and_shows_the_truth(room, workspace):
    ann, bob, channel = room
    loud = workspace.channel(ann, bob)
    ann.post(loud)
    for _ in range(3):
        ann.post(channel, f"<@{bob.id}>")
    bob.ok("channels.setNotifications", channel=channel, muted=True)
    for method in ("unread.sync", "client.counts"):
        sync = bob.ok(method)
        assert sync["totals"] == {"unread_channels": 1, "unread_count": 1, "mention_count": 3, "muted_unread_count": 3,
                                  "badge": 3}
        entry = entry_of(sync, channel)
        assert (entry["unread_count"], entry["mention_count"], entry["is_muted"]) == (3, 3, True)
        assert [e["id"] for e in sync["channels"]] == [loud, channel], "a muted one counts as read in the order"
    info = bob.ok("channels.info", channel=channel)["channel"]
    assert (info["unread_count"], info["mention_count"], info["is_muted"]) == (3, 3, True)
    reply = bob.ok("channels.markUnread", channel=channel, ts=info["latest"]["ts"])
    assert (reply["unread_count"], reply["mention_count"], reply["is_muted"]) == (1, 1, True)
    assert ann.ok("channels.info", channel=channel)["channel"]["is_muted"] is False


def test_unmuting_shows_the_number_at_once(environment, room):
    ann, bob, channel = room
    there = bob.at(environment.urls[1])
    bob.ok("channels.setNotifications", channel=channel, muted=True)
    for count in range(1, 6):
        ann.post(channel)
        assert there.ok("unread.sync")["totals"]["unread_count"] == 0
        there.ok("channels.setNotifications", channel=channel, muted=False)
        totals = bob.ok("unread.sync")["totals"]
        assert (totals["unread_count"], totals["muted_unread_count"]) == (count, 0)
        bob.ok("channels.setNotifications", channel=channel, muted=True)


def test_the_users_native_sockets_are_told(environment, room, sockets):
    ann, bob, channel = room
    devices = [sockets(bob, native=True), sockets(bob.at(environment.urls[1]), native=True)]
    slack, other = sockets(bob), sockets(ann, native=True)
    ann.post(channel, "<!here>")
    bob.ok("channels.setNotifications", channel=channel, muted=True)
    for device in devices:
        frame = device.expect({"type": "unread_changed", "channel": channel, "is_muted": True})
        assert (frame["unread_count"], frame["mention_count"]) == (1, 1)
    bob.ok("channels.setNotifications", channel=channel, muted=True)  # changes nothing: is not told
    bob.ok("channels.setNotifications", channel=channel, muted=False)
    for device in devices:
        device.expect({"type": "unread_changed", "channel": channel, "is_muted": False})
        assert [f["is_muted"] for f in device.matching({"type": "unread_changed"})] == [True, False]
    assert not slack.matching({"type": "unread_changed"}) and not other.matching({"type": "unread_changed"})


def test_deltas_tell_of_it(room):
    _, bob, channel = room
    token = bob.ok("unread.sync")["sync_token"]
    bob.ok("channels.setNotifications", channel=channel, muted=True)

    def told():
        return [e["is_muted"] for e in bob.ok("unread.sync", since=token)["channels"] if e["id"] == channel] == [True]

    wait_until(told, what="the delta with the mute")


def test_who_comes_back_starts_anew(room):
    _, bob, channel = room
    bob.ok("channels.setNotifications", channel=channel, muted=True, notify="none")
    bob.ok("channels.leave", channel=channel)
    bob.fails("not_in_channel", "channels.setNotifications", channel=channel, muted=True)
    bob.ok("channels.join", channel=channel)
    reply = bob.ok("channels.setNotifications", channel=channel)
    assert (reply["muted"], reply["notify"]) == (False, "default")


@pytest.mark.parametrize("notify", ["all", "mentions", "none", "default"])
def test_a_level_is_told_wherever_the_read_state_is(room, sockets, notify):
    ann, bob, channel = room
    ts = ann.post(channel)
    bob.ok("channels.setNotifications", channel=channel, notify="none" if notify == "default" else "default")
    device = sockets(bob, native=True)
    token = bob.ok("unread.sync")["sync_token"]
    bob.ok("channels.setNotifications", channel=channel, notify=notify)
    device.expect({"type": "unread_changed", "channel": channel, "notify": notify})
    assert entry_of(bob.ok("unread.sync"), channel)["notify"] == notify
    wait_until(lambda: [e["notify"] for e in bob.ok("unread.sync", since=token)["channels"] if e["id"] == channel] == [notify], what="the delta")
    for reply in (bob.ok("channels.info", channel=channel)["channel"], bob.ok("channels.mark", channel=channel, ts=ts),
                  bob.ok("channels.markUnread", channel=channel, ts=ts)):
        assert (reply["notify"], reply["is_muted"]) == (notify, False)
    assert ann.ok("channels.info", channel=channel)["channel"]["notify"] == "default"


def test_toggled_on_both_instances_at_once(environment, room, sockets):
    """The last frame on each device has the final state."""
    _, bob, channel = room
    sides = [bob, bob.at(environment.urls[1])]
    devices = [sockets(side, native=True) for side in sides]

    def toggle(side):
        for number in range(25):
            side.ok("channels.setNotifications", channel=channel, muted=number % 2 == 0)

    def told(device):
        return [frame["is_muted"] for frame in device.matching({"type": "unread_changed"})][-1:]

    for _ in range(4):
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(toggle, sides))
        muted = bob.ok("channels.info", channel=channel)["channel"]["is_muted"]
        bob.ok("channels.setNotifications", channel=channel, muted=not muted)
        for device in devices:
            wait_until(lambda d=device: told(d) == [not muted], what="the last toggle")
    for side in sides[1:]:
        side.close()


def test_a_late_or_doubled_publish_brings_no_old_state_back(environment, room, sockets):
    _, bob, channel = room
    device = sockets(bob, native=True)
    topic = f"user-events:{{{bob.id}}}"
    with subprocess.Popen(environment.redis.cli_argv("SSUBSCRIBE", topic), stdout=subprocess.PIPE, text=True) as tap:
        try:
            next(line for line in tap.stdout if line.strip() == "1")  # subscribed
            bob.ok("channels.setNotifications", channel=channel, muted=True)
            old = next(line for line in tap.stdout if "unread_changed" in line).rstrip("\n")
        finally:
            tap.terminate()
    device.expect({"type": "unread_changed", "is_muted": True})
    bob.ok("channels.setNotifications", channel=channel, muted=False)
    device.expect({"type": "unread_changed", "is_muted": False})
    before = len(device.matching({"type": "unread_changed"}))
    environment.redis.cli("SPUBLISH", topic, old)
    wait_until(lambda: len(device.matching({"type": "unread_changed"})) > before, what="what is told of it")
    assert device.matching({"type": "unread_changed"})[-1]["is_muted"] is False
