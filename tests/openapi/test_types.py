# SPDX-License-Identifier: Apache-2.0
"""Types for TypeScript, by openapi-typescript."""

import shutil

from tests.openapi.conftest import DOCUMENTS, HERE

STRICT = ["--strict", "--noEmit", "--noUnusedLocals", "--target", "es2022", "--module", "nodenext", "--skipLibCheck", "false"]


def test_a_reply_narrows_on_ok(npm, tmp_path):
    # The flag: an argument with a default may be left out.
    npm("openapi-typescript", DOCUMENTS["3.1"], "--default-non-nullable=false", "--output", tmp_path / "tidings.ts")
    shutil.copy(HERE / "narrowing.ts", tmp_path)
    (tmp_path / "package.json").write_text("{}", encoding="ascii")
    npm("tsc", *STRICT, "narrowing.ts", cwd=tmp_path)
