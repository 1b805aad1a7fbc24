# SPDX-License-Identifier: Apache-2.0
"""The function library of Redis as the program loads it (cmake/embed.cmake makes the same of it)."""
import hashlib
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "lua" / "tidings.lua"
HASH = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]


def library():
    """Its text. Its name is tidings_<HASH>."""
    return SOURCE.read_text(encoding="utf-8").replace("SOURCE_HASH", HASH)


def function(name):
    """The name of one of its functions in Redis."""
    return f"{name}_{HASH}"
