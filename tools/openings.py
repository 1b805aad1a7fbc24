# SPDX-License-Identifier: Apache-2.0
"""Each .c file below src/ opens, after the SPDX line, with a comment whose first sentence states the file's purpose."""
import re

from tools.project import ROOT

SENTENCE = re.compile(r"\S+ .*\S[.:](?:\s|$)")


def opening(text):
    """The comment that begins in the second line, in one line; empty where there is none."""
    words = []
    for line in text.split("\n")[1:]:
        if not line.startswith("//"):
            break
        words += line.removeprefix("//").split()
    return " ".join(words)


def check(root=ROOT):
    return [f"{path.relative_to(root)}: the SPDX line must be followed by a sentence about the file's purpose"
            for path in sorted((root / "src").rglob("*.c"))
            if not SENTENCE.match(opening(path.read_text(encoding="utf-8")))]
