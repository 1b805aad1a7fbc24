# SPDX-License-Identifier: Apache-2.0
"""An instance while one of its allocations or system calls fails. At its start it exits with an error message, or serves; later it
answers, possibly with an error, continues, and keeps all acknowledged data. A sample here; all in `./dev test long`."""
import signal

import pytest

from tests.support.wait import wait_until
from tests.support.workspace import Workspace
from tests.torture.conftest import reports, sample
from tests.torture.control import KINDS, Control
from tests.torture.visits import Visits
from tools.services import ServiceError

AGAIN_S = 20  # until an instance serves again: its connections come back after at most a few seconds


def start(instance, control, what="nothing"):
    """Returns whether it serves in the end."""
    instance.environment.update(control.environment)
    instance.log.unlink(missing_ok=True)
    try:
        instance.start()
    except ServiceError:
        assert instance.exit_code is not None, f"{what} fails: it neither serves nor ends\n{instance.log_tail()}"
        return False
    return True


def start_check(instance, control, kind, number):
    """Starts and stops. Whether `number` was reached."""
    control.clear()
    control.fail(kind, number)
    served = start(instance, control, f"number {number} of kind {kind}")
    control.spare()
    reached = control.failed(kind) > 0
    code = instance.stop()
    told = instance.log_tail(60)
    what = f"kind {kind}, number {number}, ended with {code}:\n{told}"
    assert not reports(instance), what
    if served:
        assert code == 0, what
    else:
        assert code > 0 and ('"error"' in told or "tidings: " in told), what
    return reached


@pytest.fixture
def instance(parts):
    yield parts.instances[0]
    parts.instances[0].stop()
    parts.instances[0].log.unlink(missing_ok=True)


def counts_of_start(instance, control):
    control.clear()
    assert start(instance, control)
    counts = {kind: control.counted(kind) for kind in KINDS.values()}
    assert instance.stop() == 0
    return counts


def test_starts_that_run_short(instance, control):
    for kind, count in counts_of_start(instance, control).items():
        for number in sample(count, 2):
            start_check(instance, control, kind, number)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_starts_at_each_number(instance, control, kind):
    number = 1
    while start_check(instance, control, KINDS[kind], number):
        number += 1


@pytest.fixture
def served(parts, instance, tmp_path):
    """(an instance that serves, what makes it fail, the visits of two users)"""
    control = Control(tmp_path / "control")
    assert start(instance, control)
    visits = Visits(Workspace([instance.url], parts.operator_token))
    yield instance, control, visits
    control.spare()
    assert instance.pid is not None, f"it ended with {instance.exit_code}\n{instance.log_tail(80)}"
    wait_until(visits.is_served, AGAIN_S, what="service")
    visits.check(parts)
    assert instance.stop() == 0, instance.log_tail(80)
    assert not reports(instance), instance.log_tail(80)


def visit_check(served, kind, action, number):
    """The `number`th from now on fails, most likely within the action; then the instance serves. Whether it was reached."""
    instance, control, visits = served
    failed = control.failed(kind)
    control.fail_next(kind, number)
    well = visits.attempt(action)
    control.spare()
    reached = control.failed(kind) > failed
    assert instance.pid is not None, f"{action.__name__}: {number} of kind {kind}: ended with {instance.exit_code}\n{instance.log_tail(80)}"
    if not well or reached:
        wait_until(visits.is_served, AGAIN_S, what=f"service after {action.__name__}, {number} of kind {kind}")
    return reached


def counts_of(served, action):
    """The number of calls of each kind during the action."""
    _, control, visits = served
    before = {kind: control.counted(kind) for kind in KINDS.values()}
    assert visits.attempt(action)
    return {kind: control.counted(kind) - before[kind] for kind in before}


def test_visits_that_run_short(served):
    for action in Visits.ACTIONS:
        for kind, count in counts_of(served, action).items():
            for number in sample(count, 3):
                visit_check(served, kind, action, number)


@pytest.mark.long
@pytest.mark.parametrize("action", Visits.ACTIONS, ids=lambda action: action.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_visits_at_each_number(served, kind, action):
    last = 2 * counts_of(served, action)[KINDS[kind]] + 10
    for number in range(1, last + 1):
        visit_check(served, KINDS[kind], action, number)


def test_a_stop_that_runs_short(served):
    """Resources for a clean shutdown may be missing: it exits all the same, without a sanitizer report."""
    instance, control, visits = served
    visits.attempt(Visits.post)
    control.fail_next(KINDS["allocation"], 1)
    instance.kill(signal.SIGTERM)
    wait_until(lambda: instance.exit_code is not None, 30, what="the end")
    assert instance.exit_code == 0 and not reports(instance), instance.log_tail(80)
    instance.start()
