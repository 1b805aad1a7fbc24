# SPDX-License-Identifier: Apache-2.0
"""The real processes under the property test: what runs now, and how to stop and start it."""
from tests.support.environment import end_of, log_trouble

COUNT_BY_SQL = """
    SELECT m.user_id, m.channel_id, count(x.ts)
    FROM channel_members m
    LEFT JOIN messages x ON x.channel_id = m.channel_id AND x.ts > m.ts AND x.user_id <> m.user_id AND NOT x.deleted
        AND coalesce(x.subtype, '') NOT IN ('channel_join', 'channel_leave') AND (x.thread_ts IS NULL OR x.broadcast)
        AND NOT EXISTS (SELECT 1 FROM read_messages r WHERE r.channel_id = m.channel_id AND r.user_id = m.user_id AND r.ts = x.ts)
    WHERE m.active AND m.channel_id = ANY(%s)
    GROUP BY 1, 2
"""


THREADS_BY_SQL = """
    SELECT count(*)
    FROM thread_members m
    JOIN channel_members c ON c.channel_id = m.channel_id AND c.user_id = m.user_id AND c.active
    JOIN messages x ON x.channel_id = m.channel_id AND x.thread_ts = m.thread_ts
        AND x.ts > m.ts AND x.user_id <> m.user_id AND NOT x.deleted
    WHERE m.user_id = %s AND m.following
"""


BADGE_BY_SQL = "SELECT push_badge(id, workspace_id, false) FROM users WHERE id = %(user)s"


class Services:
    """Two instances, Postgres and Redis of an Environment, with a record of which are up; and FCM for the phones."""

    def __init__(self, environment, gateway):
        self.environment = environment
        self.gateway = gateway
        self.alive = [True for _ in environment.instances]
        self.redis_alive = True
        self._database = environment.database()

    def close(self):
        self._database.close()

    @property
    def instances(self):
        return self.environment.instances

    def all_up(self):
        self.start_redis()
        self.start_instances()

    def stop_instance(self, number, gently):
        instance = self.instances[number]
        if gently:
            trouble = end_of(instance)
        else:
            instance.kill()
            trouble = log_trouble(instance)
        self.alive[number] = False
        assert not trouble, trouble

    def start_instances(self):
        """An instance needs Redis to become ready."""
        if not all(self.alive):
            self.start_redis()
        for number, instance in enumerate(self.instances):
            instance.start()
            self.alive[number] = True

    def flush_redis(self):
        if self.redis_alive:
            self.environment.redis.cli("FLUSHALL")

    def kill_redis(self):
        self.environment.redis.kill()
        self.redis_alive = False

    def start_redis(self):
        self.environment.redis.start()
        self.redis_alive = True

    def sql_unread(self, channels):
        """(user id, channel id) → the unread count by the tables, computed the slow way."""
        rows = self._database.execute(COUNT_BY_SQL, (channels,)).fetchall()
        return {(user, channel): count for user, channel, count in rows}

    def sql_threads(self, user):
        """The number of a user id's unread replies by the tables, computed the slow way."""
        return self._database.execute(THREADS_BY_SQL, (user,)).fetchone()[0]

    def sql_badge(self, user):
        """The badge for a user id's devices now, and the state of their turns, for debugging."""
        badge = self._database.execute(BADGE_BY_SQL, {"user": user}).fetchone()[0]
        turns = self._database.execute("SELECT badge, due_at, lease, leased_at, touched_at, tries FROM push_turns WHERE user_id = %s", [user]).fetchall()
        return badge, [[str(value) for value in turn] for turn in turns]
