# SPDX-License-Identifier: Apache-2.0
"""The cost of each strategy in Redis, measured with the functions of lua/ on a private Redis: memory per member, Redis' time for
a post in channels of several sizes, and for a read; members per second of a fan-out, alternating with the bare commands
(ZADD and a trim; HINCRBY) pipelined to the same Redis."""
import re
import socket
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.redis_library import function, library
from tools.services import Redis

SIZES = (10, 100, 1000, 10000)
POSTS = 50
CHUNK = 1000
CAP = 100
TS = 1717200000000000


def packed(commands):
    return b"".join(b"*%d\r\n" % len(words) + b"".join(
        b"$%d\r\n%s\r\n" % (len(word), word) for word in (str(part).encode() for part in words)) for words in commands)


@dataclass
class Costs:
    """One line of the table in docs/unread.md."""
    strategy: str
    member_bytes: float
    post_us: list  # by SIZES
    read_us: float


class Connection:
    """Just enough of Redis' protocol to pipeline commands."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.file = self.socket.makefile("rb")

    def call(self, *words):
        return self.calls([words])[0]

    def calls(self, commands):
        self.socket.sendall(packed(commands))
        return [self.answer() for _ in commands]

    def seconds(self, commands):
        """Until the last answer, without the packing; they answer with integers."""
        out = packed(commands)
        began = time.monotonic()
        self.socket.sendall(out)
        answers = [self.file.readline() for _ in commands]
        took = time.monotonic() - began
        if any(answer[:1] != b":" for answer in answers):
            raise RuntimeError(str(answers[:3]))
        return took

    def answer(self):
        line = self.file.readline()[:-2]
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2].decode()
        if kind == b"*":
            return [self.answer() for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest.decode()

    def spent_us(self):
        """Redis' own time in functions since the last reset."""
        stats = self.call("INFO", "commandstats")
        return sum(float(found) for found in re.findall(r"cmdstat_fcall:calls=\d+,usec=(\d+)", stats))


class Channel:
    def __init__(self, redis, strategy, size):
        self.redis, self.strategy, self.size = redis, strategy, size
        self.id = f"C{strategy}{size}"
        self.users = [f"U{number:010}" for number in range(size)]
        self.seq = 0

    def keys(self, user):
        kept = f"channel:{{{self.id}}}:read" if self.strategy == "bitmap" else f"unread:{{{user}}}:{self.id}"
        return [f"channel-walk:{{{self.id}}}", f"channel:members:{{{self.id}}}", kept]

    def member_call(self, name, number, *arguments):
        return ["FCALL", function(name), 3, *self.keys(self.users[number]), 0, self.seq, self.users[number], number, *arguments]

    def install(self):
        extra = {"counter": (0, 0, 0, TS), "zset": (0, TS), "bitmap": ()}[self.strategy]
        self.redis.calls([self.member_call(f"{self.strategy}_install", number, *extra) for number in range(self.size)])

    def post(self):
        """The same steps as unread/walk.c: begin, chunks of members, the author, the end."""
        build = self.begin()
        if self.strategy != "bitmap":
            self.redis.calls(self.walk(build))

    def begin(self):
        self.seq += 1
        keys, walks = (self.keys("")[0], f"channel:{{{self.id}}}:read"), int(self.strategy != "bitmap")
        return self.redis.call("FCALL", function("walk_begin"), 2, *keys, 0, self.seq, self.seq, "bench", walks, 1)

    def walk(self, build):
        walk, ts = self.keys("")[0], TS + self.seq
        keep = CAP if self.seq % 16 == 0 else 0
        event = [1] if self.strategy == "counter" else [keep, 1, ts, self.seq, 0]
        chunks = [self.users[first:first + CHUNK] for first in range(0, self.size, CHUNK)]
        commands = []
        for turn, users in enumerate(chunks):
            keys = [f"unread:{{{user}}}:{self.id}" for user in users]
            commands.append(["FCALL", function(f"{self.strategy}_walk"), 1 + len(keys), walk, *keys, build, self.seq, "bench", turn, *event])
        commands.append(["FCALL", function("walk_end"), 1, walk, build, self.seq, "bench", len(chunks)])
        return commands

    def bare(self):
        """The strategy's commands alone, for each member."""
        if self.strategy == "counter":
            return [["HINCRBY", f"bare:{{{user}}}", "n", 1] for user in self.users]
        return [words for user in self.users for words in (
            ["ZADD", f"bare:{{{user}}}", TS + self.seq, self.seq], ["ZREMRANGEBYRANK", f"bare:{{{user}}}", 0, -CAP - 1])]

    def read(self):
        extra = {"counter": (0, 0, TS), "zset": (0, TS, CAP), "bitmap": ()}[self.strategy]
        return self.redis.calls([self.member_call(f"{self.strategy}_read", number, *extra) for number in range(min(self.size, 1000))])

    def bytes_a_member(self):
        if self.strategy == "bitmap":
            return self.redis.call("MEMORY", "USAGE", self.keys("")[2]) / self.size
        used = self.redis.calls([["MEMORY", "USAGE", self.keys(user)[2], "SAMPLES", 0] for user in self.users])
        return sum(used) / self.size


