# SPDX-License-Identifier: Apache-2.0
"""api.test, auth.test, and the ways arguments and tokens may arrive."""

import json

import pytest

from tests.support.raw import RawConnection, request

FORM = "application/x-www-form-urlencoded"


def raw_call(url, target, **args):
    verb = args.pop("verb", "POST")
    with RawConnection(url) as connection:
        connection.send(request(verb, target, **args))
        return connection.reply()


@pytest.mark.parametrize("encoding", ["json", "form", "query", "get"])
def test_api_test_echoes_its_arguments(environment, encoding):
    reply = environment.client().ok("api.test", encoding=encoding, foo="bar", text="h\u00e9 \U0001f600 & <x>")
    assert reply["args"] == {"foo": "bar", "text": "h\u00e9 \U0001f600 & <x>"}


def test_api_test_answers_the_error_asked_for(environment):
    reply = environment.client().fails("my_error", "api.test", error="my_error")
    assert reply.status == 200
    assert reply["args"]["error"] == "my_error"


@pytest.mark.parametrize("encoding", ["json", "form"])
def test_api_test_with_an_empty_error_is_none(environment, encoding):
    assert environment.client().ok("api.test", encoding=encoding, error="")["args"] == {"error": ""}


def test_every_reply_is_json_and_has_a_request_id(environment):
    client = environment.client()
    replies = [client.call("api.test"), client.call("auth.test"), client.call("no.such_method")]
    for reply in replies:
        assert reply.status == 200
        assert reply.headers["Content-Type"].startswith("application/json")
        assert reply.headers["X-Request-Id"]
    assert len({reply.headers["X-Request-Id"] for reply in replies}) == 3


def test_request_id_of_the_caller_is_echoed(environment):
    reply = environment.client().call("api.test", headers={"X-Request-Id": "Abc.1_2-3"})
    assert reply.headers["X-Request-Id"] == "Abc.1_2-3"


@pytest.mark.parametrize("given", ["with space", "x" * 129, "a\"b"])
def test_a_bad_request_id_is_replaced(environment, given):
    reply = environment.client().call("api.test", headers={"X-Request-Id": given})
    assert reply.headers["X-Request-Id"] not in ("", given)


def test_auth_test_of_a_user(environment, workspace):
    ann = workspace.user("ann")
    reply = ann.ok("auth.test")
    assert reply["user_id"] == ann.id and reply["user"] == "ann"
    assert reply["team_id"] == workspace.id and reply["team"] == workspace.name
    assert reply["bot_id"] == ""
    assert reply["is_enterprise_install"] is False
    assert reply["url"].startswith("http://") and reply["url"].endswith("/")


def test_auth_test_of_a_bot(workspace):
    bot = workspace.bot()
    assert bot.bot_id.startswith("B")
    assert bot.ok("auth.test")["bot_id"] == bot.bot_id


def test_unknown_arguments_are_ignored(workspace):
    ann = workspace.user()
    ann.ok("auth.test", team_id="T0", _x_reason="none", nested={"a": [1]})
    channel = workspace.channel(ann)
    ann.ok("channels.info", channel=channel, include_locale=True, return_im=1, team_id=workspace.id)


def test_body_wins_over_query(workspace):
    ann = workspace.user()
    one, two = workspace.channel(ann), workspace.channel(ann)
    reply = raw_call(ann.url, f"/api/channels.info?channel={one}", token=ann.token, content_type=FORM,
                     body=f"channel={two}")
    assert reply.json["channel"]["id"] == two
    reply = raw_call(ann.url, f"/api/channels.info?channel={one}", token=ann.token,
                     content_type="application/json", body=json.dumps({"channel": two}))
    assert reply.json["channel"]["id"] == two


def test_query_and_body_together(workspace):
    ann = workspace.user()
    channel = workspace.channel(ann)
    reply = raw_call(ann.url, f"/api/chat.postMessage?channel={channel}", token=ann.token, content_type=FORM,
                     body="text=both")
    assert reply.json["ok"] and reply.json["message"]["text"] == "both"


def test_double_slash_is_tolerated(workspace):
    ann = workspace.user()
    assert raw_call(ann.url, "/api//auth.test", token=ann.token).json["user_id"] == ann.id


