# SPDX-License-Identifier: Apache-2.0
"""All writers take their locks in one order (docs/locks.md): no combination of them deadlocks, or leaves a derived column wrong."""
import itertools
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.support.wait import wait_until
from tests.support.workspace import Workspace

ROUNDS = 2
TABLES = ("channels", "channel_members", "message_keys", "thread_members", "threads", "outbox", "app_events", "read_messages", "devices",
          "push_turns", "push_jobs", "notification_settings", "reactions", "reaction_counts", "pins")
# Each row takes a moment to write, so that two who begin at once meet in the middle.
SLOW = ("CREATE FUNCTION locks_slow() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_sleep(0.0005); RETURN coalesce(NEW, OLD); END $$")
# Not allowed just now; a piece of upkeep that waits no longer for a lock, and is tried again.
NO_FAULTS = ("TD001", "55P03")
SECONDS_US = 1_000_000


class World:
    """Two channels with two members each, messages, threads, an app with events, outbox rows: what all functions fight for."""

    def __init__(self, parts, database):
        workspace = Workspace(parts.urls, parts.operator_token)
        ann, bob = workspace.users(2)
        self.workspace = workspace.id
        self.users = [ann.id, bob.id]
        self.channels = sorted(workspace.channel(ann, bob) for _ in range(2))
        self.roots = [[int(user.post(channel).replace(".", "")) for user in (ann, bob)] for channel in self.channels]
        for channel, roots in zip(self.channels, self.roots):
            for root in roots:
                bob.post(channel, thread_ts=f"{root // SECONDS_US}.{root % SECONDS_US:06}")
        self.app = "A00000LOCKS" + workspace.id[-3:]
        bot = workspace.bot()
        database.execute("INSERT INTO apps (id, workspace_id, name, bot_user_id, signing_secret) VALUES (%s, %s, 'locks', %s, '')",
                         [self.app, self.workspace, bot.id])
        database.execute("INSERT INTO push_apps (workspace_id, name, platform, fields) VALUES (%s, 'push', 'matrix', '{}')", [self.workspace])
        self.numbers = itertools.count(1)
        self.round = 0  # the pair that runs, so that keys are new
        self.lock = threading.Lock()  # of what comes before a pair

    def order(self, items, back):
        return list(reversed(items)) if back else list(items)


def post(world, back, number):
    """Both authors in both channels, each with a key, a mention of the other and a reply; as the writer sorts them."""
    channels, users = world.channels, world.users
    pairs = [(c, u) for c in (1, 2) for u in (0, 1)]
    items = world.order(pairs, back)
    authors = sorted(range(4), key=lambda n: (channels[pairs[n][0] - 1], users[pairs[n][1]]))
    places = {pairs[n]: place for place, n in enumerate(authors, 1)}
    ranks = {1: 0, 2: 0}
    rows = []
    for channel, user in items:
        rows.append((channel, ranks[channel], ranks[channel] + 1, places[channel, user], 1, world.roots[channel - 1][user]))
        ranks[channel] += 1
    column = [list(values) for values in zip(*rows)]
    keys = [f"key-{number}-{n}" for n in world.order(range(4), back)]
    return ("SELECT post_batch(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s,"
            " true, true, true, 2)",
            [f"locks-{next(world.numbers)}", channels, [world.workspace] * 2, [2, 2], [2, 2], [2, 2], users, ["", ""],
             [pairs[n][0] for n in authors], [users[pairs[n][1]] for n in authors], [1] * 4,
             column[0], column[1], column[2], column[3], column[4], ["reply"] * 4, [None] * 4, column[5], [True] * 4, keys, ["d"] * 4,
             [None] * 4, [1, 2, 3, 4], [users[1 - user] for _, user in items], [1] * 4])


def keys(world, back, number):
    """Two keys of one author, in the opposite order in the other channel, as from a phone that retries on two instances."""
    channel, user = world.channels[back], world.users[0]
    return ("SELECT post_batch(%s, %s, %s, '{2}', '{2}', '{2}', %s, '{x}', %s, %s, '{2}', '{1,1}', '{0,1}', '{1,2}', '{1,1}', '{1,2}',"
            " '{a,b}', '{NULL,NULL}', '{0,0}', '{f,f}', %s, '{d,d}', '{NULL,NULL}', '{}', '{}', '{}', true, false, false, 2)",
            [f"locks-{next(world.numbers)}", [channel], [world.workspace], [user], [1], [user],
             world.order([f"{word}-{world.round}-{number}" for word in ("one", "two")], back)])


