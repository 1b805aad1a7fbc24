# SPDX-License-Identifier: Apache-2.0
"""notifications.* and dnd.*: a user's notification settings and quiet hours."""

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from slack_sdk import WebClient

FIRST = {"level": "mentions", "preview": "full", "badge": "mentions", "dnd_start": "", "dnd_end": "", "tz": "UTC"}
ZONES = ("UTC", "Pacific/Kiritimati", "Asia/Kathmandu", "America/Bogota")  # none has summer time


def settings(reply):
    return {name: value for name, value in reply.items() if name != "ok"}


@pytest.fixture
def ann(workspace):
    return workspace.user()


@pytest.mark.parametrize("encoding", ["json", "form"])
def test_settings_are_read_back_elsewhere(environment, ann, encoding):
    other = ann.at(environment.urls[1])
    assert settings(ann.ok("notifications.get")) == FIRST
    wanted = dict(FIRST)
    for change in ({"level": "all"}, {"preview": "sender", "badge": "all"}, {"tz": "Europe/Zurich"}, {"level": "none"}, {}):
        wanted |= change
        assert settings(ann.ok("notifications.set", encoding=encoding, **change)) == wanted
        assert settings(other.ok("notifications.get")) == wanted


@pytest.mark.parametrize("former, name", [
    ("Asia/Calcutta", "Asia/Kolkata"), ("Europe/Kiev", "Europe/Kyiv"), ("America/Buenos_Aires", "America/Argentina/Buenos_Aires"),
    ("America/Indianapolis", "America/Indiana/Indianapolis"), ("Pacific/Truk", "Pacific/Chuuk")])
def test_former_names_of_time_zones(environment, ann, former, name):
    """Chromium still uses them. A system that has dropped them has the zone by its present name."""
    with environment.database() as database:
        (is_known,) = database.execute("SELECT EXISTS (SELECT FROM pg_timezone_names WHERE name = %s)", [former]).fetchone()
        assert database.execute("SELECT timezone_renamed(%s)", [former]).fetchone() == (name,)
    assert ann.ok("notifications.set", tz=former)["tz"] == (former if is_known else name)


@pytest.mark.parametrize("given, name", [
    ({"level": "some"}, "level"), ({"preview": "all"}, "preview"), ({"badge": "none"}, "badge"), ({"tz": "Mars/Olympus"}, "tz"),
    ({"tz": "posix/Europe/Zurich"}, "tz"), ({"tz": "CET-1"}, "tz"), ({"tz": "localtime"}, "tz"), ({"tz": "a b"}, "tz"),
    ({"dnd_start": "22:00"}, "dnd_end"), ({"dnd_end": "22:00"}, "dnd_end"), ({"dnd_start": "22:00", "dnd_end": ""}, "dnd_end"),
    ({"dnd_start": "22:00", "dnd_end": "22:00"}, "dnd_end"), ({"dnd_start": "24:00", "dnd_end": "07:00"}, "dnd_start"),
    ({"dnd_start": "22:00", "dnd_end": "7:00"}, "dnd_end"), ({"dnd_start": "22:60", "dnd_end": "07:00"}, "dnd_start"),
    ({"dnd_start": "29:00", "dnd_end": "07:00"}, "dnd_start"), ({"dnd_start": "22:0x", "dnd_end": "07:00"}, "dnd_start"),
])
def test_what_is_wrong_is_named_and_not_stored(ann, given, name):
    reply = ann.fails("invalid_arguments", "notifications.set", **{"level": "all", **given})
    assert reply.messages.startswith(f"[ERROR] {name}: must")
    assert settings(ann.ok("notifications.get")) == FIRST


def clock(now, hours):
    return (now + timedelta(hours=hours)).strftime("%H:%M")


def moment(text, day):
    """A time of day there, on the day of another moment, in seconds since 1970."""
    hour, minute = map(int, text.split(":"))
    return int(day.replace(hour=hour, minute=minute, second=0, microsecond=0).timestamp())


@pytest.mark.parametrize("zone", ZONES)
def test_quiet_hours(ann, zone):
    """Wherever the user is: two hours around now, then others that begin in two hours."""
    now = datetime.now(timezone.utc).astimezone(ZoneInfo(zone))
    start, end = clock(now, -1), clock(now, 1)
    reply = ann.ok("notifications.set", dnd_start=start, dnd_end=end, tz=zone)
    assert reply["dnd_until"] == moment(end, now + timedelta(hours=1))
    info = ann.ok("dnd.info")
    assert info["dnd_enabled"] is True and info["snooze_enabled"] is False
    assert (info["next_dnd_start_ts"], info["next_dnd_end_ts"]) == (moment(start, now - timedelta(hours=1)), reply["dnd_until"])
    start, end = clock(now, 2), clock(now, 4)
    reply = ann.ok("notifications.set", dnd_start=start, dnd_end=end)
    assert "dnd_until" not in reply and reply["tz"] == zone
    assert ann.ok("dnd.info")["next_dnd_start_ts"] == moment(start, now + timedelta(hours=2))
    reply = ann.ok("notifications.set", dnd_start="", dnd_end="")
    assert (reply["dnd_start"], reply["dnd_end"]) == ("", "")
    assert settings(ann.ok("dnd.info")) == {"dnd_enabled": False, "next_dnd_start_ts": 1, "next_dnd_end_ts": 1, "snooze_enabled": False}


def test_a_snooze_by_the_sdk(environment, workspace, ann):
    client = WebClient(ann.token, base_url=f"{ann.url}/api/")
    set_ = client.dnd_setSnooze(num_minutes="60").data
    assert set_["snooze_enabled"] is True and set_["snooze_remaining"] == 3600
    assert ann.ok("dnd.info")["snooze_endtime"] == set_["snooze_endtime"]
    info = client.dnd_info().data
    assert info["snooze_endtime"] == set_["snooze_endtime"] and 0 < info["snooze_remaining"] <= 3600
    assert ann.at(environment.urls[1]).ok("notifications.get")["dnd_until"] == set_["snooze_endtime"]
    of_another = workspace.user().ok("dnd.info", user=ann.id)
    assert settings(of_another) == {"dnd_enabled": False, "next_dnd_start_ts": 1, "next_dnd_end_ts": 1}
    assert client.dnd_endSnooze().data["snooze_enabled"] is False
    ann.fails("snooze_not_active", "dnd.endSnooze")
    assert settings(ann.ok("notifications.get")) == FIRST


@pytest.mark.parametrize("minutes", [0, -1, 43201, "x", "", 1.5])
def test_bad_minutes(ann, minutes):
    assert "num_minutes" in ann.fails("invalid_arguments", "dnd.setSnooze", num_minutes=minutes).messages


def test_the_longest_snooze(ann):
    assert ann.ok("dnd.setSnooze", num_minutes=43200)["snooze_remaining"] == 43200 * 60


def test_somebody_of_another_workspace(environment, ann):
    ann.fails("user_not_found", "dnd.info", user=environment.workspace().user().id)
