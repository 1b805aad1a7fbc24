# SPDX-License-Identifier: Apache-2.0
"""Breaks, late answers and calls that fail: nothing is missing afterwards, and every badge is right."""

import pytest
from playwright.sync_api import expect

from tests.support.wait import wait_until
from tests.web import wires


@pytest.fixture
def page_of(screens):
    """(the page, its device, its wires) of a member."""

    def open_page(member):
        screen = screens(member, script=wires.SCRIPT)
        return screen.page, screen.devices[0], wires.Wires(screen.page)

    return open_page


def expect_away(device):
    expect(device.sidebar.get_by_role("status")).to_have_text("Reconnecting…")


def test_the_title_of_a_tab_in_the_background(room, page_of):
    ann, bob, channel, name = room
    page, device, line = page_of(bob)
    line.hide()
    ann.post(channel, "look here")
    expect(page).to_have_title("(1) Tidings")
    line.hide(False)
    device.expect_badge(name, ", 1 unread")
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_title("Tidings")


def test_a_tab_in_the_background_stays_connected(room, page_of):
    """There the browser lets it look at its socket once a minute."""
    _, bob, _, _ = room
    _, device, line = page_of(bob)
    for count in range(1, 4):
        line.beat(60000)
        line.wait_heard('"pong"', count)
    assert line.sockets == 1
    device.expect_connected()


def test_a_dead_line_is_noticed(room, page_of):
    ann, bob, channel, name = room
    _, device, line = page_of(bob)
    device.open(name)
    line.deafen()
    line.beat()
    line.beat(15000)
    assert line.sockets == 1
    line.beat(15000)
    wait_until(lambda: line.sockets == 2, what="another socket")
    device.expect_connected()
    ann.post(channel, "after all")
    expect(device.messages("after all")).to_have_count(1)