def marks(world, back, number):
    pairs = world.order([(c, u) for c in world.channels for u in world.users], back)
    return ("SELECT mark_batch(%s, %s, %s, %s, %s, %s, %s)",
            [f"locks-{next(world.numbers)}", list(range(4)), [world.workspace] * 4, [u for _, u in pairs], [c for c, _ in pairs],
             [world.roots[0][0] * 2] * 4, [-1] * 4])


def many_marks(world, back, number):
    channels = world.order(world.channels * 2, back)
    return ("SELECT mark_many(%s, %s, %s, %s, %s, %s)",
            [f"locks-{next(world.numbers)}", world.workspace, world.users[back], channels, [world.roots[0][0] * 2] * 4, [-1] * 4])


def of_channel(sql, *more):
    """A function of one channel: the first, or in the opposite direction the second."""
    def call(world, back, number):
        channel, user = world.channels[back], world.users[back]
        names = {"row": f"locks-{next(world.numbers)}", "workspace": world.workspace, "channel": channel, "user": user,
                 "other": world.users[1 - back], "users": world.order(world.users, back), "message": world.roots[back][back],
                 "name": f"name-{number % 2 ^ back}-{world.workspace.lower()}", "app": world.app, "number": number}
        return sql, names
    return call


def events(sql):
    """Several of an app's events, in either order."""
    def call(world, back, number):
        return sql, {"apps": [world.app] * 4, "channels": world.order([c for c in world.channels for _ in (1, 2)], back),
                     "seqs": world.order([1, 2, 1, 2], back), "ones": [1] * 4, "texts": [""] * 4, "app": world.app}
    return call


def device(world, back, number):
    """Each user's phone, which gets the other's token."""
    return ("SELECT devices_register(%s, %s, 'push', 'matrix', 'phone', 'a', %s, NULL, 'full', 100)",
            [world.workspace, world.users[(back + number) % 2], [f"{world.workspace}-{(back + world.round) % 2}"]])


def addresses(world, back, number):
    ids = world.order([f"{user}/push/phone" for user in world.users], back)
    return "SELECT device_addresses_put(%s, '{a,a}', '{a,a}', %s)", [ids, [f"{one}-{number}-{back}" for one in ids]]


def pushes(world, back, number):
    """An edit and a delete of each channel's first message, posts that mention, and marks."""
    rows = world.order([(kind, channel, user, root) for kind in ("post", "edit", "delete", "mark")
                        for channel, root, user in zip(world.channels, world.roots, world.users)], back)
    kinds, channels, users, roots = (list(column) for column in zip(*rows))
    return ("SELECT pushes_add(%s, %s, %s, %s, %s, %s, 1000)",
            [kinds, [world.workspace] * 8, channels, [1] * 8, [root[0] for root in roots], users])


def settled(world, back, number):
    users = world.order(world.users, back)
    return ("SELECT pushes_settle(%s, '{push,push}', '{phone,phone}', ARRAY(SELECT coalesce((SELECT t.lease FROM push_turns t"
            " WHERE t.user_id = u.id), 0) FROM unnest(%s::text[]) WITH ORDINALITY AS u (id, n) ORDER BY u.n), '{0,0}', %s, '{0,0}', '{a,b}', 0)",
            [users, users, [["refused", "retry"], ["gone", "delivered"]][number % 2]])


def many_users(world, back, number):
    """The same names, in either order."""
    texts = [f"U{next(world.numbers)}L" for _ in range(4)]
    shared = [f"lock-{number}-{place}" for place in range(4)]
    return ("SELECT users_create_many(%s, %s, array_fill(NULL::text, '{4}'), %s, %s, array_fill(NULL::text, '{4}'), %s, '{f,f,f,f}')",
            [world.workspace, texts, world.order(shared, back), shared, world.order(shared, back)])


def folded(world, back, number):
    """Names that were not folded: of two channels or two users."""
    table, ids = [("channels", world.channels), ("users", world.users)][number % 2]
    return (f"SELECT names_fold('{table}', array_agg(x.id), array_agg(x.name), array_agg('lock-' || {number} || '-' || length(x.name)))"
            f" FROM {table} x WHERE x.id = ANY (%s)", [world.order(ids, back)])


