# SPDX-License-Identifier: Apache-2.0
"""Checks that files, links and names beginning with TIDINGS_ in the documents exist."""
import re
import subprocess

from tools.project import ROOT

FRONT = ("README.md", "CONTRIBUTING.md", "SECURITY.md")
NAME = re.compile(r"\bTIDINGS_[A-Z0-9_]+")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
# A path as it is written in text: of a file or folder below one of the project's own folders.
TOP = "bench|cmake|deploy|docs|include|lua|migrations|openapi|sql|src|tests|tools|web"
PATH = re.compile(rf"(?<![\w./:<-])(?:\./)?((?:{TOP})/[\w.*/-]*)")


def check():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    paths = [ROOT / name for name in listed]
    known = known_names(path for path in paths if path.suffix != ".md")
    documents = [*(ROOT / name for name in FRONT), *sorted((ROOT / "docs").rglob("*.md"))]
    return [problem for path in documents for problem in problems_of(path, known)]


def known_names(paths):
    """Names of settings as the code spells them, and those that other files use in full."""
    tables = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "include").rglob("*settings.h")))
    known = {f"TIDINGS_{name}" for name in
             re.findall(r"\b(?:(?:TEXT|INTEGER|FLAG)\([\s\\]*\w+,|RENAMED\()[\s\\]*(\w+),", tables)}
    for path in paths:
        if path.suffix != ".h" and path.is_file():
            known.update(NAME.findall(path.read_text(encoding="utf-8", errors="replace")))
    return known


def problems_of(path, known):
    problems = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        where = f"{path.relative_to(ROOT)}:{number}"
        problems += [f"{where}: there is no {name}"
                     for name in NAME.findall(line) if name not in known]
        problems += [f"{where}: broken link {link}" for link in LINK.findall(line)
                     if "://" not in link and not (path.parent / link).exists()]
        problems += [f"{where}: there is no {found}"
                     for found in (text.rstrip(".") for text in PATH.findall(line))
                     if not any(ROOT.glob(found.rstrip("/")))]
    return problems
