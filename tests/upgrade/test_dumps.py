# SPDX-License-Identifier: Apache-2.0
"""The database of each release, restored and migrated: it has the tables of a fresh one, and gives the answers it gave."""

import psycopg
import pytest

from tests.support.environment import running
from tests.upgrade import answers, catalog
from tests.upgrade.dumps import Restored
from tools import releases


@pytest.fixture(scope="module", params=releases.commits())
def release(request):
    return request.param


@pytest.fixture(scope="module")
def restored(tmp_path_factory, release):
    for environment in running(Restored.of(tmp_path_factory.mktemp("restored"), release)):
        environment.wait_carried_out()
        yield environment


def test_the_tables_are_those_of_a_fresh_database(restored):
    with restored.apart("fresh") as instance, psycopg.connect(instance.environment["TIDINGS_DATABASE_URL"]) as database:
        fresh = catalog.tables(database)
    with restored.database() as database:
        migrated = catalog.tables(database)
    differences = {kind: {"fresh only": sorted(rows - migrated[kind]), "migrated only": sorted(migrated[kind] - rows)}
                   for kind, rows in fresh.items() if rows != migrated[kind]}
    assert differences == {}
    assert len(fresh["tables"]) > 15, "the queries find tables"


def test_migrating_again_changes_nothing(restored):
    with restored.database() as database:
        before = catalog.tables(database)
        restored.instances[0].migrate()
        assert catalog.tables(database) == before


def test_the_answers_are_the_same(release, restored):
    changed = answers.compare(release, restored.record["answers"], restored.answers())
    assert changed == [], f"{len(changed)} differences\n" + "\n".join(changed[:40])


def test_what_waited_for_apps_arrives(restored):
    assert restored.deliver() == restored.record["kept"]


def test_life_goes_on(restored):
    """Old and new messages count together, in each channel that ann and bob share and may post to."""
    ann, bob = (restored.client(restored.record["cast"]["tokens"][name]) for name in ("ann", "bob"))
    posted = 0
    for channel in shared(restored, ann, bob):
        before, ts = shown(bob, channel), ann.post(channel, "after the upgrade")
        after = shown(bob, channel)
        assert after["has_unreads"] and after["latest"]["ts"] == ts
        if not before["unread_capped"] and "unread_count" in before:
            assert after["unread_count"] == before["unread_count"] + 1
        bob.ok("channels.mark", channel=channel, ts=ts)
        assert not shown(bob, channel)["has_unreads"]
        assert [m["text"] for m in bob.history(channel, limit=2)][:1] == ["after the upgrade"]
        posted += 1
    assert posted > 8


def shared(restored, ann, bob):
    """Channels of both that are not archived."""
    for channel in restored.record["cast"]["channels"]:
        infos = [member.call("channels.info", channel=channel).get("channel", {}) for member in (ann, bob)]
        if all((info.get("is_member") or info.get("is_im")) and not info.get("is_archived") for info in infos):
            yield channel


def shown(member, channel):
    return member.ok("channels.info", channel=channel)["channel"]
