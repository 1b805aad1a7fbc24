# SPDX-License-Identifier: Apache-2.0
"""Data of every kind, created through the public API: the content of a release's dump."""

from functools import partial

from tests.support.client import Client
from tests.support.events_url import EventsUrl
from tests.support.kept import kept, wait_kept
from tests.support.sockets import Socket
from tests.support.wait import wait_until

STRATEGIES = ("auto", "sequence", "zset", "counter", "bitmap")
MANY = 130  # more than zset counts, marked read or not
BLOCKS = [{"type": "section", "text": {"type": "mrkdwn", "text": "*blocks*"}}]
ATTACHMENTS = [{"fallback": "a fallback", "text": "attached", "ts": 1.50}]
METADATA = {"event_type": "deployed", "event_payload": {"b": 1, "a": [2, None]}}


def refuse(_):
    """The answer of an events_url that is out of order."""
    return 500, {}, ""


class Data:
    """Creates all of it on the first instance of an environment. `cast` has the values needed to read it again."""

    def __init__(self, environment):
        self.environment = environment
        self.workspace = environment.workspace()
        self.channels = {}  # name → id; direct conversations too
        self.roots = []  # (channel, thread_ts)
        self.repeats = []  # (who, arguments of a post to repeat)
        self.apps = {}  # name → {id, token}
        self.tokens = {}  # name → token; those of people and the bot by their names
        self.make()

    def make(self):
        self.make_people()
        self.make_tokens()
        self.make_channels()
        self.make_directs()
        self.make_messages()
        self.make_threads()
        self.make_read_states()
        self.make_settings()
        self.make_apps()
        self.make_gone()

    @property
    def cast(self):
        return {"tokens": self.tokens, "users": [member.id for member in self.people], "channels": list(self.channels.values()),
                "roots": self.roots, "repeats": self.repeats, "apps": self.apps}

    def make_people(self):
        workspace = self.workspace
        self.ann = workspace.user("ann", email="ann@example.com", real_name="Ann \u00c5ngstr\u00f6m")
        self.bob, self.cid, self.dan, self.eve = (workspace.user(name) for name in ("bob", "cid", "dan", "eve"))
        self.bot = workspace.bot("helper")
        self.stranger = self.environment.workspace().user("stranger")
        self.people = [workspace.admin, self.ann, self.bob, self.cid, self.dan, self.eve, self.bot, self.stranger]
        self.tokens = {member.name: member.token for member in self.people}

    def make_tokens(self):
        admin = self.workspace.admin
        for name, args in {"short": {"expires_in": 1}, "long": {"expires_in": 50 * 365 * 86400}, "revoked": {},
                           "scoped": {"scopes": ["channels:read"]}, "limited": {"rate_limit": 1000}}.items():
            self.tokens[f"bob, {name}"] = admin.ok("admin.tokens.create", user_id=self.bob.id, **args)["token"]
        admin.ok("admin.tokens.revoke", revoke_token=self.tokens["bob, revoked"])
        short = self.environment.client(self.tokens["bob, short"])
        wait_until(lambda: short.call("auth.test").get("error") == "token_expired", what="the end of a token")

    def make_channels(self):
        ann, others = self.ann, (self.bob, self.cid, self.dan, self.bot)
        for name in (*STRATEGIES, "private", "archived", "back", "renamed", "quiet"):
            channel = self.workspace.channel(ann, *others, name=f"a-{name}", private=name == "private")
            self.channels[name] = channel
            if name in STRATEGIES:
                ann.ok("channels.setStrategy", channel=channel, strategy=name)
            ann.post(channel, f"the first in {name}")
        for name in ("archived", "back"):
            ann.ok("channels.archive", channel=self.channels[name])
        ann.ok("channels.unarchive", channel=self.channels["back"])
        for name in ("a-second-name", "a-third-name"):
            ann.ok("channels.rename", channel=self.channels["renamed"], name=name)
        self.channels["empty"] = self.workspace.channel(self.cid, name="nobody-else")
        self.make_comings()

    def make_comings(self):
        channels = self.channels
        self.eve.ok("channels.join", channel=channels["sequence"])
        self.cid.ok("channels.leave", channel=channels["counter"])
        self.ann.ok("channels.kick", channel=channels["zset"], user=self.dan.id)
        for channel in (channels["bitmap"], channels["zset"]):
            self.cid.ok("channels.leave", channel=channel)
            self.ann.post(channel, "while cid was away")
            self.ann.ok("channels.invite", channel=channel, users=[self.cid.id])

    def make_directs(self):
        ann, bob, cid, dan = self.ann, self.bob, self.cid, self.dan
        for name, users in {"im": (bob,), "im, closed": (cid,), "im, opened again": (dan,), "im, bot": (self.bot,),
                            "mpim": (bob, cid), "mpim, closed": (bob, dan)}.items():
            channel = ann.ok("conversations.open", users=[user.id for user in users])["channel"]["id"]
            self.channels[name] = channel
            ann.post(channel, f"from ann in {name}")
            users[0].post(channel, f"to ann in {name}")
        for name in ("im, closed", "im, opened again", "mpim, closed"):
            ann.ok("conversations.close", channel=self.channels[name])
        dan.post(self.channels["im, opened again"], "are you there?")

    def make_messages(self):
        for name in STRATEGIES:
            channel = self.channels[name]
            posts = [self.bob.post(channel, f"{number} in {name} \U0001f600 <&>") for number in range(6)]
            self.bob.ok("chat.update", channel=channel, ts=posts[1], text="edited")
            for ts in posts[2:4]:
                self.bob.ok("chat.delete", channel=channel, ts=ts)
            self.ann.post(channel, f"<@{self.cid.id}> and <@{self.bob.id}>, look")
            self.bob.post(channel, "<!channel> all of you")
            self.bot.post(channel, "a bot's", blocks=BLOCKS, attachments=ATTACHMENTS, metadata=METADATA, username="other")
            self.ann.ok("chat.meMessage", channel=channel, text="waves")
        for number in range(MANY):
            self.ann.post(self.channels["zset"], f"one of many, {number}")
        self.make_repeats()

    def make_repeats(self):
        channel = self.channels["auto"]
        args = {"channel": channel, "text": "only once", "client_msg_id": "a key"}
        first = self.ann.post(**args)
        deleted = {**args, "text": "once, and deleted", "client_msg_id": "another key"}
        self.ann.ok("chat.delete", channel=channel, ts=self.ann.post(**deleted))
        self.repeats = [("ann", args), ("ann", deleted), ("ann", {**args, "text": "of another text"})]
        assert self.ann.post(**args) == first

    def make_threads(self):
        ann, bob, cid = self.ann, self.bob, self.cid
        for name in ("auto", "private", "bitmap", "im", "mpim"):
            channel = self.channels[name]
            root = ann.post(channel, f"a root in {name}")
            self.roots.append((channel, root))
            replies = [author.post(channel, f"reply of {author.name}", thread_ts=root) for author in (bob, ann, bob)]
            bob.post(channel, "to all", thread_ts=root, reply_broadcast=True)
            bob.post(channel, f"<@{cid.id}>, you too", thread_ts=root)
            bob.ok("chat.delete", channel=channel, ts=replies[2])
            ann.ok("threads.mark", channel=channel, thread_ts=root, ts=replies[0])
        channel, root = self.roots[0]
        self.dan.ok("threads.follow", channel=channel, thread_ts=root)
        bob.ok("threads.unfollow", channel=channel, thread_ts=root)
        headless = ann.post(channel, "a root that goes")
        bob.post(channel, "and its reply", thread_ts=headless)
        ann.ok("chat.delete", channel=channel, ts=headless)
        self.roots.append((channel, headless))

    def make_read_states(self):
        for name in (*STRATEGIES, "im", "mpim", "renamed"):
            channel = self.channels[name]
            posts = [message["ts"] for message in self.ann.history(channel)]
            self.bob.ok("channels.mark", channel=channel, ts=posts[0])
            self.ann.ok("channels.mark", channel=channel, ts=posts[1])
            self.ann.ok("channels.markUnread", channel=channel, ts=posts[1])
        for name in ("sequence", "zset", "counter"):
            posts = [message["ts"] for message in self.ann.history(self.channels[name]) if message["user"] != self.bob.id]
            self.bob.ok("channels.markUnread", channel=self.channels[name], ts=posts[-1])
            self.bob.ok("channels.markMessages", channel=self.channels[name], ts=[posts[0], posts[2]])
        self.dan.ok("channels.markAll")

    def make_settings(self):
        for name, settings in {"quiet": {"muted": True}, "auto": {"notify": "mentions"}, "counter": {"muted": True, "notify": "none"},
                               "im": {"muted": True}}.items():
            self.bob.ok("channels.setNotifications", channel=self.channels[name], **settings)
        for name in ("auto", "private"):
            self.ann.ok("channels.setTopic", channel=self.channels[name], topic="what it is about")
            self.bob.ok("channels.setPurpose", channel=self.channels[name], purpose="what it is for")
        self.ann.ok("channels.setTopic", channel=self.channels["private"], topic="")
        self.eve.ok("users.setPresence", presence="away")

    def make_apps(self):
        """One app in Socket Mode and one with an events_url, both with stored events, and one that never connected."""
        server = EventsUrl()
        for name, args in {"link": {}, "url": {"events_url": server.url}, "shy": {"events": ["message.channels"]}}.items():
            made = self.workspace.admin.ok("admin.apps.create", name=name, bot_user_id=self.bot.id, **args)
            self.apps[name] = {"id": made["app"]["id"], "token": made["app_token"]}
        channel = self.channels["quiet"]
        link = Socket(Client(self.ann.url, self.apps["link"]["token"]).ok("apps.connections.open")["url"])
        post = [partial(self.ann.post, channel, "an event")]
        wait_kept(self.environment, self.apps["link"]["id"], channel, post)
        wait_until(lambda: post[0]() and server.events, interval=0.1, what="an event at the events_url")
        server.answer = refuse
        link.close()
        self.wait_kept_for_all(post[0])
        server.close()

    def wait_kept_for_all(self, post):
        def is_kept():
            return post() and all(kept(self.environment, self.apps[name]["id"]) > 0 for name in ("link", "url"))
        wait_until(is_kept, interval=0.1, what="events kept for both apps")

    def make_gone(self):
        self.workspace.admin.ok("admin.users.setActive", user_id=self.dan.id, active=False)
        self.environment.wait_fanned_out(self.channels["quiet"])

    def leave_over(self):
        """Changes that are committed but not delivered, because Redis is down and the instance dies."""
        self.environment.redis.stop()
        for name in STRATEGIES:
            channel = self.channels[name]
            ts = self.bob.post(channel, f"left over in {name}")
            self.bob.ok("chat.update", channel=channel, ts=ts, text=f"edited and left over in {name}")
            self.cid_or_eve(name).ok("channels.mark", channel=channel, ts=ts)
        channel, root = self.roots[0]
        self.bob.post(channel, "a reply left over", thread_ts=root)
        self.eve.ok("channels.leave", channel=self.channels["sequence"])
        self.environment.instances[0].kill()

    def cid_or_eve(self, name):
        """A member of the channel who does not write there."""
        return self.cid if name != "counter" else self.ann
