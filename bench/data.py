# SPDX-License-Identifier: Apache-2.0
"""The data that is measured on: through the API, and by SQL where there are too many rows for it.

    small    50 channels of 20 members each, 1,000 users in all; every user has a token
    all      one channel with the same 1,000 users
    ten      one channel with 10 of them
    big      one channel with 100,000 members, 10 of them with tokens
    sync     10,000 channels of two: who posts, and who syncs; one user syncs 1,000, one 10,000
    huge     100,000 channels with a message in each, and one user in all of them, who posts nothing
"""
import http.client
import json
import time

from bench.rig import OPERATOR_TOKEN, SetUpError

CHANNELS = 50
MEMBERS = 20
BIG_MEMBERS = 100_000
SYNC_CHANNELS = 10_000
SYNC_FEW = 1_000
HUGE_CHANNELS = 100_000
INVITED_AT_ONCE = 100
REBUILT_WITHIN_S = 120

# No events are made for these rows: their channels start at seq 0, where a member that never read is.
BULK_SQL = """
INSERT INTO users (id, workspace_id, name, real_name)
SELECT 'UBULK' || lpad(n::text, 6, '0'), '{workspace}', 'bulk' || n, '' FROM generate_series(1, {big}) n;

INSERT INTO channels (id, workspace_id, name, creator, member_count)
SELECT 'CSYNC' || lpad(n::text, 6, '0'), '{workspace}', 'sync-' || n, '{poster}', CASE WHEN n <= {few} THEN 3 ELSE 2 END
FROM generate_series(1, {sync}) n;
INSERT INTO channel_members (channel_id, user_id, member_seq)
SELECT 'CSYNC' || lpad(n::text, 6, '0'), member, 0
FROM generate_series(1, {sync}) n CROSS JOIN unnest(ARRAY['{poster}', '{many_reader}', '{few_reader}']) member
WHERE member <> '{few_reader}' OR n <= {few};

INSERT INTO channels (id, workspace_id, name, creator, member_count)
VALUES ('CBIG000001', '{workspace}', 'big', '{poster}', {big} + 10);
INSERT INTO channel_members (channel_id, user_id, member_seq)
SELECT 'CBIG000001', 'UBULK' || lpad(n::text, 6, '0'), 0 FROM generate_series(1, {big}) n
UNION ALL SELECT 'CBIG000001', unnest(ARRAY[{ten}]), 0;

INSERT INTO channels (id, workspace_id, name, creator, member_count, seq, ord, last_ts, updated_ts, latest_ts, latest_user, latest_preview)
SELECT 'CHUGE' || lpad(n::text, 6, '0'), '{workspace}', 'huge-' || n, '{poster}', 2, 1, 1, h.ts + n, h.ts + n, h.ts + n, '{poster}',
       'a message of usual length, as previews go'
FROM generate_series(1, {huge}) n, (SELECT (extract(epoch FROM now()) * 1000000)::bigint - {huge} AS ts) h;
INSERT INTO messages (channel_id, ts, seq, ord, user_id, author_posts, counted, body)
SELECT id, last_ts, 1, 1, '{poster}', 1, true, latest_preview FROM channels WHERE id LIKE 'CHUGE%';
INSERT INTO channel_members (channel_id, user_id, member_seq, posts)
SELECT id, member, 0, CASE WHEN member = '{poster}' THEN 1 ELSE 0 END
FROM channels CROSS JOIN unnest(ARRAY['{poster}', '{huge_reader}']) member WHERE id LIKE 'CHUGE%';
ANALYZE users, channels, channel_members, messages;
"""


def metrics(port):
    """The metrics of an instance."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    link.request("GET", "/metrics")
    return link.getresponse().read().decode()


class Api:
    """One keep-alive connection to an instance."""

    def __init__(self, port):
        self.link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def __call__(self, token, method, **arguments):
        self.link.request("POST", f"/api/{method}", json.dumps(arguments),
                          {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
        reply = json.load(self.link.getresponse())
        if not reply["ok"]:
            raise SetUpError(f"{method}: {reply}")
        return reply


def make_user(api, admin, name):
    user = api(admin, "admin.users.create", name=name)["user"]
    token = api(admin, "admin.tokens.create", user_id=user["id"])["token"]
    return {"id": user["id"], "token": token}


def make_channel(api, users, name, members):
    """A channel of some of the users; `members` are their places in the list."""
    creator, others = users[members[0]], [users[place]["id"] for place in members[1:]]
    channel = api(creator["token"], "channels.create", name=name)["channel"]["id"]
    for start in range(0, len(others), INVITED_AT_ONCE):
        api(creator["token"], "channels.invite", channel=channel,
            users=others[start:start + INVITED_AT_ONCE])
    return {"id": channel, "members": list(members)}


def make_bulk(rig, workspace, users):
    """The rows that are too many for the API. The last four users are the poster and the readers."""
    poster, many_reader, few_reader, huge_reader = (user["id"] for user in users[-4:])
    ten = ", ".join(f"'{user['id']}'" for user in users[:10])
    rig.postgres.sql(BULK_SQL.format(
        workspace=workspace, poster=poster, many_reader=many_reader, few_reader=few_reader, ten=ten,
        big=BIG_MEMBERS, sync=SYNC_CHANNELS, few=SYNC_FEW, huge=HUGE_CHANNELS, huge_reader=huge_reader))


def make(rig):
    """Makes all of it and writes the rig's data file."""
    api = Api(rig.tidings.port)
    made = api(OPERATOR_TOKEN, "admin.workspaces.create", name="Bench", domain="bench")
    admin = made["admin"]["token"]
    count = CHANNELS * MEMBERS
    users = [make_user(api, admin, f"user-{n}") for n in range(count + 4)]
    groups = {
        "small": [make_channel(api, users, f"small-{n}", range(n * MEMBERS, (n + 1) * MEMBERS))
                  for n in range(CHANNELS)],
        "all": [make_channel(api, users, "all", range(count))],
        "ten": [make_channel(api, users, "ten", range(10))],
        "big": [{"id": "CBIG000001", "members": list(range(10))}],
        "sync": [{"id": f"CSYNC{n:06}", "members": [count]} for n in range(1, SYNC_CHANNELS + 1)],
    }
    make_bulk(rig, made["workspace"]["id"], users)
    data = {"url": rig.tidings.url, "users": users, "groups": groups,
            "many_reader": count + 1, "few_reader": count + 2,
            "huge_reader": count + 3, "poster": count}
    rig.data.write_text(json.dumps(data))
    forget_copies(rig)
    rig.load("posts", group="sync", total=SYNC_CHANNELS, seconds=60, clients=64)
    return data


def forget_copies(rig):
    """Redis does not have the changes made by SQL: empties it and waits for the rebuild from Postgres."""
    rig.tidings.stop()
    rig.redis.cli("FLUSHALL")
    rig.tidings.start()
    deadline = time.monotonic() + REBUILT_WITHIN_S
    while rig.redis.cli("EXISTS", "unread-built") != "1":
        if time.monotonic() > deadline:
            raise SetUpError(f"Redis was not rebuilt within {REBUILT_WITHIN_S} s")
        time.sleep(0.2)
