# SPDX-License-Identifier: Apache-2.0
"""Notification settings on the page, the badge in its title, and Web Push to the browser."""

import json
import re
from datetime import datetime, timezone

import pytest
from playwright.sync_api import expect

from tests.support.wait import act_until, wait_until
from tests.support.workspace import fresh_name

# What the browser's push service would answer: it is not reached from here. The keys are a real pair's public half.
P256DH = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
AUTH = "BTBZMqHH6r4Tts7J_aSIgg"
FORGOTTEN_S = 5
SUBSCRIBE = f"""
const subscription = {{
  toJSON: () => ({{ endpoint: "https://push.example.com/1", keys: {{ p256dh: "{P256DH}", auth: "{AUTH}" }} }}),
  unsubscribe: async () => {{ subscribed = false; return true; }},
}};
let subscribed = false;
PushManager.prototype.subscribe = async () => {{ subscribed = true; return subscription; }};
PushManager.prototype.getSubscription = async () => (subscribed ? subscription : null);
"""

# Chromium lets a page be focused or opened on a user's own click alone, so these two are not the browser's.
CLICK = """async (tag) => {
  const opened = [];
  clients.openWindow = async (url) => { opened.push(url); return null; };
  WindowClient.prototype.focus = async function () { return this; };
  const [notification] = await registration.getNotifications({ tag });
  const event = new NotificationEvent("notificationclick", { notification });
  let ended;
  event.waitUntil = (promise) => { ended = promise; };
  dispatchEvent(event);
  await ended;
  return opened;
}"""


@pytest.fixture
def dialog_of():
    def open_dialog(screen):
        screen.page.get_by_role("button", name="Notifications").click()
        dialog = screen.page.get_by_role("dialog", name="Notifications")
        expect(dialog).to_be_visible()
        expect(dialog).not_to_have_attribute("aria-busy", "true")
        return dialog
    return open_dialog


def test_what_is_set_here_is_shown_elsewhere(room, screens, dialog_of):
    _, bob, _, _ = room
    dialog = dialog_of(screens(bob))
    expect(dialog.get_by_label("Notify me about")).to_have_value("mentions")
    dialog.get_by_label("Notify me about").select_option("all")
    dialog.get_by_label("Count on the badge").select_option("all")
    dialog.get_by_label("Show in notifications").select_option("sender")
    dialog.get_by_label("Quiet every day").check()
    dialog.get_by_label("Quiet from").fill("21:30")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()
    reply = bob.ok("notifications.get")
    assert {key: reply[key] for key in ("level", "badge", "preview", "dnd_start", "dnd_end", "tz")} == {
        "level": "all", "badge": "all", "preview": "sender", "dnd_start": "21:30", "dnd_end": "07:00", "tz": "UTC"}
    bob.ok("notifications.set", level="none")
    again = dialog_of(screens(bob))
    expect(again.get_by_label("Notify me about")).to_have_value("none")
    expect(again.get_by_label("Quiet from")).to_have_value("21:30")


def test_a_pause(room, screens, dialog_of):
    _, bob, _, _ = room
    dialog = dialog_of(screens(bob))
    dialog.get_by_label("Pause for").select_option("1 hour")
    expect(dialog.get_by_role("status")).to_have_text(re.compile("^Paused until "))
    until = bob.ok("dnd.info")["snooze_endtime"]
    assert 3500 <= until - datetime.now(timezone.utc).timestamp() <= 3700
    dialog.get_by_role("button", name="Go on now").click()
    expect(dialog.get_by_role("status")).to_have_count(0)
    assert bob.ok("dnd.info")["snooze_enabled"] is False


def test_a_channel_of_its_own_level(room, screens):
    _, bob, channel, name = room
    first, second = screens(bob), screens(bob)
    for screen in (first, second):
        screen.devices[0].open(name)
    first.devices[0].root.get_by_label("Notify about").select_option("none")
    expect(second.devices[0].root.get_by_label("Notify about")).to_have_value("none")
    assert bob.ok("channels.info", channel=channel)["channel"]["notify"] == "none"


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


def test_a_badge_of_all_that_is_unread(room, screens):
    ann, bob, channel, _ = room
    bob.ok("notifications.set", badge="all")
    ann.post(channel, "not for you")
    ann.post(channel, f"<@{bob.id}>, this is")
    expect(screens(bob).page).to_have_title("(2) Tidings")


@pytest.fixture
def push_app(workspace):
    return workspace.admin.ok("admin.pushApps.create", name=fresh_name("web"), platform="webpush", subject="mailto:ops@example.com")["app"]


def test_no_app_no_push(room, screens, dialog_of):
    _, bob, _, _ = room
    expect(dialog_of(screens(bob)).get_by_label("Notify in this browser")).to_be_hidden()


