# SPDX-License-Identifier: Apache-2.0
"""The cost of verifying the tokens of idle sockets: instances are notified of changes, and look tokens up only now and then."""
import re
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from bench.data import metrics
from bench.outcome import Outcome

SOCKETS = 12_000  # of 1,000 users
SECONDS = 20
SETTLE_MS = 1000 * (SECONDS + 10)
OPEN_WITHIN_S = 60
ROUND_MS = 1000 * SECONDS  # all tokens are looked up once while it is measured: three times as often as by default
NEVER_MS = 3_600_000
OPEN = re.compile(r'^tidings_ws_connections{kind="rtm"} (\d+)$', re.M)
CHECKED = re.compile(r"^tidings_socket_tokens_checked_total (\d+)$", re.M)


def read_metric(port, pattern):
    return int(pattern.search(metrics(port))[1])


def run_idle(bench, check_ms):
    """Percent of a core that Tidings, Redis and Postgres use while all sockets are idle, and the tokens looked up meanwhile."""
    bench.rig.restart_tidings(settings={"TIDINGS_TOKEN_CHECK_MS": str(check_ms)})
    port = bench.rig.tidings.port
    with ThreadPoolExecutor(1) as pool:
        idle = pool.submit(bench.rig.load, "idle", sockets=SOCKETS, pid=bench.rig.tidings.pid, settle_ms=SETTLE_MS)
        end = time.monotonic() + OPEN_WITHIN_S
        while read_metric(port, OPEN) < SOCKETS and time.monotonic() < end and not idle.done():
            time.sleep(0.2)
        time.sleep(2)
        before, tokens, began = bench.rig.cpu_s(), read_metric(port, CHECKED), time.monotonic()
        time.sleep(SECONDS)
        percent = 100 * (bench.rig.cpu_s() - before) / (time.monotonic() - began)
        tokens = read_metric(port, CHECKED) - tokens
        closed = idle.result()["closed"]
    return {"percent": percent, "tokens": tokens, "closed": closed}


def measure_idle_tokens(bench):
    """With look-ups, against without any, in turn: the rest of what idle sockets cost (their pings) is in both."""
    pairs = [(run_idle(bench, NEVER_MS), run_idle(bench, ROUND_MS)) for _ in range(bench.runs)]
    runs = [ours["percent"] - never["percent"] for never, ours in pairs]
    fine = all(never["tokens"] == 0 < ours["tokens"] and never["closed"] == ours["closed"] == 0 for never, ours in pairs)
    return Outcome(statistics.median(runs), runs, fine=fine,
                   extra={"never": [never for never, _ in pairs], "looked_up": [ours for _, ours in pairs]})
