# SPDX-License-Identifier: Apache-2.0
"""openapi/tidings.yaml as it is served: in OpenAPI 3.1, and in 3.0.3 for tools that do not know 3.1.

    python3 -m tools.openapi DIRECTORY    # writes openapi.json and openapi-3.0.json there, for the build

Both have the same components. Arguments are JSON only: with forms in addition, some generators produce code that does not run.

The 3.0.3 document is limited to what all generators understand. A reply is one object with all its possible members instead of
a choice of two ("oneOf"): generated classes are then plain ones with a member `ok`. Defaults are in words: some generators make
an argument with a default required, others send it with each call."""
import json
import sys
from pathlib import Path

import yaml

from tools.openapi_expand import FORM, expand

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "openapi" / "tidings.yaml"
DOWN = ROOT / "openapi" / "tidings-3.0.json"  # kept for who reads the repository; the build makes its own
NAMING = ("properties", "schemas", "headers", "responses")  # their members have names of ours, which are no keywords
AS_THEY_ARE = ("example", "examples", "default", "enum")
LICENSES = {"Apache-2.0": "https://www.apache.org/licenses/LICENSE-2.0"}


def read(path=SOURCE):
    """The document in full, with what its text leaves out."""
    with open(path, encoding="utf-8") as file:
        return expand(yaml.load(file, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


def to_json(tree):
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":")) + "\n"


def up(tree):
    """The document as it is served in OpenAPI 3.1."""
    return _for_programs(tree, _choice)


def down(tree):
    """The document in OpenAPI 3.0.3."""
    tree = _for_programs(tree, _flat)
    schemas = tree["components"]["schemas"]
    finite = {name: _finite(schema, schemas) for name, schema in schemas.items()}
    tree = dict(tree, openapi="3.0.3", info=_info(tree["info"]), components=dict(tree["components"], schemas=finite))
    return _walk(tree, finite)


def _for_programs(tree, reply):
    """With bodies in JSON only, and each reply as one component, made by `reply`."""
    schemas = tree["components"]["schemas"]
    made = {name: reply(name, schema, schemas) if _is_reply(schema) else schema for name, schema in schemas.items()}
    inside = {_name(schema["oneOf"][0]) for schema in schemas.values() if _is_reply(schema)}
    made = {name: schema for name, schema in made.items() if name not in inside}
    bodies = {name: _without_form(body) for name, body in tree["components"]["requestBodies"].items()}
    return dict(tree, components=dict(tree["components"], schemas=made, requestBodies=bodies))


def _without_form(body):
    return dict(body, content={kind: media for kind, media in body["content"].items() if kind != FORM})


def _info(info):
    info = {name: value for name, value in info.items() if name != "summary"}
    licence = info["license"]["identifier"]
    return dict(info, license={"name": licence, "url": LICENSES[licence]})


def _name(reference):
    return reference["$ref"].rpartition("/")[2]


def _is_reply(schema):
    return len(schema.get("oneOf", ())) == 2 and schema["oneOf"][1] == {"$ref": "#/components/schemas/ErrorReply"}


def _choice(name, schema, schemas):
    """A reply as one of two shapes. A success has no name but the reply's: generated classes are named like those of 3.0."""
    done, failed = schema["oneOf"]
    return dict(schema, oneOf=[{"title": name, **schemas[_name(done)]}, failed])


def _flat(_, schema, schemas):
    """A reply as one object. Members that both sides have mean the same in both, except `ok`."""
    done, failed = (schemas[_name(side)] for side in schema["oneOf"])
    properties = {**failed["properties"], **done["properties"]}
    properties["ok"] = {"type": "boolean", "description": "False: it failed, and `error` says why."}
    return {"type": "object", "description": schema["description"], "required": ["ok"],
            "properties": {"ok": properties.pop("ok"), **properties}}


def _finite(schema, schemas):
    """A member whose type has a member of the same type need not be there: generators for Go cannot nest it in place."""
    nested = [name for name, member in schema.get("properties", {}).items() if "$ref" in member and _is_nested(member, schemas)]
    required = [name for name in schema.get("required", ()) if name not in nested]
    return dict(schema, required=required) if required else schema


def _is_nested(reference, schemas):
    return reference in schemas[_name(reference)].get("properties", {}).values()


def _walk(node, schemas, named=False):
    """A copy in the words of 3.0. `named`: the members of this object are not keywords."""
    if isinstance(node, list):
        return [_walk(item, schemas) for item in node]
    if not isinstance(node, dict):
        return node
    node = node if named else _keywords(node, schemas)
    return {name: value if not named and name in AS_THEY_ARE else _walk(value, schemas, not named and name in NAMING)
            for name, value in node.items()}


def _keywords(node, schemas):
    node = dict(node)
    if "default" in node:
        node["description"] += f" Default: `{json.dumps(node.pop('default'))}`."
    if "const" in node:
        node["enum"] = [node.pop("const")]
    if "examples" in node:
        node["example"] = _first(node.pop("examples"))
    if {"type": "null"} in node.get("oneOf", ()):
        other = node.pop("oneOf")[0]
        schema = schemas[_name(other)]
        node |= {"type": "object", "allOf": [other]} if schema["type"] == "object" else _keywords(schema, schemas)
        node["nullable"] = True
    return node


def _first(examples):
    """The first example: a schema's examples are a list; those of a media type have names, which openapi-generator warns about."""
    return examples[0] if isinstance(examples, list) else next(iter(examples.values()))["value"]


def down_text():
    """The required content of openapi/tidings-3.0.json."""
    return json.dumps(down(read()), ensure_ascii=False, indent=1) + "\n"


def is_stale():
    return not DOWN.exists() or DOWN.read_text(encoding="utf-8") != down_text()


def refresh():
    DOWN.write_text(down_text(), encoding="utf-8")


def main(directory):
    tree = read()
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "openapi.json").write_text(to_json(up(tree)), encoding="utf-8")
    (directory / "openapi-3.0.json").write_text(to_json(down(tree)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
