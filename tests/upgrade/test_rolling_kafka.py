# SPDX-License-Identifier: Apache-2.0
"""Both versions as one consumer group of Kafka, each reading the other's records."""
from tests.upgrade.rolling import upgrade


def test_forward(tmp_path):
    with upgrade(tmp_path, kafka=True) as rolling:
        rolling.migrate()
        rolling.restart(0, rolling.new)
        rolling.react(0)
        rolling.restart(1, rolling.new)
        rolling.finish()
