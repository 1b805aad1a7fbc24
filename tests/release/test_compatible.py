# SPDX-License-Identifier: Apache-2.0
"""Findings of ./dev lint for changes of openapi/tidings.yaml that break clients of the last release."""

import copy
import json
import re

import pytest
import yaml

from tools import compatible, openapi, release
from tools.project import ROOT

LAST = openapi.read(release.released()[-1])
TS = {"$ref": "#/components/schemas/Ts"}


def arguments(document):
    return document["components"]["schemas"]["ChannelsHistoryRequest"]


def argument(document, name):
    return arguments(document)["properties"][name]


def reply(document):
    return document["components"]["schemas"]["ChannelsHistoryOk"]


def message(document):
    return document["components"]["schemas"]["Message"]


def operation(document):
    return document["paths"]["/channels.history"]["post"]


def add_required(document):
    arguments(document)["properties"]["colour"] = {"type": "string"}
    arguments(document)["required"].append("colour")


def swap_verb(document):
    verbs = document["paths"]["/events"]
    verbs["post"] = verbs.pop("get")


def rename_schema(document):
    text = json.dumps(document).replace('schemas/Icons"', 'schemas/Pictures"').replace('"Icons": {', '"Pictures": {')
    document.update(json.loads(text))


def drop_form(document):
    body = document["paths"]["/channels.history"]["post"]["requestBody"]["$ref"].rpartition("/")[2]
    document["components"]["requestBodies"][body]["content"].pop("application/x-www-form-urlencoded")


def narrow_strategies(document):
    document["components"]["schemas"]["ChannelsCreateRequest"]["properties"]["strategy"]["enum"].remove("zset")


def drop_parameter(document):
    document["paths"]["/events"]["get"]["parameters"].pop(0)


def require_parameter(document):
    document["paths"]["/events"]["get"]["parameters"][0]["required"] = True


BREAKS = [
    ("channels.history: POST is gone", lambda d: d["paths"].pop("/channels.history")),
    ("events: GET is gone", swap_verb),
    ("channels.history: operationId changed", lambda d: operation(d).update(operationId="history")),
    ("channels.history: status 200 is gone", lambda d: operation(d)["responses"].pop("200")),
    ("channels.history: argument: application/x-www-form-urlencoded is gone", drop_form),
    ("channels.history: argument colour: is required now", add_required),
    ("channels.history: argument cursor: is required now", lambda d: arguments(d)["required"].append("cursor")),
    ("channels.history: argument inclusive: is gone", lambda d: arguments(d)["properties"].pop("inclusive")),
    ("channels.history: argument inclusive: its type changed", lambda d: argument(d, "inclusive").update(type="integer")),
    ("channels.history: argument limit: its maximum is lower", lambda d: argument(d, "limit").update(maximum=100)),
    ("channels.history: argument limit: its minimum is higher", lambda d: argument(d, "limit").update(minimum=2)),
    ("channels.history: argument limit: its default changed", lambda d: argument(d, "limit").update(default=10)),
    ("channels.history: argument cursor: its maxLength is lower", lambda d: argument(d, "cursor").update(maxLength=9)),
    ("channels.history: argument channel: its pattern changed", lambda d: argument(d, "channel").update(pattern="^C")),
    ("channels.create: argument strategy: has fewer values", narrow_strategies),
    ("events: argument Last-Event-ID: is gone", drop_parameter),
    ("events: argument Last-Event-ID: is required now", require_parameter),
    ("channels.history: reply pin_count: is gone", lambda d: reply(d)["properties"].pop("pin_count")),
    ("channels.history: reply has_more: its type changed", lambda d: reply(d)["properties"]["has_more"].update(type="string")),
    ("channels.history: reply has_more: its type changed", lambda d: reply(d)["properties"]["has_more"].update(type=["boolean", "null"])),
    ("channels.history: reply has_more: can be absent now", lambda d: reply(d)["required"].remove("has_more")),
    ("Message text: is gone", lambda d: message(d)["properties"].pop("text")),
    ("Message ts: can be absent now", lambda d: message(d)["required"].remove("ts")),
    ("Message thread_ts: its type changed",
     lambda d: message(d)["properties"].update(thread_ts={"oneOf": [TS, {"type": "null"}]})),
    ("Message seq: its format changed", lambda d: message(d)["properties"]["seq"].pop("format")),
    ("schema Icons: is gone", rename_schema),
]


@pytest.mark.parametrize("said, change", BREAKS)
def test_what_breaks_a_client(said, change):
    document = copy.deepcopy(LAST)
    change(document)
    found = compatible.compare(LAST, document)
    assert said in found and {text.partition(": ")[2] for text in found} == {said.partition(": ")[2]}, found


@pytest.mark.parametrize("change", [
    lambda d: d["paths"].update({"/channels.more": d["paths"]["/channels.history"]}),
    lambda d: arguments(d)["properties"].update(colour={"type": "string"}),
    lambda d: arguments(d)["required"].clear(),
    lambda d: argument(d, "limit").update(minimum=0, maximum=9999, type=["integer", "null"]),
    lambda d: argument(d, "channel").pop("pattern"),
    lambda d: reply(d)["properties"].update(colour={"type": "string"}),
    lambda d: reply(d)["required"].append("channel_actions_ts"),
    lambda d: reply(d)["properties"].update(channel_actions_ts=TS),
    lambda d: message(d).update(description="Another text."),
    lambda d: operation(d)["x-error-codes"].clear(),
])
def test_what_breaks_no_client(change):
    document = copy.deepcopy(LAST)
    change(document)
    assert compatible.compare(LAST, document) == []


def test_the_tree_as_it_is():
    assert compatible.check(ROOT) == []


def break_document(tree):
    document = openapi.read(tree.root / "openapi" / "tidings.yaml")
    arguments(document)["properties"].pop("inclusive")
    tree.write("openapi/tidings.yaml", yaml.safe_dump(document))


def test_a_break_is_shown_ready_to_paste_and_then_passes(tree):
    break_document(tree)
    (problem,) = compatible.check(tree.root)
    line = problem.rpartition("\n")[2].strip()
    assert line == "- channels.history: argument inclusive: is gone" and "### Breaking" in problem
    heading = re.search(r"^## .*$", tree.read("CHANGELOG.md"), re.MULTILINE).group()
    tree.replace("CHANGELOG.md", heading, f"{heading}\n\n### Other\n\n{line}\n\n### More")
    assert compatible.check(tree.root) == [problem]
    tree.replace("CHANGELOG.md", "### Other", "### Breaking")
    assert compatible.check(tree.root) == []
    tree.replace("CHANGELOG.md", "argument inclusive", "argument\n  inclusive")
    assert compatible.check(tree.root) == []


def test_a_break_that_an_older_version_lists_is_one(tree):
    break_document(tree)
    text = tree.read("CHANGELOG.md")
    tree.write("CHANGELOG.md", text + "\n### Breaking\n\n- channels.history: argument inclusive: is gone\n")
    assert len(compatible.check(tree.root)) == 1


def test_without_a_released_document(tree):
    for path in release.released(tree.root):
        path.unlink()
    assert compatible.check(tree.root) == ["openapi/released: has no document of a release"]
