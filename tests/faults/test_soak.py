# SPDX-License-Identifier: Apache-2.0
"""The verdict of a soak on values that grow, and on values that only fluctuate."""
from tests.soak.figures import proportional, slope, steady

HOURS = [n / 20 for n in range(40)]


def test_the_slope_of_a_line():
    assert slope([(0, 1), (1, 3), (2, 5)]) == 2
    assert slope([]) == slope([(1, 1)]) == 0


def test_what_swings_is_steady():
    assert steady("x", [(hour, 30 + n % 3) for n, hour in enumerate(HOURS)], 4, 0.1).is_good


def test_what_grows_only_while_it_is_cold_is_steady():
    assert steady("x", [(hour, min(30, 20 + 4 * n)) for n, hour in enumerate(HOURS)], 4, 0.1).is_good


def test_what_leaks_is_found():
    assert not steady("x", [(hour, 30 + 4 * hour) for hour in HOURS], 4, 0.1).is_good


def test_a_message_that_always_costs_the_same():
    assert proportional("x", [(n * 1000, n * 800_000) for n in range(40)], 1.25, 100).is_good


def test_a_message_that_costs_more_and_more():
    assert not proportional("x", [(n * 1000, n * n * 20_000) for n in range(40)], 1.25, 100).is_good
