# SPDX-License-Identifier: Apache-2.0
"""Two instances of an earlier release behind nginx, under load, and an operator's actions."""
import re
from contextlib import contextmanager

import requests

from tests.faults.followers import Follower, all_came, each_once, heads
from tests.support.environment import BINARY, Environment, running
from tests.support.nginx import Nginx
from tests.support.wait import act_until, wait_until
from tests.upgrade.load import RollingLoad
from tools import releases

POSTS = 200  # between two steps
SHARE_S = 10  # nginx tries an instance again that it took for a failed one 10 s before
SETTINGS = {"TIDINGS_SIDEBAR_MIN": "0"}  # sidebars are kept for all users, not only for those in many channels


class Rolling:
    """`old` is the release before, `new` the build under test."""

    def __init__(self, environment, nginx, load):
        self.environment = environment
        self.nginx = nginx
        self.load = load
        self.old, self.new = environment.binary, BINARY
        readers = [pair[0] for pair in load.people[-2:]]
        self.followers = [Follower(reader, [nginx.url]) for reader in readers for _ in range(2)]
        wait_until(lambda: all(follower.frames for follower in self.followers), what="all streams")
        self.since = heads(load)

    def migrate(self):
        """With the new version's program, while instances of the old one serve."""
        one_off = self.environment.instance(start=False)
        one_off.binary = self.new
        one_off.migrate()
        self.load.wait_acked(POSTS)

    def restart(self, number, binary):
        instance = self.environment.instances[number]
        assert instance.stop() == 0
        instance.binary = binary
        instance.start()
        self.serve_a_while()

    def cut_half(self):
        """Half of the clients lose their connections."""
        for client in (*self.load.lines[::2], *self.followers[::2]):
            client.cut()

    def serve_a_while(self):
        """Waits until both instances have answered calls, and posts have continued. nginx counts sockets and streams, which are all on the
        instance that did not restart: the other one would get all calls until it has its share of them. Cut once, they may all come back to
        the same instance, because nginx does not know yet that the other one is back."""
        before = [answered(instance) for instance in self.environment.instances]

        def both_answered():
            return all(answered(instance) > count + POSTS / 3 for instance, count in zip(self.environment.instances, before))

        act_until(self.cut_half, both_answered, SHARE_S, what="calls on both instances")
        self.load.wait_acked(POSTS)

    def react(self, number):
        """By this instance, which is new: streams of either version hear of it."""
        person = self.load.people[0][0].at(self.environment.instances[number].url)
        for channel, roots in self.load.roots.items():
            for method in ("reactions.add", "reactions.remove"):
                seq = person.ok(method, channel=channel, name="eyes", timestamp=roots[0])["seq"]
                wait_until(lambda c=channel, s=seq: all(s in follower.seqs(c) for follower in self.followers), what=f"event {seq} of {channel}")

    def finish(self):
        all_came(self.load, self.followers, self.since)
        for follower in self.followers:
            assert follower.opened > 1, "no stream was cut off"
            each_once(follower, self.load.channels)
        assert all(line.logs for line in self.load.lines), "a socket was never cut off"
        self.load.settle()
        self.load.judge()

    def stop(self):
        for follower in self.followers:
            follower.stop()


def answered(instance):
    """The number of calls that an instance has answered since its start."""
    text = requests.get(f"{instance.url}/metrics", timeout=30).text
    return sum(float(value) for value in re.findall(r"^tidings_http_requests_total\{.*\} (\S+)$", text, re.MULTILINE))


@contextmanager
def upgrade(directory, **args):
    """A Rolling, under load already."""
    for environment in running(Environment(directory, settings=SETTINGS, binary=releases.build(releases.before()), **args)):
        with Nginx(directory / "nginx", environment.instances) as nginx, RollingLoad(environment, nginx) as load:
            load.wait_acked(POSTS)
            rolling = Rolling(environment, nginx, load)
            try:
                yield rolling
            finally:
                rolling.stop()
