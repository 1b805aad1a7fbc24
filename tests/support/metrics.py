# SPDX-License-Identifier: Apache-2.0
"""The metrics of an instance, from /metrics."""
import re

import requests


def metric_of(text, name, labels=""):
    """The sum over the samples of `name` whose labels contain `labels`, in the text of a page."""
    values = re.findall(rf"^{name}(?:{{([^}}]*)}})? ([0-9.e+-]+|NaN)$", text, re.M)
    assert values, f"no {name} in /metrics"
    return sum(float(value) for found, value in values if labels in found)


def metric(instance, name, labels=""):
    """The same, read from the instance now."""
    return metric_of(requests.get(f"{instance.url}/metrics", timeout=30).text, name, labels)
