# SPDX-License-Identifier: Apache-2.0
"""Schemathesis with its own defaults: all checks, all phases, no configuration. openapi/fuzz/explained.yaml explains all its findings."""

import base64
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.openapi.conftest import OPENAPI

SCHEMATHESIS = Path(sys.executable).parent / "schemathesis"
EXPLAINED = yaml.safe_load((OPENAPI / "fuzz" / "explained.yaml").read_text(encoding="utf-8"))
# They may end the token of all other calls: these are tried with one of their own.
ENDING = ("authRevoke", "adminUsersSetActive", "adminUsersRevokeTokens", "adminTokensRevoke")
MODES = {"slack": [], "http": ["--header", "X-Tidings-Errors: http"]}


def reply_of(response):
    """The reply as an object; {}: it is none."""
    try:
        return dict(json.loads(base64.b64decode(response["content"]["$base64"])))
    except (KeyError, TypeError, ValueError):
        return {}


def said(reply):
    return "\n".join((reply.get("response_metadata") or {}).get("messages") or [])


def sent(interaction):
    """The body of the request, as it was written."""
    body = (interaction.get("request") or {}).get("body") or {}
    return base64.b64decode(body.get("$base64") or "").decode("utf-8", "replace")


class Finding(NamedTuple):
    """A check that failed."""
    check: str
    operation: str
    status: int
    code: str | None = None  # what the reply says is wrong
    message: str = ""  # of the check
    says: str = ""  # the reply, in words
    sent: str = ""


def findings(report):
    """Each failed check."""
    for line in report.read_text(encoding="utf-8").splitlines():
        event = json.loads(line).get("ScenarioFinished") or {}
        recorder = event.get("recorder") or {}
        for case, checks in recorder.get("checks", {}).items():
            interaction = recorder["interactions"].get(case) or {}
            response = interaction.get("response") or {}
            reply = reply_of(response)
            for check in checks:
                if check["status"] != "success":
                    message = check["failure_info"]["failure"].get("message", "")
                    yield Finding(check["name"], recorder["label"], response.get("status_code"), reply.get("error"), message, said(reply),
                                  sent(interaction))


def is_explained(finding, mode):
    return (finding.status or 500) < 500 and any(
        all(entry.get(name, getattr(finding, name)) == getattr(finding, name) for name in ("check", "status"))
        and entry.get("mode", mode) == mode and (finding.code is not None or not entry.get("refused"))
        and ("codes" not in entry or finding.code in entry["codes"])
        and all(re.search(entry.get(name, ""), getattr(finding, name)) for name in ("operation", "message", "says", "sent"))
        for entry in EXPLAINED
    )


REJECTION, ACCEPTANCE = "negative_data_rejection", "positive_data_acceptance"


@pytest.mark.parametrize("finding", [
    Finding("not_a_server_error", "POST /api.test", 500, "internal_error"),
    Finding("ignored_auth", "POST /channels.info", 200),
    Finding("unsupported_method", "POST /channels.info", 200, None, "Unsupported method TRACE returned 200"),
    Finding(REJECTION, "POST /channels.info", 200, None, "limit: Value greater than maximum"),
    Finding(REJECTION, "POST /channels.info", 200, None, "violates `pattern` at /properties/channel", "", '{"channel": "C x"}'),
    Finding("response_schema_conformance", "POST /channels.info", 200),
    Finding(ACCEPTANCE, "POST /channels.info", 400, "invalid_timestamp"),
    Finding(ACCEPTANCE, "POST /channels.info", 400, "invalid_json", "", "", '{"channel": "\\ud83d\\ude00"}'),
    Finding(ACCEPTANCE, "POST /channels.info", 400, "no_user"),
    Finding(ACCEPTANCE, "POST /channels.info", 400, "invalid_arguments", "", "[ERROR] channel: must be a string"),
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
