# SPDX-License-Identifier: Apache-2.0
"""openapi/tidings.yaml as the contract check uses it."""

import copy

from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from tools import openapi

URI = "urn:tidings"


class Document:
    """The document, its operations by method name, and validators of its schemas."""

    def __init__(self):
        self.tree = openapi.read()
        self._open = _registry(self.tree)
        self._strict = _registry(_closed(self.tree))

    @property
    def methods(self):
        return [path.removeprefix("/") for path, item in self.tree["paths"].items() if "post" in item]

    def operation(self, method):
        return self.tree["paths"][f"/{method}"]["post"]

    def resolve(self, node):
        """`node`, or what its $ref points to."""
        while "$ref" in node:
            target = self.tree
            for name in node["$ref"].removeprefix("#/").split("/"):
                target = target[name]
            node = target
        return node

    def response(self, method, status):
        """The response object for an HTTP status: its own, or that of its class."""
        responses = self.operation(method)["responses"]
        return self.resolve(responses.get(str(status)) or responses[f"{status // 100}XX"])

    def request_body(self, method):
        return self.resolve(self.operation(method)["requestBody"])

    def errors(self, schema, value, strict=False):
        """The violations of `schema` (a $ref or inline) in `value`. `strict`: also members that the schema does not name."""
        registry = self._strict if strict else self._open
        name = self._choice(schema, value)["$ref"].rpartition("/")[2]
        validator = Draft202012Validator({"$ref": f"{URI}#/components/schemas/{name}"}, registry=registry)
        return [_where(error) for error in validator.iter_errors(value)]

    def _choice(self, schema, value):
        """The one of a reply's two schemas that its `ok` selects, so that errors refer to that one."""
        choices = self.resolve(schema).get("oneOf")
        if not choices or not isinstance(value, dict):
            return schema
        return choices[0] if value.get("ok") is True else choices[1]


def _registry(tree):
    return Registry().with_resource(URI, Resource(contents=tree, specification=DRAFT202012))


def _where(error):
    """The innermost error of a oneOf, as text."""
    while error.context:
        error = min(error.context, key=lambda inner: (-len(inner.absolute_path), len(inner.message)))
    return f"{'/'.join(map(str, error.absolute_path)) or '.'}: {error.message[:300]}"


# Objects whose members are the caller's or Slack's, not ours.
FREE = ("Attachment", "Block")


def _closed(tree):
    """A copy in which every object with named members may have no others."""
    tree = copy.deepcopy(tree)
    for name, schema in tree["components"]["schemas"].items():
        if schema.get("properties") and name not in FREE and not name.endswith("Request"):
            schema["additionalProperties"] = False
    return tree


def walk(node, path=""):
    """Every object of the tree with its path."""
    if isinstance(node, dict):
        yield path, node
        for name, value in node.items():
            yield from walk(value, f"{path}/{name}")
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from walk(value, f"{path}/{i}")


def members_seen(document, schema, value, found, name=None):
    """Adds (schema name, member) to `found` for each member of `value` that a named schema describes."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        schema = document.resolve(schema)
    if "oneOf" in schema:
        refused = value is None or (isinstance(value, dict) and value.get("ok") is False)
        members_seen(document, schema["oneOf"][1 if refused else 0], value, found)
    elif isinstance(value, dict):
        for member in schema.get("properties", {}).keys() & value.keys():
            found.add((name, member))
            members_seen(document, schema["properties"][member], value[member], found)
        if isinstance(schema.get("additionalProperties"), dict):
            for member in value.keys() - schema.get("properties", {}).keys():
                members_seen(document, schema["additionalProperties"], value[member], found)
    elif isinstance(value, list) and "items" in schema:
        for item in value:
            members_seen(document, schema["items"], item, found)
