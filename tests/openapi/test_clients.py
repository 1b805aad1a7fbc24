# SPDX-License-Identifier: Apache-2.0
"""Clients that openapi-generator makes: they compile, post, read and are refused."""

import json
import shutil
import sys

import pytest

from tests.openapi.conftest import DOCUMENTS, HERE, JARS, run
from tools import node

PROGRAMS = HERE / "clients"
GENERATORS = {
    "python": {},
    "java": {"library": "native", "hideGenerationTimestamp": "true"},
    "typescript-fetch": {},
}


@pytest.fixture(scope="session")
def clients(generator, tmp_path_factory):
    """A directory with the client of each generator, under its name."""
    there = tmp_path_factory.mktemp("clients")
    for name, properties in GENERATORS.items():
        config = {"generatorName": name, "inputSpec": str(DOCUMENTS["3.0"]), "outputDir": str(there / name / "client"),
                  "globalProperties": {"apiDocs": "false", "apiTests": "false", "modelDocs": "false",
                                       "modelTests": "false"},
                  "additionalProperties": properties}
        (there / f"{name}.json").write_text(json.dumps(config), encoding="utf-8")
    run([*generator, "batch", "--fail-fast", "--threads", "2", *(there / f"{name}.json" for name in GENERATORS)], cwd=there)
    return there


def test_python(clients, converse):
    converse([sys.executable, PROGRAMS / "hello.py"], "pydantic", PYTHONPATH=str(clients / "python" / "client"))


def test_java(clients, converse, tmp_path):
    libraries = [str(jar) for jar in JARS.glob("*.jar") if not jar.name.startswith("openapi-generator")]
    sources = sorted((clients / "java" / "client" / "src" / "main" / "java").rglob("*.java"))
    run(["javac", "-nowarn", "-d", tmp_path, "-cp", ":".join(libraries), *sources, PROGRAMS / "Hello.java"])
    converse(["java", "-cp", ":".join([*libraries, str(tmp_path)]), "Hello"], "Java")


def test_typescript(clients, converse, npm):
    directory = clients / "typescript-fetch"
    shutil.copy(PROGRAMS / "hello.ts", directory)
    npm("tsc", "--strict", "--target", "es2022", "--lib", "es2022,dom", "--module", "commonjs", "hello.ts",
        cwd=directory)
    converse([node.node(), directory / "hello.js"], "TypeScript")


@pytest.mark.long
@pytest.mark.parametrize("language", ["csharp", "dart", "go", "kotlin", "php", "swift6"])
def test_generated_without_a_warning(generator, language, served, tmp_path):
    """Which there is for each name that is a word of the language and so gets another."""
    said = run([*generator, "generate", "-g", language, "-i", served, "-o", tmp_path / "client"])
    assert [line for line in said.splitlines() if "WARN" in line or "ERROR" in line] == []
    schemas = json.loads(served.read_text(encoding="utf-8"))["components"]["schemas"]
    names = [name for name, schema in schemas.items() if "properties" in schema]  # the others are no classes
    files = {"".join(letter for letter in path.stem.lower() if letter.isalnum()) for path in (tmp_path / "client").rglob("*")}
    assert {name for name in names if not any(file.endswith(name.lower()) for file in files)} == set()
