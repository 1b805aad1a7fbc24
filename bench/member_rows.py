# SPDX-License-Identifier: Apache-2.0
"""A first channel of 500,000 members, all made through the API by one administrator, and what others notice of it."""
import time
from concurrent.futures import ThreadPoolExecutor

from bench.data import Api
from bench.hostile_rows import WAIT_MAX_MS, compare
from bench.honest_load import run_honest
from bench.outcome import Outcome
from bench.rig import OPERATOR_TOKEN

MEMBERS = 500_000
AT_ONCE = 1000
HONEST_S = 6


def make_channel_of(bench, members):
    """Seconds that users, channel and members took, and how many members the channel has then."""
    api, began = Api(bench.rig.tidings.port), time.monotonic()
    name = f"many-{time.monotonic_ns()}"
    admin = api(OPERATOR_TOKEN, "admin.workspaces.create", name="Many", domain=name)["admin"]["token"]
    channel = api(admin, "channels.create", name=name[-40:])["channel"]["id"]
    for first in range(0, members, AT_ONCE):
        made = api(admin, "admin.users.createMany", users=[{"name": f"many-{number}"} for number in range(first, first + AT_ONCE)])
        users = [result["user"]["id"] for result in made["results"]]
        added = api(admin, "admin.channels.addMembers", channel=channel, users=users)
        assert added["added"] == len(users), added
    seconds = time.monotonic() - began
    return seconds, api(admin, "channels.info", channel=channel)["channel"]["num_members"]


def measure_channel(bench):
    """The honest load runs alone, then again and again until the channel is there: `wrong` and the longest wait of all of it count."""
    members = MEMBERS if bench.runs > 1 else MEMBERS // 10
    pairs = []
    with ThreadPoolExecutor(1) as pool:
        alone = run_honest(bench, HONEST_S)
        making = pool.submit(make_channel_of, bench, members)
        while not making.done():
            pairs.append((alone, run_honest(bench, HONEST_S)))
        seconds, there = making.result()
    ratio, extra = compare(pairs)
    extra |= {"ratio": round(ratio, 2), "members": there}
    fine = (ratio <= 2 and extra["wrong"] == 0 and there == members + 1
            and extra["longest_ms"] <= max(WAIT_MAX_MS, extra["longest_alone_ms"]))
    return Outcome(seconds, [seconds], fine=fine, extra=extra)
