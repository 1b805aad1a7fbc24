# SPDX-License-Identifier: Apache-2.0
"""The version is in the file VERSION. CMake and tools/image.py read it there; files that contain a copy are written by ./dev fmt and
checked by ./dev lint, and so are the other requirements of a release (docs/releasing.md)."""
import re

from tools import migrations
from tools.project import ROOT

# Where else the version stands: in the group "version".
PLACES = {
    "openapi/tidings.yaml": re.compile(r"^info:\n(?:  .*\n)*?  version: '(?P<version>[^']*)'$", re.MULTILINE),
    "compose.yaml": re.compile(r"^  image: tidings:(?P<version>\S+)$", re.MULTILINE),
    "Dockerfile": re.compile(r'^LABEL org\.opencontainers\.image\.version="(?P<version>[^"]*)"$', re.MULTILINE),
}
SECTION = re.compile(r"^## (.*)$", re.MULTILINE)
RENAMED = re.compile(r'^    RENAMED\((\w+), (\w+), "(\d+\.\d+\.\d+)"\)', re.MULTILINE)
HEADING = re.compile(r"(\d+\.\d+\.\d+) \((unreleased|\d{4}-\d\d-\d\d)\)")


def version(root=ROOT):
    return (root / "VERSION").read_text(encoding="ascii").strip()


def number(text):
    """A version as something that sorts."""
    return tuple(int(part) for part in text.split("."))


def sections(root=ROOT):
    """Headings of the changelog, newest first, each with the text below it."""
    parts = SECTION.split((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    return list(zip(parts[1::2], parts[2::2], strict=True))


def released(root=ROOT):
    """The API's documents of releases, the newest last."""
    return sorted((root / "openapi" / "released").glob("*.yaml"), key=lambda path: number(path.stem))


def stamp(root=ROOT):
    """Writes the version to each of PLACES."""
    for name, pattern in PLACES.items():
        path = root / name
        text = path.read_text(encoding="utf-8")
        found = pattern.search(text)
        if found:
            start, end = found.span("version")
            path.write_text(text[:start] + version(root) + text[end:], encoding="utf-8")


def check(root=ROOT):
    if not re.fullmatch(r"\d+\.\d+\.\d+\n", (root / "VERSION").read_text(encoding="ascii")):
        return ["VERSION: must be a line such as 1.2.3"]
    return check_places(root) + check_headings(root) + check_released(root) + check_finished(root) + check_renamed(root)


def check_places(root):
    problems = []
    for name, pattern in PLACES.items():
        found = pattern.search((root / name).read_text(encoding="utf-8"))
        said = found["version"] if found else "none"
        if said != version(root):
            problems.append(f"{name}: its version is {said}, but VERSION says {version(root)}: ./dev fmt")
    return problems


def check_headings(root):
    found = [(heading, HEADING.fullmatch(heading)) for heading, _ in sections(root)]
    problems = [f"CHANGELOG.md: ## {heading}: must be like 1.2.3 (2026-01-31), or (unreleased)"
                for heading, match in found if not match]
    if problems or not found:
        return problems or ["CHANGELOG.md: has no section for a version"]
    versions = [match[1] for _, match in found]
    if versions[0] != version(root):
        problems.append(f"CHANGELOG.md: its first section is for {versions[0]}, but VERSION says {version(root)}")
    if versions != sorted(set(versions), key=number, reverse=True):
        problems.append("CHANGELOG.md: versions must be in descending order")
    problems += [f"CHANGELOG.md: ## {heading}: only the newest can be unreleased"
                 for heading, match in found[1:] if match[2] == "unreleased"]
    return problems


def check_released(root):
    """A document that is kept says the version that it is named for: it was copied at the release, not later."""
    return [f"openapi/released/{path.name}: does not have version {path.stem}" for path in released(root)
            if f"\n  version: '{path.stem}'\n" not in path.read_text(encoding="utf-8")]


def check_finished(root):
    """A version with a date is released: what must not change any more is kept."""
    found = [HEADING.fullmatch(heading) for heading, _ in sections(root)[:1]]
    if not any(found) or found[0][2] == "unreleased":
        return []
    kept = root / "openapi" / "released" / f"{version(root)}.yaml"
    now = (root / "openapi" / "tidings.yaml").read_bytes()
    problems = [f"migrations/{name}: {version(root)} has a date, but this file is not in migrations/SHA256SUMS: freeze it"
                for name in migrations.unfrozen(root)]
    if not kept.exists() or kept.read_bytes() != now:
        problems.append(f"openapi/released/{kept.name}: {version(root)} has a date, but this file is not a copy of openapi/tidings.yaml")
    return problems


def check_renamed(root):
    """Old names of settings are kept for one release, and for those that only correct it."""
    text = (root / "include" / "app" / "settings.h").read_text(encoding="utf-8")
    return [f"include/app/settings.h: TIDINGS_{old} was renamed to TIDINGS_{name} in {release} and kept for that release only: remove it"
            for old, name, release in RENAMED.findall(text) if number(release)[:2] != number(version(root))[:2]]
