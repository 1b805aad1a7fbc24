# SPDX-License-Identifier: Apache-2.0
"""Reading: how messages are shown, when they count as seen, and the behaviour when calls fail."""

import re

from playwright.sync_api import expect

from tests.support.wait import wait_until
from tests.support.workspace import fresh_name


def test_reading_above_while_messages_arrive(workspace, screens):
    """The place stays, the new ones are counted, and one button leads to them."""
    ann, bob = workspace.user("ann"), workspace.user("bob")
    name = fresh_name("room")
    channel = workspace.channel(ann, bob, name=name)
    for number in range(40):
        ann.post(channel, f"number {number}")
    device = screens(bob).devices[0]
    device.open(name)
    expect(device.messages("number 39")).to_be_in_viewport()
    device.expect_badge(name, "")
    group = device.root.get_by_role("group", name="Messages", exact=True)
    group.evaluate("element => { element.scrollTop = 300; }")
    expect(device.root.get_by_role("button", name="To the newest")).to_be_visible()
    for number in (40, 41):
        ann.post(channel, f"number {number}")
    newest = device.root.get_by_role("button", name="2 new, below")
    expect(newest).to_be_visible()
    assert group.evaluate("element => element.scrollTop") == 300
    device.expect_badge(name, ", 2 unread")
    newest.click()
    expect(device.messages("number 41")).to_be_in_viewport()
    expect(newest).to_be_hidden()
    device.expect_badge(name, "")


def test_a_reload_opens_the_channel_again(workspace, screens):
    ann = workspace.user("ann")
    name = fresh_name("room")
    workspace.channel(ann, name=name)
    screen = screens(ann)
    screen.devices[0].open(name)
    screen.page.reload()
    expect(screen.devices[0].root.get_by_role("heading", name=f"#{name}")).to_be_visible()


def test_marked_unread_stays_so(workspace, screens):
    """On both devices, also if the channel is open; until it is opened again."""
    ann, bob = workspace.user("ann"), workspace.user("bob")
    name = fresh_name("room")
    channel = workspace.channel(ann, bob, name=name)
    one, two = screens(bob, devices=2).devices
    for device in (one, two):
        device.open(name)
    for text in ("first", "second", "third"):
        ann.post(channel, text)
    expect(one.messages("third")).to_have_count(1)
    wait_until(lambda: bob.unread(channel) == 0, what="the mark")
    one.messages("second").hover()
    one.messages("second").get_by_role("button", name="Mark unread from here").click()
    for device in (one, two):
        device.expect_badge(name, ", 2 unread")
        expect(device.root.get_by_text("New", exact=True)).to_be_visible()
    ann.post(channel, "fourth")
    for device in (one, two):
        device.expect_badge(name, ", 3 unread")
    one.entry(name).click()
    for device in (one, two):
        device.expect_badge(name, "")


def test_what_is_covered_is_not_read(workspace, screens):
    """On a phone the thread covers the channel; scrolling up in a channel still reads the open thread."""
    ann, bob = workspace.user("ann"), workspace.user("bob")
    name = fresh_name("room")
    channel = workspace.channel(ann, bob, name=name)
    root = bob.post(channel, "root")
    ann.post(channel, "reply", thread_ts=root)
    device = screens(bob, width=390, height=700).devices[0]
    device.open(name)
    device.root.get_by_role("button", name="1 reply").click()
    expect(device.pane.get_by_text("reply", exact=True)).to_be_visible()
    ann.post(channel, "behind it")
    ann.post(channel, "in front", thread_ts=root)
    expect(device.pane.get_by_text("in front", exact=True)).to_be_visible()
    wait_until(lambda: bob.ok("threads.list")["totals"]["unread_count"] == 0, what="the thread's mark")
    assert bob.unread(channel) == 1
    device.pane.get_by_role("button", name="Close").click()
    wait_until(lambda: bob.unread(channel) == 0, what="the channel's mark")


