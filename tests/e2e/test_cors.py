# SPDX-License-Identifier: Apache-2.0
"""Pages of other origins call the Web API, where a setting lets them."""

import pytest
import requests

ORIGIN = "https://a.example"


@pytest.fixture
def open_url(extra_instance):
    return extra_instance(cors_origins=f"{ORIGIN},https://b.example").url


def preflight(url, origin, method="chat.postMessage"):
    return requests.options(f"{url}/api/{method}", timeout=30, headers={
        "Origin": origin, "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type"})


def test_a_page_that_may(open_url, workspace):
    """The requests of a browser for fetch() with a bearer token: a preflight, then the call; the page sees only allowed headers."""
    asked = preflight(open_url, ORIGIN)
    assert asked.status_code == 204 and asked.content == b""
    allowed = asked.headers["Access-Control-Allow-Headers"].split(", ")
    assert {"authorization", "content-type", "idempotency-key", "x-request-id", "x-tidings-errors"} <= set(allowed)
    assert "POST" in asked.headers["Access-Control-Allow-Methods"] and asked.headers["Access-Control-Max-Age"] == "600"
    ann = workspace.user().at(open_url)
    for token in (ann, ann.at(open_url)):
        reply = token.ok("auth.test", headers={"Origin": ORIGIN})
        assert reply.headers["Access-Control-Allow-Origin"] == ORIGIN and "Origin" in reply.headers["Vary"].split(", ")
        assert "Retry-After" in reply.headers["Access-Control-Expose-Headers"]
        assert "Access-Control-Allow-Credentials" not in reply.headers
    failed = ann.fails("channel_not_found", "channels.info", channel="C0000000000",
                       headers={"Origin": "https://b.example", "X-Tidings-Errors": "http"})
    assert failed.status == 404 and failed.headers["Access-Control-Allow-Origin"] == "https://b.example"
    assert preflight(open_url, ORIGIN, "no.such").status_code == 204
    assert requests.get(f"{open_url}/healthz", headers={"Origin": ORIGIN},
                        timeout=30).headers["Access-Control-Allow-Origin"] == ORIGIN


@pytest.mark.parametrize("origin", ["https://c.example", "null", f"{ORIGIN},https://b.example", "https://a.example.evil.example", ""])
def test_a_page_that_may_not(open_url, workspace, origin):
    asked = preflight(open_url, origin)
    assert asked.status_code == 405 and "Access-Control-Allow-Origin" not in asked.headers
    reply = workspace.admin.at(open_url).ok("auth.test", headers={"Origin": origin})
    assert "Access-Control-Allow-Origin" not in reply.headers


def test_off_unless_set(environment):
    asked = preflight(environment.urls[0], ORIGIN)
    assert asked.status_code == 405 and "Access-Control-Allow-Origin" not in asked.headers


def test_any_page(extra_instance):
    """With *, any origin is allowed, echoed by name: scripts send the tokens, never the browser itself."""
    url = extra_instance(cors_origins="*").url
    assert preflight(url, "https://c.example").headers["Access-Control-Allow-Origin"] == "https://c.example"
