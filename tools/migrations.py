# SPDX-License-Identifier: Apache-2.0
"""Checks migrations/: released ones are unchanged, each states its effects on a database in use, and none locks a table for
long, or breaks instances of the previous release, without stating so.

    python3 -m tools.migrations freeze    # lists all migrations in migrations/SHA256SUMS, as the last step of a release"""
import hashlib
import re
import sys

from tools.project import ROOT

NAME = re.compile(r"(\d{3})_[a-z0-9_]+\.sql")
HEADER = re.compile(r"""-- SPDX-License-Identifier: Apache-2\.0
-- release: (?P<release>\d+\.\d+\.\d+)
-- before: (?P<before>yes|no)
-- locks: (?P<locks>none|short)
-- takes: (?P<takes>\S.*)
(?:-- transaction: no\n)?(?:-- contract: (?P<contract>\S.*)\n)?""")
HEADER_HINT = ("the SPDX line must be followed by '-- release: 1.2.3', '-- before: yes' or 'no', '-- locks: none' or 'short', "
               "'-- takes: …', and if needed '-- transaction: no', '-- contract: …'")
SUM = re.compile(r"([0-9a-f]{64})  (\S+)")

# 0.1.0 had functions in 002 to 013, which are in sql/ now. Databases know these numbers.
FUNCTIONS_OF_0_1_0 = range(2, 14)

MADE_HERE = re.compile(r"\bCREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?(\w+)", re.IGNORECASE)
TABLE = re.compile(r"\b(?:ON(?: ONLY)?|ALTER TABLE(?: IF EXISTS)?(?: ONLY)?|DROP TABLE(?: IF EXISTS)?) (\w+)", re.IGNORECASE)
# What is not done to a table in use, and what is done instead.
CARELESS = {
    r"CREATE (UNIQUE )?INDEX (?!CONCURRENTLY\b)(?!.* ON ONLY )": "blocks writers until the index is built: use CONCURRENTLY",
    r"ADD CONSTRAINT (?!.*(\bNOT VALID\b|\bUSING INDEX\b))": "scans the table under a lock: use NOT VALID, then VALIDATE CONSTRAINT separately",
    r"SET NOT NULL\b": "scans the table under a lock: use a CHECK constraint, NOT VALID, then VALIDATE CONSTRAINT separately",
    r"ALTER (COLUMN )?\w+ (SET DATA )?TYPE\b": "rewrites the table under a lock: add a new column",
    r"DROP COLUMN\b": "breaks instances of the previous release: contract one release later",
    r"DROP TABLE\b": "breaks instances of the previous release: contract one release later",
    r"\bRENAME\b": "breaks instances of the previous release: add the new name and keep the old one",
}


def files(root):
    return sorted((root / "migrations").glob("*.sql"))


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sums(root):
    """Lines of migrations/SHA256SUMS: hashes by name."""
    path = root / "migrations" / "SHA256SUMS"
    lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
    return {found[2]: found[1] for found in map(SUM.fullmatch, lines) if found}


def unfrozen(root):
    return [path.name for path in files(root) if path.name not in sums(root)]


def check(root=ROOT):
    return check_sums(root) + check_order(root) + [problem for path in files(root) for problem in check_file(path, root)]


def check_sums(root):
    problems = [] if sums(root) else ["migrations/SHA256SUMS: lists no released migration"]
    for name, wanted in sums(root).items():
        path = root / "migrations" / name
        if not path.exists() or digest(path) != wanted:
            problems.append(f"migrations/{name}: {'changed' if path.exists() else 'missing'}: a released migration is frozen, "
                            "since databases have applied it; put the change into a new one")
    return problems


def check_order(root):
    """Numbers rise, also from one release to the next: databases apply the migrations above their own number."""
    problems, above, seen = [], (0,), set()
    for path in files(root):
        found, header = NAME.fullmatch(path.name), HEADER.match(path.read_text(encoding="utf-8"))
        number = int(found[1]) if found else None
        if number is None:
            problems.append(f"migrations/{path.name}: must be named like 014_what_it_brings.sql")
        elif number in seen:
            problems.append(f"migrations/{path.name}: number {number:03} is already used")
        elif number in FUNCTIONS_OF_0_1_0:
            problems.append(f"migrations/{path.name}: 002 to 013 are functions of 0.1.0 in existing databases: use 014 or above")
        seen.add(number)
        release = tuple(map(int, header["release"].split("."))) if header else above
        if release < above:
            problems.append(f"migrations/{path.name}: names release {header['release']}, but a lower number belongs to a later release")
        above = max(above, release)
    return problems


def check_file(path, root):
    text = path.read_text(encoding="utf-8")
    header = HEADER.match(text)
    if not header:
        return [f"migrations/{path.name}: incomplete header: {HEADER_HINT}"]
    problems = []
    if path.name not in sums(root) and header["release"] != (root / "VERSION").read_text(encoding="ascii").strip():
        problems.append(f"migrations/{path.name}: names release {header['release']}, which is neither the one in VERSION nor "
                        "released: migrations/SHA256SUMS does not list it")
    if not header["contract"] and not path.name.startswith("001_"):
        problems += [f"migrations/{path.name}: {problem}" for problem in careless(text)]
    return problems


def statements(text):
    """Statements without comments, each on one line. A body between $$ may be cut: its parts are looked at all the same."""
    bare = re.sub(r"--[^\n]*", "", text)
    return [" ".join(part.split()) for part in bare.split(";") if part.strip()]


def careless(text):
    """Statements that are refused for a database in use, unless the file itself has created the table, which is not in use yet."""
    made = {name.lower() for statement in statements(text) for name in MADE_HERE.findall(statement)}
    problems = []
    for statement in statements(text):
        table = TABLE.search(statement)
        if table and table[1].lower() in made:
            continue
        problems += [f"{statement[:60]} … {hint}; or, as the header's last line, '-- contract: why the previous release does not use it'"
                     for pattern, hint in CARELESS.items() if re.search(pattern, statement, re.IGNORECASE)]
    return problems


def freeze(root=ROOT):
    """Lists every migration. One that is listed keeps its hash: a release does not freeze a change to an older one."""
    listed = {**{path.name: digest(path) for path in files(root)}, **sums(root)}
    lines = [f"{listed[name]}  {name}\n" for name in sorted(listed)]
    (root / "migrations" / "SHA256SUMS").write_text("".join(lines), encoding="ascii")


if __name__ == "__main__":
    if sys.argv[1:] != ["freeze"]:
        sys.exit(__doc__)
    freeze()