def outbox(world, back, number):
    return ("SELECT outbox_delete(ARRAY(SELECT id FROM outbox WHERE id LIKE 'locks-%%' ORDER BY CASE WHEN %s THEN id END DESC, id LIMIT 50))",
            [back == 1])


# What is so before a pair: both channels have messages of a month that goes; those who are added have been members.
MONTH = """DELETE FROM month_expiring; DELETE FROM month_channels;
    INSERT INTO month_channels (channel_id, ts, seq, ord) SELECT h.id, h.last_ts, h.seq, h.ord FROM channel_heads h WHERE h.id = ANY ('{{{channels}}}');
    UPDATE channel_members SET ts = 0, ord = 0 WHERE channel_id = ANY ('{{{channels}}}');
    INSERT INTO month_expiring (month, kept_from, step) VALUES ('messages_2020_01', clock_us(), array_position(month_steps(), '{step}'))"""
MONTH_STEPS = ("move", "heads", "thread_members", "threads", "mentions", "changes")


def month(step):
    return lambda world, back: MONTH.format(channels=",".join(world.channels), step=step)


def left(world, back):
    return f"""UPDATE channel_members SET active = false WHERE channel_id = '{world.channels[back]}';
        UPDATE channels SET member_count = 0 WHERE id = '{world.channels[back]}'"""


def phones(world, back):
    """Each user has one, with a job for each channel, and dead letters."""
    return f"""INSERT INTO push_apps (workspace_id, name, platform, fields) VALUES ('{world.workspace}', 'push', 'matrix', '{{}}') ON CONFLICT DO NOTHING;
        SELECT devices_register('{world.workspace}', u, 'push', 'matrix', 'phone', 'a', ARRAY['{world.workspace}-' || u], NULL, 'full', 100)
        FROM unnest(ARRAY['{"', '".join(world.users)}']) u;
        INSERT INTO push_jobs (user_id, app, device_id, channel_id, thread_ts, workspace_id, ts, told_ts, is_dead, shown_ts)
        SELECT t.user_id, t.app, t.device_id, c, 0, t.workspace_id, 1, r, true, r FROM push_turns t,
        unnest('{{{",".join(world.channels)}}}'::text[], ARRAY[{world.roots[0][0]}, {world.roots[1][0]}]::bigint[]) AS w (c, r)
        WHERE t.workspace_id = '{world.workspace}'
        ON CONFLICT (user_id, app, device_id, channel_id, thread_ts) DO UPDATE SET is_dead = true, shown_ts = excluded.shown_ts,
            told_ts = excluded.told_ts, due_at = NULL"""


def first_start(world, back):
    """Nobody has settings, and the user has no phone."""
    return phones(world, back) + f""";
        DELETE FROM notification_settings WHERE user_id = ANY ('{{{",".join(world.users)}}}'); UPDATE devices SET hears_all = false;
        DELETE FROM devices WHERE user_id = '{world.users[back]}'"""


PUSHES = ("pushes_add", "pushes_take", "pushes_settle", "push_dead_retry", "push_dead_drop", "notifications_set", "dnd_set_snooze",
          "users_set_active", "set_notifications", "push_apps_delete", "clock_went_back")
BEFORE = {**{name: phones for name in PUSHES}, "notifications_set of a new phone": first_start, "members_add of ex-members": left,
          **{f"month_expire, {step}": month(step) for step in MONTH_STEPS}}
ADD = of_channel("SELECT members_add(%(row)s, l.id, %(users)s::text[], %(user)s) FROM (SELECT id FROM channels"
                 " WHERE id = %(channel)s FOR NO KEY UPDATE) l")
