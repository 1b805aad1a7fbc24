# SPDX-License-Identifier: Apache-2.0
"""Phones of members, reached by a Matrix push gateway or by FCM, and what each shows."""

import json
from types import SimpleNamespace

from tests.support.provider_keys import apps
from tests.support.push_receivers import Google, Matrix, certificate
from tests.support.wait import wait_until

SECRET_KEY = "00" * 32


def settings_for(files):
    return {"TIDINGS_PUSH_CA_FILE": str(files[0]), "TIDINGS_EVENTS_API_PRIVATE": "true", "TIDINGS_SECRET_KEY": SECRET_KEY}


def receiver(directory, listener=None):
    """The gateway, and the settings of instances that may reach it."""
    files = certificate(directory)
    return Matrix(files, listener=listener), settings_for(files)


def google(directory):
    """FCM, and the settings of instances that may reach it."""
    files = certificate(directory)
    made = Google(files)
    return made, {**settings_for(files), "TIDINGS_PUSH_FCM_URL": made.url, "TIDINGS_PUSH_GOOGLE_TOKEN_URL": f"{made.url}/token"}


class Phone:
    """A device of a member. The workspace has a push app `name`, which is made for its first phone."""

    platform = "matrix"

    def __init__(self, workspace, member, receivers, name="phone", device_id="phone", **given):
        self.member, self.receiver, self.app, self.device_id = member, receivers, name, device_id
        self.pushkey = f"{member.id}-{name}-{device_id}"
        self._found, self._looked = [], 0
        workspace.admin.call("admin.pushApps.create", name=name, **apps()[self.platform])
        self.register(**given)

    def register(self, **given):
        self.member.ok("devices.register", device_id=self.device_id, app=self.app, **self.address(), **given)

    def address(self):
        return {"url": self.receiver.url + Matrix.PATH, "pushkey": self.pushkey}

    def read(self, request):
        """A push in the form of all platforms; None: to another device."""
        notification = json.loads(request.body)["notification"]
        device = notification["devices"][0]
        if device["pushkey"] != self.pushkey:
            return None
        return SimpleNamespace(title=notification.get("sender_display_name"), subtitle=notification.get("room_name"),
                               body=notification.get("content", {}).get("body"), channel=notification.get("room_id"),
                               ts=notification.get("event_id"), badge=notification["counts"]["unread"], rings="sound" in device.get("tweaks", {}))

    @property
    def pushes(self):
        """The pushes received, oldest first."""
        while self._looked < len(self.receiver.requests):
            push = self.read(self.receiver.requests[self._looked])
            self._looked += 1
            if push:
                self._found.append(push)
        return list(self._found)

    @property
    def shown(self):
        """The pushes that the user sees: a silent one only sets the badge."""
        return [push for push in self.pushes if push.title]

    @property
    def texts(self):
        return [push.body for push in self.shown]

    @property
    def badge(self):
        """The badge on the phone; 0 before the first push."""
        return self.pushes[-1].badge if self.pushes else 0

    def wait_texts(self, *texts):
        wait_until(lambda: len(self.texts) >= len(texts), what=f"{len(texts)} pushes of {self.pushkey}")
        assert self.texts == list(texts)

    def wait_badge(self, badge, **limits):
        wait_until(lambda: self.badge == badge, what=f"badge {badge} of {self.pushkey}", **limits)


class AndroidPhone(Phone):
    """A device reached by FCM, whose system replaces notifications by their tags and whose app withdraws them."""

    platform = "fcm"

    def address(self):
        return {"push_token": self.pushkey}

    def read(self, request):
        message = json.loads(request.body)["message"] if request.path == Google.SEND else {"token": None}
        if message["token"] != self.pushkey:
            return None
        data, shown, android = message["data"], message.get("notification", {}), message["android"]
        return SimpleNamespace(title=shown.get("title"), subtitle=None, body=shown.get("body"), channel=data.get("channel"), ts=data.get("ts"),
                               thread=data.get("thread_ts"), badge=int(data["badge"]), tag=android.get("notification", {}).get("tag"),
                               rings="notification" in message and "channel_id" not in android["notification"])

    def replay(self):
        """(what the screen shows, withdrawals of what it did not show): pushes by conversation, which is (channel, thread); the summary is of
        no channel."""
        shown, strays = {}, []
        for push in self.pushes:
            place = (push.channel, push.thread)
            if push.title:
                assert push.tag == "summary" if push.channel is None else push.tag == ".".join(filter(None, place)), push
                shown[place] = push
            elif push.ts:
                if place not in shown or shown[place].ts != push.ts:
                    strays.append(push)
                if place in shown and shown[place].ts <= push.ts:
                    del shown[place]
        return shown, strays

    @property
    def screen(self):
        return self.replay()[0]

    @property
    def rings(self):
        return [push for push in self.pushes if push.rings]

    @property
    def withdrawals(self):
        return [(push.channel, push.ts) for push in self.pushes if push.ts and not push.title]
