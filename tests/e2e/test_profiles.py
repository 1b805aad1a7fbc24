# SPDX-License-Identifier: Apache-2.0
"""Profiles, looking people up, and the small methods that tools call at their start."""
import pytest

from tests.support.wait import wait_until

FIELDS = {"Xf01": {"value": "Berlin", "alt": ""}}


def profile_of(client, user):
    return client.ok("users.profile.get", user=user.id)["profile"]


def test_a_profile_is_set_and_read(workspace):
    ann, bob = workspace.users(2)
    change = {"title": "Cook", "first_name": "Ann", "last_name": "L\u00e9e", "display_name": "annie", "phone": "+49 30 1", "skype": "ann",
              "pronouns": "she", "status_text": "at lunch", "status_emoji": ":pizza:",
              "status_expiration": 2000000000, "real_name": "Ann L\u00e9e", "fields": FIELDS, "image_24": "https://x.example", "email": "x"}
    with bob.socket() as socket:
        reply = ann.ok("users.profile.set", profile=change)["profile"]
        frame = socket.expect({"type": "user_change", "user": {"id": ann.id}})
    for shown in (reply, profile_of(bob, ann), ann.ok("users.profile.get")["profile"], frame["user"]["profile"],
                  bob.ok("users.info", user=ann.id)["user"]["profile"]):
        assert {name: shown[name] for name in change if name not in ("image_24", "email")} == {
            name: value for name, value in change.items() if name not in ("image_24", "email")}
        assert shown["image_24"] != "https://x.example" and shown["display_name_normalized"] == "annie" and "email" not in shown
    assert frame["user"]["real_name"] == "Ann L\u00e9e" and frame["cache_ts"] > 0
    assert ann.ok("users.profile.set", name="title", value="Chef")["profile"]["title"] == "Chef"
    assert ann.ok("users.profile.set", name="status_expiration", value=0)["profile"]["status_expiration"] == 0
    cleared = ann.ok("users.profile.set", profile={"title": "", "display_name": None, "fields": {}, "status_text": "", "status_emoji": ""})["profile"]
    assert (cleared["title"], cleared["display_name"], cleared["fields"], cleared["status_text"]) == ("", ann.name, {}, "")
    assert cleared["first_name"] == "Ann", "what is not named stays"


@pytest.mark.parametrize("profile, error", [
    ({"title": "x" * 255}, None), ({"title": "x" * 256}, "invalid_profile"), ({"title": 1}, "invalid_profile"),
    ({"status_text": "\u00e9" * 100}, None), ({"status_text": "x" * 101}, "too_long"), ({"real_name": " "}, "invalid_profile"),
    ({"real_name": ""}, "invalid_profile"), ({"real_name": "x" * 81}, "invalid_profile"), ({"status_expiration": -1}, "invalid_profile"),
    ({"status_expiration": "1"}, "invalid_profile"), ({"fields": {f"X{n}": {"value": "x"} for n in range(50)}}, None),
    ({"fields": {f"X{n}": {"value": "x"} for n in range(51)}}, "invalid_profile"), ({"fields": {"X": "x"}}, "invalid_profile"),
    ({"fields": {"X": {"value": "x", "more": "x"}}}, "invalid_profile"), ({"fields": {"X": {"value": "x" * 256}}}, "invalid_profile"),
    ({"fields": []}, None), ([], "invalid_profile"), ("x", "invalid_profile"),
    ({"fields": {f"X{n}": {"value": "\u20ac" * 200} for n in range(50)}}, "invalid_profile"),  # over 16 KiB
])
def test_bounds_of_a_profile(workspace, profile, error):
    ann = workspace.user()
    before = ann.ok("users.profile.get")["profile"]
    if not error:
        ann.ok("users.profile.set", profile=profile)
        return
    ann.fails(error, "users.profile.set", profile=profile)
    assert ann.ok("users.profile.get")["profile"] == before