WRITERS = {
    "post_batch": post,
    "post_batch of keys": keys,
    "post_one": of_channel("SELECT post_one(%(row)s, %(workspace)s, %(channel)s, %(user)s, '', 'text', NULL, NULL, NULL, NULL, 2)"),
    "mark_batch": marks,
    "mark_many": many_marks,
    "mark_all": of_channel("SELECT mark_all(%(row)s, %(workspace)s, %(user)s, 15, true)"),
    "mark_until": of_channel("SELECT mark_until(%(row)s, %(workspace)s, %(user)s, 15, true, %(message)s * 2, NULL)"),
    "mark_unread": of_channel("SELECT mark_unread(%(row)s, %(workspace)s, %(user)s, %(channel)s, %(message)s)"),
    "mark_messages": of_channel("SELECT mark_messages(%(row)s, %(workspace)s, %(user)s, %(channel)s, ARRAY[%(message)s::bigint], 100)"),
    "message_update": of_channel("SELECT message_update(%(row)s, %(workspace)s, %(user)s, %(channel)s, %(message)s, 'edited', NULL,"
                                 " %(users)s::text[], '{1,1}', false, false)"),
    "members_add": ADD,
    "members_add of ex-members": ADD,
    "channels_add_members": of_channel("SELECT channels_add_members(%(row)s, %(workspace)s, %(user)s, %(channel)s, %(users)s::text[])"),
    "files_announce": of_channel("SELECT files_announce(%(workspace)s, %(user)s, 'F' || %(row)s, %(row)s, 'x', 'x', NULL, 1, 1000000000)"),
    "files_complete": of_channel("SELECT files_complete(%(workspace)s, %(user)s, ARRAY(SELECT id FROM files WHERE user_id = %(user)s ORDER BY id DESC"
                                 " LIMIT 3), '{NULL,NULL,NULL}', '')"),
    "files_upload_end": of_channel("SELECT files_upload_end(id, id, 'x', 'x') FROM files WHERE user_id = %(user)s ORDER BY id LIMIT 1"),
    "files_delete": of_channel("SELECT files_delete(%(workspace)s, %(user)s, true, (SELECT min(id) FROM files WHERE user_id = %(user)s))"),
    "files_sweep": of_channel("SELECT files_sweep(%(number)s, 1, 10)"),
    "files_swept": of_channel("SELECT files_swept(ARRAY(SELECT object FROM file_objects LIMIT 10))"),
    "file_shares_end": of_channel("SELECT file_shares_end(id, %(message)s) FROM (SELECT id FROM channels WHERE id = %(channel)s FOR NO KEY UPDATE) c"),
    "webhooks_create": of_channel("SELECT webhooks_create(%(row)s, %(workspace)s, %(user)s, %(channel)s, 'B' || %(row)s, 'U' || %(row)s, %(row)s,"
                                  " %(row)s, 'hook', NULL, NULL, 1000000)"),
    "webhooks_delete": of_channel("SELECT webhooks_delete(%(row)s, %(workspace)s, (SELECT min(id) FROM webhooks WHERE channel_id = %(channel)s))"),
    "users_create_many": many_users,
    "names_fold": folded,
    "channels_leave": of_channel("SELECT channels_leave(%(row)s, %(workspace)s, %(user)s, %(channel)s)"),
    "channels_join": of_channel("SELECT channels_join(%(row)s, %(workspace)s, %(user)s, %(channel)s)"),
    "channels_rename": of_channel("SELECT channels_rename(%(row)s, %(workspace)s, %(user)s, true, %(channel)s, %(name)s, %(name)s)"),
    "channels_create": of_channel("SELECT channels_create(%(row)s, %(workspace)s, %(user)s, 'C' || %(row)s, %(name)s, %(name)s, false, 'auto', '{0,0,0}')"),
    "channels_set": of_channel("SELECT channels_set(%(row)s, %(workspace)s, %(user)s, %(channel)s, 'topic', %(row)s)"),
    "channels_set_strategy": of_channel("SELECT channels_set_strategy(%(row)s, %(workspace)s, %(user)s, true, %(channel)s,"
                                        " CASE WHEN %(number)s %% 2 = 0 THEN 'zset' ELSE 'bitmap' END, '{0,0,0}')"),
    "strategies_auto": of_channel("SELECT strategies_auto(%(row)s, '{0,0,0}', '', 10)"),
    "set_notifications": of_channel("SELECT channels_set_notifications(%(row)s, %(workspace)s, %(user)s, %(channel)s,"
                                    " %(number)s %% 2 = 0, NULL)"),
    "direct_open": of_channel("SELECT direct_open(%(row)s, %(workspace)s, %(user)s, 'D' || %(row)s, ARRAY[%(other)s], true, false)"),
    "threads_follow": of_channel("SELECT threads_follow(%(row)s, %(workspace)s, %(user)s, %(channel)s, %(message)s)"),
    "threads_unfollow": of_channel("SELECT threads_unfollow(%(row)s, %(workspace)s, %(user)s, %(channel)s, %(message)s)"),
    "threads_mark": of_channel("SELECT threads_mark(%(row)s, %(workspace)s, %(user)s, %(channel)s, %(message)s, %(message)s * 2)"),
    "outbox_delete": outbox,
    "clock_went_back": of_channel("SELECT clock_went_back()"),
    "link_events_ack": events("SELECT link_events_ack(%(apps)s, %(channels)s, %(seqs)s, %(texts)s)"),
    "app_secrets_put": events("SELECT app_secrets_put(ARRAY[%(app)s], '{}', '{}')"),
    "devices_register": device,
    "push_settle": of_channel("SELECT push_settle(%(user)s, 'push', 'phone', 'none', 'retry')"),
    "devices_unregister": of_channel("SELECT devices_unregister(%(user)s, 'phone', NULL)"),
    "device_addresses_put": addresses,
    "pushes_add": pushes,
    "pushes_take": of_channel("SELECT pushes_take('{}', 10, 10, 1, 100, false)"),
    "pushes_settle": settled,
    "push_dead_retry": of_channel("SELECT push_dead_retry(%(workspace)s, NULL)"),
    "push_dead_drop": of_channel("SELECT push_dead_drop(%(workspace)s, 'push')"),
    "notifications_set": of_channel("SELECT notifications_set(%(user)s, 'all', NULL, NULL, NULL, NULL, NULL)"),
    "notifications_set of a new phone": of_channel("SELECT notifications_set(%(user)s, NULL, NULL, 'all', NULL, NULL, NULL)"),
    "dnd_set_snooze": of_channel("SELECT dnd_set_snooze(%(user)s, 1)"),
    "users_profile_set": of_channel("SELECT users_profile_set(%(workspace)s, %(user)s, %(user)s, '{}', NULL)"),
    "users_update": of_channel("SELECT users_update(%(workspace)s, %(user)s, NULL, NULL, NULL, '', NULL, NULL, NULL, NULL)"),
    "stream_append": of_channel("SELECT stream_append(%(workspace)s, %(user)s, %(channel)s, %(message)s, 'x', '', 40000)"),
    "stream_end": of_channel("SELECT stream_end(%(channel)s, %(message)s)"),
    "emoji_add": of_channel("SELECT emoji_add(%(workspace)s, %(user)s, lower(%(row)s), 'x', NULL, 1000000)"),
    "emoji_remove": of_channel("SELECT emoji_remove(%(workspace)s, (SELECT min(name) FROM emoji WHERE workspace_id = %(workspace)s))"),
    "users_set_active": of_channel("SELECT users_set_active(%(workspace)s, %(user)s, true)"),
    "push_apps_delete": of_channel("SELECT push_apps_delete(%(workspace)s, CASE WHEN %(number)s = 0 THEN 'push' ELSE 'none' END)"),
    "link_events_return": events("SELECT link_events_return(%(apps)s, %(channels)s, %(seqs)s, %(ones)s, %(texts)s, %(ones)s)"),
    "link_events_take": events("SELECT link_events_take(ARRAY[%(app)s], '{10}', 1, 9)"),
    "app_events_settle": events("SELECT app_events_settle(%(apps)s, %(channels)s, %(seqs)s, %(ones)s, %(ones)s, %(texts)s)"),
    "app_events_clean": events("SELECT app_events_clean(0, 0, 10)"),
    "reactions_add": of_channel("SELECT reactions_add(%(row)s, %(workspace)s, %(user)s, %(channel)s, %(message)s, 'e' || %(number)s %% 20)"),
    "reactions_remove": of_channel("SELECT reactions_remove(%(row)s, %(workspace)s, %(user)s, %(channel)s, %(message)s, 'e' || %(number)s %% 20)"),
    "pins_add": of_channel("SELECT pins_add(%(row)s, %(workspace)s, %(user)s, %(channel)s, %(message)s)"),
    "pins_remove": of_channel("SELECT pins_remove(%(row)s, %(workspace)s, %(user)s, %(channel)s, %(message)s)"),
    "rows_expire of reactions": of_channel("SELECT rows_expire('reactions', 0, 0, 20)"),
    "rows_expire": of_channel("SELECT rows_expire('message_keys', 0, 0, 20)"),
    **{f"month_expire, {step}": of_channel("SELECT month_expire(-1, 20, false)") for step in MONTH_STEPS},
}


