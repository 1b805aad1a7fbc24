# SPDX-License-Identifier: Apache-2.0
"""A `void *` becomes a struct by CAST() or CAST_CONST(), which compare the tag. The compiler reports the conversions, since C++ has none."""
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.project import ROOT

IMPLICIT = re.compile(r"^(.+?):(\d+):(\d+): warning: request for implicit conversion from '(?:const )?void \*' to '(?:const )?struct (\S+) \*'",
                      re.MULTILINE)
EXPLICIT = re.compile(r"(?<!sizeof)\((?:const )?struct (\w+) \*\)(?!NULL)")
ALLOCATES = re.compile(r"\b(?:[cm]alloc|realloc(?:array)?|memory_must_\w+|arena_alloc|tagged_new)\(")
# uthash declares the links of its chains as `void *`, and sockets have their own family of structs.
LINK = re.compile(r"\bhh\.(?:next|prev)\b")
FOREIGN = ("sockaddr", "sockaddr_in", "sockaddr_in6")
DEFINES_CAST = ("include/base/check.h", "include/base/list.h")
ELEMENT = "an element of the array that qsort() sorts"
EXCEPTIONS = {
    ("src/chat/batch_plan.c", "batch_sorted"): ELEMENT,
    ("src/unread/sidebar_rows.c", "sidebar_entry"): ELEMENT,
    ("src/unread/sidebar_rows.c", "sidebar_rows"): "compares while sorting, or has the struct's first member, which is typed",
    ("src/api/content_link.c", "result"): "libpq's: has no room for a tag",
    ("src/store/result.c", "result"): "libpq's: has no room for a tag",
    ("src/store/store.c", "result"): "drops `const` only",
    ("src/cache/redis_reply.h", "cache_value"): "hiredis's: has no room for a tag",
}


def is_fresh(text, at):
    """Whether the value at this position was just allocated: it is the call itself, or a variable that got its result."""
    statement = text[at:text.find(";", at)]
    name = re.match(r"(?:= *)?(\w+)$", statement)
    if name and re.search(rf"\bvoid \*{name.group(1)} =[^;]*{ALLOCATES.pattern}", text):
        return True
    return bool(ALLOCATES.search(statement) or LINK.search(text[text.rfind("\n", 0, at) + 1:text.find("\n", at)]))


def implicit(path, command):
    """File, offset and struct of each conversion that the compiler finds in a source and its headers."""
    done = subprocess.run([*command, "-Wno-error", "-Wc++-compat", "-fno-diagnostics-show-caret", "-fsyntax-only", "-x", "c", str(path)],
                          env={**os.environ, "LC_ALL": "C"}, cwd=path.parent, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{path} does not compile:\n{done.stderr}")
    for file, line, column, name in IMPLICIT.findall(done.stderr):
        file = (path.parent / file).resolve()
        lines = file.read_text(encoding="utf-8").split("\n")
        yield file, sum(len(each) + 1 for each in lines[:int(line) - 1]) + int(column) - 1, name


def explicit(path):
    text = path.read_text(encoding="utf-8")
    return ((path, one.start(), one.group(1)) for one in EXPLICIT.finditer(text))


def check(command, root=ROOT):
    root = Path(root).resolve()
    sources = [path for directory in ("src", "include") for path in sorted((root / directory).rglob("*.[ch]"))]
    with ThreadPoolExecutor(2) as pool:
        found = {one for many in pool.map(lambda path: list(implicit(path, command)), (path for path in sources if path.suffix == ".c"))
                 for one in many}
    found = {one for one in found if one[0].is_relative_to(root) and not is_fresh(one[0].read_text(encoding="utf-8"), one[1])}
    found |= {one for path in sources if str(path.relative_to(root)) not in DEFINES_CAST for one in explicit(path)}
    return [f"{path.relative_to(root)}:{path.read_text(encoding='utf-8').count(chr(10), 0, at) + 1}: becomes a struct {name} without CAST()"
            for path, at, name in sorted(found)
            if name not in FOREIGN and (str(path.relative_to(root)), name) not in EXCEPTIONS]
