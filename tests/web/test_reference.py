# SPDX-License-Identifier: Apache-2.0
"""The reference at /docs."""

import re

import pytest

from tests.web.conftest import PATIENCE_MS

LOGO = "https://cdn.redoc.ly/redoc/logo-mini.svg"  # Redoc would show it; the page's policy keeps it away


@pytest.fixture
def page(browser):
    """A page whose console errors fail the test, except for the one about the logo."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(PATIENCE_MS)
    page, complaints = context.new_page(), []
    page.on("console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    context.close()
    assert [text for text in complaints if LOGO not in text] == []


def test_shows_an_operation(environment, page):
    outside = []
    page.on("requestfinished", lambda request: None if request.url.startswith((environment.urls[0], "blob:"))
            else outside.append(request.url))
    page.goto(f"{environment.urls[0]}/docs#tag/chat/operation/chatPostMessage")
    page.get_by_role("heading", name="Posts a message.").wait_for()
    page.get_by_role("menuitem").filter(has_text="/chat.postMessage").last.wait_for()  # by the method's name
    page.get_by_text("idempotency_key_reused").first.wait_for()  # one of the operation's error codes
    assert outside == []


def test_search(environment, page):
    page.goto(f"{environment.urls[0]}/docs")
    page.get_by_placeholder("Search...").fill("markUnread")
    page.get_by_role("menuitem").filter(has_text=re.compile("unread", re.IGNORECASE)).first.wait_for()


def test_headers(environment):
    client = environment.client()
    for path, kind in (("/docs", "text/html"), ("/docs/", "text/html"), ("/docs/redoc.standalone.js", "text/javascript"),
                       ("/docs/redoc.LICENSE.txt", "text/plain")):
        response = client.page(path)
        assert (response.status_code, response.headers["Content-Type"].split(";")[0]) == (200, kind)
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        assert "unsafe" not in response.headers["Content-Security-Policy"]
