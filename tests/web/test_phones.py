# SPDX-License-Identifier: Apache-2.0
"""The page of `./dev up --push`: each phone shows what its pushes put there."""

import pytest
from playwright.sync_api import expect

from tests.phones.arrivals import Arrivals
from tests.phones.page import Page
from tools.services import free_port

APNS, FCM = "bob-iphone", "bob-android"


@pytest.fixture
def arrivals(tmp_path):
    arrivals = Arrivals(tmp_path / "push.jsonl")
    for device in (APNS, FCM):
        arrivals.name(f"token of {device}", device, "bob")
    return arrivals


@pytest.fixture
def url(arrivals):
    port = free_port()
    page = Page(port, None, arrivals)
    page.devices = [{"user": "ann", "device_id": "ann-iphone", "platform": "apns"}, {"user": "bob", "device_id": APNS, "platform": "apns"},
                    {"user": "bob", "device_id": FCM, "platform": "fcm"}]
    yield f"http://127.0.0.1:{port}/"
    page.close()


@pytest.fixture
def page(browser):
    complaints = []
    page = browser.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    page.close()
    assert not complaints


def push(arrivals, device, title, badge, collapse_id=None, body=None, ts=None):
    arrivals.take("apns", {"address": f"token of {device}", "collapse_id": collapse_id, "badge": badge, "title": title, "subtitle": None, "body": body,
                           "ts": ts})


def expect_shown(page, device, badge, *texts):
    phone = page.locator(f"[data-device={device}]")
    expect(phone.get_by_role("img")).to_have_attribute("aria-label", f"badge {badge}")
    expect(phone.get_by_role("listitem").locator(".body")).to_have_text(list(texts))


def test_a_lock_screen_shows_what_was_pushed(page, url, arrivals):
    push(arrivals, APNS, "ann", 1, "C1", "<b>one</b>")
    page.goto(f"{url}#bob")
    expect_shown(page, APNS, 1, "<b>one</b>")
    expect_shown(page, FCM, 0)
    push(arrivals, APNS, "ann", 2, "C1", "two", ts="2.0")  # in the place of the first
    push(arrivals, APNS, "cid", 3, "C2", "three", ts="3.0")
    push(arrivals, FCM, "cid", 3, "C2", "three")
    expect_shown(page, APNS, 3, "three", "two")
    expect_shown(page, FCM, 3, "three")
    push(arrivals, APNS, None, 1)  # silent
    expect_shown(page, APNS, 1, "three", "two")
    push(arrivals, APNS, None, 1, "C1", ts="1.0")  # withdraws the first, which is not shown
    push(arrivals, APNS, None, 1, "C2", ts="3.0")
    expect_shown(page, APNS, 1, "two")
    push(arrivals, APNS, None, 0)
    expect_shown(page, APNS, 0)
    page.get_by_role("link", name="ann").click()
    expect(page.get_by_role("heading", name="ann-iphone apns")).to_be_visible()
