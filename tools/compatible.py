# SPDX-License-Identifier: Apache-2.0
"""Compares openapi/tidings.yaml with the document of the last release: a change that breaks its clients is listed in
CHANGELOG.md, under "### Breaking" of the version's section, or is a mistake. docs/decisions/2026-11-23-openapi-compared.md
explains why this is a program of our own.

Arguments (sent by clients) may only become wider, replies only narrower. Texts, examples and error codes
are free to change."""
import re

from tools import openapi, release
from tools.project import ROOT

SENT, GOT = "argument", "reply"
REFERENCE = "#/components/schemas/"
UPPER = ("maximum", "maxLength", "maxItems")
LOWER = ("minimum", "minLength", "minItems")


def check(root=ROOT):
    kept = release.released(root)
    if not kept:
        return ["openapi/released: has no document of a release"]
    listed = breaking(root)
    found = compare(openapi.read(kept[-1]), openapi.read(root / "openapi" / "tidings.yaml"))
    return [f"a change since {kept[-1].stem} breaks clients: undo it, or paste this below '### Breaking' of the changelog's first section:\n"
            f"    - {change}" for change in found if change not in listed]


def breaking(root):
    """The changelog's text about it, on one line."""
    _, text = release.sections(root)[0]
    parts = re.split(r"^### (.*)$", text, flags=re.MULTILINE)
    texts = [text for name, text in zip(parts[1::2], parts[2::2], strict=True) if name == "Breaking"]
    return " ".join(" ".join(texts).split())


def compare(old, new):
    """A text for each change that can break a client, each once, with its place: "chat.update: argument ts: is gone"."""
    walk = Walk(old, new)
    walk.paths()
    walk.names()
    return list(dict.fromkeys(walk.found))


class Walk:
    """Two documents, from their operations down. A schema that many use is looked at once for each direction."""

    def __init__(self, old, new):
        self._old = old
        self._new = new
        self._seen = set()
        self.found = []

    def _say(self, where, what):
        self.found.append(f"{where}: {what}")

    def names(self):
        """Generated clients name their types by them."""
        for name in self._old["components"]["schemas"].keys() - self._new["components"]["schemas"].keys():
            self._say(f"schema {name}", "is gone")

    def paths(self):
        for path, verbs in self._old["paths"].items():
            for verb in verbs.keys() & {"get", "post"}:
                now = self._new["paths"].get(path, {}).get(verb)
                if now is None:
                    self._say(path.lstrip("/"), f"{verb.upper()} is gone")
                else:
                    self._operation(path.lstrip("/"), verbs[verb], now)

    def _operation(self, method, old, new):
        if old["operationId"] != new["operationId"]:
            self._say(method, "operationId changed")
        self._parameters(method, old, new)
        self._body(method, old, new)
        for status, response in old["responses"].items():
            if status in new["responses"]:
                self._response(f"{method}: {GOT}", response, new["responses"][status])
            else:
                self._say(method, f"status {status} is gone")

    def _parameters(self, method, old, new):
        were, are = ({(item["in"], item["name"]): item for item in operation.get("parameters", ())} for operation in (old, new))
        for key, item in {**are, **were}.items():
            where = f"{method}: {SENT} {key[1]}"
            if key not in are:
                self._say(where, "is gone")
                continue
            if are[key].get("required") and not were.get(key, {}).get("required"):
                self._say(where, "is required now")
            if key in were:
                self._schema(where, item["schema"], are[key]["schema"], SENT)

    def _body(self, method, old, new):
        old, new = self._part(self._old, old.get("requestBody", {})), self._part(self._new, new.get("requestBody", {}))
        if new.get("required") and not old.get("required"):
            self._say(method, "a body is required now")
        self._content(f"{method}: {SENT}", old, new, SENT)

    def _response(self, where, old, new):
        old, new = self._part(self._old, old), self._part(self._new, new)
        for name in old.get("headers", {}).keys() - new.get("headers", {}).keys():
            self._say(where, f"header {name} is gone")
        self._content(where, old, new, GOT)

    def _content(self, where, old, new, direction):
        for kind, media in old.get("content", {}).items():
            if kind not in new.get("content", {}):
                self._say(where, f"{kind} is gone")
            elif "schema" in media:
                self._schema(where, media["schema"], new["content"][kind]["schema"], direction)

    @staticmethod
    def _part(document, node):
        """A part of an operation, where it is only referred to."""
        while "$ref" in node:
            _, _, kind, name = node["$ref"].split("/")
            node = document["components"][kind][name]
        return node

    def _schema(self, where, old, new, direction):
        (old, could_be_null), (new, can_be_null) = without_null(old), without_null(new)
        if (could_be_null, can_be_null) == ((True, False) if direction == SENT else (False, True)):
            self._say(where, "its type changed")
        names = old.get("$ref"), new.get("$ref")
        if any(names):
            key = (*names, direction) if all(names) else (where, direction)
            if key in self._seen:
                return
            self._seen.add(key)
        old, new = self._part(self._old, old), self._part(self._new, new)
        if all(names) and not names[0].endswith(("Request", "Ok")) and "oneOf" not in old:
            where = names[0].removeprefix(REFERENCE)  # not that of the one method that happens to come first
        for what in narrowed(old, new) if direction == SENT else narrowed(new, old, GOT):
            self._say(where, what)
        self._members(where, old, new, direction)
        for was, now in zip(old.get("oneOf", ()), new.get("oneOf", ()), strict=False):
            self._schema(where, was, now, direction)
        for keyword in ("items", "additionalProperties"):
            if isinstance(old.get(keyword), dict) and isinstance(new.get(keyword), dict):
                self._schema(f"{where}[]", old[keyword], new[keyword], direction)

    def _members(self, where, old, new, direction):
        were, are = old.get("properties", {}), new.get("properties", {})
        for name in were:
            if name in are:
                self._schema(f"{where} {name}", were[name], are[name], direction)
            else:
                self._say(f"{where} {name}", "is gone")
        always, now_always = set(old.get("required", ())), set(new.get("required", ()))
        if direction == SENT:
            self.found += [f"{where} {name}: is required now" for name in sorted(now_always - always)]
        else:
            self.found += [f"{where} {name}: can be absent now" for name in sorted((always - now_always) & are.keys())]


