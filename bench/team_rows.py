# SPDX-License-Identifier: Apache-2.0
"""The row about unread.sync of ordinary users: a team in a database of its own, where each of 200 is in all of 50 channels."""
import json

from bench.data import Api, make_channel, make_user
from bench.large_rows import Place
from bench.outcome import against, alternate, middle
from bench.rig import OPERATOR_TOKEN, cpu_of_tree

MEMBERS = 200
CHANNELS = 50
POSTS = 20  # to each channel, and nobody has read any
CLIENTS = 64
LOAD_SHARE_MAX = 0.7  # of a core, for the load program: above, it may be what limits


class Team(Place):
    def make(self):
        api = Api(self.tidings.port)
        admin = api(OPERATOR_TOKEN, "admin.workspaces.create", name="Team", domain="team")["admin"]["token"]
        users = [make_user(api, admin, f"user-{n}") for n in range(MEMBERS)]
        channels = [make_channel(api, users, f"team-{n}", range(MEMBERS)) for n in range(CHANNELS)]
        self.data.write_text(json.dumps({"url": self.tidings.url, "users": users, "groups": {"team": channels}}))


def sync_once(bench, data, server_pid):
    """One run, with the CPU time of each part for a call."""
    postgres_pid = bench.rig.postgres.pid
    server_s, postgres_s = cpu_of_tree(server_pid), cpu_of_tree(postgres_pid)
    run = bench.turn("sync", data=data, clients=CLIENTS, users=MEMBERS)
    spent = {"server": cpu_of_tree(server_pid) - server_s, "postgres": cpu_of_tree(postgres_pid) - postgres_s, "load": run["cpu_s"]}
    run.update({f"{part}_us": 1e6 * cpu_s / run["sent"] for part, cpu_s in spent.items()})
    run["load_share"] = run["load_us"] * run["rate"] / 1e6
    return run


def measure_sync(bench):
    rig = bench.rig
    with Team(rig, rig.postgres, "team") as team:
        team.make()
        rig.load("posts", data=team.data, group="team", total=CHANNELS * POSTS, seconds=60, clients=CLIENTS)
        team.sql("VACUUM ANALYZE")
        rig.start_reads_floor(team)
        floors, ours = alternate(bench, lambda: sync_once(bench, rig.floor_data, rig.floor.pid),
                                 lambda: sync_once(bench, team.data, team.tidings.pid))
        rig.stop_floor()
    outcome = against(floors, ours, "p50_ms")
    outcome.fine = max(run["load_share"] for run in floors + ours) <= LOAD_SHARE_MAX
    for key in ("rate", "server_us", "postgres_us", "load_us", "load_share", "reply_bytes"):
        outcome.extra.update({key: middle(ours, key), f"floor_{key}": middle(floors, key)})
    return outcome
