# SPDX-License-Identifier: Apache-2.0
"""Phones of members, reached by a Matrix push gateway, and what each shows."""

import json
from types import SimpleNamespace

from tests.support.push_receivers import Matrix, certificate
from tests.support.wait import wait_until

SECRET_KEY = "00" * 32


def receiver(directory, listener=None):
    """The gateway, and the settings of instances that may reach it."""
    files = certificate(directory)
    return Matrix(files, listener=listener), {"TIDINGS_PUSH_CA_FILE": str(files[0]), "TIDINGS_EVENTS_API_PRIVATE": "true", "TIDINGS_SECRET_KEY": SECRET_KEY}


class Phone:
    """A device of a member. The workspace has a push app `name`, which is made for its first phone."""

    def __init__(self, workspace, member, matrix, name="phone", device_id="phone", **given):
        self.member, self.matrix, self.app, self.device_id = member, matrix, name, device_id
        self.pushkey = f"{member.id}-{name}-{device_id}"
        self._found, self._looked = [], 0
        workspace.admin.call("admin.pushApps.create", name=name, platform="matrix")
        self.register(**given)

    def register(self, **given):
        self.member.ok("devices.register", device_id=self.device_id, app=self.app, url=self.matrix.url + Matrix.PATH, pushkey=self.pushkey, **given)

    @property
    def pushes(self):
        """The pushes received, oldest first."""
        while self._looked < len(self.matrix.requests):
            notification = json.loads(self.matrix.requests[self._looked].body)["notification"]
            self._looked += 1
            if notification["devices"][0]["pushkey"] == self.pushkey:
                self._found.append(SimpleNamespace(title=notification.get("sender_display_name"), subtitle=notification.get("room_name"),
                                                   body=notification.get("content", {}).get("body"), channel=notification.get("room_id"),
                                                   ts=notification.get("event_id"), badge=notification["counts"]["unread"]))
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
