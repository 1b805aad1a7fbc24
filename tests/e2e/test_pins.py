# SPDX-License-Identifier: Apache-2.0
"""Pins: adding, removing, listing, bounds."""


def test_a_pin(workspace):
    ann, bob = workspace.users(2)
    channel = workspace.channel(ann, bob)
    position = ann.ok("unread.sync")["position"]
    first, second = ann.post(channel, "one"), ann.post(channel, "two")
    reply = bob.post(channel, "three", thread_ts=first)
    for ts in (first, second, reply):
        bob.ok("pins.add", channel=channel, timestamp=ts)
    bob.ok("reactions.add", channel=channel, timestamp=first, name="eyes")
    reactions = [{"name": "eyes", "users": [bob.id], "count": 1}]
    ann.fails("already_pinned", "pins.add", channel=channel, timestamp=first)
    items = ann.ok("pins.list", channel=channel)["items"]
    assert [(item["message"]["ts"], item["message"]["pinned_to"]) for item in items] == [(ts, [channel]) for ts in (reply, second, first)]
    assert {(item["type"], item["channel"], item["created_by"]) for item in items} == {("message", channel, bob.id)}
    assert all(item["message"]["permalink"] == ann.ok("chat.getPermalink", channel=channel, message_ts=item["message"]["ts"])["permalink"]
               for item in items)
    history = ann.ok("channels.history", channel=channel)
    assert history["pin_count"] == 3 and all(m.get("pinned_to") == [channel] for m in history["messages"] if m["ts"] in (first, second))
    for events in (ann.ok("events.sync", since=position)["events"], ann.ok("channels.events", channel=channel, after_seq=0)["events"]):
        posts = [event for event in events if event.get("ts") in (first, second, reply)]
        assert [post["pinned_to"] for post in posts] == [[channel]] * 3 and [post.get("reactions") for post in posts] == [reactions, None, None]
        pins = [event for event in events if event["type"] == "pin_added"]
        assert [(pin["channel_id"], pin["pin_count"], pin["has_pins"]) for pin in pins] == [(channel, 1, True), (channel, 2, True), (channel, 3, True)]
        assert {pin["pinned_info"]["pinned_by"] for pin in pins} == {bob.id}
    ann.ok("pins.remove", channel=channel, timestamp=first)
    ann.fails("no_pin", "pins.remove", channel=channel, timestamp=first)
    ann.ok("chat.delete", channel=channel, ts=second)
    assert [item["message"]["ts"] for item in ann.ok("pins.list", channel=channel)["items"]] == [reply]
    joined = next(m for m in history["messages"] if m.get("subtype") == "channel_join")
    ann.fails("not_pinnable", "pins.add", channel=channel, timestamp=joined["ts"])


def test_the_bound(workspace):
    ann = workspace.user()
    channel = workspace.channel(ann)
    tss = [ann.post(channel) for _ in range(101)]
    for ts in tss[:100]:
        ann.ok("pins.add", channel=channel, timestamp=ts)
    ann.fails("too_many_pins", "pins.add", channel=channel, timestamp=tss[100])
    ann.ok("chat.delete", channel=channel, ts=tss[0])
    ann.ok("pins.add", channel=channel, timestamp=tss[100])
    assert ann.ok("channels.history", channel=channel, limit=1)["pin_count"] == 100
