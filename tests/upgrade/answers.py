# SPDX-License-Identifier: Apache-2.0
"""The public API's view of a dump's data, for each of its users, and the comparison of two such records."""

from tests.support.client import Client

ALL_TYPES = "public_channel,private_channel,mpim,im"
OF_ALL = (
    ("unread.sync", {}),
    ("unread.sync", {"types": "im,mpim"}),
    ("client.counts", {}),
    ("threads.list", {}),
    ("threads.list", {"unread_only": True}),
    ("users.list", {}),
    ("users.conversations", {"types": ALL_TYPES}),
    ("conversations.list", {"types": ALL_TYPES}),
)
OF_A_CHANNEL = (
    ("channels.info", {}),
    ("channels.members", {}),
    ("channels.history", {"limit": 999}),
    ("channels.events", {"after_seq": 0, "limit": 1000}),
)
HOST = {"Host": "chat.example.com"}  # permalinks have it
# What depends on when it is asked, and no data.
INCOMPARABLE = ("sync_token", "cache_ts", "last_activity", "last_used", "position")
# Members that a release did not have, by the release: they may be there now, with any value.
SINCE_0_3 = ("app_id", "bot_profile", "channel_actions_count", "channel_actions_ts", "pin_count", "fields", "first_name", "last_name", "phone", "pronouns",
             "skype", "title", "image_24", "image_32", "image_48", "image_72", "image_192", "image_512")
SINCE_0_2 = ("badge", "notify", *SINCE_0_3)
ADDED_SINCE = {"0.1.0": SINCE_0_2, "0.2.0": SINCE_0_2, "0.3.0": SINCE_0_3}

# Members that these releases showed to everybody, and that not everybody sees any more.
HIDDEN_SINCE = {"0.1.0": ("email",), "0.2.0": ("email",), "0.3.0": ()}

# Until 0.3.0 only members read a public channel.
READ_BY_ALL = ("channels.history", "channels.replies")


def questions(cast):
    """(whose token, method, arguments) of each question, always in the same order."""
    for name in cast["tokens"]:
        yield name, "auth.test", {}
        if "," not in name:  # a second token of the same user says the same
            yield from questions_of(name, cast)
    for user in cast["users"]:
        yield "admin", "admin.tokens.list", {"user_id": user}
    for name, args in cast["repeats"]:
        yield name, "chat.postMessage", args


def questions_of(name, cast):
    for method, args in OF_ALL:
        yield name, method, args
    for user in cast["users"]:
        yield name, "users.info", {"user": user}
        yield name, "users.getPresence", {"user": user}
    for channel in cast["channels"]:
        for method, args in OF_A_CHANNEL:
            yield name, method, {"channel": channel, **args}
    for channel, root in cast["roots"]:
        yield name, "channels.replies", {"channel": channel, "ts": root, "limit": 999}
        yield name, "chat.getPermalink", {"channel": channel, "message_ts": root}


def ask(url, cast):
    """[name, method, arguments, reply] of each question."""
    clients = {name: Client(url, token) for name, token in cast["tokens"].items()}
    try:
        return [[name, method, args, comparable(dict(clients[name].call(method, headers=HOST, **args)))]
                for name, method, args in questions(cast)]
    finally:
        for client in clients.values():
            client.close()


def comparable(value):
    if isinstance(value, dict):
        return {name: comparable(member) for name, member in value.items() if name not in INCOMPARABLE}
    if isinstance(value, list):
        return [comparable(member) for member in value]
    return value


def compare(release, then, now):
    """A list, in words, of the differences from a release's answers."""
    assert [answer[:3] for answer in then] == [answer[:3] for answer in now], "these are answers to other questions"
    return [f"{name}: {method} {args}: {difference}" for (name, method, args, before), after in zip(then, now)
            if not (before.get("error") == "not_in_channel" and method in READ_BY_ALL)
            for difference in differences(before, after[3], ADDED_SINCE[release], HIDDEN_SINCE[release])]


def differences(then, now, added, hidden, where="reply"):
    if isinstance(then, dict) and isinstance(now, dict):
        for name in sorted({*then, *now}):
            if name in then and name in now:
                yield from differences(then[name], now[name], added, hidden, f"{where}.{name}")
            elif name in then and name not in hidden and name not in INCOMPARABLE:
                yield f"{where}.{name} is gone, it was {then[name]!r}"
            elif name in now and name not in added:
                yield f"{where}.{name} is new: {now[name]!r}"
    elif isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        for number, (before, after) in enumerate(zip(then, now)):
            yield from differences(before, after, added, hidden, f"{where}[{number}]")
    elif then != now:
        yield f"{where} was {then!r}, is {now!r}"
