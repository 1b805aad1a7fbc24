# SPDX-License-Identifier: Apache-2.0
"""After a crash Postgres reuses transaction ids that clients have already received."""
import os
import signal

import pytest

from tests.support.wait import wait_until
from tests.support.workspace import Workspace

ROUNDS = 20  # in most of them what took the ids has not reached the disk when it crashes
TAKE_IDS = "BEGIN; SELECT pg_current_xact_id(); ROLLBACK; " * 50
NEXT_ID = "SELECT pg_snapshot_xmax(pg_current_snapshot())"
BACKENDS = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"


@pytest.fixture
def lazy(parts):
    """Postgres delays writing commits to its log when no client waits for them."""
    parts.postgres.sql("ALTER SYSTEM SET wal_writer_delay = '10s'")
    parts.postgres.sql("SELECT pg_reload_conf()")
    yield parts.postgres
    parts.postgres.sql("ALTER SYSTEM RESET wal_writer_delay")
    parts.postgres.sql("SELECT pg_reload_conf()")


def kill_all(postgres):
    postgres.kill()
    postgres.start()


def kill_one(postgres):
    """The others then exit, and Postgres restarts without its memory."""
    victim = int(postgres.sql(BACKENDS).split()[0])
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: not os.path.exists(f"/proc/{victim}"), what="Postgres knows of it")
    wait_until(lambda: postgres.ready() and "recovery" not in _try(postgres), what="Postgres goes on")


def _try(postgres):
    try:
        return postgres.sql("SELECT 1")
    except Exception as error:  # it recovers, or ends its sessions
        return f"recovery: {error}"


@pytest.mark.parametrize("crash", [kill_all, kill_one])
def test_transaction_ids_given_twice(parts, lazy, crash):
    """A client that resumes from before the crash receives all later writes, or a gap."""
    workspace = Workspace(parts.urls, parts.operator_token)
    ann, bob = workspace.users(2)
    for _ in range(ROUNDS):
        channel = workspace.channel(ann, bob)
        lazy.sql(TAKE_IDS)
        since = bob.ok("unread.sync")["sync_token"]
        last_id = _position(bob)
        told = int(lazy.sql(NEXT_ID))
        crash(lazy)
        wait_until(lambda: all(instance.ready() for instance in parts.instances), what="ready again")
        ts = wait_until(lambda: _posted(ann, channel), what="a post")
        changed = int(lazy.sql(f"SELECT changed FROM channels WHERE id = '{channel}'"))
        lazy.sql(TAKE_IDS * 2)
        news = bob.ok("unread.sync", since=since)["channels"]
        assert [entry["unread_count"] for entry in news if entry["id"] == channel] == [1], (since, changed)
        with bob.stream(last_id) as stream:
            stream.expect(lambda frame: frame["type"] == "gap" or frame.get("ts") == ts)
        if changed < told:
            return
    pytest.fail(f"no id was given twice in {ROUNDS} crashes")


def _position(member):
    """The position at which a new event stream begins."""
    with member.stream() as stream:
        wait_until(lambda: stream.last_id, what="an id")
        return stream.last_id


def _posted(member, channel):
    reply = member.call("chat.postMessage", channel=channel, text="after the crash", client_msg_id=f"after-{channel}")
    return reply["ts"] if reply["ok"] else None
