# SPDX-License-Identifier: Apache-2.0
"""Checks who includes whom. The law is in CMakeLists.txt: tidings_module(NAME USES ...)."""
import re
from pathlib import Path

from tools.project import ROOT

# A library's headers are seen in one module alone, and never by the domain, not even through another header.
ADAPTERS = {"libpq-fe.h": "store", "hiredis/": "cache", "librdkafka/": "events",
            "microhttpd.h": "http", "wslay/": "gateway", "curl/": "outbound"}
DOMAIN = ("chat", "unread")

INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.MULTILINE)
MODULE = re.compile(r"^tidings_module\(\s*(\w+)([^)]*)\)", re.MULTILINE)


def modules():
    """Each module with all modules that it may include: those it uses, and transitively theirs."""
    allowed = {}
    for name, rest in MODULE.findall((ROOT / "CMakeLists.txt").read_text(encoding="utf-8")):
        words = rest.partition("LIBRARIES")[0].split()
        allowed[name] = {name}.union(*(allowed[used] for used in words if used != "USES"))
    return allowed


def includes(path):
    return INCLUDE.findall(path.read_text(encoding="utf-8"))


def adapter_of(header):
    """The module that may see a third-party header; None for headers that all may see."""
    return next((module for start, module in ADAPTERS.items() if header.startswith(start)), None)


def reached(path, seen):
    """All headers that path includes, through headers of this project too."""
    for header in includes(path):
        if header in seen:
            continue
        seen.add(header)
        own = ROOT / "include" / header
        if own.exists():
            reached(own, seen)
    return seen


def check():
    problems = []
    for module, allowed in modules().items():
        for top in ("include", "src"):
            for path in sorted((ROOT / top / module).rglob("*.[ch]")):
                problems += check_file(path, module, allowed)
    return problems


def check_file(path, module, allowed):
    problems = []
    name = path.relative_to(ROOT)
    for header in includes(path):
        first = Path(header).parts[0]
        if (ROOT / "include" / header).exists() and first not in allowed:
            problems.append(f"{name}: {module} may not include {header}")
        if module != (adapter_of(header) or module):
            problems.append(f"{name}: {header} may be included only by {adapter_of(header)}")
    if module in DOMAIN:
        problems += [f"{name}: includes {header} through another header"
                     for header in sorted(reached(path, set())) if adapter_of(header)]
    return problems