# Neither locks a row that the other has locked, except that of the user.
FIRST_START = [("devices_register", "notifications_set of a new phone")]

# Rows whose derived columns differ from what they are derived from.
DERIVED = """
    SELECT 'devices.hears_all', d.user_id FROM devices d
    WHERE d.hears_all <> notification_settings_hear_all(notification_settings_of(d.user_id))
    UNION ALL
    SELECT 'channels.member_count', c.id FROM channels c
    WHERE c.member_count <> (SELECT count(*) FROM channel_members m WHERE m.channel_id = c.id AND m.active)
    UNION ALL
    SELECT 'channels.numbers', c.id FROM channels c
    WHERE c.numbers <> (SELECT coalesce(max(m.number) + 1, 0) FROM channel_members m WHERE m.channel_id = c.id)
    UNION ALL
    SELECT 'channels.last_ts', h.id FROM channel_heads h
    WHERE h.last_ts < (SELECT max(m.ts) FROM messages m WHERE m.channel_id = h.id)
    UNION ALL
    SELECT 'channels.ord', h.id FROM channel_heads h
    WHERE h.ord <> (SELECT count(*) FROM messages m WHERE m.channel_id = h.id AND m.counted)
    UNION ALL
    SELECT 'channels.latest_ts', r.user_id FROM unread_rows r
    WHERE r.latest_ts <> (SELECT max(m.ts) FROM messages m WHERE m.channel_id = r.channel_id AND m.counted AND NOT m.deleted)
    UNION ALL
    SELECT 'channel_members.posts', r.user_id FROM unread_rows r
    WHERE r.posts <> (SELECT count(*) FROM messages m WHERE m.channel_id = r.channel_id AND m.user_id = r.user_id AND m.counted)
    UNION ALL
    SELECT 'channel_members.ord and own', r.user_id FROM unread_rows r
    WHERE r.unread <> (SELECT count(*) FROM messages m
                       WHERE m.channel_id = r.channel_id AND m.ts > r.ts AND m.user_id <> r.user_id AND m.counted AND NOT m.deleted
                         AND NOT EXISTS (SELECT FROM read_messages s
                                         WHERE s.channel_id = m.channel_id AND s.user_id = r.user_id AND s.ts = m.ts))
    UNION ALL
    SELECT 'channel_members.singles', m.user_id FROM channel_members m
    WHERE m.singles <> (SELECT count(*) FROM read_messages r WHERE r.channel_id = m.channel_id AND r.user_id = m.user_id)
    UNION ALL
    SELECT 'channel_members.mention_ts', m.user_id FROM channel_members m
    WHERE m.mention_ts < (SELECT max(n.ts) FROM mentions n WHERE n.channel_id = m.channel_id AND n.user_id = m.user_id AND n.counted)
    UNION ALL
    SELECT 'threads.reply_count', t.channel_id FROM threads t
    WHERE t.reply_count <> (SELECT count(*) FROM messages m WHERE m.channel_id = t.channel_id AND m.thread_ts = t.ts AND NOT m.deleted)
    UNION ALL
    SELECT 'threads.latest_reply', t.channel_id FROM threads t
    WHERE t.latest_reply <> (SELECT coalesce(max(m.ts), 0) FROM messages m WHERE m.channel_id = t.channel_id AND m.thread_ts = t.ts AND NOT m.deleted)
    UNION ALL
    SELECT 'thread_members.replies', t.user_id FROM thread_members t
    WHERE t.replies <> (SELECT count(*) FROM messages m
                        WHERE m.channel_id = t.channel_id AND m.thread_ts = t.thread_ts AND m.user_id = t.user_id AND NOT m.deleted)
    UNION ALL
    SELECT 'reaction_counts.count', r.channel_id FROM reaction_counts r
    WHERE r.count <> (SELECT count(*) FROM reactions x WHERE x.ts = r.ts AND x.channel_id = r.channel_id AND x.name = r.name)
    UNION ALL
    SELECT 'push_turns.due_at', t.user_id FROM push_turns t
    WHERE t.leased_at IS NULL AND t.tries = 0 AND (t.due_at <= greatest(push_next(t), now()) + interval '1 second') IS NOT TRUE AND push_next(t) IS NOT NULL
"""


