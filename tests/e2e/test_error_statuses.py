# SPDX-License-Identifier: Apache-2.0
"""`X-Tidings-Errors: http`: each code has its HTTP status, and the body is application/problem+json."""

import re
from pathlib import Path

import pytest

from tests.support.raw import RawConnection, request

HTTP = {"X-Tidings-Errors": "http"}
TABLE = Path(__file__).resolve().parents[2] / "include" / "base" / "error.h"
ROWS = re.findall(r'X\([A-Z_]+, (\d+), "([a-z_]+)"\)', TABLE.read_text(encoding="utf-8"))
CODES = sorted({code for _, code in ROWS})

# The statuses by Slack's families of codes: the first pattern that fits.
RULES = [
    (r"not_authed|invalid_auth|token_(expired|revoked)", 401),
    (r".*_not_found|unknown_method|no_(pin|reaction)", 404),
    (r"method_not_allowed", 405),
    (r"name_taken|already_.*|(is|not)_archived|.*_reused|strategy_unsupported|too_many_(read_messages|devices|webhooks|emoji|reactions|pins)|files_disabled|secret_key_missing|snooze_not_active|.*_limit_reached|message_not_in_streaming_state", 409),
    (r"too_long|.*_too_l(ong|arge)|too_many_attachments", 413),
    (r"(invalid|missing)_post_type", 415),
    (r"ratelimited", 429),
    (r"internal_error", 500),
    (r"service_unavailable", 503),
    (r"missing_scope|no_permission|not_allowed_token_type|restricted_action|account_inactive|not_authorized|not_admin|message_not_owned_by_app", 403),
    (r"cant_.*|(user_)?not_in_channel|user_disabled", 403),
    (r"(invalid|bad)_.*|no_.*|not_pinnable|json_not_object|.*_conflict|.*_not_supplied|too_many_(users|files)|method_not_supported_.*|missing_.*", 400),
]


def status_of(code):
    return next(status for pattern, status in RULES if re.fullmatch(pattern, code))


@pytest.mark.parametrize("code", CODES)
def test_each_code_has_one_status(code):
    assert {int(status) for status, other in ROWS if other == code} == {status_of(code)}


class Stage:
    """The objects used by the calls below; shared by all of them, since each call is refused."""

    def __init__(self, environment):
        self.workspace = workspace = environment.workspace()
        self.none, self.wrong = environment.client(), environment.client("xoxp-nobody-has-this-one")
        self.ann, self.bob, self.cid, self.gone = workspace.users(4)
        self.admin, self.bot = workspace.admin, workspace.bot()
        workspace.admin.ok("admin.users.setActive", user_id=self.gone.id, active=False)
        few = workspace.admin.ok("admin.tokens.create", user_id=self.ann.id, scopes="users:read")["token"]
        rare = workspace.admin.ok("admin.tokens.create", user_id=self.ann.id, rate_limit=1)["token"]
        self.few, self.rare = environment.client(few), environment.client(rare)
        self.rare.ok("auth.test")
        self.general = workspace.channel(self.ann, self.bob, name="general")
        self.room, self.old, self.private = (workspace.channel(self.ann, self.bob) for _ in range(3))
        self.bits = self.ann.ok("channels.create", name="bits", strategy="bitmap")["channel"]["id"]
        self.private = workspace.channel(self.cid, private=True)
        self.direct = self.ann.ok("conversations.open", users=self.bob.id)["channel"]["id"]
        self.ann.ok("channels.archive", channel=self.old)
        self.admin.ok("admin.pushApps.create", name="browser", platform="webpush", subject="mailto:ops@example.com")
        self.ts = self.ann.post(self.room, client_msg_id="k")
        self.reply = self.ann.post(self.room, thread_ts=self.ts)
        self.bits_ts = self.ann.post(self.bits)
        self.ann.ok("reactions.add", channel=self.room, name="eyes", timestamp=self.ts)
        self.ann.ok("pins.add", channel=self.room, timestamp=self.ts)


@pytest.fixture(scope="module")
def stage(plain_environment):
    return Stage(plain_environment)


