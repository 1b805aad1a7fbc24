# SPDX-License-Identifier: Apache-2.0
"""The alert rules: what promtool finds, and whether each rule is whole, documented, and about metrics that there are."""
import re
import subprocess

from tools.project import ROOT

RULES = ROOT / "deploy/prometheus/tidings.rules.yml"
TESTS = ROOT / "deploy/prometheus/tidings.test.yml"
OPERATIONS = ROOT / "docs/operations.md"
METRICS = (ROOT / "include/base/metrics.h", ROOT / "src/base/metrics_request.c")
METRIC = re.compile(r"\btidings_[a-z0-9_]+")
ANNOTATIONS = ("summary", "description", "page")
SUFFIXES = ("", "_bucket", "_count", "_sum")


def rules():
    """The alerts of the file."""
    import yaml  # as for openapi, it is not there for every command of ./dev

    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def metrics():
    """The names that /metrics has."""
    text = "".join(path.read_text(encoding="utf-8") for path in METRICS)
    return {name + suffix for name in METRIC.findall(text) for suffix in SUFFIXES}


def promtool(*arguments):
    done = subprocess.run(["promtool", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return [] if done.returncode == 0 else [f"promtool {arguments[0]} {arguments[1]}: {done.stdout.strip()}"]


def problems_of(rule, known, documented):
    name = rule["alert"]
    problems = [f"{name}: no {part}" for part in ("for", "labels") if not rule.get(part)]
    problems += [f"{name}: no annotation {part}" for part in ANNOTATIONS if not rule.get("annotations", {}).get(part)]
    problems += [f"{name}: there is no metric {metric}" for metric in METRIC.findall(rule["expr"]) if metric not in known]
    if f"`{name}`" not in documented:
        problems.append(f"{name}: not in {OPERATIONS.relative_to(ROOT)}")
    return problems


def check():
    documented = OPERATIONS.read_text(encoding="utf-8")
    known = metrics()
    problems = promtool("check", "rules", RULES) + promtool("test", "rules", TESTS)
    return problems + [problem for rule in rules() for problem in problems_of(rule, known, documented)]