FORMS = [
    ("*bold* 2*3*4 snake_case_name", "strong", ["bold"]),
    ("_see_ ~not~", "em, s", ["see", "not"]),
    ("&gt; one\n&gt; &gt; two\nand mine", "blockquote", ["one\ntwo"]),
    ("see https://a.example/x_y. Or (https://b.example/z)!", "a", ["https://a.example/x_y", "https://b.example/z"]),
    ("```a *b*\n&lt;c```\nafter", "code.block", ["a *b*\n<c"]),
]


def test_formatted_text(workspace, screens):
    ann = workspace.user("ann")
    name = fresh_name("room")
    channel = workspace.channel(ann, name=name)
    device = screens(ann).devices[0]
    device.open(name)
    for number, (text, parts, wanted) in enumerate(FORMS, 1):
        ann.post(channel, text)
        last = device.root.locator(".message .text").last
        expect(device.root.locator(".message:not(.system)")).to_have_count(number)
        assert [part.inner_text() for part in last.locator(parts).all()] == wanted, text
    ann.post(channel, "&gt; " * 7000)  # as deep as a text may be, it is one quote
    expect(device.root.locator(".message .text").last.locator("blockquote")).to_have_count(1)


def test_messages_of_programs(workspace, screens):
    """Under the name chosen by the program, with only blocks or attachments as content."""
    ann, bot = workspace.user("ann"), workspace.bot("robot")
    name = fresh_name("room")
    channel = workspace.channel(ann, bot, name=name)
    bot.ok("chat.postMessage", channel=channel, text="deployed", username="CI")
    bot.ok("chat.postMessage", channel=channel, blocks=[{"type": "section", "text": {"type": "mrkdwn", "text": "a *block*"}}])
    bot.ok("chat.postMessage", channel=channel, attachments=[{"title": "Build 7", "text": "green", "fallback": "no"}])
    device = screens(ann).devices[0]
    device.open(name)
    rows = device.root.locator(".message:not(.system)")
    expect(rows.nth(0).locator(".who")).to_have_text(re.compile("^CIapp"))
    expect(rows.nth(1).locator(".who")).to_have_text(re.compile("^robotapp"))
    expect(rows.nth(1).locator(".text")).to_have_text("a block")
    expect(rows.nth(2).locator(".text")).to_have_text("Build 7\ngreen")


def test_conversations_have_names(workspace, screens):
    ann, bob, cid = workspace.user("ann"), workspace.user("bob"), workspace.user("cid")
    direct = ann.ok("conversations.open", users=bob.id)["channel"]["id"]
    ann.post(ann.ok("conversations.open", users=f"{bob.id},{cid.id}")["channel"]["id"], "all three of us")
    root = bob.post(direct, "between us")
    ann.post(direct, "yes", thread_ts=root)
    device = screens(bob).devices[0]
    device.expect_badge("ann", "")
    device.expect_badge("ann, cid", ", 1 unread, 1 mention")
    device.entry("Threads").click()
    device.pane.get_by_role("button", name=re.compile("^ann · bob.*between us.*1 new")).click()
    expect(device.pane.get_by_text("ann", exact=True).first).to_be_visible()
    expect(device.pane.get_by_text("#ann")).to_have_count(0)


def test_history_that_cannot_be_read(workspace, screens):
    ann = workspace.user("ann")
    name = fresh_name("room")
    channel = workspace.channel(ann, name=name)
    ann.post(channel, "there all the time")
    screen = screens(ann)
    page, device = screen.page, screen.devices[0]
    page.route("**/api/channels.history", lambda route: route.abort())
    device.open(name)
    expect(device.root.get_by_text("The messages could not be read.")).to_be_visible()
    page.unroute("**/api/channels.history")
    device.root.get_by_role("button", name="Try again to read earlier messages").click()
    expect(device.messages("there all the time")).to_be_visible()
    expect(device.root.get_by_text("The messages could not be read.")).to_be_hidden()