def test_whose_profile_one_may_set(environment, workspace):
    ann, bob, bot, admin = workspace.user(), workspace.user(), workspace.bot(), workspace.admin
    ann.fails("not_admin", "users.profile.set", user=bob.id, profile={"title": "x"})
    bot.fails("not_allowed_token_type", "users.profile.set", profile={"title": "x"})
    assert admin.ok("users.profile.set", user=bob.id, profile={"title": "x"})["profile"]["title"] == "x"
    admin.fails("user_not_found", "users.profile.set", user="U0000000000", profile={"title": "x"})
    environment.workspace().admin.fails("user_not_found", "users.profile.set", user=bob.id, profile={"title": "y"})
    token = admin.ok("admin.tokens.create", user_id=admin.id, scopes="users.profile:write")["token"]
    environment.client(token).fails("not_admin", "users.profile.set", user=bob.id, profile={"title": "y"})
    assert profile_of(ann, bob)["title"] == "x"
    ann.fails("invalid_arguments", "users.profile.set")


def test_an_admin_changes_a_user(workspace):
    ann, bob, admin = workspace.user(email="a@example.org"), workspace.user("bob"), workspace.admin
    with bob.socket() as socket:
        user = admin.ok("admin.users.update", user_id=ann.id, name="Anna", real_name="Anna Lee", email="Anna@example.org",
                        image_url="https://x.example/a.png")["user"]
        shown = socket.expect({"type": "user_change", "user": {"id": ann.id}})["user"]
    assert (user["name"], user["real_name"], user["profile"]["email"]) == ("Anna", "Anna Lee", "Anna@example.org")
    assert {user["profile"][f"image_{size}"] for size in (24, 32, 48, 72, 192, 512, "original")} == {"https://x.example/a.png"}
    assert user["profile"]["is_custom_image"] is True
    assert "email" not in shown["profile"] and shown["name"] == "Anna"
    user = admin.ok("admin.users.update", user_id=ann.id, email="", image_url="")["user"]
    assert "email" not in user["profile"] and "/avatars/" in user["profile"]["image_24"] and user["name"] == "Anna"
    for args, error in (({"name": "BOB"}, "name_taken"), ({"name": "a b,"}, "invalid_arguments"), ({"image_url": "ftp://x"}, "invalid_arguments"),
                        ({"real_name": " "}, "invalid_arguments"), ({"email": "x" * 81}, "invalid_arguments"),
                        ({"is_admin": "x"}, "invalid_arguments")):
        admin.fails(error, "admin.users.update", user_id=ann.id, **args)
    assert dict(admin.fails("user_not_found", "admin.users.update", user_id="U0000000000", name="x")) == {"ok": False, "error": "user_not_found"}
    bob.fails("no_permission", "admin.users.list")
    admin.ok("admin.users.update", user_id=bob.id, is_admin=True)
    wait_until(lambda: bob.call("admin.users.list")["ok"], what="bob to be an admin")
    admin.ok("admin.users.update", user_id=bob.id, is_admin=False)
    wait_until(lambda: bob.call("admin.users.list").get("error") == "no_permission", what="bob to be none")


def test_look_up_by_email(environment, workspace):
    admin = workspace.admin
    old, ann = workspace.user(email="Ann@Example.org"), workspace.user(email="ann@example.org")
    with environment.database() as database:
        database.execute("UPDATE users SET created = created - 1 WHERE id = %s", [old.id])
    assert admin.ok("users.lookupByEmail", email="ANN@example.org")["user"]["id"] == old.id, "the oldest"
    admin.ok("admin.users.setActive", user_id=old.id, active=False)
    found = admin.ok("users.lookupByEmail", email="ann@example.org")["user"]
    assert found["id"] == ann.id and found["profile"]["email"] == "ann@example.org"
    admin.fails("users_not_found", "users.lookupByEmail", email="ann@example.or")
    admin.fails("invalid_arguments", "users.lookupByEmail", email="")
    environment.workspace().admin.fails("users_not_found", "users.lookupByEmail", email="ann@example.org")
    bot = workspace.bot()
    assert bot.fails("missing_scope", "users.lookupByEmail", email="ann@example.org")["needed"] == "users:read.email"
    token = admin.ok("admin.tokens.create", user_id=bot.id, scopes="users:read.email")["token"]
    assert environment.client(token).ok("users.lookupByEmail", email="ann@example.org")["user"]["id"] == ann.id


