# SPDX-License-Identifier: Apache-2.0
"""Actions of two users while an instance is short of resources, and which of them were acknowledged."""
import http.client

import requests
import websocket

from tests.support.sockets import Socket
from tests.support.streams import Stream
from tests.support.wait import wait_until
from tests.support.workspace import fresh_name

SHORT_S = 5  # for a reply that may never come
# What a client sees of a server that ran short: no reply, a cut one, a refusal (Refused), a stream without the frame.
LOST = (requests.RequestException, OSError, http.client.HTTPException, websocket.WebSocketException, AssertionError)


class Refused(AssertionError):
    """An answer that is an error."""


class Visits:
    """Ann acts, Bob reads. A reply that says ok is noted at once."""

    # Of a call that fails inside: never one that blames the caller.
    REFUSALS = ("service_unavailable", "internal_error", "fatal_error")

    def __init__(self, workspace):
        self.ann, self.bob = workspace.users(2)
        self.channel = workspace.channel(self.ann, self.bob)
        self.texts = {}  # by ts, as acknowledged last
        self.sent = set()
        self.marked = "0"
        for user in (self.ann, self.bob):
            user.timeout = SHORT_S
        self.last = self.post()

    def call(self, user, method, /, **args):
        reply = user.call(method, **args)
        if not reply["ok"]:
            assert reply["error"] in self.REFUSALS, f"{method}: {dict(reply)}"
            raise Refused(reply["error"])
        return reply

    def text(self):
        text = fresh_name("text")
        self.sent.add(text)
        return text

    def post(self):
        text = self.text()
        ts = self.call(self.ann, "chat.postMessage", channel=self.channel, text=text)["ts"]
        self.texts[ts] = text
        self.last = ts
        return ts

    def edit(self):
        text, ts = self.text(), self.last
        self.texts[ts] = (self.texts[ts], text)  # either, unless it is acknowledged
        self.call(self.ann, "chat.update", channel=self.channel, ts=ts, text=text)
        self.texts[ts] = text

    def mark(self):
        self.call(self.bob, "channels.mark", channel=self.channel, ts=self.last)
        self.marked = max(self.marked, self.last)

    def sync(self):
        self.call(self.bob, "unread.sync")

    def history(self):
        self.call(self.bob, "channels.history", channel=self.channel, limit=5)

    def socket(self):
        """Opens one, posts by it, and reads the acknowledgement."""
        socket = Socket(self.call(self.ann, "rtm.connect", native=True)["url"], timeout=SHORT_S)
        try:
            socket.expect({"type": "hello"}, SHORT_S)
            text = self.text()
            socket.send({"id": 1, "type": "message", "channel": self.channel, "text": text})
            ack = socket.expect({"reply_to": 1}, SHORT_S)
            if ack["ok"]:
                self.texts[ack["ts"]] = text
        finally:
            socket.close()

    def stream(self):
        """Opens an event stream, and receives a post."""
        stream = Stream(self.bob.url, self.bob.token, timeout=SHORT_S)
        try:
            stream.expect({"type": "hello"}, SHORT_S)
            ts = self.post()
            stream.expect({"type": "message", "ts": ts}, SHORT_S)
        finally:
            stream.close()

    ACTIONS = (post, edit, mark, sync, history, socket, stream)

    def attempt(self, action):
        """Returns whether everything succeeded."""
        try:
            action(self)
        except LOST:
            for user in (self.ann, self.bob):
                user.close()
            return False
        return True

    def is_served(self):
        return self.attempt(Visits.sync) and self.attempt(Visits.post)

    def check(self, environment):
        """All that was acknowledged is there, nothing twice, and nothing that was not sent; the counts are exact."""
        environment.wait_fanned_out(self.channel)
        found, cursor = {}, ""
        while True:
            page = self.bob.ok("channels.history", channel=self.channel, limit=999, cursor=cursor)
            found.update({message["ts"]: message["text"] for message in page["messages"] if "subtype" not in message})
            cursor = page.get("response_metadata", {}).get("next_cursor", "")
            if not cursor:
                break
        for ts, text in self.texts.items():
            assert found.get(ts) in (text if isinstance(text, tuple) else (text,)), f"{ts}: {found.get(ts)!r}, acknowledged {text!r}"
        assert len(set(found.values())) == len(found) and set(found.values()) <= self.sent
        info = self.bob.ok("channels.info", channel=self.channel)["channel"]
        assert info["last_read"] >= self.marked
        unread = sum(ts > info["last_read"] for ts in found)
        assert info["unread_count"] == unread
        wait_until(lambda: self.synced() == unread, what="the count of unread.sync")

    def synced(self):
        channels = self.bob.ok("unread.sync")["channels"]
        return next(channel["unread_count"] for channel in channels if channel["id"] == self.channel)
