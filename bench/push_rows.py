# SPDX-License-Identifier: Apache-2.0
"""The rows about pushes to phones, at a receiver that takes each push as APNs does, and answers a while later."""
import json
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from bench.data import INVITED_AT_ONCE, Api, make_user
from bench.hostile_rows import compare
from bench.honest_load import run_honest
from bench.outcome import Outcome, against, alternate, middle
from bench.rig import OPERATOR_TOKEN
from tools import node
from tools.service import free_port

RECEIVER = Path(__file__).with_name("receiver.mjs")
ANSWER_MS = 50
USERS = 1000
UNDER_WAY = 500  # pushes under way at once: as many as an app may have
AT_ONCE = 8  # calls of a set-up
RATE = 500
HONEST_S = 6
ARRIVE_S = 20
OFFLINE = 90_000  # of the big channel's 100,000 members

# Devices of members who have no token: as a registration leaves them, but for secrets, which are opened only when there is something to tell.
DEVICES_SQL = """
INSERT INTO push_apps (workspace_id, name, platform, fields) SELECT workspace_id, 'silence', 'matrix', '{{}}' FROM channels WHERE id = 'CBIG000001'
ON CONFLICT DO NOTHING;
INSERT INTO devices (user_id, app, device_id, workspace_id, address, digest, preview)
SELECT m.user_id, 'silence', 'phone', c.workspace_id, '', md5(m.user_id), 'full' FROM channels c JOIN channel_members m ON m.channel_id = c.id
WHERE c.id = 'CBIG000001' AND m.user_id LIKE 'UBULK%' ORDER BY m.user_id LIMIT {offline};
ANALYZE devices;
"""