def test_search(environment, workspace):
    admin = workspace.admin
    ann = workspace.user("zz-ann", real_name="Ann-Marie O'Lee", email="ann@example.org")
    anna = workspace.user("zz.anna", real_name="\u00c9va M\u00fcller")
    gone = workspace.user("zz-gone", real_name="Annika")
    admin.ok("admin.users.setActive", user_id=gone.id, active=False)

    def found(query, **args):
        return [user["id"] for user in anna.ok("users.search", query=query, **args)["users"]]

    assert found("ann") == [ann.id, anna.id, gone.id], "the active ones first"
    assert found("ANN", limit=2) == [ann.id, anna.id] and found("ann", limit=1000) == found("ann")
    assert found("marie") == [ann.id] and found("ann mar") == [ann.id] and found("nn") == []
    assert found("m\u00fcl") == [anna.id]
    for query in ("'", "\\", "a & !b", ":*", "<->", "()", "''':*", "%", "\u0000x"[1:], "\U0001f600"):
        anna.ok("users.search", query=query)
    assert "email" not in anna.ok("users.search", query="marie")["users"][0]["profile"]
    assert admin.ok("users.search", query="marie")["users"][0]["profile"]["email"] == "ann@example.org"
    assert environment.workspace().admin.ok("users.search", query="marie")["users"] == []
    for args in ({"query": " "}, {"query": "x" * 81}, {}):
        anna.fails("invalid_arguments", "users.search", **args)


def test_what_tools_ask_at_their_start(environment, workspace):
    ann, bot = workspace.user(real_name="Ann", email="ann@example.org"), workspace.bot()
    app = workspace.admin.ok("admin.apps.create", name="x", bot_user_id=bot.id)["app"]["id"]
    team = ann.ok("team.info")["team"]
    assert (team["id"], team["name"], team["domain"], team["email_domain"]) == (workspace.id, workspace.name, workspace.domain, "")
    shown = ann.ok("bots.info", bot=bot.bot_id)["bot"]
    assert (shown["id"], shown["user_id"], shown["app_id"], shown["deleted"]) == (bot.bot_id, bot.id, app, False)
    assert shown["icons"].keys() == {"image_36", "image_48", "image_72"}
    assert bot.ok("bots.info")["bot"] == shown and shown in ann.ok("rtm.start")["bots"]
    ann.fails("bot_not_found", "bots.info", bot="B0000000000")
    ann.fails("invalid_arguments", "bots.info")
    environment.workspace().admin.fails("bot_not_found", "bots.info", bot=bot.bot_id)
    assert ann.ok("usergroups.list", include_users=True)["usergroups"] == []
    assert ann.ok("users.prefs.get")["prefs"] == {}
    identity = ann.ok("users.identity")
    assert (identity["user"]["id"], identity["user"]["name"], identity["user"]["email"]) == (ann.id, "Ann", "ann@example.org")
    assert identity["team"]["id"] == workspace.id and "email" not in bot.ok("users.identity")["user"]
    states = ann.ok("dnd.teamInfo", users=[ann.id, bot.id, "U0000000000"])["users"]
    assert states == {user.id: {"dnd_enabled": False, "next_dnd_start_ts": 1, "next_dnd_end_ts": 1} for user in (ann, bot)}
    assert len(ann.ok("dnd.teamInfo", users=[ann.id] * 50)["users"]) == 1
    ann.fails("invalid_arguments", "dnd.teamInfo", users=[ann.id] * 51)


