# SPDX-License-Identifier: Apache-2.0
"""axe-core finds no accessibility problems in the page."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.support.workspace import fresh_name
from tools import node

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def axe():
    """axe-core's script."""
    return (node.packages(HERE) / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def expect_no_violations(page, axe):
    session = page.context.new_cdp_session(page)
    session.send("Runtime.evaluate", {"expression": axe})  # as the page's policy lets no script in
    found = page.evaluate("axe.run(document)")["violations"]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []


@pytest.mark.parametrize("scheme, size", [("light", (1280, 800)), ("dark", (390, 760))])
def test_a_channel_and_a_thread(workspace, screens, axe, scheme, size):
    ann, bob = workspace.user("ann"), workspace.user("bob")
    name = fresh_name("room")
    channel = workspace.channel(ann, bob, name=name)
    workspace.channel(ann, bob, private=True)
    bob.ok("conversations.open", users=ann.id)
    root = ann.post(channel, "> quoted\n*see* <https://a.example|this>, <@%s>: ```code```" % bob.id)
    bob.post(channel, "an answer", thread_ts=root)
    screen = screens(bob, color_scheme=scheme, width=size[0], height=size[1])
    device = screen.devices[0]
    expect_no_violations(screen.page, axe)
    device.open(name)
    expect_no_violations(screen.page, axe)
    device.root.get_by_role("button", name="1 reply").click()
    expect(device.pane.get_by_text("an answer", exact=True)).to_be_visible()
    expect_no_violations(screen.page, axe)


def test_two_devices_and_the_way_in(workspace, screens, axe):
    ann = workspace.user("ann")
    name = fresh_name("room")
    workspace.channel(ann, name=name)
    screen = screens(ann, devices=2)
    expect_no_violations(screen.page, axe)
    for device in screen.devices:
        device.open(name)
    expect_no_violations(screen.page, axe)
    screen.page.get_by_role("button", name="Sign out").click()
    expect_no_violations(screen.page, axe)


def test_a_long_sidebar_is_one_stop_of_tab(workspace, screens):
    ann = workspace.user("ann")
    names = sorted(fresh_name("room") for _ in range(12))
    for name in names:
        workspace.channel(ann, name=name)
    screen = screens(ann)
    device, keys = screen.devices[0], screen.page.keyboard
    device.entry(names[3]).focus()
    for key, target in (("End", names[-1]), ("ArrowUp", names[-2]), ("Home", "Threads"), ("ArrowDown", names[0])):
        keys.press(key)
        expect(device.entry(target)).to_be_focused()
    keys.press("Tab")
    expect(device.sidebar.locator(":focus")).to_have_count(0)
    keys.press("Shift+Tab")
    expect(device.entry(names[0])).to_be_focused()


def test_finding_a_channel(workspace, screens):
    ann, bob = workspace.user("ann"), workspace.user("bob")
    one, other = fresh_name("needle"), fresh_name("hay")
    workspace.channel(ann, bob, name=one)
    ann.post(workspace.channel(ann, bob, name=other), "news")
    device = screens(bob).devices[0]
    device.expect_badge(other, ", 1 unread")
    box = device.sidebar.get_by_role("searchbox", name="Find a channel")
    box.fill("EEDLE")
    expect(device.entry(other)).to_have_count(0)
    box.press("Enter")
    expect(device.root.get_by_role("heading", name=f"#{one}")).to_be_visible()
    expect(device.box).to_be_focused()
    expect(device.entry(other)).to_be_visible()
    device.sidebar.get_by_role("button", name="Unread", exact=True).click()
    for name in (one, other):  # the open one stays
        expect(device.entry(name)).to_be_visible()
    device.open(other)
    expect(device.entry(one)).to_have_count(0)