@pytest.mark.parametrize("content_type", [
    FORM, "application/x-www-form-urlencoded; charset=utf-8", "application/json", "application/json;charset=utf-8",
    "Application/JSON; Charset=UTF-8", None,
])
@pytest.mark.parametrize("method", ["auth.test", "users.list", "api.test"])
def test_an_empty_body_of_any_type(workspace, method, content_type):
    ann = workspace.admin
    assert raw_call(ann.url, f"/api/{method}", token=ann.token, content_type=content_type).json["ok"] is True


def test_identity_encoding_is_honoured(workspace):
    """Python's client sends `identity` and cannot unpack anything else."""
    ann = workspace.admin
    reply = raw_call(ann.url, "/api/auth.test", token=ann.token, content_type="application/json;charset=utf-8",
                     headers=["Connection: close", "Accept-Encoding: identity", "Accept: */*"])
    assert reply.json["ok"] is True
    assert reply.headers.get("content-encoding", "identity") == "identity"


def test_token_in_form_and_in_query(workspace):
    ann = workspace.user()
    for reply in (
        raw_call(ann.url, "/api/auth.test", content_type=FORM, body=f"token={ann.token}"),
        raw_call(ann.url, f"/api/auth.test?token={ann.token}"),
        raw_call(ann.url, f"/api/auth.test?token={ann.token}", verb="GET"),
        raw_call(ann.url, "/api/auth.test", token=ann.token, content_type=FORM, body=f"token={ann.token}"),
    ):
        assert reply.json["user_id"] == ann.id


def test_header_token_wins_over_body_and_body_over_query(workspace):
    ann, bob, cid = workspace.users(3)
    reply = raw_call(ann.url, f"/api/auth.test?token={cid.token}", token=ann.token, content_type=FORM,
                     body=f"token={bob.token}")
    assert reply.json["user_id"] == ann.id
    reply = raw_call(ann.url, f"/api/auth.test?token={cid.token}", content_type=FORM, body=f"token={bob.token}")
    assert reply.json["user_id"] == bob.id


def test_scheme_name_in_any_case(workspace):
    ann = workspace.user()
    for scheme in ("Bearer", "bearer", "BEARER"):
        reply = raw_call(ann.url, "/api/auth.test", headers=[f"Authorization: {scheme} {ann.token}"])
        assert reply.json["ok"] is True, scheme


@pytest.mark.parametrize("body, error", [
    ("{", "invalid_json"), ("", None), ("[]", "json_not_object"), ('"x"', "json_not_object"),
    ("1", "json_not_object"), ("null", "json_not_object"), ("{} {}", "invalid_json"), ("{\"a\":1,}", "invalid_json"),
    ("{'a':1}", "invalid_json"), ("{\"a\":\"\\ud83d\"}", "invalid_json"), ("{\"a\":NaN}", "invalid_json"),
])
def test_json_bodies(workspace, body, error):
    ann = workspace.admin
    reply = raw_call(ann.url, "/api/auth.test", token=ann.token, content_type="application/json", body=body).json
    if error is None:
        assert reply["ok"] is True
    else:
        assert reply["ok"] is False
        assert reply["error"] in (error, "invalid_json"), reply  # a bare scalar may be no JSON to an old parser


def test_json_of_bytes_that_are_no_utf8(workspace):
    ann = workspace.admin
    reply = raw_call(ann.url, "/api/auth.test", token=ann.token, content_type="application/json",
                     body=b'{"a":"\xff\xfe"}')
    assert reply.json["error"] == "invalid_json"


def test_form_of_bytes_that_are_no_utf8(workspace):
    ann = workspace.user()
    channel = workspace.channel(ann)
    reply = raw_call(ann.url, "/api/chat.postMessage", token=ann.token, content_type=FORM,
                     body=f"channel={channel}&text=%FF%FE").json
    assert reply["error"] in ("invalid_form_data", "invalid_arguments"), reply
    assert ann.history(channel) == []


@pytest.mark.parametrize("depth, ok", [(64, True), (65, False), (100_000, False)])
def test_json_nested_deep(workspace, depth, ok):
    """The body itself is level 1."""
    body = '{"a":' + "[" * (depth - 1) + "]" * (depth - 1) + "}"
    ann = workspace.admin
    reply = raw_call(ann.url, "/api/api.test", token=ann.token, content_type="application/json", body=body).json
    assert reply["ok"] is ok
    if not ok:
        assert reply["error"] == "invalid_json"