def of_a_month(pair):
    """Whether it deletes what columns are derived from; such pairs come last."""
    return any("month" in name for name in pair)


def derived_wrong(database, pair):
    return [(*row, "by or before", pair) for row in database.execute(DERIVED)]


def deadlocks(database):
    database.execute("SELECT pg_stat_clear_snapshot()")
    return database.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").fetchone()[0]


class Side(threading.Thread):
    """Runs its part of all pairs, in parallel with the other side."""

    def __init__(self, parts, world, pairs, back, turn):
        super().__init__()
        self.world, self.pairs, self.back, self.turn = world, pairs, back, turn
        self.database = parts.database()
        self.database.execute("SET deadlock_timeout = '5ms'; SET statement_timeout = '20s'")
        self.failed = []

    def run(self):
        for self.world.round, pair in enumerate(self.pairs):
            for number in range(ROUNDS):
                name = pair[self.back]
                self.turn.wait(60)
                if name in BEFORE:
                    with self.world.lock:
                        self.database.execute(BEFORE[name](self.world, self.back))
                self.turn.wait(60)
                try:
                    self.database.execute(*WRITERS[name](self.world, self.back, number))
                except psycopg.Error as error:
                    if error.sqlstate not in NO_FAULTS:
                        self.failed.append((pair, number, str(error).splitlines()[0]))


