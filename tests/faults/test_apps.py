# SPDX-License-Identifier: Apache-2.0
"""Apps in Socket Mode during outages: unacked events arrive on another socket."""
import threading
from functools import partial

import pytest

from tests.support.client import Client
from tests.support.kept import ack_new, wait_kept
from tests.support.sockets import Socket
from tests.support.wait import wait_until


class App:
    """An app with one socket on each instance, which acks only as instructed."""

    def __init__(self, parts):
        self.workspace = parts.workspace()
        self.ann = self.workspace.user()
        bot = self.workspace.bot()
        made = self.workspace.admin.ok("admin.apps.create", name="an app", bot_user_id=bot.id)
        self.channel = self.workspace.channel(self.ann, bot)
        self.token = made["app_token"]
        self.links = [self.open(url) for url in parts.urls]
        acked = [[] for _ in self.links]
        wait_kept(parts, made["app"]["id"], self.channel, [partial(self.ann.at(url).post, self.channel) for url in parts.urls],
                  lambda: any(map(ack_new, self.links, acked)))

    def open(self, url):
        link = Socket(Client(url, self.token).ok("apps.connections.open")["url"])
        link.expect({"type": "hello"})
        return link

    def texts(self, link):
        return {f["payload"]["event"].get("text") for f in link.matching({"type": "events_api"})}


@pytest.fixture
def app(parts):
    made = App(parts)
    yield made
    for link in made.links:
        link.close()


def test_an_instance_dies_with_unacked_envelopes(parts, app):
    wanted = {f"m{i}" for i in range(20)}
    for text in sorted(wanted):
        app.ann.at(parts.urls[1]).post(app.channel, text)
    wait_until(lambda: app.texts(app.links[0]) | app.texts(app.links[1]) >= wanted)
    parts.instances[0].kill()
    wait_until(lambda: app.texts(app.links[1]) >= wanted, what="all envelopes on the other instance")


def test_the_only_instance_with_a_link_dies(parts, app):
    """Its unacked events, and all events until the app reconnects to another instance, arrive there."""
    app.links[1].close()
    unacked = {f"m{i}" for i in range(5)}
    for text in sorted(unacked):
        app.ann.at(parts.urls[1]).post(app.channel, text)
    wait_until(lambda: app.texts(app.links[0]) >= unacked)
    parts.instances[0].kill()
    later = {f"n{i}" for i in range(5)}
    for text in sorted(later):
        app.ann.at(parts.urls[1]).post(app.channel, text)
    app.links[1] = app.open(parts.urls[1])
    wait_until(lambda: app.texts(app.links[1]) >= unacked | later, what="all envelopes on the other instance")


def test_events_of_a_gap_in_which_redis_is_dead(parts, app):
    for link in app.links:
        link.close()
    parts.redis.kill()
    wanted = {f"m{i}" for i in range(5)}
    for text in sorted(wanted):
        app.ann.post(app.channel, text)
    parts.redis.start()
    app.links[0] = app.open(parts.urls[0])
    wait_until(lambda: app.texts(app.links[0]) >= wanted, what="all events of the gap")


def test_without_redis_events_still_come(parts, app):
    parts.redis.kill()
    stop, acked = threading.Event(), [[] for _ in app.links]

    def ack_on():
        while not stop.wait(0.05):
            for link, done in zip(app.links, acked):
                ack_new(link, done)

    acker = threading.Thread(target=ack_on)
    acker.start()
    try:
        wanted = {f"m{i}" for i in range(10)}
        for text in sorted(wanted):
            app.ann.post(app.channel, text)
        wait_until(lambda: app.texts(app.links[0]) | app.texts(app.links[1]) >= wanted)
    finally:
        stop.set()
        acker.join()
    parts.redis.start()
    wait_until(lambda: app.ann.page("/readyz").status_code == 200)
    app.ann.post(app.channel, "with redis again")
    wait_until(lambda: any("with redis again" in app.texts(link) for link in app.links))
