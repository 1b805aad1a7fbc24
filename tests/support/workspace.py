# SPDX-License-Identifier: Apache-2.0
"""A test's own workspace, with its users, channels and sockets."""

import itertools
import secrets

from tests.support.client import Client
from tests.support.sockets import Socket
from tests.support.streams import Stream

_numbers = itertools.count(1)


def fresh_name(prefix):
    """A name no other test has: lower case letters, digits and hyphens."""
    return f"{prefix}-{next(_numbers)}-{secrets.token_hex(3)}"


class Member(Client):
    """A client that knows whose it is: `id` and `name`; a bot also `bot_id`."""

    def __init__(self, url, token, user_id, name, recorder, bot_id=""):
        super().__init__(url, token, recorder)
        self.id = user_id
        self.name = name
        self.bot_id = bot_id

    def at(self, url):
        """The same user with the same token on another instance."""
        return Member(url, self.token, self.id, self.name, self.recorder, self.bot_id)

    def socket(self, native=False, since=None):
        """Opens a WebSocket, perhaps from a position on, and waits for its hello. The caller closes it."""
        args = {"native": native, "since": since}
        socket = Socket(self.ok("rtm.connect", **{name: value for name, value in args.items() if value})["url"])
        socket.expect({"type": "hello"})
        return socket

    def stream(self, last_id=None, **args):
        """Opens an event stream and waits for its hello. The caller closes it."""
        stream = Stream(self.url, self.token, last_id, **args)
        stream.expect({"type": "hello"})
        return stream


class Workspace:
    """A new workspace. `urls` are the instances; users talk to the first by default."""

    def __init__(self, urls, operator_token, recorder=None):
        self.urls = list(urls)
        self.recorder = recorder
        operator = Client(self.urls[0], operator_token, recorder)
        self.name = fresh_name("team")
        made = operator.ok("admin.workspaces.create", name=self.name, domain=self.name)
        operator.close()
        self.id = made["workspace"]["id"]
        self.domain = made["workspace"]["domain"]
        self.admin = Member(self.urls[0], made["admin"]["token"], made["admin"]["user_id"], "admin", recorder)

    def user(self, name=None, **args):
        """Makes a user with a token and returns its Member."""
        name = name or fresh_name("user")
        user = self.admin.ok("admin.users.create", name=name, **args)["user"]
        token = self.admin.ok("admin.tokens.create", user_id=user["id"])["token"]
        bot_id = user.get("bot_id", "")
        return Member(self.urls[0], token, user["id"], name, self.recorder, bot_id)

    def users(self, count):
        return [self.user() for _ in range(count)]

    def bot(self, name=None):
        return self.user(name, is_bot=True)

    def channel(self, creator, *members, name=None, private=False):
        """Makes a channel with `members` in it besides its creator, and returns its id."""
        args = {"is_private": True} if private else {}
        channel = creator.ok("channels.create", name=name or fresh_name("room"), **args)["channel"]["id"]
        if members:
            creator.ok("channels.invite", channel=channel, users=[member.id for member in members])
        return channel