def in_a_room(workspace, screens):
    """Somebody, an empty channel of theirs, and the page and the device that show it."""
    ann = workspace.user("ann")
    name = fresh_name("room")
    channel = workspace.channel(ann, name=name)
    screen = screens(ann)
    screen.devices[0].open(name)
    return ann, channel, screen.page, screen.devices[0]


def test_a_message_that_is_refused(workspace, screens):
    """It shows the reason, can be sent again or discarded, and the user can go on writing."""
    ann, channel, page, device = in_a_room(workspace, screens)
    page.route("**/api/chat.postMessage", lambda route: route.fulfill(json={"ok": False, "error": "restricted_action"}))
    for text in ("sent later", "sent never"):
        device.send(text)
        expect(device.messages(text).get_by_role("alert")).to_have_text("Not sent: restricted action.")
    device.messages("sent never").get_by_role("button", name="Discard").click()
    expect(device.messages("sent never")).to_have_count(0)
    expect(device.box).to_be_focused()
    page.unroute("**/api/chat.postMessage")
    device.messages("sent later").get_by_role("button", name="Try again").click()
    expect(device.box).to_be_focused()
    wait_until(lambda: [message["text"] for message in ann.history(channel)] == ["sent later"])


def test_messages_arrive_as_they_were_written(workspace, screens):
    """Even if the first one cannot connect, once or for long."""
    ann, channel, page, device = in_a_room(workspace, screens)
    page.route("**/api/chat.postMessage", lambda route: route.abort(), times=1)
    for text in ("one", "two", "three"):
        device.send(text)

    def texts():
        return [message["text"] for message in reversed(ann.history(channel))]

    wait_until(lambda: len(texts()) == 3)
    page.route("**/api/chat.postMessage", lambda route: route.abort())
    for text in ("four", "five"):
        device.send(text)
    for text in ("four", "five"):
        expect(device.messages(text).get_by_role("alert")).to_have_text("Not sent.")
    page.unroute("**/api/chat.postMessage")
    device.send("six")
    wait_until(lambda: len(texts()) == 6)
    assert texts() == ["one", "two", "three", "four", "five", "six"]


def test_a_pasted_text_is_not_cut(workspace, screens):
    ann, channel, _, device = in_a_room(workspace, screens)
    device.send("z" * 40001)
    expect(device.root.get_by_role("alert")).to_have_text("Not sent: msg too long.")
    assert ann.history(channel) == []


def test_a_busy_service_is_waited_for(workspace, environment, browser):
    """No reply to auth.test, or too many calls: that does not mean that the token is invalid."""
    ann = workspace.user("ann")
    page = browser.new_page()
    calls = []

    def refuse(route):
        calls.append(route)
        route.fulfill(status=429, headers={"Retry-After": "0"}, json={"ok": False, "error": "ratelimited"})

    page.route("**/api/auth.test", refuse)
    page.goto(f"{environment.urls[0]}/app#token={ann.token}")
    expect(page.get_by_role("status")).to_have_text("Reconnecting…")
    page.unroute("**/api/auth.test")
    expect(page.get_by_role("status")).to_have_text("Connected")
    assert len(calls) >= 3
    page.close()


def test_a_token_of_an_app_is_told(workspace, environment, browser):
    bot = workspace.bot()
    token = workspace.admin.ok("admin.apps.create", name="helper", bot_user_id=bot.id)["app_token"]
    page = browser.new_page()
    page.goto(f"{environment.urls[0]}/app#token={token}")
    expect(page.get_by_role("alert")).to_contain_text("This page needs a token of a user")
    page.close()


def test_a_break_is_seen_in_the_channel(workspace, screens, extra_instance):
    """Also on a phone, where the sidebar is hidden."""
    ann = workspace.user("ann")
    name = fresh_name("room")
    workspace.channel(ann, name=name)
    instance = extra_instance()
    device = screens(ann, url=instance.url, width=390, height=700).devices[0]
    device.open(name)
    instance.stop()
    notice = device.root.get_by_text("Reconnecting… What you write is sent when the service is back.")
    expect(notice).to_be_visible()
    instance.start()
    expect(notice).to_be_hidden()
