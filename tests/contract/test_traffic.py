# SPDX-License-Identifier: Apache-2.0
"""Compares the traffic recorded by the e2e tests with the API document."""

import json

import pytest

from tests.support.openapi import FREE, Document, members_seen

METHODS = Document().methods
each_method = pytest.mark.parametrize("method", METHODS)
PROBLEMS_SHOWN = 10


@each_method
def test_it_was_exercised(recording, method):
    """At least one call succeeded, and one was refused."""
    outcomes = {call["reply"]["ok"] for call in recording.get(method, [])}
    assert outcomes == {True, False}, f"{method}: {outcomes}"


def test_what_is_not_documented_is_unknown(recording):
    unknown = {method for method, calls in recording.items()
               if any(call["reply"].get("error") != "unknown_method" for call in calls)}
    assert unknown - set(METHODS) == set()


def problems(document, calls, check):
    """The problems that `check` finds in `calls`, without duplicates, at most PROBLEMS_SHOWN."""
    found = {}
    for call in calls:
        for error in check(document, call):
            found.setdefault(error.split(": ", 1)[-1][:80], f"{error}\n   in {json.dumps(call)[:600]}")
    return "\n".join(list(found.values())[:PROBLEMS_SHOWN])


def schema_of(document, call):
    """The schema of the reply by its status and content type."""
    content = document.response(call["method"], call["status"])["content"]
    return content[call["content_type"].partition(";")[0]]["schema"]


def reply_errors(document, call):
    return document.errors(schema_of(document, call), call["reply"], strict=True)


@each_method
def test_replies(document, recording, method):
    """Each reply fits the schema of its status, and has no member that the document does not name."""
    trouble = problems(document, recording[method], reply_errors)
    assert not trouble, trouble


def test_problem_json_is_for_http_statuses_only(recording):
    """One of Slack's clients cannot read any other type than application/json."""
    for calls in recording.values():
        for call in calls:
            assert call["content_type"].startswith("application/json") or call["status"] >= 400


@each_method
def test_errors_are_listed(document, recording, method):
    """Each error in the traffic is listed by the operation, or by the document."""
    listed = set(document.operation(method).get("x-error-codes", []))
    listed |= set(document.tree["info"]["x-common-error-codes"])
    met = {call["reply"]["error"] for call in recording[method] if not call["reply"]["ok"]}
    if method == "api.test":
        met.discard("my_error")
    assert met - listed == set()


# Members that come only with a method that does not exist.
RARE = {("ErrorReply", "req_method"), ("ProblemReply", "req_method")}


def test_every_documented_member_was_seen(document, recording):
    """A member that no reply ever had is one that the server does not give; of what only calls have, that no call ever had."""
    seen = set()
    for method in METHODS:
        for call in recording[method]:
            members_seen(document, schema_of(document, call), call["reply"], seen)
            if call["encoding"] == "json" and call["reply"]["ok"]:
                members_seen(document, *request_of(document, call), seen)
    schemas = document.tree["components"]["schemas"]
    documented = {(name, member) for name, schema in schemas.items() if not name.endswith(("Request", *FREE))
                  for member in schema.get("properties", {})}
    missing = sorted(documented - seen - RARE)
    assert not missing, missing


def request_errors(document, call):
    results = call["reply"].get("results")
    if call["encoding"] != "json" or not call["reply"]["ok"] or (results and all("error" in result for result in results)):
        return []
    return document.errors(*request_of(document, call))


def request_of(document, call):
    """The schema of a call's arguments, and these as the document has them."""
    schema = document.request_body(call["method"])["content"]["application/json"]["schema"]
    properties = document.resolve(schema).get("properties", {})
    results = call["reply"].get("results", [])
    return schema, {name: taken(as_documented(document, value, properties.get(name, {})), results)
                    for name, value in call["args"].items() if value is not None}


def as_documented(document, value, schema):
    """A list may be given as an array, as JSON, or with commas between, an object as JSON, a number as text, and a text as a number: the
    document names one of them. In an object null is a member that is not there; PHP writes an empty object as a list."""
    schema = document.resolve(schema)
    kind = schema.get("type")
    if isinstance(value, str) and (kind == "object" or (kind == "array" and value.startswith("["))):
        value = json.loads(value)
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: as_documented(document, member, properties.get(name, {}))
                for name, member in (value or {}).items() if member is not None or name not in properties}
    if isinstance(value, str):
        return value.split(",") if kind == "array" else int(value) if kind == "integer" else value
    if kind == "string" and isinstance(value, list):
        return ",".join(value)
    return str(value) if kind == "string" and type(value) is int else value


def taken(value, results):
    """In a list whose items have one result each, the valid items: an invalid one does not stop the others."""
    if isinstance(value, list) and results and len(value) == len(results):
        return [item for item, result in zip(value, results) if "error" not in result]
    return value


@each_method
def test_requests_that_were_taken(document, recording, method):
    """The document allows each JSON request that succeeded."""
    trouble = problems(document, recording[method], request_errors)
    assert not trouble, trouble