def test_this_browser_is_a_device(room, screens, dialog_of, push_app):
    """Until its user disables it, or signs out."""
    _, bob, _, _ = room
    screen = screens(bob, script=SUBSCRIBE, permissions=["notifications"])
    dialog = dialog_of(screen)
    browser = dialog.get_by_label("Notify in this browser")
    for how in ("uncheck", "sign out"):
        expect(browser).not_to_be_checked()
        browser.check()
        expect(dialog).not_to_have_attribute("aria-busy", "true")
        expect(dialog.get_by_role("alert")).to_have_count(0)
        [device] = bob.ok("devices.list")["devices"]
        assert (device["app"], device["platform"]) == (push_app["name"], "webpush")
        if how == "uncheck":
            browser.uncheck()
        else:
            dialog.get_by_role("button", name="Close").click()
            screen.page.get_by_role("button", name="Sign out").click()
            expect(screen.page.get_by_label("Token")).to_be_visible()
        wait_until(lambda: bob.ok("devices.list")["devices"] == [])


def subscribed(dialog):
    """The page, whose worker gets pushes from now on."""
    dialog.get_by_label("Notify in this browser").check()
    expect(dialog).not_to_have_attribute("aria-busy", "true")
    return dialog.page


class Worker:
    """The service worker of a page, which gets pushes as from the browser's push service."""

    def __init__(self, page, url):
        self.page, self.origin, self.registration = page, url, None
        self.session = page.context.new_cdp_session(page)
        self.session.on("ServiceWorker.workerVersionUpdated", self.take)
        self.session.send("ServiceWorker.enable")

    def take(self, event):
        for version in event["versions"]:
            if version["status"] == "activated":
                self.registration = version["registrationId"]

    def push(self, data):
        wait_until(lambda: self.page.title() and self.registration is not None)
        self.session.send("ServiceWorker.deliverPushMessage",
                          {"origin": self.origin, "registrationId": self.registration, "data": json.dumps(data)})

    def show(self, data, is_shown):
        """Pushes until it is shown. Under load Chromium sometimes forgets what a new profile shows: showNotification() has succeeded, and
        getNotifications() does not find it."""
        act_until(lambda: self.push(data), is_shown, FORGOTTEN_S, what="a notification")

    def click(self, tag):
        """Clicks the notification; answers which addresses were opened for it."""
        return self.page.context.service_workers[0].evaluate(CLICK, tag)

    def makes_itself_heard(self):
        return self.page.evaluate("async () => (await (await navigator.serviceWorker.getRegistration('/app/')).getNotifications())"
                                  ".map(({silent, renotify}) => renotify && !silent)")

    def shown(self):
        return self.page.evaluate("async () => (await (await navigator.serviceWorker.getRegistration('/app/')).getNotifications())"
                                  ".map(({title, body, tag}) => [title, body, tag])")


def test_what_the_worker_shows(room, screens, dialog_of, push_app):
    """One notification per channel, the newest; none once it is read elsewhere."""
    _, bob, channel, _ = room
    screen = screens(bob, script=SUBSCRIBE, permissions=["notifications"])
    worker = Worker(subscribed(dialog_of(screen)), bob.url)
    about = {"channel": channel, "ts": "1717200000.000100"}
    for body in ("first", "second"):
        worker.show({"aps": {"alert": {"title": "ann", "subtitle": "#room", "body": body}, "badge": 1, "thread-id": channel}, "tidings": about},
                    lambda wanted=body: worker.shown() == [["ann", f"#room\n{wanted}", channel]])
    worker.push({"aps": {"badge": 2}, "tidings": {}})  # another channel's
    worker.show({"aps": {"alert": {"title": "New messages"}, "badge": 2}, "tidings": {}},
                lambda: sorted(worker.shown()) == [["New messages", "", "summary"], ["ann", "#room\nsecond", channel]])
    worker.push({"aps": {"badge": 1}, "tidings": about})
    wait_until(lambda: worker.shown() == [["New messages", "", "summary"]])
    worker.push({"aps": {"badge": 0}, "tidings": {}})
    wait_until(lambda: worker.shown() == [])


def test_a_thread_beside_its_channel(room, screens, dialog_of, push_app):
    """Each is withdrawn by its message, which a later one in its place survives."""
    _, bob, channel, _ = room
    worker = Worker(subscribed(dialog_of(screens(bob, script=SUBSCRIBE, permissions=["notifications"]))), bob.url)
    first, later, thread = "1717200000.000100", "1717200000.000300", {"thread_ts": "1717200000.000000"}
    places = {channel: {"channel": channel, "ts": later}, f"{channel}.{thread['thread_ts']}": {"channel": channel, "ts": first, **thread}}
    for tag, place in places.items():
        worker.show({"aps": {"alert": {"title": "ann", "body": tag}, "badge": 2, "thread-id": channel, "sound": "default"}, "tidings": place},
                    lambda wanted=tag: ["ann", wanted, wanted] in worker.shown())
    assert len(worker.shown()) == 2
    worker.push({"aps": {"badge": 2}, "tidings": {"channel": channel, "ts": first}})
    worker.push({"aps": {"badge": 1}, "tidings": {"channel": channel, "ts": first, **thread}})
    wait_until(lambda: worker.shown() == [["ann", channel, channel]])