def test_emoji(environment, workspace):
    admin, ann = workspace.admin, workspace.user()
    assert ann.ok("emoji.list")["emoji"] == {}
    with ann.socket() as socket:
        admin.ok("admin.emoji.add", name="shipit", url="https://x.example/s.png")
        frame = socket.expect({"type": "emoji_changed", "subtype": "add", "name": "shipit"})
        assert frame["value"] == "https://x.example/s.png" and frame["event_ts"]
        admin.ok("admin.emoji.add", name="ship", alias_for="shipit")
        assert socket.expect({"type": "emoji_changed", "name": "ship"})["value"] == "alias:shipit"
        assert ann.ok("emoji.list")["emoji"] == {"shipit": "https://x.example/s.png", "ship": "alias:shipit"}
        assert environment.workspace().admin.ok("emoji.list")["emoji"] == {}
        for args, error in (({"name": "ship", "url": "https://x.example"}, "name_taken"), ({"name": "x", "alias_for": "none"}, "emoji_not_found"),
                            ({"name": "x", "alias_for": "ship"}, "emoji_not_found"), ({"name": "x"}, "invalid_arguments"),
                            ({"name": "X", "url": "https://x.example"}, "invalid_name"), ({"name": "x" * 101, "url": "https://x.example"}, "invalid_name"),
                            ({"name": "x", "url": "javascript:1"}, "invalid_arguments"),
                            ({"name": "x", "url": "https://x.example", "alias_for": "ship"}, "invalid_arguments")):
            admin.fails(error, "admin.emoji.add", **args)
        admin.ok("admin.emoji.remove", name="shipit")
        assert socket.expect({"type": "emoji_changed", "subtype": "remove"})["names"] == ["ship", "shipit"]
    admin.fails("emoji_not_found", "admin.emoji.remove", name="shipit")
    admin.ok("admin.emoji.add", name="x" * 100, url="https://x.example")


def test_an_emoji_too_many(environment, workspace):
    with environment.database() as db:
        db.execute("INSERT INTO emoji (workspace_id, name, url, added_by, added) SELECT %s, 'e' || n, 'https://x.example', 'U', 1"
                   " FROM generate_series(1, 4999) AS n", (workspace.id,))
    workspace.admin.ok("admin.emoji.add", name="last", url="https://x.example")
    workspace.admin.fails("emoji_limit_reached", "admin.emoji.add", name="more", url="https://x.example")


def test_users_changed_in_what_catches_up(environment, workspace):
    admin, ann, bob = workspace.admin, workspace.user(), workspace.user()
    first = ann.ok("unread.sync")
    assert "users_changed" not in first
    assert ann.ok("unread.sync", since=first["sync_token"])["users_changed"] in ([], [bob.id], [ann.id, bob.id])
    wait_until(lambda: ann.ok("unread.sync", since=ann.ok("unread.sync")["sync_token"])["users_changed"] == [], what="older changes to have ended")
    first = ann.ok("unread.sync")
    cid = workspace.user()
    bob.ok("users.profile.set", profile={"title": "x"})
    for method, since in (("unread.sync", first["sync_token"]), ("client.counts", first["sync_token"]), ("events.sync", first["position"])):
        changed = ann.ok(method, since=since)["users_changed"]
        assert {bob.id, cid.id} <= set(changed) and ann.id not in changed, method
        assert ann.at(environment.urls[1]).ok(method, since=since)["users_changed"] == changed
    position = ann.ok("events.sync", since=first["position"])["position"]
    admin.ok("admin.users.setActive", user_id=cid.id, active=False)
    assert cid.id in ann.ok("events.sync", since=position)["users_changed"]
    assert environment.workspace().admin.ok("unread.sync", since=first["sync_token"])["users_changed"] is not None


def test_too_many_users_changed(workspace):
    admin = workspace.admin
    first = admin.ok("unread.sync")
    admin.ok("admin.users.createMany", users=[{"name": f"many-{n}"} for n in range(1000)])
    assert len(admin.ok("unread.sync", since=first["sync_token"])["users_changed"]) == 1000
    admin.ok("admin.users.create", name="one-more")
    assert admin.ok("unread.sync", since=first["sync_token"])["users_changed"] is None
    assert admin.ok("events.sync", since=first["position"])["users_changed"] is None
