# SPDX-License-Identifier: Apache-2.0
"""An HTTP client of Tidings: calls methods, keeps the connection open, records its traffic."""

import json
from urllib.parse import urlencode

import requests

from tests.support.recorder import Silence
from tests.support.wait import LIMIT_S


class Reply(dict):
    """The JSON object of a reply, with attributes `status`, `headers` and the `body` bytes."""

    def __init__(self, response):
        super().__init__(response.json())
        self.status = response.status_code
        self.headers = response.headers
        self.body = response.content

    @property
    def messages(self):
        """response_metadata.messages as one text."""
        return "\n".join(self.get("response_metadata", {}).get("messages", []))


class Client:
    """Calls as the holder of `token` on the instance at `url`. One client belongs to one thread."""

    def __init__(self, url, token=None, recorder=None, timeout=LIMIT_S):
        self.url = url.rstrip("/")
        self.token = token
        self.recorder = recorder or Silence()
        self.timeout = timeout
        self._session = requests.Session()
        self._session.trust_env = False

    def call(self, method, /, *, encoding="json", headers=None, **args):
        """Calls `method` and returns its Reply. `encoding`: json, form, query (POST) or get (GET with a query).

        In form and query an argument that is a list or an object goes as JSON text, a boolean as true/false.
        """
        sent = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        sent.update(headers or {})
        verb, params, body = "POST", None, None
        if encoding == "json":
            sent["Content-Type"] = "application/json; charset=utf-8"
            body = json.dumps(args)
        elif encoding == "form":
            sent["Content-Type"] = "application/x-www-form-urlencoded"
            body = urlencode(_flat(args))
        elif encoding in ("query", "get"):
            params = _flat(args)
            verb = "GET" if encoding == "get" else "POST"
        else:
            raise ValueError(f"unknown encoding {encoding!r}")
        response = self._session.request(verb, f"{self.url}/api/{method}", params=params, data=body, headers=sent,
                                         timeout=self.timeout, allow_redirects=False)
        reply = Reply(response)
        self.recorder.call(method, encoding, args, reply)
        return reply

    def ok(self, method, /, **args):
        """Calls `method`, which must succeed."""
        reply = self.call(method, **args)
        assert reply.get("ok") is True and reply.status == 200, f"{method}({args!r}): {reply.status} {dict(reply)!r}"
        return reply

    def fails(self, error, method, /, **args):
        """Calls `method`, which must return `error` (a code, or a tuple of acceptable codes)."""
        reply = self.call(method, **args)
        codes = (error,) if isinstance(error, str) else error
        assert reply.get("ok") is False and reply.get("error") in codes, f"{method}({args!r}): {dict(reply)!r}"
        return reply

    def post(self, channel, text="hello", **args):
        """Posts a message and returns its `ts`."""
        return self.ok("chat.postMessage", channel=channel, text=text, **args)["ts"]

    def unread(self, channel):
        """The unread count of this user in `channel`, from channels.info."""
        return self.ok("channels.info", channel=channel)["channel"]["unread_count"]

    def history(self, channel, **args):
        """The messages of users and bots in `channel`, newest first."""
        messages = self.ok("channels.history", channel=channel, **args)["messages"]
        return [m for m in messages if m.get("subtype") not in ("channel_join", "channel_leave")]

    def page(self, path, **kwargs):
        """GET of a plain page such as /readyz: the response of requests."""
        return self._session.get(f"{self.url}{path}", timeout=self.timeout, **kwargs)

    def close(self):
        self._session.close()


def _flat(args):
    return {name: _flat_value(value) for name, value in args.items()}


def _flat_value(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, dict)):
        return json.dumps(value)
    return value