def without_null(schema):
    """The schema without null, and whether it allows null, if that is written as one side of a oneOf."""
    sides = [side for side in schema.get("oneOf", ()) if side != {"type": "null"}]
    return (sides[0], True) if len(sides) == 1 else (schema, False)


def types(schema):
    """An empty set: of any type."""
    found = schema.get("type", [])
    found = {found} if isinstance(found, str) else set(found)
    return found | ({"integer"} if "number" in found else set())


def narrowed(old, new, direction=SENT):
    """The differences that make `new` narrower than `old`. For replies the caller swaps the two."""
    if not types_fit(types(old), types(new)) or len(old.get("oneOf", ())) != len(new.get("oneOf", ())):
        yield "its type changed"
    if not takes_values(old, new):
        yield "has fewer values" if direction == SENT else "has more values"
    if new.get("format") not in (None, old.get("format")):
        yield "its format changed"
    if direction == GOT:  # how long, or how many, a client had better not count on
        return
    for keyword in UPPER:
        if new.get(keyword, float("inf")) < old.get(keyword, float("inf")):
            yield f"its {keyword} is lower"
    for keyword in LOWER:
        if new.get(keyword, float("-inf")) > old.get(keyword, float("-inf")):
            yield f"its {keyword} is higher"
    if new.get("pattern") not in (None, old.get("pattern")):
        yield "its pattern changed"
    if old.get("default") != new.get("default"):
        yield "its default changed"


def types_fit(old, new):
    return not new or (bool(old) and old <= new)


def takes_values(old, new):
    """Whether the new takes every value of the old."""
    were, are = (schema.get("enum", [schema["const"]] if "const" in schema else None) for schema in (old, new))
    return are is None or (were is not None and all(value in are for value in were))
