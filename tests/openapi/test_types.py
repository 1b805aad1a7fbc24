# SPDX-License-Identifier: Apache-2.0
"""Types for TypeScript, by openapi-typescript, and clients that use them or those of Hey API; both with their defaults."""

import shutil

import pytest

from tests.openapi.conftest import DOCUMENTS, HERE
from tools import node

STRICT = ["--strict", "--noEmit", "--noUnusedLocals", "--target", "es2022", "--module", "nodenext", "--skipLibCheck", "false"]


def test_a_reply_narrows_on_ok(npm, tmp_path):
    # The flag: an argument with a default may be left out.
    npm("openapi-typescript", DOCUMENTS["3.1"], "--default-non-nullable=false", "--output", tmp_path / "tidings.ts")
    shutil.copy(HERE / "narrowing.ts", tmp_path)
    (tmp_path / "package.json").write_text("{}", encoding="ascii")
    npm("tsc", *STRICT, "narrowing.ts", cwd=tmp_path)


@pytest.fixture
def place(npm, tmp_path):
    """A directory whose programs find the packages, and what compiles a program of clients/ there."""
    packages = node.packages(HERE)
    (tmp_path / "node_modules").symlink_to(packages)

    def compile_client(name):
        shutil.copy(HERE / "clients" / f"{name}.ts", tmp_path)
        npm("tsc", "--strict", "--target", "es2022", "--lib", "es2022,dom,dom.iterable", "--module", "commonjs",
            f"{name}.ts", cwd=tmp_path)
        return [node.node(), tmp_path / f"{name}.js"]

    return compile_client


@pytest.mark.long
def test_openapi_fetch(npm, place, served, converse, tmp_path):
    npm("openapi-typescript", served, "--output", tmp_path / "tidings.ts")
    converse(place("openapi_fetch"), "openapi-fetch")


@pytest.mark.long
def test_hey_api(npm, place, environment, converse, tmp_path):
    (tmp_path / "openapi.json").write_bytes(environment.client().page("/openapi.json").content)
    npm("openapi-ts", "-i", "openapi.json", "-o", "tidings", cwd=tmp_path)
    converse(place("hey_api"), "Hey API")