def openssl(*arguments):
    return subprocess.run(["openssl", *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout


class Receiver:
    """A provider that answers after ANSWER_MS."""

    def __init__(self, home):
        self.certificate, key, port = home / "receiver.crt", home / "receiver.key", free_port()
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", self.certificate)
        self.url = f"https://127.0.0.1:{port}"
        self.process = subprocess.Popen([node.node(), RECEIVER, self.certificate, key, str(port), str(ANSWER_MS)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdout.readline()

    def report(self):
        """The pushes since the last report."""
        self.process.stdin.write("report\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@contextmanager
def receiving(bench):
    """An instance that pushes to a receiver."""
    receiver = Receiver(bench.rig.home)
    try:
        bench.rig.restart_tidings(settings={"TIDINGS_SECRET_KEY": "00" * 32, "TIDINGS_PUSH_APNS_URL": receiver.url,
                                            "TIDINGS_PUSH_CA_FILE": str(receiver.certificate)})
        yield receiver
        bench.rig.restart_tidings()
    finally:
        receiver.close()


def each_of(rig, users, call):
    """`call(api, user, number)` for all of them, some at a time."""
    def part(first):
        api = Api(rig.tidings.port)
        for number in range(first, len(users), AT_ONCE):
            call(api, users[number], number)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(part, range(AT_ONCE)))


def register(api, user, number):
    api(user["token"], "devices.register", device_id="phone", app="phones", push_token=f"{number:064x}")


def make_devices(rig):
    """A workspace in which each user has a phone, in the form that the load program reads. The first is its admin."""
    api = Api(rig.tidings.port)
    made = api(OPERATOR_TOKEN, "admin.workspaces.create", name="Push", domain=f"push-{time.monotonic_ns()}")
    admin = {"id": made["admin"]["user_id"], "token": made["admin"]["token"]}
    api(admin["token"], "admin.pushApps.create", name="phones", platform="apns", key_id="ABCDE12345", team_id="TEAM123456", topic="com.example.chat",
        key=openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"))
    users = [admin, *(make_user(api, admin["token"], f"user-{n}") for n in range(USERS))]
    each_of(rig, users, register)
    return {"url": rig.tidings.url, "users": users, "groups": {}}


def make_direct(rig, data):
    admin, *users = data["users"]
    channels = [None] * len(users)

    def open_one(api, user, number):
        channels[number] = {"id": api(admin["token"], "conversations.open", users=user["id"])["channel"]["id"], "members": [0]}
    each_of(rig, users, open_one)
    data["groups"]["direct"] = channels


def send_once(bench, receiver, key):
    receiver.report()
    done = subprocess.run([bench.rig.programs / "tidings-pushes", receiver.url, receiver.certificate, key, str(UNDER_WAY), str(bench.seconds)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    return {**json.loads(done.stdout), "connections": receiver.report()["connections"]}


def measure_rate(bench):
    """The server's thread that sends pushes, alone with a receiver."""
    key = bench.rig.home / "push.pem"
    key.write_text(openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"))
    receiver = Receiver(bench.rig.home)
    try:
        runs = [send_once(bench, receiver, key) for _ in range(bench.runs)]
    finally:
        receiver.close()
    return Outcome(middle(runs, "rate"), [run["rate"] for run in runs], fine=all(run["connections"] == 1 and run["retry"] == 0 for run in runs),
                   extra={name: [run[name] for run in runs] for name in ("delivered", "retry", "connections")})


def arrived(receiver, wanted):
    """The pushes received once there are this many pushes of messages, or ARRIVE_S later."""
    total, ends = {"messages": 0, "p50_ms": 0, "p99_ms": 0, "max_ms": 0}, time.monotonic() + ARRIVE_S
    while total["messages"] < wanted and time.monotonic() < ends:
        time.sleep(0.2)
        came = receiver.report()
        total = {name: total[name] + came[name] if name == "messages" else max(total[name], came[name]) for name in total}
    return total


def delay_once(bench, receiver, path):
    receiver.report()
    posts = bench.load("posts", data=path, group="direct", rate=RATE, warm_ms=0, clients=64)
    time.sleep(1)
    came = receiver.report()
    return {**came, "posts": posts["rate"]}


def measure_delay(bench):
    """500 direct messages/s to 1,000 users: from a message's time until its push has arrived."""
    rig, path = bench.rig, bench.rig.home / "push.json"
    with receiving(bench) as receiver:
        data = make_devices(rig)
        make_direct(rig, data)
        path.write_text(json.dumps(data))
        delay_once(bench, receiver, path)  # sessions plan their statements
        runs = [delay_once(bench, receiver, path) for _ in range(bench.runs)]
    wanted = RATE * bench.seconds
    return Outcome(middle(runs, "p99_ms"), [run["p99_ms"] for run in runs], fine=all(run["messages"] >= 0.99 * wanted for run in runs),
                   extra={"p50_ms": middle(runs, "p50_ms"), "max_ms": max(run["max_ms"] for run in runs),
                          "messages": [run["messages"] for run in runs], "connections": max(run["connections"] for run in runs)})


def measure_no_walk(bench):
    """Posts to a channel of 100,000 members, 90,000 of whom have a device and notifications for mentions only, against posts there without
    any device."""
    sql = bench.rig.postgres.sql

    def without():
        sql("DELETE FROM devices WHERE app = 'silence'")
        time.sleep(1)  # until the instance knows
        return bench.turn("posts", group="big", clients=64)

    def with_devices():
        sql(DEVICES_SQL.format(offline=OFFLINE))
        time.sleep(2)
        return bench.turn("posts", group="big", clients=64)
    floors, ours = alternate(bench, without, with_devices, bench.runs)
    sql("DELETE FROM devices WHERE app = 'silence'")
    return against(floors, ours, "rate")


def make_crowd(rig, data):
    """A channel whose members all have notifications for every message."""
    admin, *users = data["users"]
    api = Api(rig.tidings.port)
    channel = api(admin["token"], "channels.create", name="crowd")["channel"]["id"]
    for first in range(0, len(users), INVITED_AT_ONCE):
        api(admin["token"], "channels.invite", channel=channel, users=[user["id"] for user in users[first:first + INVITED_AT_ONCE]])
    each_of(rig, users, lambda api, user, _: api(user["token"], "channels.setNotifications", channel=channel, notify="all"))
    return channel


def crowd_once(bench, receiver, data, channel):
    api = Api(bench.rig.tidings.port)
    alone = run_honest(bench, HONEST_S)
    receiver.report()
    with ThreadPoolExecutor(1) as pool:
        honest = pool.submit(run_honest, bench, HONEST_S)
        time.sleep(2)
        api(data["users"][0]["token"], "chat.postMessage", channel=channel, text="to all of you")
        came = arrived(receiver, USERS)
        beside = honest.result()
    time.sleep(1.5)  # conversations rest
    return came, (alone, beside)


def measure_all(bench):
    """One post to 1,000 members with notifications for all messages: until all have their push, while others post and read."""
    rig = bench.rig
    with receiving(bench) as receiver:
        data = make_devices(rig)
        channel = make_crowd(rig, data)
        crowd_once(bench, receiver, data, channel)
        runs = [crowd_once(bench, receiver, data, channel) for _ in range(bench.runs)]
    ratio, extra = compare([pair for _, pair in runs])
    came = [came for came, _ in runs]
    fine = ratio <= 2 and extra["wrong"] == 0 and all(run["messages"] == USERS for run in came)
    return Outcome(middle(came, "max_ms"), [run["max_ms"] for run in came], fine=fine,
                   extra={**extra, "ratio": round(ratio, 2), "p50_ms": middle(came, "p50_ms"), "messages": [run["messages"] for run in came]})
