# SPDX-License-Identifier: Apache-2.0
"""Findings of ./dev lint for copies of the version, and for incomplete releases."""

import pytest

from tools import migrations, openapi, release
from tools.project import ROOT

VERSION = release.version()
HEADING = f"## {VERSION} (unreleased)"


def test_the_tree_as_it_is():
    assert release.check(ROOT) == []


@pytest.mark.parametrize("name, old", [
    ("openapi/tidings.yaml", f"version: '{VERSION}'"), ("compose.yaml", f"image: tidings:{VERSION}"),
    ("Dockerfile", f'image.version="{VERSION}"'),
])
def test_a_file_with_another_version_is_named_and_fmt_mends_it(tree, name, old):
    tree.replace(name, old, old.replace(VERSION, "0.0.9"))
    (problem,) = release.check(tree.root)
    assert problem == f"{name}: its version is 0.0.9, but VERSION says {VERSION}: ./dev fmt"
    release.stamp(tree.root)
    assert release.check(tree.root) == [] and tree.read(name) == (ROOT / name).read_text(encoding="utf-8")


def test_a_file_without_a_version(tree):
    tree.replace("Dockerfile", "LABEL", "ENV")
    assert [problem for problem in release.check(tree.root) if problem.startswith("Dockerfile: its version is none")]


def rename(tree, release):
    """Gives a setting an old name since a release."""
    tree.replace("include/app/settings.h", "define SETTINGS_RENAMED(RENAMED)",
                 f'define SETTINGS_RENAMED(RENAMED) \\\n    RENAMED(HEAR, LISTEN, "{release}")')


def test_an_old_name_of_a_setting_goes_with_the_next_release(tree):
    rename(tree, "0.0.9")
    assert ("include/app/settings.h: TIDINGS_HEAR was renamed to TIDINGS_LISTEN in 0.0.9 and kept for that release only: remove it"
            in release.check(tree.root))


def test_an_old_name_of_a_setting_is_kept_for_a_release(tree):
    rename(tree, VERSION.rpartition(".")[0] + ".9")
    assert release.check(tree.root) == []


def test_a_new_version_is_said_by_every_file_that_has_it(tree):
    tree.write("VERSION", "99.0.0\n")
    assert {problem.partition(":")[0] for problem in release.check(tree.root)} >= {*release.PLACES, "CHANGELOG.md"}
    release.stamp(tree.root)
    assert {problem.partition(":")[0] for problem in release.check(tree.root)} <= {"CHANGELOG.md", "include/app/settings.h"}
    assert openapi.read(tree.root / "openapi" / "tidings.yaml")["info"]["version"] == "99.0.0"


@pytest.mark.parametrize("text", ["0.2\n", "v0.2.0\n", "0.2.0", "0.2.0\n\n", "\n"])
def test_what_is_no_version(tree, text):
    tree.write("VERSION", text)
    assert release.check(tree.root) == ["VERSION: must be a line such as 1.2.3"]


@pytest.mark.parametrize("old, new, said", [
    (HEADING, f"## {VERSION}", "must be like"), (HEADING, f"## {VERSION} (soon)", "must be like"),
    (HEADING, "## 99.0.0 (unreleased)", f"VERSION says {VERSION}"),
    ("## 0.1.0 (2026-11-23)", "## 0.1.0 (unreleased)", "only the newest"), ("## 0.1.0 (", "## 99.0.0 (", "descending order"),
])
def test_headings_of_the_changelog(tree, old, new, said):
    tree.replace("CHANGELOG.md", old, new)
    (problem,) = release.check(tree.root)
    assert problem.startswith("CHANGELOG.md: ") and said in problem


def test_a_document_of_another_release(tree):
    name = f"openapi/released/{release.released(tree.root)[-1].name}"
    of = name.removeprefix("openapi/released/").removesuffix(".yaml")
    tree.replace(name, f"version: '{of}'", "version: '0.0.9'")
    assert release.check(tree.root) == [f"{name}: does not have version {of}"]


def test_a_date_needs_frozen_migrations_and_a_copy_of_the_document(tree):
    tree.replace("CHANGELOG.md", HEADING, f"## {VERSION} (2027-01-31)")
    tree.write("migrations/999_more.sql", "-- …\n")
    (tree.root / "openapi" / "released" / f"{VERSION}.yaml").unlink(missing_ok=True)
    said = " ".join(release.check(tree.root))
    assert f"migrations/999_more.sql: {VERSION} has a date" in said and f"openapi/released/{VERSION}.yaml: {VERSION} has a date" in said
    migrations.freeze(tree.root)
    tree.write(f"openapi/released/{VERSION}.yaml", tree.read("openapi/tidings.yaml"))
    assert release.check(tree.root) == []
