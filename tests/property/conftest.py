# SPDX-License-Identifier: Apache-2.0
"""Processes of the property test's own, since it kills them, and how long it searches."""
import os

import pytest
from hypothesis import HealthCheck, Phase, Verbosity, settings

from tests.property.choices import CAP, DISPLAY_MAX
from tests.property.services import Services
from tests.support.environment import Environment
from tests.support.phones import google

BASE = settings(
    deadline=None,
    database=None,
    print_blob=False,
    suppress_health_check=list(HealthCheck),
    verbosity=Verbosity.normal,
)
settings.register_profile("ci", BASE, max_examples=15, stateful_step_count=50, phases=[Phase.generate])
settings.register_profile(
    "long", BASE, max_examples=1000, stateful_step_count=60, phases=[Phase.generate, Phase.shrink]
)


@pytest.fixture(scope="session")
def profile():
    return settings.get_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def services(tmp_path_factory):
    gateway, reachable = google(tmp_path_factory.mktemp("fcm"))
    environment = Environment(tmp_path_factory.mktemp("property"), settings={**reachable, "TIDINGS_PUSH_ACTIVE_S": "1", "TIDINGS_UNREAD_MAX": str(CAP),
                                                                             "TIDINGS_UNREAD_DISPLAY_MAX": str(DISPLAY_MAX)})
    running = None
    try:
        running = Services(environment.start(), gateway)
        yield running
        running.all_up()
    finally:
        if running:
            running.close()
        trouble = environment.stop()
        gateway.close()
    assert not trouble, "\n".join(trouble)
