# SPDX-License-Identifier: Apache-2.0
"""Each name declared in a header begins with a struct or enum of that header, with the struct that it takes first, with the header's name
or a part of it, or with its module's name; in the singular or the plural."""
import re

from tools.project import ROOT

COMMENT = re.compile(r"//[^\n]*")
MACRO = re.compile(r"^#(?:.*\\\n)*.*\n", re.MULTILINE)
BODY = re.compile(r"\{[^{}]*\}")
TAG = re.compile(r"^(?:struct|enum) (\w+) ?[;{]", re.MULTILINE)
FUNCTION = re.compile(r"^(?!typedef|static)[A-Za-z_][\w ]*?[ *](\w+)\((?:const )?(?:struct (\w+))?", re.MULTILINE)
# The readers of a method's arguments are one family, whose headers are those of what they read. Ids, times and numbers share id.h.
FAMILIES = ("take_", "ts_", "integer_", "random_", "token_")


def numbers(name):
    """A name in the singular and in the plural, guessed from its last letters."""
    yield name
    yield name + "s"
    if name.endswith("y"):
        yield name[:-1] + "ies"
    if name.endswith(("s", "ch")):
        yield name + "es"
    if name.endswith("s"):
        yield name[:-1]


def owners(path, text):
    words = path.stem.removesuffix("_internal").split("_")
    parts = {"_".join(words[first:last]) for first in range(len(words)) for last in range(first + 1, len(words) + 1)}
    return {number for name in (*parts, *TAG.findall(text), path.parent.name) for number in numbers(name)}


def declared(text):
    return FUNCTION.findall(text.replace("NODISCARD ", "").replace("_Noreturn ", ""))


def strangers(path):
    text = MACRO.sub("", COMMENT.sub("", path.read_text(encoding="utf-8")))
    known = owners(path, text)
    while BODY.search(text):
        text = BODY.sub(";", text)
    for name, first in declared(text):
        whose = known.union(numbers(first)) if first else known
        if not any(name == owner or name.startswith(owner + "_") for owner in whose) and not name.startswith(FAMILIES):
            yield name


def check(root=ROOT):
    headers = sorted(path for directory in ("src", "include") for path in (root / directory).rglob("*.h"))
    return [f"{path.relative_to(root)}: {name}() lacks the prefix of its struct, header or module" for path in headers for name in strangers(path)]
