# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document by itself: valid, in the subset that generators understand, with examples that hold."""

import re

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.support.environment import ROOT
from tests.support.openapi import Document, walk

TABLE = ROOT / "include" / "base" / "error.h"
METHODS = Document().methods
each_method = pytest.mark.parametrize("method", METHODS)


def test_it_is_a_valid_openapi_document(document):
    errors = [error.message for error in OpenAPIV31SpecValidator(document.tree).iter_errors()]
    assert errors == []


def test_operation_ids_are_unique_in_any_case(document):
    ids = [document.operation(method)["operationId"].lower() for method in METHODS]
    assert len(ids) == len(set(ids))


@each_method
def test_operation_id_and_tag_follow_the_path(document, method):
    family, *words = method.split(".")
    operation = document.operation(method)
    assert operation["operationId"] == family + "".join(word[0].upper() + word[1:] for word in words)
    assert operation["tags"] == [family] and operation["summary"] and operation["description"]


@each_method
def test_responses_are_declared(document, method):
    assert set(document.operation(method)["responses"]) == {"200", "429", "4XX", "5XX"}
    assert "Retry-After" in document.response(method, 429)["headers"]
    schema = document.response(method, 200)["content"]["application/json"]["schema"]
    assert re.fullmatch(r"#/components/schemas/[A-Z][A-Za-z]+Reply", schema["$ref"])
    first, second = document.resolve(schema)["oneOf"]
    assert first["$ref"].endswith("Ok") and second["$ref"].endswith("/ErrorReply")


@each_method
def test_json_comes_first_and_a_form_second(document, method):
    content = document.request_body(method)["content"]
    assert list(content) == ["application/json", "application/x-www-form-urlencoded"]
    assert all(re.fullmatch(r"#/components/schemas/[A-Z][A-Za-z]+Request", media["schema"]["$ref"])
               for media in content.values())


@each_method
def test_what_is_no_text_has_an_encoding_in_forms(document, method):
    """Lists of words use commas, all other values JSON. By default a name is repeated, and only the last value would count."""
    form = document.request_body(method)["content"]["application/x-www-form-urlencoded"]
    wanted = {}
    for name, schema in document.resolve(form["schema"]).get("properties", {}).items():
        schema = document.resolve(schema)
        if schema.get("type") == "array" and document.resolve(schema["items"])["type"] == "string":
            wanted[name] = {"style": "form", "explode": False}
        elif schema.get("type") in ("array", "object"):
            wanted[name] = {"contentType": "application/json"}
    assert form.get("encoding", {}) == wanted


@each_method
def test_examples_hold(document, method):
    media = document.request_body(method)["content"]["application/json"]
    assert document.errors(media["schema"], media["example"]) == []
    for status in (200, 429, 400, 500):
        for media in document.response(method, status)["content"].values():
            for name, example in media["examples"].items():
                assert document.errors(media["schema"], example["value"], strict=True) == [], name
                assert example["value"]["ok"] is (name == "ok")


def test_the_documented_codes_are_those_of_the_server(document):
    """Documenting a code that the server never returns would mislead client authors."""
    codes = {code for _, code in re.findall(r'X\([A-Z_]+, (\d+), "([a-z_]+)"\)', TABLE.read_text(encoding="utf-8"))}
    listed = {code for method in METHODS for code in document.operation(method).get("x-error-codes", [])}
    common = set(document.tree["info"]["x-common-error-codes"])
    assert (listed | common) - codes == set() and codes - listed - common == {"method_not_allowed"}


def test_only_what_generators_understand(document):
    """No type lists, no discriminator, no siblings of $ref, items with every array, const with a type."""
    for path, node in walk(document.tree):
        assert not isinstance(node.get("type"), list), path
        assert "discriminator" not in node, path
        assert "$ref" not in node or len(node) == 1, path
        assert node.get("type") != "array" or "items" in node, path
        assert "const" not in node or "type" in node, path
        assert node.get("additionalProperties", True) is not False, path
        for keyword in ("prefixItems", "if", "unevaluatedProperties", "patternProperties", "allOf", "not"):
            assert keyword not in node or path.endswith("/properties"), path


def test_names_of_components_are_unique(document):
    """Over all kinds, and in any case: a generator may make a type of each."""
    names = [name.lower() for components in document.tree["components"].values() for name in components]
    assert sorted(names) == sorted(set(names))


@each_method
def test_components_are_named_after_their_method(document, method):
    """Nor may their names be ones that a generator derives itself, such as oapi-codegen's …Response."""
    operation = document.operation(method)
    body, answer = (node["$ref"].rpartition("/")[2] for node in (operation["requestBody"], operation["responses"]["200"]))
    request = document.request_body(method)["content"]["application/json"]["schema"]["$ref"]
    reply = document.response(method, 200)["content"]["application/json"]["schema"]["$ref"]
    assert body.endswith("Body") and request.endswith(f"/{body.removesuffix('Body')}Request")
    assert answer.endswith("Answer") and reply.endswith(f"/{answer.removesuffix('Answer')}Reply")
    assert not any(name.endswith("Response") for components in document.tree["components"].values() for name in components)


def test_every_component_is_used(document):
    used = {node["$ref"] for _, node in walk(document.tree) if "$ref" in node}
    for kind in ("schemas", "responses", "requestBodies", "headers"):
        for name in document.tree["components"][kind]:
            assert f"#/components/{kind}/{name}" in used, f"{kind}/{name}"


def test_servers_tags_and_license(document):
    assert document.tree["servers"][0]["url"] == "/api"
    assert document.tree["info"]["license"]["identifier"] == "Apache-2.0"
    tags = {tag["name"] for tag in document.tree["tags"] if tag["description"]}
    assert tags == {method.split(".")[0] for method in METHODS} | {"events"}


def test_a_channel_is_joined_by_id_or_by_name(document):
    for method, good in (("channels.join", [{"channel": "C0000000001"}, {"name": "#general"}]), ("conversations.join", [{"channel": "C0000000001"}])):
        media = document.request_body(method)["content"]["application/json"]
        assert [document.errors(media["schema"], request) for request in good] == [[]] * len(good)
    assert document.errors(media["schema"], {"name": "general"}) != []


def test_what_is_not_a_method(document):
    """Only the event stream, which is a GET."""
    others = [path for path, item in document.tree["paths"].items() if "post" not in item]
    assert others == ["/events"]
    operation = document.tree["paths"]["/events"]["get"]
    assert set(operation["responses"]) == {"200", "400", "401", "403", "503", "4XX", "5XX"}
    assert list(operation["responses"]["200"]["content"]) == ["text/event-stream"]


def test_aliases_have_the_same_shapes(document):
    for method in METHODS:
        if method.startswith("channels."):
            twin = document.operation(method.replace("channels.", "conversations."))
            if method != "channels.join":  # which alone takes a name
                assert twin["requestBody"] == document.operation(method)["requestBody"]
            assert twin["responses"] == document.operation(method)["responses"]


# Each needs one of several arguments, which a schema for generators cannot say.
ONE_OF_SEVERAL = {"channels.join", "channels.open", "users.info", "users.profile.set"}


@each_method
def test_a_body_is_required_where_an_argument_is(document, method):
    body = document.request_body(method)
    request = document.resolve(body["content"]["application/json"]["schema"])
    canonical = re.sub("^(conversations|groups|mpim|im)[.]", "channels.", method)
    assert body["required"] is (bool(request.get("required")) or canonical in ONE_OF_SEVERAL)
