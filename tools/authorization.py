# SPDX-License-Identifier: Apache-2.0
"""tests/e2e/authorization.txt: what each method answers to each caller. tests/e2e/test_authorization.py calls the methods;
here the table is read, and compared with the methods that there are."""
import re

from tools.project import ROOT

TABLE = "tests/e2e/authorization.txt"
KINDS = ("public", "private", "direct", "archived")
NO_KIND = "-"
METHOD = re.compile(r'^    \{"([\w.]+)", ACCESS_\w+,', re.MULTILINE)
REFERENCE = re.compile(r"#/components/(\w+)/(\w+)")


class Table:
    """`callers` in the order of the columns; `rows`: {(method, kind): {caller: outcome}}; `problems` of its form."""

    def __init__(self, text):
        self.callers = []
        self.rows = {}
        self.problems = []
        self._short = {}
        for number, line in enumerate(text.split("\n"), 1):
            words = line.split()
            if words and not line.startswith("#"):
                self._read(f"{TABLE}:{number}", words)

    def _read(self, where, words):
        if len(words) == 3 and words[1] == "=":
            self._short[words[0]] = words[2]
        elif not self.callers:
            self.callers = words[2:]
        elif len(words) != 2 + len(self.callers):
            self.problems.append(f"{where}: has {len(words) - 2} outcomes, but the heading has {len(self.callers)} callers")
        elif (words[0], words[1]) in self.rows:
            self.problems.append(f"{where}: duplicate line for {words[0]} {words[1]}")
        else:
            outcomes = (self._short.get(word, word) for word in words[2:])
            self.rows[words[0], words[1]] = dict(zip(self.callers, outcomes, strict=True))

    def kinds(self, method):
        return [kind for name, kind in self.rows if name == method]


def table(root=ROOT):
    return Table((root / TABLE).read_text(encoding="utf-8"))


def methods(root=ROOT):
    """All methods, in the order of the server's table; the API document says which of them take a channel."""
    from tools import openapi  # it needs python3-yaml, which not every command of ./dev installs

    document = openapi.read(root / "openapi" / "tidings.yaml")
    names = METHOD.findall((root / "src/api/methods.c").read_text(encoding="utf-8"))
    return {name: "channel" in _arguments(document, name) for name in names}


def _arguments(document, method):
    node = document["paths"].get(f"/{method}", {}).get("post", {}).get("requestBody", {})
    while "properties" not in node:
        found = REFERENCE.search(node.get("$ref", ""))
        if found:
            node = document["components"][found[1]][found[2]]
        elif "content" in node:
            node = node["content"]["application/json"]["schema"]
        else:
            return {}
    return node["properties"]


def check(root=ROOT):
    """Missing and superfluous lines of the table."""
    read, known = table(root), methods(root)
    problems = list(read.problems)
    for method, takes_channel in known.items():
        wanted = KINDS if takes_channel else (NO_KIND,)
        problems += [f"{TABLE}: line {method} {kind} is missing" for kind in wanted if (method, kind) not in read.rows]
    for method, kind in read.rows:
        if method not in known:
            problems.append(f"{TABLE}: there is no method {method}")
        elif kind != NO_KIND and (kind not in KINDS or not known[method]):
            problems.append(f"{TABLE}: {method} is not called on channels of kind {kind}")
    return problems