def test_unknown_content_type(workspace):
    ann = workspace.admin
    reply = raw_call(ann.url, "/api/auth.test", token=ann.token, content_type="application/xml", body="<a/>")
    assert reply.status == 200 and reply.json["error"] == "invalid_post_type"


def test_a_body_without_content_type(workspace):
    reply = raw_call(workspace.admin.url, "/api/auth.test", token=workspace.admin.token, body="a=b")
    assert reply.status == 200 and reply.json["error"] == "missing_post_type"


@pytest.mark.parametrize("content_type, body", [
    (FORM, b"text=caf%E9+%2B+100%+%e9%"), (FORM, b"text=caf\xe9+%2B+100%+\xe9%"), ("text/plain", b"text=caf%E9+%2B+100%+%E9%"),
    ("application/json", b'{"text":"caf\xe9 + 100% \xe9%"}'),
])
def test_the_older_charset(environment, content_type, body):
    for charset in ("iso-8859-1", '"ISO-8859-1"'):
        reply = raw_call(environment.urls[0], "/api/api.test", content_type=f"{content_type}; charset={charset}", body=body)
        assert reply.json["args"]["text"] == "caf\u00e9 + 100% \u00e9%"


@pytest.mark.parametrize("content_type", [FORM, "application/json", "text/plain"])
@pytest.mark.parametrize("charset", ["utf-16", "windows-1252", ""])
def test_other_charsets(environment, content_type, charset):
    reply = raw_call(environment.urls[0], "/api/api.test", content_type=f"{content_type}; charset={charset}", body="a=b")
    assert reply.status == 200 and reply.json["error"] == "invalid_charset"
    assert "iso-8859-1" in reply.json["response_metadata"]["messages"][0]


@pytest.mark.parametrize("target, body", [("/api/api.test?a[]=1", ""), ("/api/api.test", "a[]=1"), ("/api/api.test", "a[0]=1"),
                                          ("/api/api.test", "a%5B%5D=1")])
def test_lists_in_a_form_s_syntax(environment, target, body):
    assert raw_call(environment.urls[0], target, content_type=FORM, body=body).json["error"] == "invalid_array_arg"


@pytest.mark.parametrize("target", ["/api/", "/api//", "/api/auth.test/", "/api/%2e"])
def test_no_method(environment, target):
    reply = raw_call(environment.urls[0], target)
    assert reply.status == 200 and reply.json["error"] == "unknown_method"


def test_multipart_form(workspace):
    ann = workspace.user()
    channel = workspace.channel(ann)
    parts = "".join(f'--b0\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
                    for name, value in (("channel", channel), ("text", "h\u00e9 in parts")))
    reply = raw_call(ann.url, "/api/chat.postMessage", token=ann.token,
                     content_type="multipart/form-data; boundary=b0", body=parts + "--b0--\r\n")
    assert reply.json["ok"] is True, reply.json
    assert ann.history(channel)[0]["text"] == "h\u00e9 in parts"


def test_unknown_method(environment, workspace):
    for client in (environment.client(), workspace.admin):
        reply = client.fails("unknown_method", "foo.bar")
        assert reply.status == 200 and reply["req_method"] == "foo.bar"


@pytest.mark.parametrize("method", ["Chat.postMessage", "chat.postmessage", "chat", "channels.", "conversations.none"])
def test_method_names_are_exact(workspace, method):
    workspace.admin.fails("unknown_method", method)


def test_users_list_gives_a_page_when_asked_for_all(environment, workspace):
    ann = workspace.user()
    with environment.database() as database:
        database.execute("INSERT INTO users (id, workspace_id, name, real_name) SELECT 'U0' || lpad(n::text, 9, '0') || %(end)s, %(workspace)s,"
                         " 'many-' || n, 'Many' FROM generate_series(1, 1100) AS n", {"workspace": workspace.id, "end": workspace.id[-4:]})
    whole = []
    for args in ({}, {"limit": 0}):
        first = ann.ok("users.list", **args)
        assert len(first["members"]) == 1000
        rest = ann.ok("users.list", cursor=first["response_metadata"]["next_cursor"], **args)
        assert rest["response_metadata"]["next_cursor"] == ""
        whole.append([member["id"] for member in first["members"] + rest["members"]])
    assert whole[0] == whole[1] == sorted(set(whole[0])) and len(whole[0]) == 1102
