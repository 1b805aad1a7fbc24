# SPDX-License-Identifier: Apache-2.0
"""A real Chromium (Debian's, /usr/bin/chromium) that looks at /app."""

import pytest

from playwright.sync_api import expect

from tests.support.chromium import chromium
from tests.support.workspace import fresh_name
from tests.web.screen import Screen

PATIENCE_MS = 30000  # for slow machines: when all is well it costs nothing
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="session")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture
def room(workspace):
    """(ann, bob, channel, its name): two members of a channel."""
    name = fresh_name("room")
    ann, bob = workspace.user("ann"), workspace.user("bob")
    return ann, bob, workspace.channel(ann, bob, name=name), name


@pytest.fixture
def screens(browser):
    """Opens the page as a member: `screens(member, devices=2, color_scheme="dark")`; `script` runs before the page's own. Errors in the
    browser's console (script errors, requests blocked by the page's policy) fail the test, except for requests that could not connect."""
    contexts, complaints = [], []

    def complain(message):
        if message.type in ("error", "warning") and "net::ERR_" not in message.text and "WebSocket" not in message.text:
            complaints.append(message.text)

    def open_screen(member, url=None, devices=1, width=1280, height=800, script="", **options):
        context = browser.new_context(viewport={"width": width, "height": height}, locale="en-GB", timezone_id="UTC",
                                      **options)
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        context.add_init_script(script)
        page = context.new_page()
        page.on("console", complain)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        return Screen(page, url or member.url, member.token, devices)

    yield open_screen
    for context in contexts:
        context.close()
    assert not complaints
