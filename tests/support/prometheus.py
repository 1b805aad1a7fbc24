# SPDX-License-Identifier: Apache-2.0
"""A Prometheus (Debian's) that scrapes instances every second and evaluates rules as often."""
import re
from pathlib import Path

import requests

from tests.support.wait import wait_until
from tools.service import Service

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy/prometheus/tidings.rules.yml"


class Prometheus(Service):
    """`shorter` maps texts of the rules to replacements, so that a test need not wait for minutes."""

    name = "prometheus"
    programs = ("prometheus",)

    def __init__(self, directory, instances, shorter):
        super().__init__(directory)
        rules = re.sub(r"for: \w+", "for: 1s", RULES.read_text(encoding="utf-8"))
        for text, instead in shorter.items():
            assert text in rules, text
            rules = rules.replace(text, instead)
        (self.home / "rules.yml").write_text(rules, encoding="utf-8")
        targets = [instance.url.removeprefix("http://") for instance in instances]
        (self.home / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n"
            "rule_files: [rules.yml]\n"
            f"scrape_configs: [{{job_name: tidings, static_configs: [{{targets: {targets}}}]}}]\n", encoding="utf-8")

    def command(self):
        return ["/usr/bin/prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data", "--log.level=warn",
                f"--web.listen-address=127.0.0.1:{self.port}"], {}

    def ready(self):
        try:
            return requests.get(f"http://127.0.0.1:{self.port}/-/ready", timeout=1).status_code == 200
        except requests.RequestException:
            return False

    def query(self, expression):
        """The samples of an instant query: (labels, value)."""
        answer = requests.get(f"http://127.0.0.1:{self.port}/api/v1/query", params={"query": expression}, timeout=30).json()
        assert answer["status"] == "success", answer
        return [(sample["metric"], float(sample["value"][1])) for sample in answer["data"]["result"]]

    def fired(self):
        """The names of all alerts that have fired so far."""
        return {labels["alertname"] for labels, _ in self.query('count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[1h]))')}

    def wait_fired(self, *names):
        missing = set(names)

        def all_fired():
            missing.difference_update(self.fired())
            return not missing
        wait_until(all_fired, interval=0.2, what=missing)