def test_what_replaces_without_a_sound(room, screens, dialog_of, push_app):
    _, bob, channel, _ = room
    worker = Worker(subscribed(dialog_of(screens(bob, script=SUBSCRIBE, permissions=["notifications"]))), bob.url)
    about = {"channel": channel, "ts": "1717200000.000100"}
    for body, sound in (("said", {"sound": "default"}), ("edited", {"interruption-level": "passive"})):
        worker.show({"aps": {"alert": {"title": "ann", "body": body}, "badge": 1, "thread-id": channel, **sound}, "tidings": about},
                    lambda wanted=body: worker.shown() == [["ann", wanted, channel]])
        assert worker.makes_itself_heard() == [body == "said"]


def test_a_badge_that_is_refused_keeps_nothing_from_being_shown(room, screens, dialog_of, push_app):
    _, bob, channel, _ = room
    worker = Worker(subscribed(dialog_of(screens(bob, script=SUBSCRIBE, permissions=["notifications"]))), bob.url)
    wait_until(lambda: worker.page.title() and worker.page.context.service_workers)
    worker.page.context.service_workers[0].evaluate("() => { navigator.setAppBadge = () => Promise.reject(new Error('no')); }")
    worker.show({"aps": {"alert": {"title": "ann"}, "badge": 1, "thread-id": channel}, "tidings": {"channel": channel, "ts": "1717200000.000100"}},
                lambda: worker.shown() == [["ann", "", channel]])


@pytest.fixture
def notified(room, screens, dialog_of, push_app):
    """The page of bob, without an open channel, after a notification of a message: `notified(ts, thread_ts)`."""
    _, bob, channel, _ = room
    screen = screens(bob, script=SUBSCRIBE, permissions=["notifications"])
    dialog = dialog_of(screen)
    screen.worker = Worker(subscribed(dialog), bob.url)

    def notify(ts, **thread):
        alert = {"title": "ann", "subtitle": "#room", "body": "the one"}
        screen.worker.show({"aps": {"alert": alert, "badge": 1, "thread-id": channel}, "tidings": {"channel": channel, "ts": ts, **thread}},
                           screen.worker.shown)
        dialog.get_by_role("button", name="Close").click()
        return screen
    return notify


def test_a_click_opens_the_channel(room, notified):
    ann, _, channel, name = room
    screen = notified(ann.post(channel, "the one"))
    device = screen.devices[0]
    expect(device.root.get_by_role("heading", name=f"#{name}")).to_have_count(0)
    assert screen.worker.click(channel) == []
    expect(device.root.get_by_role("heading", name=f"#{name}")).to_be_visible()
    expect(device.messages("the one")).to_have_attribute("aria-current", "true")
    assert screen.worker.shown() == []


def test_a_click_opens_the_thread_of_a_reply(room, notified):
    ann, _, channel, name = room
    root = ann.post(channel, "root")
    screen = notified(ann.post(channel, "the one", thread_ts=root), thread_ts=root)
    assert screen.worker.click(f"{channel}.{root}") == []
    device = screen.devices[0]
    expect(device.root.get_by_role("heading", name=f"#{name}")).to_be_visible()
    reply = device.pane.get_by_role("listitem").filter(has=screen.page.get_by_text("the one", exact=True))
    expect(reply).to_have_attribute("aria-current", "true")


@pytest.mark.parametrize("in_thread", [False, True])
def test_a_click_while_no_page_is_open_opens_one_at_the_message(room, notified, in_thread):
    ann, _, channel, _ = room
    thread = {"thread_ts": ann.post(channel, "root")} if in_thread else {}
    ts = ann.post(channel, "the one", **thread)
    screen = notified(ts, **thread)
    permalink = ann.ok("chat.getPermalink", channel=channel, message_ts=ts)["permalink"]
    screen.page.goto("about:blank")
    [opened] = screen.worker.click(".".join([channel, *thread.values()]))
    assert opened.startswith("/archives/") and permalink.partition("?")[0].endswith(opened.partition("?")[0])
    screen.page.goto(f"{ann.url}{opened}")
    where = screen.devices[0].pane if in_thread else screen.devices[0].root
    expect(where.get_by_role("listitem").filter(has=screen.page.get_by_text("the one", exact=True))).to_have_attribute("aria-current", "true")
