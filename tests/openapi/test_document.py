# SPDX-License-Identifier: Apache-2.0
"""The document is served, and passes the linters with the rules that come with it."""

import json

import pytest
import requests
from openapi_spec_validator import OpenAPIV30SpecValidator

from tests.openapi.conftest import DOCUMENTS, OPENAPI
from tests.support.openapi import Document, walk
from tools import openapi


def test_redocly(npm):
    npm("redocly", "lint", "--config", OPENAPI / "redocly.yaml", "--max-problems", "20", *DOCUMENTS.values())


def test_spectral(npm):
    npm("spectral", "lint", "--ruleset", OPENAPI / ".spectral.yaml", "--fail-severity", "hint", *DOCUMENTS.values())


def test_served_as_it_is_written(environment):
    for url in environment.urls:
        response = environment.client(url=url).page("/openapi.json")
        assert response.status_code == 200
        assert response.headers["Content-Type"] == "application/json; charset=utf-8"
        assert json.loads(response.content) == openapi.up(Document().tree)


def test_served_in_3_0(environment):
    response = environment.client().page("/openapi-3.0.json")
    tree = json.loads(response.content)
    assert tree["openapi"] == "3.0.3" and tree == json.loads(DOCUMENTS["3.0"].read_text(encoding="utf-8"))
    assert [error.message for error in OpenAPIV30SpecValidator(tree).iter_errors()] == []
    written = Document().tree
    assert tree["paths"].keys() == written["paths"].keys()
    for path, node in walk(tree):
        assert not {"const", "default"} & node.keys() and node.get("type") != "null", path
        assert "examples" not in node, path


def test_both_versions_have_the_same_components(environment):
    """A program written against a client that was generated from one fits a client from the other."""
    up, down = (json.loads(environment.client().page(path).content) for path in ("/openapi.json", "/openapi-3.0.json"))
    assert {kind: list(members) for kind, members in up["components"].items()} == {kind: list(members) for kind, members in down["components"].items()}
    for name, body in up["components"]["requestBodies"].items():
        assert list(body["content"]) == ["application/json"], name
        assert body["required"] is down["components"]["requestBodies"][name]["required"], name


@pytest.mark.parametrize("path", ["/openapi.json", "/openapi-3.0.json"])
def test_kept_by_who_has_it(environment, path):
    client = environment.client()
    etag = client.page(path).headers["ETag"]
    again = client.page(path, headers={"If-None-Match": etag})
    assert (again.status_code, again.content) == (304, b"")
    head = requests.head(f"{client.url}{path}", timeout=30)
    assert (head.content, head.headers["Content-Length"]) == (b"", str(len(client.page(path).content)))
