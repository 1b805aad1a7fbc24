# SPDX-License-Identifier: Apache-2.0
"""openapi/tidings.yaml in full: what follows from a method's name, its Request and its Ok is not written there.

Of each method, `/x.y` has summary, description and error codes; the schemas XYRequest and XYOk have an example each. Added are
the operation's id, tag, body and responses, the components XYBody, XYAnswer and XYReply, and the older names (`x-same-as`)."""
import re

OLDER = ("groups", "im", "mpim")
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
WRITTEN = ("summary", "description", "security", "x-error-codes")
RESPONSES = {"429": "TooManyRequests", "4XX": "ClientError", "5XX": "ServerError"}


def expand(tree):
    """The document in full. One that is, such as that of an old release, stays as it is."""
    parts = tree["components"]
    if "requestBodies" in parts:
        return tree
    paths = {path: _path(path, item, tree["paths"]) for path, item in tree["paths"].items()}
    bodies, answers, schemas = {}, {}, {}
    for name, schema in parts["schemas"].items():
        schemas[name] = {key: value for key, value in schema.items() if key not in ("example", "x-error", "x-required")}
        if "example" in schema and name.endswith("Request"):
            bodies[f"{name.removesuffix('Request')}Body"] = _body(name, schema, parts["schemas"])
        elif "x-error" in schema:
            method = name.removesuffix("Ok")
            answers[f"{method}Answer"] = _answer(method, schema)
            schemas[f"{method}Reply"] = _reply(name, schema)
    return dict(tree, paths=paths, components=_in_place(parts, bodies, answers, schemas))


def _in_place(parts, bodies, answers, schemas):
    found = {}
    for kind, members in parts.items():
        if kind == "responses":
            found |= {"requestBodies": bodies, "responses": {**members, **answers}}
        else:
            found[kind] = schemas if kind == "schemas" else members
    return found


def _path(path, item, paths):
    method = path.removeprefix("/")
    if "x-same-as" in item:
        return {"post": _operation(method, _alias(method, item, paths))}
    return {"post": _operation(method, item["post"])} if "post" in item else item


def _alias(method, item, paths):
    """What the method says under its own name, and the alias itself in place of that."""
    name = item["x-same-as"]
    own = paths[f"/{name}"]["post"]
    described = own["description"]
    if not method.startswith(OLDER):
        described = " ".join([described] * (described != own["summary"]) + [f"Same as `{name}`."])
    return {"x-request": _component(name), "x-reply": _component(name), **own, "description": described, **item}


def _operation(method, written):
    family, *words = method.split(".")
    body, answer = written.get("x-request", _component(method)), written.get("x-reply", _component(method))
    return {
        "operationId": family + "".join(map(_capital, words)),
        "tags": [family],
        **({"deprecated": True} if family in OLDER else {}),
        **{key: written[key] for key in WRITTEN if key in written},
        "requestBody": _reference("requestBodies", f"{body}Body"),
        "responses": {status: _reference("responses", name) for status, name in {"200": f"{answer}Answer", **RESPONSES}.items()},
    }


def _body(name, schema, schemas):
    reference = _reference("schemas", name)
    encoding = _encoding(schema, schemas)
    return {
        "description": re.match(r"[^`]*`[^`]*`\.", schema["description"])[0],
        "required": bool(schema.get("required")) or schema.get("x-required", False),
        "content": {JSON: {"schema": reference, "example": schema["example"]},
                    FORM: {"schema": reference, **({"encoding": encoding} if encoding else {})}},
    }


def _encoding(schema, schemas):
    """What is no text in forms: lists of words use commas, all other values JSON. By default a name is repeated, and the last one counts."""
    found = {}
    for name, member in schema.get("properties", {}).items():
        member = _resolve(member, schemas)
        if member.get("type") == "array" and _resolve(member["items"], schemas)["type"] == "string":
            found[name] = {"style": "form", "explode": False}
        elif member.get("type") in ("array", "object"):
            found[name] = {"contentType": JSON}
    return found


def _answer(method, schema):
    examples = {"ok": {"value": schema["example"]}, "error": {"value": {"ok": False, "error": schema["x-error"]}}}
    return {
        "description": "Success, or an error in the body (see `ok`).",
        "headers": {"X-Request-Id": _reference("headers", "XRequestId")},
        "content": {JSON: {"schema": _reference("schemas", f"{method}Reply"), "examples": examples}},
    }


def _reply(name, schema):
    return {"description": schema["description"].replace("Result of", "Reply of", 1),
            "oneOf": [_reference("schemas", name), _reference("schemas", "ErrorReply")]}


def _reference(kind, name):
    return {"$ref": f"#/components/{kind}/{name}"}


def _resolve(member, schemas):
    while "$ref" in member:
        member = schemas[member["$ref"].rpartition("/")[2]]
    return member


def _component(method):
    return "".join(map(_capital, method.split(".")))


def _capital(word):
    return word[0].upper() + word[1:]