NO_TS = "1000000000.000000"
POST, BLOCK = "chat.postMessage", {"type": "divider"}
# code, who, method, arguments: those that are functions are called with the stage.
CALLS = [
    ("not_authed", "none", "auth.test", {}), ("invalid_auth", "wrong", "auth.test", {}),
    ("account_inactive", "gone", "auth.test", {}), ("missing_scope", "few", POST, {"channel": "C0", "text": "x"}),
    ("not_allowed_token_type", "bot", "admin.users.create", {"name": "x"}),
    ("no_permission", "ann", "admin.users.create", {"name": "x"}), ("ratelimited", "rare", "auth.test", {}),
    ("token_not_found", "admin", "admin.tokens.revoke", {"token_id": "K0000000000"}),
    ("app_not_found", "admin", "admin.apps.delete", {"app_id": "A0000000000"}),
    ("device_not_found", "ann", "devices.unregister", {"device_id": "none"}),
    ("bot_not_found", "ann", "bots.info", {"bot": "B0000000000"}), ("users_not_found", "admin", "users.lookupByEmail", {"email": "x"}),
    ("emoji_not_found", "admin", "admin.emoji.remove", {"name": "x"}), ("invalid_name", "admin", "admin.emoji.remove", {"name": "X"}),
    ("not_admin", "ann", "users.profile.set", {"user": "U0000000000", "profile": {}}),
    ("invalid_profile", "ann", "users.profile.set", {"profile": []}),
    ("snooze_not_active", "ann", "dnd.endSnooze", {}),
    ("no_item_specified", "ann", "reactions.add", {"channel": lambda s: s.room, "name": "tada"}),
    ("bad_timestamp", "ann", "reactions.add", {"channel": lambda s: s.room, "name": "tada", "timestamp": "x"}),
    ("already_reacted", "ann", "reactions.add", {"channel": lambda s: s.room, "name": "eyes", "timestamp": lambda s: s.ts}),
    ("no_reaction", "ann", "reactions.remove", {"channel": lambda s: s.room, "name": "tada", "timestamp": lambda s: s.ts}),
    ("already_pinned", "ann", "pins.add", {"channel": lambda s: s.room, "timestamp": lambda s: s.ts}),
    ("no_pin", "ann", "pins.remove", {"channel": lambda s: s.room, "timestamp": lambda s: s.reply}),
    ("invalid_key", "admin", "admin.pushApps.create", {"name": "x", "platform": "fcm", "service_account": "{}"}),
    ("provider_not_found", "admin", "admin.auth.providers.delete", {"name": "x"}),
    ("invalid_token", "ann", "devices.register", {"device_id": "x", "app": "browser", "endpoint": "x"}),
    ("unknown_method", "ann", "foo.bar", {}), ("my_error", "none", "api.test", {"error": "my_error"}),
    ("channel_not_found", "ann", "channels.info", {"channel": lambda s: s.private}),
    ("message_not_found", "ann", "chat.delete", {"channel": lambda s: s.room, "ts": NO_TS}),
    ("thread_not_found", "ann", "channels.replies", {"channel": lambda s: s.room, "ts": NO_TS}),
    ("user_not_found", "ann", "users.info", {"user": "U0000000000"}),
    ("user_not_in_channel", "ann", "chat.postEphemeral", {"channel": lambda s: s.room, "user": lambda s: s.cid.id, "text": "x"}),
    ("user_disabled", "ann", "channels.open", {"users": lambda s: s.gone.id}),
    ("users_list_not_supplied", "ann", "channels.open", {}),
    ("too_many_users", "ann", "channels.open", {"users": ",".join(f"U00000000{i:02}" for i in range(10))}),
    ("markdown_text_conflict", "ann", POST, {"channel": lambda s: s.room, "text": "x", "markdown_text": "x"}),
    ("method_not_supported_for_channel_type", "ann", "channels.leave", {"channel": lambda s: s.direct}),
    ("not_authorized", "bob", "channels.rename", {"channel": lambda s: s.room, "name": "other"}),
    ("restricted_action", "bob", "channels.archive", {"channel": lambda s: s.room}),
    ("not_in_channel", "cid", POST, {"channel": lambda s: s.room, "text": "x"}),
    ("cant_leave_general", "ann", "channels.leave", {"channel": lambda s: s.general}),
    ("cant_archive_general", "ann", "channels.archive", {"channel": lambda s: s.general}),
    ("cant_kick_from_general", "ann", "channels.kick", {"channel": lambda s: s.general, "user": lambda s: s.bob.id}),
    ("cant_kick_self", "ann", "channels.kick", {"channel": lambda s: s.room, "user": lambda s: s.ann.id}),
    ("cant_invite_self", "ann", "channels.invite", {"channel": lambda s: s.room, "users": lambda s: s.ann.id}),
    ("already_in_channel", "ann", "channels.invite", {"channel": lambda s: s.room, "users": lambda s: s.bob.id}),
    ("cant_update_message", "bob", "chat.update", {"channel": lambda s: s.room, "ts": lambda s: s.ts, "text": "x"}),
    ("cant_broadcast_message", "ann", "chat.update", {"channel": lambda s: s.room, "ts": lambda s: s.ts, "reply_broadcast": True}),
    ("no_dual_broadcast_content_update", "ann", "chat.update",
     {"channel": lambda s: s.room, "ts": lambda s: s.reply, "text": "x", "reply_broadcast": True}),
    ("cant_delete_message", "bob", "chat.delete", {"channel": lambda s: s.room, "ts": lambda s: s.ts}),
    ("is_archived", "ann", POST, {"channel": lambda s: s.old, "text": "x"}),
    ("already_archived", "ann", "channels.archive", {"channel": lambda s: s.old}),
    ("not_archived", "ann", "channels.unarchive", {"channel": lambda s: s.room}),
    ("name_taken", "ann", "channels.create", {"name": "general"}),
    ("idempotency_key_reused", "ann", POST, {"channel": lambda s: s.room, "text": "other", "client_msg_id": "k"}),
    ("invalid_arguments", "ann", "channels.info", {}),
    ("invalid_timestamp", "ann", "channels.mark", {"channel": lambda s: s.room, "ts": "x"}),
    ("invalid_ts_oldest", "ann", "channels.history", {"channel": lambda s: s.room, "oldest": "x"}),
    ("invalid_ts_latest", "ann", "channels.history", {"channel": lambda s: s.room, "latest": "x"}),
    ("invalid_cursor", "ann", "channels.list", {"cursor": "*"}), ("invalid_limit", "ann", "channels.list", {"limit": -1}),
    ("invalid_types", "ann", "channels.list", {"types": "x"}), ("invalid_presence", "ann", "users.setPresence", {"presence": "x"}),
    ("invalid_name_required", "ann", "channels.create", {}), ("invalid_name_specials", "ann", "channels.create", {"name": "A B"}),
    ("invalid_name_punctuation", "ann", "channels.create", {"name": "-_-"}),
    ("invalid_name_maxlength", "ann", "channels.create", {"name": "x" * 81}),
    ("invalid_blocks", "ann", POST, {"channel": lambda s: s.room, "blocks": "x"}),
    ("invalid_attachments", "ann", POST, {"channel": lambda s: s.room, "attachments": "x"}),
    ("invalid_metadata_format", "ann", POST, {"channel": lambda s: s.room, "text": "x", "metadata": "x"}),
    ("no_text", "ann", POST, {"channel": lambda s: s.room}),
    ("no_user", "ann", "channels.invite", {"channel": lambda s: s.room}),
    ("too_long", "ann", "channels.setTopic", {"channel": lambda s: s.room, "topic": "x" * 251}),
    ("msg_too_long", "ann", POST, {"channel": lambda s: s.room, "text": "x" * 40_001}),
    ("msg_blocks_too_long", "ann", POST, {"channel": lambda s: s.room, "blocks": [BLOCK] * 51}),
    ("too_many_attachments", "ann", POST, {"channel": lambda s: s.room, "attachments": [{}] * 101}),
    ("metadata_too_large", "ann", POST, {"channel": lambda s: s.room, "text": "x",
                                         "metadata": {"event_type": "e", "event_payload": {"k": "x" * 17_000}}}),
    ("request_too_large", "ann", POST, {"channel": lambda s: s.room, "text": "x" * 2_200_000}),
    ("invalid_position", "ann", "events.sync", {"since": "*"}),
    ("strategy_unsupported", "ann", "channels.markMessages", {"channel": lambda s: s.bits, "ts": lambda s: [s.bits_ts]}),
]


