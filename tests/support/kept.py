# SPDX-License-Identifier: Apache-2.0
"""Stored events of an app in Socket Mode."""

from tests.support.wait import wait_until


def rows(environment, app_id, condition):
    with environment.database() as database:
        return database.execute(f"SELECT count(*) FROM app_events WHERE app_id = %s AND {condition}", [app_id]).fetchone()[0]


def kept(environment, app_id):
    """The number of events that wait for the app."""
    return rows(environment, app_id, "frame IS NOT NULL")


def wait_kept(environment, app_id, channel, posts, ack=None):
    """Waits until events are stored for the app: each instance begins up to 0.5 s after the app was created.

    `posts`: for each instance a function that posts to the channel there. Then calls `ack` until all events are acked and
    none is in flight."""
    for post in posts:
        before = rows(environment, app_id, "happened > 0")
        wait_until(lambda: post() and rows(environment, app_id, "happened > 0") > before, interval=0.05, what="an event kept")
    environment.wait_fanned_out(channel)
    if ack:
        wait_until(lambda: ack() or kept(environment, app_id) == 0, what="all events acked")


def ack_new(link, acked):
    """Acks the events received on this link that are not in `acked` yet."""
    for frame in link.matching({"type": "events_api"})[len(acked):]:
        link.send({"envelope_id": frame["envelope_id"]})
        acked.append(frame)
