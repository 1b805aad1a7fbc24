# SPDX-License-Identifier: Apache-2.0
"""All kinds of callers, and a valid call of each method."""
from tests.support.logins import Provider
from tests.support.provider_keys import address, service_account
from tests.support.workspace import Member, fresh_name
from tools import authorization

MESSAGE = {"channel": "<channel>", "ts": "<ts>"}
THREAD = {"channel": "<channel>", "thread_ts": "<ts>"}
CHANNEL = {"channel": "<channel>"}
ITEM = {"channel": "<channel>", "timestamp": "<ts>"}
ADDRESS = {"url": "https://push.example/_matrix/push/v1/notify", "pushkey": "<name>"}

PROVIDER = {"kind": "jwt", "issuer": "https://issuer.example", "audience": "tidings", "secret": "s" * 32}

# Valid arguments: <this> is an attribute of Scene. Methods that are not named here take none, or a channel.
ARGUMENTS = {
    "auth.revoke": {"test": True},
    "auth.exchange": {"token": "<jwt>"},
    "chat.postMessage": {**CHANNEL, "text": "x"},
    "chat.meMessage": {**CHANNEL, "text": "x"},
    "chat.postEphemeral": {**CHANNEL, "user": "<creator>", "text": "x"},
    "chat.startStream": CHANNEL,
    "chat.appendStream": {**CHANNEL, "ts": "<stream>", "markdown_text": "x"},
    "chat.stopStream": {**CHANNEL, "ts": "<stream>"},
    "assistant.threads.setStatus": {"channel_id": "<public>", "thread_ts": "1700000000.000000", "status": "x"},
    "chat.getPermalink": {**CHANNEL, "message_ts": "<ts>"},
    "chat.update": {**MESSAGE, "text": "y"},
    "chat.delete": MESSAGE,
    "channels.create": {"name": "<name>"},
    "channels.replies": MESSAGE,
    "channels.events": {**CHANNEL, "after_seq": 0},
    "channels.invite": {**CHANNEL, "users": "<guest>"},
    "channels.kick": {**CHANNEL, "user": "<target>"},
    "channels.rename": {**CHANNEL, "name": "<name>"},
    "channels.setTopic": {**CHANNEL, "topic": "x"},
    "channels.setPurpose": {**CHANNEL, "purpose": "x"},
    "channels.mark": MESSAGE,
    "channels.markMany": {"marks": '[{"channel": "C0000000000", "ts": "1700000000.000000"}]'},
    "channels.markUnread": MESSAGE,
    "channels.markMessages": MESSAGE,
    "channels.setNotifications": {**CHANNEL, "muted": True},
    "channels.setStrategy": {**CHANNEL, "strategy": "counter"},
    "threads.mark": {**THREAD, "ts": "<ts>"},
    "threads.follow": THREAD,
    "threads.unfollow": THREAD,
    "reactions.add": {**ITEM, "name": "<name>"},
    "reactions.remove": {**ITEM, "name": "<reaction>"},
    "reactions.get": ITEM,
    "reactions.list": {"user": "<creator>"},
    "pins.add": {**CHANNEL, "timestamp": "<unpinned>"},
    "pins.remove": {**CHANNEL, "timestamp": "<pinned>"},
    "events.sync": {"since": "e1.1.1.1.0"},
    "users.info": {"user": "<creator>"},
    "users.conversations": {"user": "<creator>"},
    "users.getPresence": {"user": "<creator>"},
    "users.lookupByEmail": {"email": "<email>"},
    "users.search": {"query": "a"},
    "users.profile.get": {"user": "<creator>"},
    "users.profile.set": {"profile": '{"title": "x"}'},
    "bots.info": {"bot": "<bot_id>"},
    "dnd.teamInfo": {"users": "U0000000000"},
    "admin.users.update": {"user_id": "<target>", "real_name": "x"},
    "admin.emoji.add": {"name": "<name>", "url": "https://x.example/a.png"},
    "admin.emoji.remove": {"name": "<emoji>"},
    "users.setPresence": {"presence": "auto"},
    "admin.workspaces.create": {"name": "<name>", "domain": "<name>"},
    "admin.users.create": {"name": "<name>"},
    "admin.users.createMany": {"users": '[{"name": "x"}]'},
    "admin.channels.addMembers": {**CHANNEL, "users": '["U0000000000"]'},
    "admin.users.setActive": {"user_id": "<target>", "active": True},
    "admin.tokens.create": {"user_id": "<target>"},
    "admin.tokens.revoke": {"token_id": "<token>"},
    "admin.tokens.list": {"user_id": "<target>"},
    "admin.apps.create": {"name": "x", "bot_user_id": "<bot>"},
    "admin.apps.delete": {"app_id": "<app>"},
    "admin.pushApps.create": {"name": "<name>", "platform": "matrix"},
    "admin.pushApps.update": {"name": "<push_app>"},
    "admin.pushApps.delete": {"name": "<push_app>"},
    "files.getUploadURLExternal": {"filename": "x", "length": 1},
    "files.completeUploadExternal": {"files": '[{"id": "F0000000000"}]'},
    "files.info": {"file": "F0000000000"},
    "files.delete": {"file": "F0000000000"},
    "files.sign": {"file": "F0000000000"},
    "admin.webhooks.create": {**CHANNEL, "name": "x"},
    "admin.webhooks.delete": {"webhook_id": "<webhook>"},
    "admin.users.revokeTokens": {"user_id": "<target>", "issued_before": 1},
    "admin.auth.providers.create": {"name": "<name>", **PROVIDER},
    "admin.auth.providers.update": {"name": "<provider>", "leeway_s": 1},
    "admin.auth.providers.delete": {"name": "<provider>"},
    "admin.push.test": {"user_id": "<target>", "device_id": "<target_device>"},
    "devices.register": {"device_id": "x", "app": "<push_app>", **ADDRESS},
    "devices.unregister": {"device_id": "<device>"},
    "notifications.set": {"level": "all"},
    "dnd.info": {"user": "<creator>"},
    "dnd.setSnooze": {"num_minutes": 1},
    "dnd.endSnooze": {"snoozed": "<snooze>"},
}
# By people in place of a channel.
WITHOUT_CHANNEL = {
    "chat.postMessage": {"channel": "<guest>", "text": "x"},
    "channels.open": {"users": "<guest>"},
}
# What they do to a channel would be seen by the next caller.
DESTRUCTIVE = {"chat.delete", "channels.join", "channels.leave", "channels.invite", "channels.kick", "channels.archive",
               "channels.unarchive"}