@pytest.mark.parametrize("share", [3, pytest.param(1, marks=pytest.mark.long)])
def test_no_two_writers_wait_for_each_other(parts, share):
    """All pairs take minutes: one in `share` of them, others each time."""
    with parts.database() as database:
        world = World(parts, database)
        for instance in parts.instances:
            assert instance.stop() == 0
        try:
            database.execute(SLOW)
            for table in TABLES:
                database.execute(f"CREATE TRIGGER locks_slow BEFORE INSERT OR UPDATE OR DELETE ON {table}"
                                 " FOR EACH ROW EXECUTE FUNCTION locks_slow()")
            before, wrong = deadlocks(database), []
            pairs = sorted(itertools.combinations_with_replacement(WRITERS, 2), key=of_a_month)
            pairs = FIRST_START * 10 + pairs[random.randrange(share)::share]
            turn = threading.Barrier(2, lambda: of_a_month(pairs[world.round]) or wrong.extend(derived_wrong(database, pairs[world.round])))
            sides = [Side(parts, world, pairs, back, turn) for back in (0, 1)]
            for side in sides:
                side.start()
            for side in sides:
                side.join()
            assert not {row[0]: row for row in reversed(wrong)}
            assert not [failure for side in sides for failure in side.failed][:10]
            for side in sides:
                side.database.close()
            database.execute("SELECT pg_stat_force_next_flush()")
            assert deadlocks(database) == before
        finally:
            database.execute("DROP FUNCTION IF EXISTS locks_slow CASCADE; SELECT month_forget()")
            for instance in parts.instances:
                instance.start()


ROWS = "FROM channel_members WHERE user_id = %s AND channel_id = ANY (%s)"


def test_mark_all_locks_a_users_rows_in_the_order_of_their_channels(parts):
    """While it waits for one row, it holds those before it and none after it, wherever the rows lie in the table."""
    workspace = Workspace(parts.urls, parts.operator_token)
    ann, bob = workspace.users(2)
    channels = sorted(workspace.channel(ann, bob) for _ in range(20))
    for channel in channels:
        bob.post(channel)
    with parts.database() as database, parts.database() as holder, parts.database() as marker, ThreadPoolExecutor(1) as pool:
        for channel in reversed(channels):
            database.execute("UPDATE channel_members SET changed = changed WHERE user_id = %s AND channel_id = %s", [ann.id, channel])
            database.execute("UPDATE channels SET changed = changed WHERE id = %s", [channel])
        database.execute("ANALYZE channels, channel_members")  # Postgres knows that the tables are small
        pid = marker.info.backend_pid
        with holder.transaction():
            holder.execute(f"SELECT {ROWS} FOR UPDATE", [ann.id, [channels[10]]])
            marking = pool.submit(marker.execute, "SELECT mark_all('locks-all', %s, %s, 15, false)", [workspace.id, ann.id])
            wait_until(lambda: database.execute("SELECT cardinality(pg_blocking_pids(%s))", [pid]).fetchone()[0], what="mark_all waiting for the row")
            free = database.execute(f"SELECT channel_id {ROWS} FOR UPDATE SKIP LOCKED", [ann.id, channels]).fetchall()
        marking.result()
    assert sorted(channel for channel, in free) == channels[11:]
