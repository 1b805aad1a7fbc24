# SPDX-License-Identifier: Apache-2.0
"""A client for Kotlin, by openapi-generator with its defaults: it is compiled, and calls a server."""

import pytest

from tests.openapi.conftest import HERE, ROOT, run
from tools import maven

JARS = ROOT / "build" / "kotlin-jars"
PROGRAM = HERE / "clients" / "kotlin"
COMPILER = "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler"


@pytest.mark.long
def test_kotlin(generator, served, converse, tmp_path):
    maven.fetch(PROGRAM / "pom.xml", JARS)
    run([*generator, "generate", "-g", "kotlin", "-i", served, "-o", tmp_path / "client"])
    libraries = ":".join(str(jar) for jar in JARS.glob("*.jar"))
    run(["java", "-Xmx1g", "-cp", libraries, COMPILER, "-no-stdlib", "-no-reflect", "-nowarn", "-cp", libraries, "-d", tmp_path / "classes",
         tmp_path / "client" / "src" / "main" / "kotlin", PROGRAM / "Hello.kt"])
    converse(["java", "-cp", f"{libraries}:{tmp_path / 'classes'}", "HelloKt"], "Kotlin")