IDS = {"<channel>", "<bot_id>", "<creator>", "<target>", "<guest>", "<bot>", "<app>", "<token>", "<webhook>"}


class Cast:
    """The callers by the names of the table's columns, and those whom they do something to."""

    def __init__(self, environment):
        self.workspace = environment.workspace()
        self.admin = self.workspace.admin
        self.creator, self.member, outsider, revoked, self.target, self.guest = self.workspace.users(6)
        self.bot = self.workspace.bot()
        self.email = f"{fresh_name('guest')}@example.org"
        self.workspace.user(email=self.email)
        self.admin_in = self.workspace.user(is_admin=True)
        app = self.admin.ok("admin.apps.create", name="x", bot_user_id=self.bot.id)
        self.admin.ok("admin.tokens.revoke", revoke_token=revoked.token)
        self.callers = {
            "no_token": environment.client(), "revoked": revoked, "app": environment.client(app["app_token"]),
            "operator": environment.client(environment.operator_token), "stranger": environment.workspace().admin,
            "outsider": outsider, "member": self.member, "creator": self.creator, "bot": self.bot, "admin": self.admin,
            "admin_in": self.admin_in,
            **{kind: self._restricted(environment, kind) for kind in ("groups", "im", "mpim")},
        }
        self.provider = Provider(self.workspace)
        self.admin.ok("admin.users.update", user_id=self.member.id, provider=self.provider.name, external_id="member")
        self._channels = {}

    def _restricted(self, environment, kind):
        """The member, by a token that is restricted to a type of channel."""
        scopes = f"{kind}:history,{kind}:read,{kind}:write,chat:write,users:read"
        token = self.admin.ok("admin.tokens.create", user_id=self.member.id, scopes=scopes)["token"]
        return Member(environment.urls[0], token, self.member.id, self.member.name, None)

    def channel(self, kind, caller):
        """A channel of the kind, and a message of its creator's; direct: of the creator and the caller, if such a one is in."""
        partner = caller if caller in (self.admin_in, self.bot) else self.member
        key = (kind, partner.id if kind == "direct" else "")
        if key not in self._channels:
            self._channels[key] = self._direct(partner) if kind == "direct" else self._make(kind)
        return self._channels[key]

    def forget_channels(self):
        self._channels.clear()

    def _direct(self, partner):
        channel = self.creator.ok("channels.open", users=[partner.id])["channel"]["id"]
        return channel, self.creator.post(channel)

    def _make(self, kind):
        channel = self.workspace.channel(self.creator, self.member, self.bot, self.admin_in, self.target, private=kind == "private")
        ts = self.creator.post(channel)
        if kind == "archived":
            self.creator.ok("channels.archive", channel=channel)
        return channel, ts


