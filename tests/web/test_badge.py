# SPDX-License-Identifier: Apache-2.0
"""The badge in the page's title: the number that a phone would show."""

from playwright.sync_api import expect


def test_the_badge_in_the_title(room, screens):
    ann, bob, channel, _ = room
    page = screens(bob).page
    ann.post(channel, "not for you")
    expect(page).to_have_title("• Tidings")
    ann.post(channel, f"<@{bob.id}>, this is")
    expect(page).to_have_title("(1) Tidings")
    ann.post(channel, f"<@{bob.id}>, and this")
    expect(page).to_have_title("(2) Tidings")
    assert bob.ok("unread.sync")["totals"]["badge"] == 2
    bob.ok("channels.markAll")
    expect(page).to_have_title("Tidings")
