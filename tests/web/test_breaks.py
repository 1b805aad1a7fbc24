# SPDX-License-Identifier: Apache-2.0
"""Breaks, late answers and calls that fail: nothing is missing afterwards, and every badge is right."""

import time

import pytest
from playwright.sync_api import expect

from tests.support.wait import wait_until
from tests.support.workspace import fresh_name
from tests.web import wires

SYNC_PAUSE_S = 0.15


@pytest.fixture
def page_of(screens):
    """(the page, its device, its wires) of a member."""

    def open_page(member):
        screen = screens(member, script=wires.SCRIPT)
        return screen.page, screen.devices[0], wires.Wires(screen.page)

    return open_page


def break_off(device, line):
    """The page loses its socket, and has no other until `rtm.connect` is released."""
    line.hold("rtm.connect")
    line.cut()
    expect(device.sidebar.get_by_role("status")).to_have_text("Reconnecting…")


class Refusals:
    """Calls of a method that the service cannot answer, until end()."""

    def __init__(self, page, method):
        self._page = page
        self._path = f"**/api/{method}"
        self._count = 0
        page.route(self._path, self._refuse)

    def _refuse(self, route):
        self._count += 1
        route.fulfill(json={"ok": False, "error": "service_unavailable"})

    def wait_given_up(self):
        """A call is tried three times."""

        def three():
            self._page.title()  # calls are heard of while the page is asked something
            return self._count >= 3

        wait_until(three, what="three refusals")

    def end(self):
        self._page.unroute(self._path)


def test_a_message_that_comes_while_it_syncs_hides_no_missed_one(room, page_of):
    ann, bob, channel, name = room
    _, device, line = page_of(bob)
    device.open(name)
    ann.post(channel, "before")
    expect(device.messages("before")).to_have_count(1)
    break_off(device, line)
    ann.post(channel, "missed")
    line.hold("unread.sync")
    line.release("rtm.connect")
    line.wait_heard('"type":"hello"', 2)
    line.wait_held("unread.sync")
    ann.post(channel, "heard")
    line.wait_heard("heard")
    line.release("unread.sync")
    for text in ("before", "missed", "heard"):
        expect(device.messages(text)).to_have_count(1)


def test_what_happens_while_a_channel_is_read(room, page_of):
    """The reply is outdated: it lacks a message, and contains messages that were edited and deleted since."""
    ann, bob, channel, name = room
    edited, deleted = ann.post(channel, "first words"), ann.post(channel, "for a moment")
    _, device, line = page_of(bob)
    line.hold("channels.history")
    device.open(name)
    line.wait_held("channels.history")
    ann.ok("chat.update", channel=channel, ts=edited, text="last words")
    ann.ok("chat.delete", channel=channel, ts=deleted)
    ann.post(channel, "just now")
    line.wait_heard("just now")
    line.release("channels.history")
    for text in ("last words", "just now"):
        expect(device.messages(text)).to_have_count(1)
    for text in ("first words", "for a moment"):
        expect(device.messages(text)).to_have_count(0)
    device.expect_badge(name, "")


def test_events_that_cannot_be_read_at_once(room, page_of):
    """After a disconnection, from a service that has only partly recovered."""
    ann, bob, channel, name = room
    page, device, line = page_of(bob)
    device.open(name)
    ann.post(channel, "before")
    expect(device.messages("before")).to_have_count(1)
    refusals = Refusals(page, "channels.events")
    break_off(device, line)
    ann.post(channel, "missed")
    line.release("rtm.connect")
    device.expect_connected()
    refusals.wait_given_up()
    refusals.end()
    expect(device.messages("missed")).to_have_count(1)


def test_a_reply_that_was_deleted_in_a_break(room, page_of):
    ann, bob, channel, _ = room
    root = bob.post(channel, "a question")
    reply = ann.post(channel, "a wrong answer", thread_ts=root)
    ann.post(channel, "an answer", thread_ts=root)
    _, device, line = page_of(bob)
    device.entry("Threads").click()
    device.pane.get_by_role("button").filter(has_text="a question").click()
    expect(device.pane.get_by_text("a wrong answer", exact=True)).to_be_visible()
    break_off(device, line)
    ann.ok("chat.delete", channel=channel, ts=reply)
    line.release("rtm.connect")
    expect(device.pane.get_by_text("a wrong answer", exact=True)).to_have_count(0)
    expect(device.pane.get_by_text("an answer", exact=True)).to_be_visible()


def test_what_was_marked_unread_in_a_break_stays_so(room, page_of):
    ann, bob, channel, name = room
    _, device, line = page_of(bob)
    device.open(name)
    ts = ann.post(channel, "first")
    wait_until(lambda: bob.unread(channel) == 0, what="the mark")
    break_off(device, line)
    bob.ok("channels.markUnread", channel=channel, ts=ts)
    line.release("rtm.connect")
    device.expect_badge(name, ", 1 unread")
    marks = line.calls("channels.mark")
    line.wait_looked(lambda: ann.post(channel, "second"))
    assert line.calls("channels.mark") == marks
    device.expect_badge(name, ", 2 unread")


def test_a_mark_that_crosses_a_sync(room, page_of):
    """The sync's reply was computed before the mark, and arrives after it."""
    ann, bob, channel, name = room
    _, device, line = page_of(bob)
    line.hold("unread.sync")
    ts = ann.post(channel, f"<@{bob.id}>")  # a mention: the page asks what it counts
    line.wait_held("unread.sync")
    bob.ok("channels.mark", channel=channel, ts=ts)
    line.wait_heard("channel_marked")
    device.expect_badge(name, "")
    line.release("unread.sync")
    ann.post(channel, "another")
    device.expect_badge(name, ", 1 unread")