class Scene:
    """The possible arguments of one call."""

    def __init__(self, cast, kind, caller):
        self._cast = cast
        self._admin, self._caller, self._target = cast.admin, caller, cast.target
        self.creator, self.target, self.guest, self.bot = cast.creator.id, cast.target.id, cast.guest.id, cast.bot.id
        self.bot_id, self.email = cast.bot.bot_id, cast.email
        self._cast = cast
        self.name = fresh_name("made")
        if kind != authorization.NO_KIND:
            self.channel, self.ts = cast.channel(kind, caller)

    @property
    def token(self):
        return self._admin.ok("admin.tokens.create", user_id=self.target)["token_id"]

    @property
    def app(self):
        return self._admin.ok("admin.apps.create", name="x", bot_user_id=self.bot)["app"]["id"]


    @property
    def push_app(self):
        name = fresh_name("app")
        self._admin.ok("admin.pushApps.create", name=name, platform="matrix")
        return name

    @property
    def webhook(self):
        channel = self._target.ok("channels.create", name=fresh_name("hooked"))["channel"]["id"]
        return self._admin.ok("admin.webhooks.create", channel=channel, name="x")["webhook"]["id"]

    @property
    def jwt(self):
        return self._cast.provider.jwt(self.name)

    @property
    def provider(self):
        name = fresh_name("provider")
        self._admin.ok("admin.auth.providers.create", name=name, **PROVIDER)
        return name

    @property
    def reaction(self):
        """The caller's to the message, if they may react."""
        self._caller.call("reactions.add", channel=self.channel, timestamp=self.ts, name="tada")
        return "tada"

    @property
    def pinned(self):
        """The message, pinned if the caller may do that."""
        self._caller.call("pins.add", channel=self.channel, timestamp=self.ts)
        return self.ts

    @property
    def unpinned(self):
        self._caller.call("pins.remove", channel=self.channel, timestamp=self.ts)
        return self.ts
    @property
    def stream(self):
        """A message that its creator is writing, if they may."""
        return self._cast.creator.call("chat.startStream", channel=self.channel).get("ts", self.ts)

    @property
    def public(self):
        return self._cast.channel("public", self._caller)[0]

    @property
    def emoji(self):
        self._admin.ok("admin.emoji.add", name=self.name, url="https://x.example/a.png")
        return self.name

    @property
    def snooze(self):
        """The caller has one, if they may."""
        return self._caller.call("dnd.setSnooze", num_minutes=1)["ok"]

    @property
    def device(self):
        """A device of the caller, if they may have one."""
        name = fresh_name("device")
        self._caller.call("devices.register", device_id=name, app=self.push_app, **{**ADDRESS, "pushkey": name})
        return name

    @property
    def target_device(self):
        """A device of the target, whose provider's port is closed."""
        name = fresh_name("device")
        account = service_account(token_uri="https://localhost:1/token")
        self._admin.ok("admin.pushApps.create", name=name, platform="fcm", service_account=account)
        self._target.ok("devices.register", device_id=name, app=name, **address("fcm"))
        return name


def arguments_of(method, kind):
    """The arguments in the table's form."""
    if kind == authorization.NO_KIND:
        return WITHOUT_CHANNEL.get(method, ARGUMENTS.get(method, {}))
    return ARGUMENTS.get(method, CHANNEL)


def filled(arguments, scene):
    return {name: getattr(scene, value[1:-1]) if str(value).startswith("<") else value for name, value in arguments.items()}
