# SPDX-License-Identifier: Apache-2.0
"""Reactions and pins on the page, on two devices."""
from playwright.sync_api import expect

from tests.support.wait import wait_until
from tests.support.workspace import fresh_name


def reaction(device, text, words):
    return device.messages(text).get_by_role("button", name=words, exact=True)


def choose(device, text, emoji):
    row = device.messages(text)
    row.hover()
    row.get_by_role("button", name="Add reaction").click()
    row.get_by_role("group", name="Emoji").get_by_role("button", name=emoji, exact=True).click()


def reactions(user, channel):
    return [(r["name"], r["count"]) for r in user.history(channel)[-1].get("reactions", [])]


def test_reactions_are_shown_added_and_removed(workspace, screens):
    ann, bob = workspace.user("ann"), workspace.user("bob")
    name = fresh_name("room")
    channel = workspace.channel(ann, bob, name=name)
    ts = ann.post(channel, "ship it?")
    ann.ok("reactions.add", channel=channel, timestamp=ts, name="parrot")
    one, two = screens(bob, devices=2).devices
    for device in (one, two):
        device.open(name)
        expect(reaction(device, "ship it?", "parrot, 1")).to_have_text(":parrot: 1")
    choose(one, "ship it?", "tada")
    for device in (one, two):
        expect(reaction(device, "ship it?", "tada, 1")).to_have_attribute("aria-pressed", "true")
    ann.ok("reactions.add", channel=channel, timestamp=ts, name="tada")
    reaction(two, "ship it?", "parrot, 1").click()
    for device in (one, two):
        expect(reaction(device, "ship it?", "tada, 2")).to_have_attribute("title", "bob, ann")
        expect(reaction(device, "ship it?", "parrot, 2")).to_be_visible()
    expect(reaction(two, "ship it?", "parrot, 2")).to_be_focused()
    reaction(one, "ship it?", "tada, 2").click()
    for device in (one, two):
        expect(reaction(device, "ship it?", "tada, 1")).to_have_attribute("aria-pressed", "false")
        device.expect_badge(name, "")
    assert reactions(ann, channel) == [("parrot", 2), ("tada", 1)]
    choose(one, "ship it?", "eyes")
    choose(one, "ship it?", "eyes")  # once more removes it
    expect(reaction(two, "ship it?", "eyes, 1")).to_have_count(0)
    wait_until(lambda: reactions(ann, channel) == [("parrot", 2), ("tada", 1)], what="the removal")


def test_the_palette_closes_by_the_keyboard(workspace, screens):
    ann = workspace.user("ann")
    name = fresh_name("room")
    channel = workspace.channel(ann, name=name)
    ann.post(channel, "hello")
    device = screens(ann).devices[0]
    device.open(name)
    button = device.messages("hello").get_by_role("button", name="Add reaction")
    button.focus()
    button.press("Enter")
    emoji = device.messages("hello").get_by_role("group", name="Emoji")
    emoji.get_by_role("button", name="heart").focus()
    emoji.get_by_role("button", name="heart").press("Escape")
    expect(emoji).to_be_hidden()
    expect(button).to_be_focused()


def test_pins(workspace, screens):
    ann, bob = workspace.user("ann"), workspace.user("bob")
    name = fresh_name("room")
    channel = workspace.channel(ann, bob, name=name)
    ann.post(channel, "the plan")
    one, two = screens(bob, devices=2).devices
    for device in (one, two):
        device.open(name)
    one.messages("the plan").hover()
    one.messages("the plan").get_by_role("button", name="Pin to channel").click()
    for device in (one, two):
        expect(device.messages("the plan").get_by_text("pinned", exact=True)).to_be_visible()
    assert len(ann.ok("pins.list", channel=channel)["items"]) == 1
    two.messages("the plan").hover()
    two.messages("the plan").get_by_role("button", name="Remove pin").click()
    for device in (one, two):
        expect(device.messages("the plan").get_by_text("pinned", exact=True)).to_have_count(0)