def measured(redis, work):
    redis.call("CONFIG", "RESETSTAT")
    work()
    return redis.spent_us()


def sequence_costs(redis):
    """A post changes the channel's head alone; a member is a field of their hash of cursors."""
    redis.call("FLUSHALL")
    redis.call("FCALL", function("channel_install"), 1, "channel-latest:{C}", 0, 0, 0, "")
    member = [["FCALL", function("member_apply"), 1, "read_cursor:{U}", f"C{number:010}", 0, TS, 1, 1, 0, 1, 1] for number in range(1000)]
    redis.calls(member)
    kept = redis.call("MEMORY", "USAGE", "read_cursor:{U}", "SAMPLES", 0) / 1000
    applied = [["FCALL", function("channel_apply"), 1, "channel-latest:{C}", seq, seq, seq] for seq in range(1, 1001)]
    post = measured(redis, lambda: redis.calls(applied)) / 1000
    return Costs("sequence", kept, [post] * len(SIZES), 0)


def costs_of(redis, strategy):
    posts, read, kept = [], 0, 0
    for size in SIZES:
        redis.call("FLUSHALL")
        channel = Channel(redis, strategy, size)
        channel.install()
        if strategy == "bitmap":
            kept = channel.bytes_a_member()
        rounds = CAP + 20 if size == 1000 else POSTS
        posts.append(measured(redis, lambda: [channel.post() for _ in range(rounds)]) / rounds)
        if strategy == "bitmap":
            channel.install()
        if size == 1000:
            read = measured(redis, channel.read) / 1000
            kept = channel.bytes_a_member()
    return Costs(strategy, kept, posts, read)


def all_costs(redis):
    return [sequence_costs(redis)] + [costs_of(redis, strategy) for strategy in ("zset", "counter", "bitmap")]


def fan_out(redis, strategy, size, rounds):
    """Recipients a second at the cap, with the bare commands and with our functions, round by round."""
    redis.call("FLUSHALL")
    channel = Channel(redis, strategy, size)
    channel.install()
    runs = [(redis.seconds(channel.bare()), redis.seconds(channel.walk(channel.begin()))) for _ in range(CAP + rounds)][CAP:]
    return tuple([size / seconds for seconds in column] for column in zip(*runs))


def zset_bytes(redis, messages):
    """The bytes of a member's key with this many unread messages."""
    redis.call("FLUSHALL")
    channel = Channel(redis, "zset", 1)
    channel.install()
    for _ in range(messages):
        channel.post()
    return channel.bytes_a_member()


def bitmap_bits(redis, members):
    """A member, of a channel that all of them have read, each after another."""
    redis.call("FLUSHALL")
    channel = Channel(redis, "bitmap", members)
    for first in range(0, members, CHUNK):
        redis.calls([channel.member_call("bitmap_install", number) for number in range(first, min(first + CHUNK, members))])
    return 8 * channel.bytes_a_member()


@contextmanager
def private_redis():
    with tempfile.TemporaryDirectory() as directory:
        server = Redis(Path(directory))
        server.start()
        try:
            redis = Connection(server.port)
            redis.call("FUNCTION", "LOAD", library())
            yield redis
        finally:
            server.stop()
