# SPDX-License-Identifier: Apache-2.0
"""Links of chat.getPermalink: they lead to the page, with the message in sight."""

import re

from playwright.sync_api import expect

from tests.support.wait import wait_until
from tests.support.workspace import fresh_name

LATER = 120  # messages: more than a page


def link_to(member, channel, ts):
    return member.ok("chat.getPermalink", channel=channel, message_ts=ts)["permalink"]


def expect_shown(row):
    expect(row).to_be_in_viewport()
    expect(row).to_have_attribute("aria-current", "true")


def test_a_link_shows_its_message(screens, room):
    """At any distance above; messages below it stay unread until they are shown."""
    ann, bob, channel, name = room
    link = link_to(ann, channel, ann.post(channel, "the one"))
    for number in range(LATER):
        ann.post(channel, f"number {number}")
    screen = screens(bob)
    screen.page.goto(link)
    device = screen.devices[0]
    expect(device.root.get_by_role("heading", name=f"#{name}")).to_be_visible()
    expect_shown(device.messages("the one"))
    device.expect_badge(name, f", {LATER + 1} unread")
    assert screen.page.url == f"{bob.url}/app"
    device.root.get_by_role("button", name=f"{LATER + 1} new, below").click()
    wait_until(lambda: bob.unread(channel) == 0, what="the mark")
    screen.page.reload()
    expect(device.messages(f"number {LATER - 1}")).to_be_in_viewport()


def test_a_link_to_the_newest_marks_it_read(screens, room):
    ann, bob, channel, _ = room
    link = link_to(ann, channel, ann.post(channel, "the one"))
    screen = screens(bob)
    screen.page.goto(link)
    expect_shown(screen.devices[0].messages("the one"))
    wait_until(lambda: bob.unread(channel) == 0, what="the mark")


def test_a_link_to_a_reply_shows_its_thread(screens, room):
    ann, bob, channel, _ = room
    root = ann.post(channel, "root")
    link = link_to(ann, channel, ann.post(channel, "the one", thread_ts=root))
    for number in range(LATER):
        ann.post(channel, f"number {number}", thread_ts=root)
    screen = screens(bob)
    screen.page.goto(link)
    pane = screen.devices[0].pane
    expect_shown(pane.get_by_role("listitem").filter(has=screen.page.get_by_text("the one", exact=True)))


def test_a_link_without_a_token(browser, room):
    """It is remembered until after the sign-in."""
    ann, _, channel, _ = room
    page = browser.new_page()
    page.goto(link_to(ann, channel, ann.post(channel, "the one")))
    page.get_by_label("Token").fill(ann.token)
    page.get_by_role("button", name="Sign in").click()
    expect_shown(page.get_by_role("listitem").filter(has_text="the one"))
    page.close()


def test_a_link_in_a_message_opens_in_its_tab(screens, room, workspace):
    """Another one would have no token."""
    ann, bob, channel, name = room
    link = link_to(ann, channel, ann.post(channel, "the one"))
    other = fresh_name("other")
    ann.post(workspace.channel(ann, bob, name=other), f"see <{link}|there> and https://elsewhere.example/archives/")
    device = screens(bob).devices[0]
    device.open(other)
    expect(device.root.get_by_role("link", name=re.compile("elsewhere"))).to_have_attribute("target", "_blank")
    device.root.get_by_role("link", name="there").click()
    expect(device.root.get_by_role("heading", name=f"#{name}")).to_be_visible()
    expect_shown(device.messages("the one"))


def test_a_link_that_leads_nowhere(screens, room, workspace):
    """The newest messages are shown; nothing if the user is not in the channel."""
    ann, bob, channel, _ = room
    gone = ann.post(channel, "gone")
    link = link_to(ann, channel, gone)
    ann.post(channel, "newest")
    ann.ok("chat.delete", channel=channel, ts=gone)
    screen = screens(bob)
    screen.page.goto(link)
    expect(screen.devices[0].messages("newest")).to_be_in_viewport()
    wait_until(lambda: bob.unread(channel) == 0, what="the mark")
    foreign = workspace.channel(ann)
    told = screen.page.get_by_text("The link leads to a channel that you are not in.")
    for nowhere, is_told in ((link_to(ann, foreign, ann.post(foreign, "not yours")), True), (f"{bob.url}/archives/C1/p1700000000000001", True),
                             (f"{bob.url}/archives/x", False), (f"{bob.url}/archives/C1/p1", False)):
        screen.page.goto(nowhere)
        screen.devices[0].expect_connected()
        expect(told).to_be_visible(visible=is_told)
    expect(screen.page.get_by_text("not yours")).to_have_count(0)
