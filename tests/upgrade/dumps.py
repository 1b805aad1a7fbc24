# SPDX-License-Identifier: Apache-2.0
"""The dump of a release's database and the release's answers on it: where they are, how they are made and restored."""

import json
import lzma
import subprocess
from pathlib import Path

from tests.support.client import Client
from tests.support.environment import Environment
from tests.support.events_url import EventsUrl
from tests.support.kept import ack_new, kept
from tests.support.sockets import Socket
from tests.support.wait import wait_until
from tests.upgrade import answers
from tools.services import POSTGRES_BIN

HERE = Path(__file__).parent
SETTINGS = {
    # The dump gets older, and its messages with it.
    "TIDINGS_RETENTION_DAYS": "36500",
    # An app's events_url is in the test. In 0.1.0 this had the other name.
    "TIDINGS_EVENTS_API_PRIVATE": "true",
    "TIDINGS_PUSH_PRIVATE": "true",
}
# What expires within days, at the longest setting too, is as old as if the dump had just been taken. What waits for an app is due.
MADE_YOUNG = """
UPDATE message_keys SET created = now();
UPDATE outbox SET created = now();
UPDATE app_events SET queued_at = now(), due_at = now();
UPDATE apps SET linked_at = now() WHERE linked_at IS NOT NULL;
"""


def dump_path(release):
    return HERE / f"{release}.sql.xz"


def record_path(release):
    return HERE / f"{release}.answers.json.xz"


def read(path):
    return lzma.decompress(path.read_bytes()).decode()


def write(path, text):
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def take(postgres):
    """The database as SQL, without what differs from one pg_dump to the next: comments, and the key that newer ones
    protect their output by."""
    done = subprocess.run([POSTGRES_BIN / "pg_dump", "--no-owner", "--no-privileges", "--no-unlogged-table-data", postgres.url],
                          check=True, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    return "\n".join(line for line in lines if not line.startswith(("--", "\\restrict", "\\unrestrict"))) + "\n"


def restore(postgres, text):
    """Into the database of this name, which is empty."""
    subprocess.run([POSTGRES_BIN / "psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null", postgres.url],
                   input=text, check=True, text=True)


class Restored(Environment):
    """One instance of `binary` on a restored dump that was migrated to the binary's version.

    `record`: {"cast": the objects created by Data, "answers": …, "kept": {app: texts of its events}}; for a new dump only the
    cast."""

    def __init__(self, directory, text, record, **args):
        super().__init__(directory, instances=1, settings=SETTINGS, **args)
        self.text = text
        self.record = record
        self.address = EventsUrl()

    @classmethod
    def of(cls, directory, release):
        return cls(directory, read(dump_path(release)), json.loads(read(record_path(release))))

    def prepare(self):
        restore(self.postgres, self.text)
        with self.database() as database:
            database.execute(MADE_YOUNG)
            database.execute("UPDATE apps SET events_url = %s WHERE events_url IS NOT NULL", [self.address.url])
        super().prepare()

    def stop(self):
        trouble = super().stop()
        self.address.close()
        return trouble

    def wait_carried_out(self):
        """Waits until the leftover outbox rows are processed."""
        with self.database() as database:
            wait_until(lambda: database.execute("SELECT count(*) FROM outbox WHERE NOT done").fetchone()[0] == 0,
                       what="the left-overs carried out")

    def answers(self):
        return answers.ask(self.instances[0].url, self.record["cast"])

    def deliver(self):
        """Takes what waits for the apps; gives the texts of each app's events."""
        apps = self.record["cast"]["apps"]
        wait_until(lambda: kept(self, apps["url"]["id"]) == 0, what="events at the events_url")
        with Socket(Client(self.urls[0], apps["link"]["token"]).ok("apps.connections.open")["url"]) as link:
            acked = []
            wait_until(lambda: ack_new(link, acked) or kept(self, apps["link"]["id"]) == 0, interval=0.05, what="events by the link")
            by_link = {event_text(frame["payload"]) for frame in acked}
        by_url = {event_text(request.json) for request in self.address.events}
        return {"link": sorted(by_link), "url": sorted(by_url)}


def event_text(payload):
    return payload["event"].get("text", "")