@pytest.mark.parametrize("before", [0, 1])
def test_an_unread_message_that_is_deleted(room, screens, before):
    """Also if it is the only one."""
    ann, bob, channel, name = room
    screen = screens(bob)
    device = screen.devices[0]
    for number in range(before + 1):
        ts = ann.post(channel, f"number {number}")
    device.expect_badge(name, f", {before + 1} unread")
    ann.ok("chat.delete", channel=channel, ts=ts)
    device.expect_badge(name, f", {before} unread" if before else "")
    expect(screen.page).to_have_title("• Tidings" if before else "Tidings")


def test_every_direct_message_is_a_mention(workspace, screens):
    ann, bob = workspace.users(2)
    direct = ann.ok("conversations.open", users=bob.id)["channel"]["id"]
    bob.ok("conversations.open", users=ann.id)
    device = screens(bob).devices[0]
    device.expect_badge(ann.name, "")
    for count in ("1 unread, 1 mention", "2 unread, 2 mentions"):
        ann.post(direct, "psst")
        device.expect_badge(ann.name, f", {count}")
    bob.ok("channels.setNotifications", channel=direct, muted=True)
    device.expect_badge(ann.name, ", 2 unread, muted")


def test_the_title_of_a_tab_in_the_background(room, page_of):
    ann, bob, channel, name = room
    page, device, line = page_of(bob)
    line.hide()
    ann.post(channel, "look here")
    expect(page).to_have_title("• Tidings")
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


def test_a_mark_that_fails_is_made_later(room, page_of):
    ann, bob, channel, name = room
    page, device, _ = page_of(bob)
    device.open(name)
    refusals = Refusals(page, "channels.mark")
    ann.post(channel, "seen")
    device.expect_badge(name, ", 1 unread")
    refusals.wait_given_up()
    refusals.end()
    device.expect_badge(name, "")
    assert bob.unread(channel) == 0


def test_what_could_not_be_sent_is_sent_when_the_service_is_back(room, page_of):
    """Also without a disconnection of the socket: Postgres was down."""
    ann, bob, channel, name = room
    page, device, _ = page_of(bob)
    device.open(name)
    refusals = Refusals(page, "chat.postMessage")
    device.send("later")
    expect(device.messages("later").get_by_role("alert")).to_have_text("Not sent.")
    refusals.end()
    wait_until(lambda: [message["text"] for message in ann.history(channel)] == ["later"])
    expect(device.messages("later").get_by_role("alert")).to_have_count(0)


def test_a_lively_thread_is_not_asked_for_at_each_reply(room, screens):
    ann, bob, channel, _ = room
    root = bob.post(channel, "a question")
    ann.post(channel, "the first answer", thread_ts=root)
    screen = screens(bob)
    device = screen.devices[0]
    device.entry("Threads").click()
    device.pane.get_by_role("button").filter(has_text="1 new").wait_for()
    asked = []
    screen.page.on("request", lambda request: request.url.endswith("/threads.list") and asked.append(request))
    began = time.monotonic()
    for number in range(60):
        ann.post(channel, f"number {number}", thread_ts=root)
    device.pane.get_by_role("button").filter(has_text="61 new").wait_for()
    device.expect_badge("Threads", ", 61 unread")
    assert len(asked) <= 2 + (time.monotonic() - began) / SYNC_PAUSE_S


def test_a_thread_that_is_followed_no_longer(room, screens):
    ann, bob, channel, _ = room
    root = bob.post(channel, "a question")
    device = screens(bob).devices[0]
    ann.post(channel, "an answer", thread_ts=root)
    device.expect_badge("Threads", ", 1 unread")
    bob.ok("threads.unfollow", channel=channel, thread_ts=root)
    device.expect_badge("Threads", "")


def test_a_name_that_could_not_be_read(workspace, page_of):
    """It is requested again, and replaces the id."""
    ann, bob = workspace.user("ann"), workspace.user("bob")
    name = fresh_name("room")
    channel = workspace.channel(ann, bob, name=name)
    page, device, _ = page_of(bob)
    late = workspace.user("late")
    late.ok("channels.join", channel=channel)
    refusals = Refusals(page, "users.info")
    device.open(name)
    late.post(channel, "who am I?")
    author = device.messages("who am I?").locator(".name")
    expect(author).to_have_text(late.id)
    refusals.wait_given_up()
    refusals.end()
    ann.post(channel, "somebody new?")
    expect(author).to_have_text("late")


def page_with_thread(room, page_of):
    """Like page_of(bob), with an open channel that contains a message with a reply; and the button that opens its thread."""
    ann, bob, channel, name = room
    ann.post(channel, "an answer", thread_ts=ann.post(channel, "a question"))
    page, device, line = page_of(bob)
    device.open(name)
    return page, device, line, device.root.get_by_role("button", name="1 reply")


def test_the_focus_does_not_wait_and_does_not_jump(room, page_of):
    """The focus is in the input at once when a thread opens; if the user moves it elsewhere, it stays there."""
    page, device, line, replies = page_with_thread(room, page_of)
    line.hold("channels.replies")
    replies.click()
    expect(device.pane.get_by_role("textbox")).to_be_focused()
    line.wait_held("channels.replies")
    device.box.focus()
    line.release("channels.replies")
    expect(device.pane.get_by_text("an answer", exact=True)).to_be_visible()
    page.keyboard.type("written")
    expect(device.box).to_have_value("written")


def test_a_thread_that_cannot_be_read(room, page_of):
    """It closes, and the focus returns."""
    page, device, _, replies = page_with_thread(room, page_of)
    refusals = Refusals(page, "channels.replies")
    replies.click()
    refusals.wait_given_up()
    expect(device.pane).to_be_hidden()
    expect(replies).to_be_focused()
