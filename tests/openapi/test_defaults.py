# SPDX-License-Identifier: Apache-2.0
"""Schemathesis with its own defaults: all checks, all phases, nothing configured. It finds nothing but what openapi/fuzz/explained.yaml explains."""

import base64
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.openapi.conftest import OPENAPI

SCHEMATHESIS = Path(sys.executable).parent / "schemathesis"
EXPLAINED = yaml.safe_load((OPENAPI / "fuzz" / "explained.yaml").read_text(encoding="utf-8"))
# They may end the token of all other calls: these are tried with one of their own.
ENDING = ("authRevoke", "adminUsersSetActive", "adminTokensRevoke")
MODES = {"slack": [], "http": ["--header", "X-Tidings-Errors: http"]}


def code_of(response):
    """What a reply says is wrong; None: nothing."""
    try:
        return json.loads(base64.b64decode(response["content"]["$base64"])).get("error")
    except (KeyError, TypeError, ValueError):
        return None


def findings(report):
    """(check, operation, status, code, message) of each failed check."""
    for line in report.read_text(encoding="utf-8").splitlines():
        event = json.loads(line).get("ScenarioFinished") or {}
        recorder = event.get("recorder") or {}
        for case, checks in recorder.get("checks", {}).items():
            response = (recorder["interactions"].get(case) or {}).get("response") or {}
            for check in checks:
                if check["status"] != "success":
                    message = check["failure_info"]["failure"].get("message", "")
                    yield check["name"], recorder["label"], response.get("status_code"), code_of(response), message


def is_explained(finding, mode):
    check, operation, status, code, message = finding
    return (status or 500) < 500 and any(
        entry.get("check", check) == check and entry.get("mode", mode) == mode and entry.get("status", status) == status
        and (code is not None or not entry.get("refused")) and ("codes" not in entry or code in entry["codes"])
        and re.search(entry.get("operation", ""), operation) and re.search(entry.get("message", ""), message)
        for entry in EXPLAINED
    )


@pytest.mark.parametrize("finding", [
    ("not_a_server_error", "POST /api.test", 500, "internal_error", ""),
    ("ignored_auth", "POST /channels.info", 200, None, ""),
    ("unsupported_method", "POST /channels.info", 200, None, "Unsupported method TRACE returned 200"),
    ("negative_data_rejection", "POST /channels.info", 200, None, "limit: Value greater than maximum"),
    ("response_schema_conformance", "POST /channels.info", 200, None, ""),
    ("positive_data_acceptance", "POST /channels.info", 400, "invalid_timestamp", ""),
])
def test_a_fault_is_not_explained(finding):
    assert not any(is_explained(finding, mode) for mode in MODES)


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("which", ["exclude", "include"])
def test_nothing_is_found_that_is_not_explained(environment, workspace, tmp_path, mode, which):
    report = tmp_path / "report.ndjson"
    chosen = [word for name in ENDING for word in (f"--{which}-operation-id", name)]
    subprocess.run([SCHEMATHESIS, "run", f"{environment.urls[0]}/openapi.json", "--header", f"Authorization: Bearer {workspace.admin.token}",
                    *MODES[mode], *chosen, "--no-color", "--report", "ndjson", "--report-ndjson-path", report],
                   cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, check=False)
    found = set(findings(report))
    assert found, "GET at least, which every method takes"
    unexplained = sorted((finding for finding in found if not is_explained(finding, mode)), key=str)
    assert not unexplained, "\n".join(str(finding)[:600] for finding in unexplained[:40])
