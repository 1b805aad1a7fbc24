# SPDX-License-Identifier: Apache-2.0
"""A workspace in use, as it is shown in docs/app.md. TIDINGS_SCREENSHOTS names a directory that takes the pictures."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

SIZE_MAX = 200 * 1024
TALK = [
    ("mira", "Morning! The migration ran through at 06:40, nothing in the error log."),
    ("mira", "Dashboards: https://status.example.org/tidings"),
    ("jonas", "Nice. How long did the copy of `messages` take?"),
    ("mira", "11 minutes, 42 of 90 partitions. I would do the rest tonight."),
    ("jonas", "Fine by me. {me} can you watch the consumers' lag meanwhile?"),
]
REPLIES = [("jonas", "Which partitions are left?"), ("mira", "Everything before August. They are small."),
           ("jonas", "Then I start at nine.")]


@pytest.fixture
def talk(workspace):
    """{name: Member}, {name: id of a channel}: a morning in a team; "ann" is who looks at it."""
    people = {name: workspace.user(name) for name in ("ann", "mira", "jonas", "pat")}
    others = [people[name] for name in ("mira", "jonas", "pat")]
    rooms = {name: workspace.channel(people["ann"], *others, name=name)
             for name in ("announcements", "backend", "design", "operations", "random")}
    me = f"<@{people['ann'].id}>"
    said = [people[who].post(rooms["operations"], text.format(me=me)) for who, text in TALK]
    for who, text in REPLIES:
        people[who].post(rooms["operations"], text, thread_ts=said[3])
    for number in range(3):
        people["pat"].post(rooms["design"], f"Draft {number + 1} of the empty states is up")
    people["jonas"].post(rooms["backend"], f"{me} the review is done")
    people["pat"].post(rooms["random"], "Cake in the kitchen")
    people["ann"].ok("channels.setNotifications", channel=rooms["random"], muted=True)
    people["ann"].ok("channels.setTopic", channel=rooms["operations"], topic="What runs, and what does not")
    return people, rooms


def keep(screen, name):
    """Writes the picture, when pictures are wanted."""
    directory = os.environ.get("TIDINGS_SCREENSHOTS")
    picture = screen.page.screenshot(animations="disabled", caret="hide")
    assert len(picture) <= SIZE_MAX
    if directory:
        Path(directory).mkdir(parents=True, exist_ok=True)
        (Path(directory) / f"{name}.png").write_bytes(picture)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_team_at_work(talk, screens, scheme):
    people, rooms = talk
    screen = screens(people["ann"], color_scheme=scheme)
    device = screen.devices[0]
    device.expect_badge("design", ", 3 unread")
    device.expect_badge("backend", ", 1 unread, 1 mention")
    device.open("operations")
    device.send("On it. @mira ping me when you begin?")
    device.root.get_by_role("button", name="3 replies").click()
    expect(device.pane.get_by_text("Then I start at nine.", exact=True)).to_be_visible()
    device.expect_badge("operations", "")
    keep(screen, f"app-{scheme}")


def test_two_devices(talk, screens):
    people, _ = talk
    screen = screens(people["ann"], devices=2, color_scheme="light", width=1400, height=720)
    one, two = screen.devices
    one.open("operations")
    two.open("design")
    for device in (one, two):
        for name in ("operations", "design"):
            device.expect_badge(name, "")
    keep(screen, "app-devices")


def test_a_phone(talk, screens):
    people, _ = talk
    screen = screens(people["ann"], color_scheme="dark", width=390, height=760, has_touch=True, is_mobile=True)
    device = screen.devices[0]
    device.open("operations")
    keep(screen, "app-phone")
