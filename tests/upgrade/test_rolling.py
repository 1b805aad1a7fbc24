# SPDX-License-Identifier: Apache-2.0
"""From the previous release to this version under load, and back, and forward again."""
from tests.upgrade.rolling import upgrade


def test_forward_back_and_forward_again(tmp_path):
    with upgrade(tmp_path) as rolling:
        rolling.migrate()
        rolling.restart(0, rolling.new)
        rolling.react(0)
        rolling.restart(1, rolling.new)
        rolling.restart(0, rolling.old)
        rolling.restart(0, rolling.new)
        rolling.finish()
