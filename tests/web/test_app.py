# SPDX-License-Identifier: Apache-2.0
"""The page at /app, as a person meets it."""

import re

from playwright.sync_api import expect

from tests.support.wait import wait_until


def test_a_badge_rises_and_clears_on_both_devices(room, screens):
    ann, bob, channel, name = room
    one, two = screens(bob, devices=2).devices
    for device in (one, two):
        device.expect_badge(name, "")
    ann.post(channel, "first")
    for device in (one, two):
        device.expect_badge(name, ", 1 unread")
    ann.post(channel, f"second, <@{bob.id}>")
    for device in (one, two):
        device.expect_badge(name, ", 2 unread, 1 mention")
    one.open(name)
    for device in (one, two):
        device.expect_badge(name, "")
    assert bob.unread(channel) == 0


def test_what_is_looked_at_is_read(room, screens):
    ann, bob, channel, name = room
    one, two = screens(bob, devices=2).devices
    one.open(name)
    ann.post(channel, "while you look")
    expect(one.messages("while you look")).to_have_count(1)
    wait_until(lambda: bob.unread(channel) == 0, what="the mark")
    for device in (one, two):
        device.expect_badge(name, "")


def test_badges_after_marks_elsewhere(room, screens):
    """Marks forwards and backwards by another client leave exact numbers, whatever frames cross."""
    ann, bob, channel, name = room
    device = screens(bob).devices[0]
    first, *_, last = [ann.post(channel, f"number {number}") for number in range(5)]
    device.expect_badge(name, ", 5 unread")
    bob.ok("channels.mark", channel=channel, ts=first)
    device.expect_badge(name, ", 4 unread")
    bob.ok("channels.markUnread", channel=channel, ts=first)
    device.expect_badge(name, ", 5 unread")
    ann.ok("chat.delete", channel=channel, ts=last)
    device.expect_badge(name, ", 4 unread")


def test_a_message_shows_once_on_each_device(room, screens):
    ann, bob, channel, name = room
    one, two = screens(ann, devices=2).devices
    one.open(name)
    two.open(name)
    one.send("hello @bob & <all>")
    for device in (one, two):
        expect(device.messages("hello @bob & <all>")).to_have_count(1)
    assert bob.history(channel)[0]["text"] == f"hello <@{bob.id}> &amp; &lt;all&gt;"
    bob.post(channel, "and back")
    for device in (one, two):
        expect(device.messages("and back")).to_have_count(1)
        expect(device.messages("hello @bob & <all>")).to_have_count(1)


def test_edits_and_deletes(room, screens):
    ann, bob, channel, name = room
    ts = ann.post(channel, "a tpyo")
    device = screens(bob).devices[0]
    device.open(name)
    expect(device.messages("a tpyo")).to_have_count(1)
    ann.ok("chat.update", channel=channel, ts=ts, text="a typo")
    expect(device.messages("a typo")).to_have_count(1)
    expect(device.messages("a tpyo")).to_have_count(0)
    ann.ok("chat.delete", channel=channel, ts=ts)
    expect(device.messages("a typo")).to_have_count(0)


def test_a_reply_that_is_shown_to_the_channel_later(room, screens):
    ann, bob, channel, name = room
    root = ann.post(channel, "a question")
    ts = ann.post(channel, "in the thread at first", thread_ts=root)
    device = screens(bob).devices[0]
    device.open(name)
    expect(device.messages("a question")).to_have_count(1)
    expect(device.messages("in the thread at first")).to_have_count(0)
    ann.ok("chat.update", channel=channel, ts=ts, reply_broadcast=True)
    expect(device.messages("in the thread at first")).to_have_count(1)


def test_threads(room, screens):
    ann, bob, channel, name = room
    ann.post(channel, "a question")
    one, two = screens(bob, devices=2).devices
    for device in (one, two):
        device.open(name)
    row = one.messages("a question")
    row.hover()
    row.get_by_role("button", name="Reply in thread to ann").click()
    reply = one.pane.get_by_role("textbox", name="Reply…")
    expect(reply).to_be_focused()
    reply.fill("an answer")
    reply.press("Enter")
    expect(one.pane.get_by_text("an answer", exact=True)).to_have_count(1)
    for device in (one, two):
        expect(device.root.get_by_role("button", name="1 reply")).to_be_visible()
    root = bob.history(channel)[-1]["ts"]
    one.pane.get_by_role("button", name="Close").click()
    expect(one.pane).to_be_hidden()
    ann.post(channel, "thanks", thread_ts=root)
    for device in (one, two):
        device.expect_badge("Threads", ", 1 unread")
    two.entry("Threads").click()
    two.pane.get_by_role("button", name=re.compile("a question")).click()
    expect(two.pane.get_by_text("thanks", exact=True)).to_be_visible()
    for device in (one, two):
        device.expect_badge("Threads", "")


def test_history_is_paged_upwards(room, screens):
    ann, bob, channel, name = room
    for number in range(120):
        ann.post(channel, f"number {number}")
    device = screens(bob).devices[0]
    device.open(name)
    expect(device.messages("number 119")).to_be_in_viewport()
    expect(device.messages("number 0")).to_have_count(0)
    group = device.root.get_by_role("group", name="Messages", exact=True)
    group.focus()

    def at_the_top():
        group.press("Home")
        return device.messages("number 0").count() == 1

    wait_until(at_the_top, what="the oldest message")
    group.press("Home")
    expect(device.messages("number 0")).to_be_in_viewport()


HOSTILE = ["<img src=x onerror=alert(1)>", "<script>alert(1)</script>", "<javascript:alert(1)|click>", "&lt;b&gt;bold",
           "<!subteam^S1|<b>x>", "\u202eevil\u2066", "<@U000000000|<i>>", "https://a.example/\"onmouseover=alert(1)"]


