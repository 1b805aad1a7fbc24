# SPDX-License-Identifier: Apache-2.0
"""Names of channels and users: which ones are taken, and which ones are the same."""

import subprocess

import pytest

from tests.support.wait import wait_until

CAFE, CAFE_APART = "caf\u00e9", "cafe\u0301"  # composed, and with the accent as a character of its own
HIDDEN = ["\u200b", "\u202e", "\ufeff", "\u00a0", "\u3000", "\u00ad", "\u2060", "\u200d", "\u2028", "\u0085", "\u001f", "\u3164", "\u2800",
          "\ufe0f", "\U000e0041"]


@pytest.fixture
def people(workspace):
    return workspace.users(2)


@pytest.mark.parametrize("hidden", HIDDEN)
def test_nothing_invisible_is_in_a_name(people, workspace, hidden):
    ann = people[0]
    channel = workspace.channel(ann)
    for name in (f"gen{hidden}eral", f"{hidden}general", f"general{hidden}", hidden):
        assert "name" in ann.fails("invalid_name_specials", "channels.create", name=name).messages
        ann.fails("invalid_name_specials", "channels.join", name=name)
        ann.fails("invalid_name_specials", "channels.rename", channel=channel, name=name)
        assert "name" in workspace.admin.fails("invalid_arguments", "admin.users.create", name=name).messages
        results = workspace.admin.ok("admin.users.createMany", users=[{"name": name}])["results"]
        assert results[0]["error"] == "invalid_arguments" and "name" in results[0]["messages"][0]


@pytest.mark.parametrize("name", ["\u00c9cole", "\u01c5", "a\uff0cb", "a\u2019b", "a\U0001f600", "a\ue000"])
def test_a_channel_has_small_letters_and_digits(people, name):
    people[0].fails("invalid_name_specials", "channels.create", name=name)


@pytest.mark.parametrize("name", ["here", "channel", "everyone", "group", "Here", "CHANNEL", "\uff48\uff45\uff52\uff45", "<!channel>", "a b",
                                  "a@b", "a,b", "@a", "...", "a\U0001f389", "a\uff0cb", "\u0301", "x" * 81])
def test_a_user_has_a_name_by_which_to_mention_it(workspace, name):
    assert "name" in workspace.admin.fails("invalid_arguments", "admin.users.create", name=name).messages
    assert "error" in workspace.admin.ok("admin.users.createMany", users=[{"name": name}])["results"][0]


@pytest.mark.parametrize("name", ["heres", "Ann", "a.b-c_d", "\u674e\u56db", "\u0623\u062d\u0645\u062f", "\u00c9lodie", "x" * 80, "\u00e9" * 80])
def test_good_names_of_users(workspace, name):
    assert workspace.admin.ok("admin.users.create", name=name)["user"]["name"] == name


ALIKE = pytest.mark.parametrize("first, second", [
    (CAFE, CAFE_APART), (CAFE_APART, CAFE), ("general2", "\uff47\uff45\uff4e\uff45\uff52\uff41\uff4c\uff12"), ("fin", "\ufb01n"),
    ("stra\u00dfe", "strasse"), ("\ud55c", "\u1112\u1161\u11ab"), ("o2", "o\u00b2")])


@ALIKE
def test_channels_that_look_the_same(people, workspace, first, second):
    ann, bob = people
    channel = ann.ok("channels.create", name=first)["channel"]
    assert channel["name"] == first
    bob.fails("name_taken", "channels.create", name=second)
    other = workspace.channel(bob)
    bob.fails("name_taken", "channels.rename", channel=other, name=second)
    assert bob.ok("channels.join", name=second)["channel"]["id"] == channel["id"]
    assert bob.ok("chat.postMessage", channel=f"#{second}", text="x")["channel"] == channel["id"]
    assert ann.ok("channels.rename", channel=channel["id"], name=second)["channel"]["name"] == second, "its own name"
    ann.ok("channels.rename", channel=channel["id"], name="elsewhere")
    assert bob.ok("channels.rename", channel=other, name=first)["channel"]["name"] == first


@ALIKE
def test_users_that_look_the_same(workspace, first, second):
    workspace.admin.ok("admin.users.create", name=first)
    workspace.admin.fails("name_taken", "admin.users.create", name=second)
    results = workspace.admin.ok("admin.users.createMany", users=[{"name": second}, {"name": f"{first}-2"}, {"name": f"{second}-2"}])["results"]
    assert [result.get("error") for result in results] == ["name_taken", None, "name_taken"]


def test_users_that_differ_in_case(workspace):
    workspace.admin.ok("admin.users.create", name="Ann")
    workspace.admin.fails("name_taken", "admin.users.create", name="ANN")
    workspace.admin.fails("name_taken", "admin.users.create", name="Admin")


def test_a_hidden_channel_keeps_its_name(people):
    ann, bob = people
    ann.ok("channels.create", name=CAFE, is_private=True)
    bob.fails("name_taken", "channels.create", name=CAFE_APART)
    bob.fails("name_taken", "channels.join", name=CAFE_APART)
    bob.fails("channel_not_found", "chat.postMessage", channel=f"#{CAFE_APART}", text="x")


def migrate(environment):
    done = subprocess.run([environment.binary, "migrate"], env={"TIDINGS_DATABASE_URL": environment.postgres.url}, capture_output=True,
                          check=True, encoding="utf-8")
    return done.stdout


def test_names_that_the_previous_release_gives(environment, workspace, people):
    """It does not fold them, when it creates nor when it renames. Pairs that it makes stay, and tidings migrate tells of them."""
    ann, _ = people
    with environment.database() as database:
        def folded(name):
            return wait_until(lambda: database.execute("SELECT folded FROM channels WHERE name = %s AND folded_from = name AND workspace_id = %s",
                                                       [name, workspace.id]).fetchone(), what=f"{name} is looked at")[0]
        old = workspace.channel(ann, name="an-old-name")
        database.execute("UPDATE channels SET name = %s WHERE id = %s", [CAFE, old])
        assert folded(CAFE) == CAFE
        ann.fails("name_taken", "channels.create", name=CAFE_APART)
        twin = ann.ok("channels.create", name="an-old-name")["channel"]["id"]
        database.execute("UPDATE channels SET name = %s WHERE id = %s", [CAFE_APART, twin])
        assert folded(CAFE_APART) is None
        database.execute("INSERT INTO users (id, workspace_id, name, real_name) VALUES (%s, %s, 'ADMIN', 'x')", [f"U{twin[1:]}", workspace.id])
    alike = f"warning: channels {twin} and {old} have names that look the same"
    assert alike in migrate(environment) and f"warning: users U{twin[1:]} and {workspace.admin.id} have names" in migrate(environment)
    ann.ok("channels.rename", channel=old, name="no-longer")
    assert alike not in migrate(environment)
    ann.fails("name_taken", "channels.create", name=CAFE)
