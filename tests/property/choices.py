# SPDX-License-Identifier: Apache-2.0
"""The values from which the machine's rules choose."""
from hypothesis import strategies as st

USERS = 4
CHANNELS = 3  # the last one is private
STRATEGIES = ("sequence", "zset", "counter", "bitmap")
CAP = 4  # of zset: low, so that it is passed often
DISPLAY_MAX = 3  # of unread_count_display

users = st.integers(0, USERS - 1)
slots = st.integers(0, 2 * USERS - 1)  # two devices of each user
channels = st.integers(0, CHANNELS - 1)
instances = st.integers(0, 1)
picks = st.integers(0, 30)
texts = st.sampled_from(["x", "two words", "é ∑ 漢 👩‍👩‍👧", "line\r\nbreak", '{"json": [1]}', "<@U0> & co", "y" * 300,
                         "%1", "%0, %2 and %3", "%all", "%all, also %1 %3"])


def pick(options, number):
    return options[number % len(options)]
