# SPDX-License-Identifier: Apache-2.0
"""./dev lint and ./dev fmt: the rules of this code base that a program can check."""
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools import alerts, authorization, casts, circles, cleanups, documents, layers, limits, migrations, names, openings, prefixes, release
from tools.project import ROOT, Failure, call, configure, read_json

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 600
BANNED = ("strcpy", "strcat", "sprintf", "vsprintf", "strtok", "atoi", "atol", "gets", "localtime",
          "gmtime", "alloca", "rand")
CALL_OF_BANNED = re.compile(rf"(?<![\w.>])({'|'.join(BANNED)})\s*\(")
STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*',
                               re.DOTALL)


def files(*suffixes):
    """The files that git tracks or would add, below the directories with code."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--",
         "include", "src", "tests", "bench", "tools"],
        cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")
    paths = (ROOT / line for line in listed if line.endswith(suffixes))
    return sorted(path for path in paths if path.exists())


def code_only(text):
    """The text with strings and comments blanked: same lines, same columns."""
    return STRING_OR_COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def name_of(path):
    return path.relative_to(ROOT)


def check_format():
    done = subprocess.run(["clang-format-19", "--dry-run", "--Werror", *files(".c", ".h")],
                          cwd=ROOT, check=False, capture_output=True, text=True)
    bad = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", done.stderr, re.MULTILINE)))
    return [f"{Path(path).relative_to(ROOT)}: not formatted: ./dev fmt" for path in bad]


def check_sizes():
    problems = []
    for path in files(".c", ".h", ".py", ".mjs"):
        lines = path.read_text(encoding="utf-8").count("\n")
        if lines > FILE_LINES_MAX:
            problems.append(f"{name_of(path)}: {lines} lines, at most {FILE_LINES_MAX}")
    for path in files(".c"):
        problems += long_functions(path)
    return problems


def long_functions(path):
    """Functions begin with a "{" of their own in column 0 and end with a "}" there."""
    problems, start = [], None
    lines = code_only(path.read_text(encoding="utf-8")).split("\n")
    for number, line in enumerate(lines, 1):
        if line.rstrip() == "{":
            start = number
        elif line.startswith("}") and start is not None:
            if number - start - 1 > FUNCTION_LINES_MAX:
                problems.append(f"{name_of(path)}:{start}: function of {number - start - 1} lines, "
                                f"at most {FUNCTION_LINES_MAX}")
            start = None
    return problems


def check_banned():
    return [f"{name_of(path)}:{number}: {found.group(1)} is banned"
            for path in files(".c", ".h")
            for number, line in enumerate(code_only(path.read_text(encoding="utf-8")).split("\n"), 1)
            for found in CALL_OF_BANNED.finditer(line)]


def check_licence():
    return [f"{name_of(path)}: no SPDX line"
            for path in files(".c", ".h", ".py", ".mjs")
            if "SPDX-License-Identifier: Apache-2.0" not in path.read_text(encoding="utf-8")[:200]]


def check_headers():
    """Compiles each header alone, with the flags that the build itself uses."""
    command = compiler_command()

    def compile_alone(path):
        done = subprocess.run([*command, "-x", "c", "-fsyntax-only", "-Wno-unused-function", "-"],
                              input=f'#include "{path}"\ntypedef int nothing;\n', cwd=ROOT, check=False,
                              capture_output=True, text=True)
        return [] if done.returncode == 0 else [f"{name_of(path)}: does not compile on its own:\n"
                                                f"{done.stderr}"]

    with ThreadPoolExecutor(2) as pool:
        found = pool.map(compile_alone, (ROOT / "include").rglob("*.h"))
        return [problem for problems in found for problem in problems]


def compiler_command():
    """The longest compile command of a module's source, which sees most libraries, without its
    input and output."""
    directory = configure("dev")
    database = read_json(directory / "compile_commands.json")
    entries = [entry for entry in database if Path(entry["file"]).is_relative_to(ROOT / "src")]
    words = max((entry["command"].split() for entry in entries), key=len)
    return words[:words.index("-o")]


def check_casts():
    return casts.check(compiler_command())


def check_openapi():
    from tools import openapi  # it needs python3-yaml, which not every command of ./dev installs

    return ["openapi/tidings-3.0.json: out of date with openapi/tidings.yaml: ./dev fmt"] if openapi.is_stale() else []


def check_compatible():
    from tools import compatible  # as above

    return compatible.check()


def check_python():
    """Names that are not defined, or not used, and what does not parse."""
    done = subprocess.run([sys.executable, "-m", "pyflakes", *files(".py")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    return [line.removeprefix(f"{ROOT}/") for line in done.stdout.splitlines()]


CHECKS = {
    "format": check_format,
    "layers": layers.check,
    "circles": circles.check,
    "headers": check_headers,
    "sizes": check_sizes,
    "banned": check_banned,
    "licence": check_licence,
    "casts": check_casts,
    "cleanups": cleanups.check,
    "names": names.check,
    "prefixes": prefixes.check,
    "openings": openings.check,
    "documents": documents.check,
    "release": release.check,
    "migrations": migrations.check,
    "openapi": check_openapi,
    "compatible": check_compatible,
    "alerts": alerts.check,
    "limits": limits.check,
    "authorization": authorization.check,
    "python": check_python,
}


def run():
    """Runs every check and prints its findings; returns how many passed and failed."""
    failed = 0
    for name, check in CHECKS.items():
        problems = check()
        print(f"{name}: {len(problems) or 'no'} problem{'' if len(problems) == 1 else 's'}")
        for problem in problems:
            print(f"  {problem}")
        failed += bool(problems)
    return len(CHECKS) - failed, failed


def main(_):
    if run()[1]:
        raise Failure("lint failed")


def fmt(_):
    from tools import openapi

    release.stamp()
    openapi.refresh()
    call(["clang-format-19", "-i", *files(".c", ".h")])
