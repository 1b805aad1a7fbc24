# SPDX-License-Identifier: Apache-2.0
"""The pushes received, in one form for all platforms: one line of the log each, for programs and for the lock screens."""

import json
import os
import threading
import time


def _number(text):
    return int(text) if text not in (None, "") else None


def _apple(payload):
    """The display of APNs and browsers, which receive the same JSON."""
    aps, place = payload["aps"], payload.get("tidings", {})
    alert = aps.get("alert", {})
    return {"badge": aps.get("badge"), "title": alert.get("title"), "subtitle": alert.get("subtitle"), "body": alert.get("body"),
            "sound": "sound" in aps, **_place(place)}


def _place(place):
    return {name: place.get(name) for name in ("channel", "ts", "thread_ts", "position")}


def of_apns(told):
    headers = told["headers"]
    return {"address": headers[":path"].rpartition("/")[2], "collapse_id": headers.get("apns-collapse-id"), **_apple(told["payload"])}


def of_webpush(told):
    return {"address": told["client"], "collapse_id": told["headers"].get("topic"), **_apple(told["payload"])}


def of_fcm(request):
    message = json.loads(request.body)["message"]
    data, shown = message["data"], message.get("notification", {})
    return {"address": message["token"], "collapse_id": message.get("android", {}).get("collapse_key"), "badge": _number(data.get("badge")),
            "title": shown.get("title"), "subtitle": None, "body": shown.get("body"),
            "sound": bool(shown) and "channel_id" not in message.get("android", {}).get("notification", {}), **_place(data)}


def of_matrix(request):
    shown = json.loads(request.body)["notification"]
    return {"address": shown["devices"][0]["pushkey"], "collapse_id": shown.get("room_id"), "badge": shown.get("counts", {}).get("unread"),
            "title": shown.get("sender_display_name"), "subtitle": shown.get("room_name"), "body": shown.get("content", {}).get("body"),
            "sound": "sound" in shown["devices"][0].get("tweaks", {}), "channel": shown.get("room_id"), "ts": shown.get("event_id"),
            "thread_ts": None, "position": None}


class Arrivals:
    """Any thread may add and wait. Only its owner may read the log: it contains users' messages."""

    def __init__(self, log):
        self._log = os.fdopen(os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600), "a", encoding="utf-8")
        self._lines, self._devices = [], {}
        self._changed = threading.Condition()

    def name(self, address, device_id, user):
        """From now on, pushes to an address belong to that device. Other pushes are listed by address."""
        with self._changed:
            self._devices[address] = {"device": device_id, "user": user}

    def take(self, platform, push):
        with self._changed:
            address = push.pop("address")
            line = {"platform": platform, **self._devices.get(address, {"device": address, "user": None}), "silent": push["title"] is None,
                    **push, "received_ms": int(time.time() * 1000)}
            self._lines.append(line)
            self._log.write(json.dumps(line) + "\n")
            self._log.flush()
            self._changed.notify_all()

    def after(self, count, wait_s):
        """(how many lines are left out, the others); waits until there are others. None is left out for who counts those of an earlier run."""
        with self._changed:
            first = count if count <= len(self._lines) else 0
            self._changed.wait_for(lambda: len(self._lines) > first, wait_s)
            return first, self._lines[first:]
