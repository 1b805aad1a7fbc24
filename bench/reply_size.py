# SPDX-License-Identifier: Apache-2.0
"""Costs and savings of gzip: unread.sync of sidebars, plain and compressed, alternating, by the CPU time of the instance, of Postgres and of Redis.

    ./dev up                                  # in another shell
    python3 -m bench.reply_size [CHANNELS]    # 1,000
"""
import http.client
import json
import os
import secrets
import subprocess
import sys
from statistics import median

from tools.demo import ask
from tools.project import RUN

PAIRS = 7
# Ids as random as any; all subqueries are of each row. `words`: of each channel's last message; 0: there is none.
CHANNELS_SQL = """
CREATE TEMP TABLE made AS SELECT 'C' || (SELECT string_agg(substr('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', 1 + floor(random() * 36)::int, 1), '')
        FROM generate_series(1, 10) WHERE n > 0) AS id,
    'name-' || n || '-' || substr(md5(random()::text), 1, 4) AS name, (extract(epoch FROM now()) * 1e6)::bigint - (random() * 864e8)::bigint AS ts,
    (SELECT coalesce(string_agg(substr(md5((random() * 300)::int::text), 1, 2 + i % 5), ' '), '') FROM generate_series(1, {words}) i WHERE n > 0) AS text
    FROM generate_series(1, {count}) n;
INSERT INTO channels (id, workspace_id, name, creator, member_count, seq, ord, last_ts, updated_ts, latest_ts, latest_user, latest_preview)
SELECT id, '{workspace}', name || substr('{user}', 1, 5), '{poster}', 2, 1, sign({words}), ts, ts * sign({words}), ts * sign({words}),
    CASE WHEN {words} > 0 THEN '{poster}' ELSE '' END, left(text, 80) FROM made ON CONFLICT DO NOTHING;
INSERT INTO channel_members (channel_id, user_id, member_seq)
SELECT id, member, 0 FROM made CROSS JOIN unnest(ARRAY['{poster}', '{user}']) member ON CONFLICT DO NOTHING;
ANALYZE channels, channel_members;
"""


def cpu_ms(pid):
    """The CPU time of all threads of a process and of its children."""
    spent = 0
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
        pids = [pid, *map(int, children.read().split())]
    for one in pids:
        for thread in os.listdir(f"/proc/{one}/task"):
            with open(f"/proc/{one}/task/{thread}/schedstat", encoding="ascii") as stat:
                spent += int(stat.read().split()[0])
    return spent / 1e6


class Sidebar:
    """A user in so many channels, on the demo's instance."""

    def __init__(self, demo, count, words):
        self.pids = {name: pid[0] if isinstance(pid, list) else pid for name, pid in demo["pids"].items() if pid}
        self.link = http.client.HTTPConnection(demo["url"].removeprefix("http://"), timeout=120)
        user = ask(demo["url"], "admin.users.create", demo["admin_token"], name=f"reader-{secrets.token_hex(4)}")["user"]["id"]
        self.token = ask(demo["url"], "admin.tokens.create", demo["admin_token"], user_id=user)["token"]
        made = CHANNELS_SQL.format(words=words, count=count, workspace=demo["workspace"], user=user, poster=demo["users"][0]["id"])
        subprocess.run(["psql", "-qX", "-v", "ON_ERROR_STOP=1", demo["database_url"]], input=made, text=True, check=True)

    def calls(self, count, coding):
        """CPU time of a call, ms of each process, and the length of the reply."""
        before = {name: cpu_ms(pid) for name, pid in self.pids.items()}
        for _ in range(count):
            self.link.request("POST", "/api/unread.sync", headers={"Authorization": f"Bearer {self.token}", "Accept-Encoding": coding})
            body = self.link.getresponse().read()
        return {name: (cpu_ms(pid) - before[name]) / count for name, pid in self.pids.items()}, len(body)

    def compare(self, count):
        self.calls(1, "identity")
        pairs = [(self.calls(count, "identity"), self.calls(count, "gzip")) for _ in range(PAIRS)]
        ratios = [sum(packed.values()) / sum(plain.values()) for (plain, _), (packed, _) in pairs]
        of = lambda which, name: median(pair[which][0][name] for pair in pairs)
        return {"bytes": pairs[0][0][1], "gzip": pairs[0][1][1], "ratio": round(median(ratios), 2),
                "ms": {name: f"{of(0, name):.2f} -> {of(1, name):.2f}" for name in self.pids}}


def main():
    demo = json.loads((RUN / "demo.json").read_text(encoding="utf-8"))
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for words in (0, 8):
        print(f"{count} channels, {words} words in each:", Sidebar(demo, count, words).compare(max(1, 20000 // count)))


if __name__ == "__main__":
    main()