def test_hostile_text_is_text(room, screens):
    ann, bob, channel, name = room
    screen = screens(bob)
    dialogs = []
    screen.page.on("dialog", lambda dialog: (dialogs.append(dialog), dialog.dismiss()))
    device = screen.devices[0]
    device.open(name)
    before = screen.page.locator("img, script, b, i, iframe").count()
    for text in HOSTILE:
        ann.post(channel, text)
        expect(device.messages(text.replace("&lt;", "<").replace("&gt;", ">"))).to_have_count(1)
    assert screen.page.locator("img, script, b, i, iframe").count() == before
    assert screen.page.locator("a[href^='javascript'], [onmouseover]").count() == 0
    assert not dialogs


def test_who_types_is_shown(room, screens):
    ann, bob, _, name = room
    one, other = screens(ann).devices[0], screens(bob).devices[0]
    for device in (one, other):
        device.open(name)
    one.box.press_sequentially("he")
    expect(other.root.get_by_text("ann is typing…")).to_be_visible()
    expect(one.root.get_by_text("is typing…")).to_have_count(0)
    one.box.press("Enter")
    expect(other.messages("he")).to_have_count(1)
    expect(other.root.get_by_text("is typing…")).to_have_count(0)


def test_muted_channels_are_quiet(room, screens):
    ann, bob, channel, name = room
    one, two = screens(bob, devices=2).devices
    one.open(name)
    mute = one.root.get_by_role("button", name="Mute", exact=True)
    mute.click()
    expect(mute).to_have_attribute("aria-pressed", "true")
    for device in (one, two):
        device.expect_badge(name, ", muted")
    assert bob.ok("channels.info", channel=channel)["channel"]["is_muted"] is True


def test_keyboard_alone(room, screens):
    """Without a mouse: from the sidebar to a sent message and an answered thread, and back."""
    ann, bob, channel, name = room
    screen = screens(bob)
    device, keys = screen.devices[0], screen.page.keyboard
    for _ in range(10):
        keys.press("Tab")
        if device.entry("Threads").evaluate("element => element === document.activeElement"):
            break
    keys.press("ArrowDown")
    expect(device.entry(name)).to_be_focused()
    keys.press("Enter")
    expect(device.box).to_be_focused()
    keys.type("by hand")
    keys.press("Enter")
    expect(device.messages("by hand")).to_have_count(1)
    wait_until(lambda: [m["text"] for m in ann.history(channel)] == ["by hand"])
    reply = device.messages("by hand").get_by_role("button", name="Reply in thread to bob")
    expect(reply).to_have_count(1)
    keys.press("Shift+Tab")
    expect(reply).to_be_focused()
    outline = screen.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "the focus is seen"
    keys.press("Enter")
    expect(device.pane.get_by_role("textbox")).to_be_focused()
    keys.press("Escape")
    expect(device.pane).to_be_hidden()
    expect(reply).to_be_focused()


def test_news_is_announced(room, screens):
    ann, bob, channel, name = room
    device = screens(bob).devices[0]
    device.open(name)
    ann.post(channel, f"hear this, <@{bob.id}>")
    expect(device.root.locator("[aria-live=polite].unseen")).to_have_text("ann: hear this, @bob")


def test_reconnects_after_a_restart(room, screens, extra_instance):
    ann, bob, channel, name = room
    instance = extra_instance()
    device = screens(bob, url=instance.url).devices[0]
    device.open(name)
    expect(device.box).to_be_visible()
    instance.stop()
    expect(device.sidebar.get_by_role("status")).to_have_text("Reconnecting…")
    device.send("written while it was away")
    ann.post(channel, "posted meanwhile")
    instance.start()
    device.expect_connected()
    for text in ("posted meanwhile", "written while it was away"):
        expect(device.messages(text)).to_have_count(1)
    wait_until(lambda: [m["text"] for m in ann.history(channel)].count("written while it was away") == 1)
    ann.post(channel, "and on it goes")
    expect(device.messages("and on it goes")).to_have_count(1)


def test_signing_in_and_out(workspace, environment, browser):
    """With the form; an invalid token shows an error; the token does not remain in the address."""
    member = workspace.user("ann")
    page = browser.new_page()
    page.goto(f"{environment.urls[0]}/app#token=xoxp-wrong")
    expect(page.get_by_role("alert")).to_have_text("This token is not known here.")
    assert "token" not in page.url
    page.get_by_label("Token").fill(member.token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("status")).to_have_text("Connected")
    page.reload()
    expect(page.get_by_role("status")).to_have_text("Connected")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0
    page.close()


def test_a_revoked_token_signs_out(room, screens, workspace):
    ann, *_ = room
    screen = screens(ann)
    workspace.admin.ok("admin.tokens.revoke", revoke_token=ann.token)
    expect(screen.page.get_by_role("alert")).to_contain_text("token")
    expect(screen.page.get_by_label("Token")).to_be_visible()


def test_phone(room, screens):
    """One panel at a time, and nothing wider than the screen."""
    ann, bob, channel, name = room
    ann.post(channel, "w" * 400)
    screen = screens(bob, width=360, height=640, has_touch=True, is_mobile=True)
    device = screen.devices[0]
    expect(device.box).to_be_hidden()
    device.open(name)
    expect(device.entry(name)).to_be_hidden()
    expect(device.messages("w" * 400)).to_be_visible()
    assert screen.page.evaluate("document.documentElement.scrollWidth") <= 360
    device.root.get_by_role("button", name="Back to channels").click()
    expect(device.entry(name)).to_be_focused()