@pytest.mark.parametrize("code, who, method, args", CALLS, ids=[row[0] for row in CALLS])
def test_it_comes_with_its_status(stage, code, who, method, args):
    args = {name: value(stage) if callable(value) else value for name, value in args.items()}
    caller = getattr(stage, who)
    reply = caller.fails(code, method, headers=HTTP, **args)
    assert reply.status == (400 if code == "my_error" else status_of(code))
    if code == "ratelimited":
        assert int(reply.headers["Retry-After"]) >= 1
    assert reply.headers["Content-Type"] == "application/problem+json"
    assert reply["code"] == code and reply["status"] == reply.status and reply["instance"] == f"/api/{method}"
    assert reply["type"].endswith(code) and reply["title"] == code.replace("_", " ") and reply["detail"]
    assert ("WWW-Authenticate" in reply.headers) == (reply.status == 401)
    plain = caller.fails(code, method, **args)
    assert plain.status == (429 if code == "ratelimited" else 200)
    assert plain.headers["Content-Type"].startswith("application/json") and "code" not in plain


FORM = "application/x-www-form-urlencoded"
BODIES = [
    ("invalid_json", "application/json", "{"), ("json_not_object", "application/json", "[]"),
    ("invalid_form_data", FORM, "a=%FF"), ("invalid_post_type", "application/xml", "<a/>"), ("missing_post_type", None, "a=b"),
    ("invalid_charset", f"{FORM}; charset=utf-16", "a=b"), ("invalid_array_arg", FORM, "a[]=b"),
]


