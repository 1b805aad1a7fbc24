# SPDX-License-Identifier: Apache-2.0
"""A person's actions on the page, by names and roles, as for a screen reader."""

import re

from playwright.sync_api import expect


class Screen:
    """The page in one tab, signed in by the fragment."""

    def __init__(self, page, url, token, devices):
        self.page = page
        page.goto(f"{url}/app" + ("?devices=2" if devices == 2 else "") + f"#token={token}")
        names = ["Device 1", "Device 2"] if devices == 2 else ["Chat"]
        self.devices = [Device(page.get_by_role("region", name=name, exact=True)) for name in names]
        for device in self.devices:
            device.expect_connected()


class Device:
    """One device of the page."""

    def __init__(self, root):
        self.root = root
        self.sidebar = root.get_by_role("navigation", name="Channels")
        self.box = root.get_by_role("textbox", name=re.compile("^Message "))
        self.pane = root.get_by_role("region", name=re.compile("^Threads?(,|$)"))

    def expect_connected(self):
        expect(self.sidebar.get_by_role("status")).to_have_text("Connected")

    def entry(self, name):
        """The channel's entry in the sidebar, with whatever its badge says."""
        return self.sidebar.get_by_role("button", name=re.compile(f"^{re.escape(name)}(,|$)"))

    def expect_badge(self, name, words):
        """The entry's accessible name: "room" or "room, 2 unread, 1 mention"."""
        expect(self.sidebar.get_by_role("button", name=f"{name}{words}", exact=True)).to_be_visible()

    def open(self, name):
        self.entry(name).click()
        expect(self.root.get_by_role("heading", name=f"#{name}")).to_be_visible()
        expect(self.box).to_be_focused()

    def send(self, text):
        self.box.fill(text)
        self.box.press("Enter")

    def messages(self, text):
        """The messages of the open channel that are just this text."""
        rows = self.root.get_by_role("group", name="Messages", exact=True).get_by_role("listitem")
        return rows.filter(has=self.root.page.get_by_text(text, exact=True))
