# SPDX-License-Identifier: Apache-2.0
"""Serving the files of /app."""

import re

import pytest

FILES = {"/": "text/html", "/app": "text/html", "/app/": "text/html", "/app/style.css": "text/css", "/app/main.js": "text/javascript",
         "/app/icon.svg": "image/svg+xml", "/archives/C0000000001/p1700000000000100?thread_ts=1700000000.000000": "text/html"}


@pytest.mark.parametrize("path", FILES)
def test_headers(environment, path):
    client = environment.client()
    response = client.page(path)
    assert response.status_code == 200
    assert response.headers["Content-Type"].split(";")[0] == FILES[path]
    assert response.headers["Cache-Control"] == "no-cache"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    etag = response.headers["ETag"]
    assert re.fullmatch(r'"[0-9a-f]{64}"', etag)
    for known in (etag, f"W/{etag}", f'"other", {etag}'):
        again = client.page(path, headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", etag)
    assert client.page(path, headers={"If-None-Match": '"other"'}).content == response.content


def test_the_same_on_every_instance(environment):
    etags = {environment.client(url=url).page("/app/main.js").headers["ETag"] for url in environment.urls}
    assert len(etags) == 1


@pytest.mark.parametrize("path", ["/app/none.js", "/app/../main.js", "/app/main.js/", "/apps", "/app/%2e%2e/main.js", "/archives", "/archive/C0000000001"])
def test_nothing_else(environment, path):
    with_dots = environment.client().page(path)
    assert with_dots.status_code == 404


def test_nothing_is_loaded_from_elsewhere(environment):
    """Each file refers only to files served with it."""
    client = environment.client()
    seen, todo = set(), {"/app"}
    while todo:
        path = todo.pop()
        seen.add(path)
        response = client.page(path)
        assert response.status_code == 200, path
        found = re.findall(r'(?:src|href)="([^"]+)"|from "([^"]+)"|url\(([^)]+)\)', response.text)
        for name in (next(part for part in parts if part) for parts in found):
            assert not re.match(r"\w+:|//", name), f"{path} loads {name}"
            target = name.split("?")[0].replace("./", "/app/", 1) if name.startswith("./") else name.split("?")[0]
            todo |= {target} - seen
    assert {"/app/style.css", "/app/client.js", "/app/theme.js"} <= seen