@pytest.mark.parametrize("code, content_type, body", BODIES, ids=[row[0] for row in BODIES])
def test_of_bodies_that_cannot_be_read(stage, code, content_type, body):
    with RawConnection(stage.ann.url) as connection:
        connection.send(request("POST", "/api/api.test", stage.ann.token, content_type, body, ["X-Tidings-Errors: HTTP"]))
        reply = connection.reply()
    assert reply.json["error"] == code and reply.status == reply.json["status"] == status_of(code)
    assert reply.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("verb", ["PUT", "DELETE", "PATCH", "OPTIONS", "QUERY"])
def test_other_verbs(stage, verb):
    with RawConnection(stage.ann.url) as connection:
        connection.send(request(verb, "/api/auth.test", stage.ann.token, headers=["X-Tidings-Errors: http"]))
        reply = connection.reply()
    assert reply.status == 405 and reply.headers["allow"] == "GET, POST, HEAD" and reply.json["error"] == "method_not_allowed"
    assert reply.json["instance"] == "/api/auth.test"


# Brought about elsewhere: with clocks, faults, thousands of messages, or a directory for files.
ELSEWHERE = {"message_not_owned_by_app", "message_not_in_streaming_state", "emoji_limit_reached", "internal_error", "service_unavailable",
             "token_revoked", "token_expired", "too_many_read_messages", "method_not_allowed", "too_many_devices", "too_many_webhooks",
             "webhook_not_found", "secret_key_missing", "not_pinnable", "too_many_emoji", "too_many_reactions", "too_many_pins",
             "cant_delete_file", "file_not_found", "file_too_large", "files_disabled", "storage_limit_reached", "too_many_files"}


def test_no_code_is_left_out():
    assert {row[0] for row in CALLS} | {row[0] for row in BODIES} | ELSEWHERE == set(CODES) | {"my_error"}


@pytest.mark.parametrize("method, args, parameter", [
    ("channels.mark", {"channel": lambda s: s.room, "ts": "x"}, "ts"), (POST, {"text": "x"}, "channel"),
    ("channels.list", {"limit": -1}, "limit"), ("channels.history", {"channel": lambda s: s.room, "oldest": "x"}, "oldest"),
    ("conversations.open", {}, "users"), (POST, {"channel": lambda s: s.room, "client_msg_id": "x" * 129}, "client_msg_id"),
])
def test_the_argument_that_is_wrong(stage, method, args, parameter):
    args = {name: value(stage) if callable(value) else value for name, value in args.items()}
    reply = stage.ann.call(method, headers=HTTP, **args)
    assert reply["errors"] == [{"parameter": parameter, "detail": reply["detail"]}] and parameter in reply["detail"]
    assert "errors" not in stage.ann.call(method, **args)
    assert "errors" not in stage.ann.fails("channel_not_found", POST, channel="C0000000000", text="x", headers=HTTP)


def test_errors_that_have_more_to_say(stage):
    """The additional fields that Slack's clients read are present in either form."""
    for headers in ({}, HTTP):
        reply = stage.few.fails("missing_scope", POST, channel=stage.room, text="x", headers=headers)
        assert reply["needed"] == "chat:write" and reply["provided"] == "users:read"
        reply = stage.ann.fails("user_not_found", "channels.invite", channel=stage.room, users="U0000000000", headers=headers)
        assert reply["errors"] == [{"user": "U0000000000", "ok": False, "error": "user_not_found"}]
        assert stage.ann.fails("unknown_method", "foo.bar", headers=headers)["req_method"] == "foo.bar"
        assert stage.none.fails("my_error", "api.test", error="my_error", headers=headers)["args"] == {"error": "my_error"}
        assert "ts" in stage.ann.fails("invalid_timestamp", "channels.mark", channel=stage.room, ts="x", headers=headers).messages
