# SPDX-License-Identifier: Apache-2.0
"""Words of the model: stamps that no message has, and who everybody is."""

NEVER = "0000000000.000000"
FOREVER = "9999999999.999999"
EVERYBODY = "everybody"


def between(ts):
    """A ts just before another, where no message is."""
    seconds, micros = ts.split(".")
    number = int(seconds) * 1_000_000 + int(micros) - 1
    return f"{number // 1_000_000:010}.{number % 1_000_000:06}"
