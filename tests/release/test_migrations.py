# SPDX-License-Identifier: Apache-2.0
"""Findings of ./dev lint in migrations: changed released ones, headers, numbers, locks."""

import pytest

from tools import migrations, release
from tools.project import ROOT

VERSION = release.version()
FIRST = "migrations/001_tables.sql"
NEW = "migrations/990_new.sql"


def script(body="", *, before="yes", more="", version=VERSION):
    return (f"-- SPDX-License-Identifier: Apache-2.0\n-- release: {version}\n-- before: {before}\n-- locks: short\n"
            f"-- takes: milliseconds\n{more}{body}")


def said(tree):
    return migrations.check(tree.root)


def test_the_tree_as_it_is():
    assert migrations.check(ROOT) == []


def test_a_released_migration_is_frozen(tree):
    tree.replace(FIRST, "CREATE TABLE", "CREATE  TABLE")
    (problem,) = said(tree)
    assert problem.startswith(f"{FIRST}: changed: a released migration is frozen") and "put the change into a new one" in problem


def test_a_released_migration_stays(tree):
    (tree.root / FIRST).unlink()
    (problem,) = said(tree)
    assert problem.startswith(f"{FIRST}: missing: a released migration is frozen")


def test_the_list_of_released_ones_stays(tree):
    tree.write("migrations/SHA256SUMS", "")
    assert "migrations/SHA256SUMS: lists no released migration" in said(tree)


def test_freezing_adds_and_changes_nothing(tree):
    tree.write(NEW, script("CREATE TABLE a (b int);\n"))
    tree.replace(FIRST, "CREATE TABLE", "CREATE  TABLE")
    migrations.freeze(tree.root)
    (problem,) = said(tree)
    assert problem.startswith(f"{FIRST}: changed") and migrations.unfrozen(tree.root) == []
    tree.write(NEW, script())
    assert [problem for problem in said(tree) if problem.startswith(f"{NEW}: changed")]


@pytest.mark.parametrize("text", [
    "CREATE TABLE a (b int);\n",
    script().replace("SPDX", "X"),
    *(script().replace(f"-- {key}:", f"-- {key} ") for key in ("release", "before", "locks", "takes")),
    script(before="perhaps"), script().replace("short", "messages"), script().replace("milliseconds", ""), script(version="0.2"),
    script().replace("-- release", "\n-- release"),
])
def test_a_header_is_whole(tree, text):
    tree.write(NEW, text)
    assert [problem for problem in said(tree) if problem.startswith(f"{NEW}: incomplete header: the SPDX line must be followed by")]


@pytest.mark.parametrize("name, problem", [
    ("14_short.sql", "must be named like"), ("0140_long.sql", "must be named like"), ("014-dash.sql", "must be named like"),
    ("001_tables_more.sql", "number 001 is already used"), ("013_functions.sql", "use 014 or above"),
])
def test_names_and_numbers(tree, name, problem):
    tree.write(f"migrations/{name}", script())
    assert [found for found in said(tree) if f"migrations/{name}: " in found and problem in found]


def test_a_number_below_that_of_a_later_release(tree):
    tree.write("migrations/991_later.sql", script(version="0.1.0"))
    tree.write(NEW, script())
    assert [found for found in said(tree) if "991_later.sql: names release 0.1.0, but a lower number" in found]


def test_a_migration_that_nobody_froze(tree):
    tree.write("VERSION", "99.0.0\n")
    tree.write(NEW, script())
    assert [found for found in said(tree) if found.startswith(f"{NEW}: names release {VERSION}, which is neither")]


CARELESS = [
    "CREATE INDEX a ON messages (ts);", "CREATE UNIQUE INDEX a ON messages (ts);", "create index a\n    on messages (ts);",
    "ALTER TABLE users ADD CONSTRAINT a CHECK (name <> '');", "ALTER TABLE users ALTER COLUMN email SET NOT NULL;",
    "ALTER TABLE users ALTER COLUMN email TYPE varchar;", "ALTER TABLE users ALTER email SET DATA TYPE varchar;",
    "ALTER TABLE users DROP COLUMN email;", "DROP TABLE tickets;", "ALTER TABLE users RENAME COLUMN email TO mail;",
    "ALTER TABLE users RENAME TO people;", "CREATE TABLE a (b int);\nCREATE INDEX c ON users (name);",
    "DO $$ BEGIN\n    DROP TABLE tickets;\nEND $$;",
]


@pytest.mark.parametrize("body", CARELESS)
def test_what_locks_for_long_or_breaks_the_release_before(tree, body):
    tree.write(NEW, script(body + "\n"))
    (problem,) = said(tree)
    assert problem.startswith(f"{NEW}: ") and "-- contract: why the previous release" in problem
    tree.write(NEW, script(body + "\n", more="-- contract: nothing has read it since 0.1.0\n"))
    assert said(tree) == []


@pytest.mark.parametrize("body", [
    "CREATE INDEX CONCURRENTLY a ON users (name);", "CREATE INDEX a ON ONLY messages (ts);",
    "ALTER TABLE users ADD CONSTRAINT a CHECK (name <> '') NOT VALID;\nALTER TABLE users VALIDATE CONSTRAINT a;",
    "ALTER TABLE users ADD CONSTRAINT a UNIQUE USING INDEX b;", "ALTER TABLE users ADD COLUMN a int NOT NULL DEFAULT 0;",
    "CREATE TABLE a (b int);\nCREATE INDEX c ON a (b);\nALTER TABLE a ADD CONSTRAINT d CHECK (b > 0);",
    "-- DROP TABLE users;\nSELECT 1;",
])
def test_what_is_done_with_care(tree, body):
    tree.write(NEW, script(body + "\n", more="-- transaction: no\n"))
    assert said(tree) == []
