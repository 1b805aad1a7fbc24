# SPDX-License-Identifier: Apache-2.0
"""unread.sync: latest_preview."""

from concurrent.futures import ThreadPoolExecutor

import pytest


@pytest.fixture
def people(workspace):
    return workspace.users(2)


def preview_of(client, channel):
    return next(e["latest_preview"] for e in client.ok("unread.sync")["channels"] if e["id"] == channel)


@pytest.mark.parametrize("text, preview", [
    ("short", "short"), ("x" * 81, "x" * 80), ("\U0001f600" * 100, "\U0001f600" * 80), ("\u00e9" * 80, "\u00e9" * 80),
])
def test_preview(people, workspace, text, preview):
    ann, bob = people
    channel = workspace.channel(ann, bob)
    ann.post(channel, text)
    assert preview_of(bob, channel) == preview


FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467"


@pytest.mark.parametrize("start, cluster, shown", [
    (78, FAMILY, 78), (75, FAMILY, 80), (79, "e\u0301", 79), (78, "e\u0301", 80), (79, "\U0001f1e8\U0001f1ed", 79),
    (79, "\U0001f44d\U0001f3fd", 79), (79, "\u2764\ufe0f", 79), (0, "e" + "\u0301" * 200, 80), (80, FAMILY, 80),
])
def test_a_preview_ends_where_a_character_does(people, workspace, start, cluster, shown):
    """A reader's character: a family, a flag, a letter with its accent. The same after an edit, from blocks, and once it is the latest again."""
    ann, bob = people
    channel = workspace.channel(ann, bob)
    text = "x" * start + cluster + "y" * 9

    ts = ann.post(channel, text)
    assert preview_of(bob, channel) == text[:shown]
    ann.ok("chat.update", channel=channel, ts=ts, text=f"{text}z")
    assert preview_of(bob, channel) == text[:shown]
    ann.ok("chat.delete", channel=channel, ts=ann.post(channel, "later"))
    assert preview_of(bob, channel) == text[:shown]
    ann.ok("chat.postMessage", channel=channel, blocks=[{"type": "section", "text": {"type": "mrkdwn", "text": text}}])
    assert preview_of(bob, channel) == text[:shown]


def rich(*elements):
    return [{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": list(elements)}]}]


SECTION = [{"type": "section", "text": {"type": "mrkdwn", "text": "only *blocks*\nhere"}}]


@pytest.mark.parametrize("content, preview", [
    ({"text": "the text", "blocks": SECTION}, "the text"),
    ({"blocks": SECTION}, "only *blocks* here"),
    ({"text": "  ", "blocks": SECTION}, "only *blocks* here"),
    ({"blocks": rich({"type": "text", "text": "see "}, {"type": "link", "url": "https://a.example/"}, {"type": "text", "text": " "},
                     {"type": "user", "user_id": "U123"}, {"type": "emoji", "name": "tada"})}, "see https://a.example/ <@U123>:tada:"),
    ({"blocks": [{"type": "header", "text": {"type": "plain_text", "text": "Title"}}, {"type": "divider"},
                 {"type": "section", "fields": [{"type": "mrkdwn", "text": "a"}, {"type": "plain_text", "text": "b"}]},
                 {"type": "actions", "elements": [{"type": "button", "text": {"type": "plain_text", "text": "Press"}}]},
                 {"type": "context", "elements": [{"type": "image", "alt_text": "a cat"}]}]}, "Title a b a cat"),
    ({"blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "\u00e9" * 200}}]}, "\u00e9" * 80),
    ({"blocks": [{"type": "divider"}] * 50}, ""),
    ({"attachments": [{"fallback": "the fallback", "text": "more"}]}, "the fallback"),
    ({"attachments": [{"color": "red"}, {"text": "its text"}]}, "its text"),
    ({"attachments": [{"blocks": SECTION}]}, "only *blocks* here"),
    ({"blocks": [{"type": "divider"}], "attachments": [{"fallback": "behind a line"}]}, "behind a line"),
    ({"blocks": [{"type": "odd", "text": 7, "elements": {"text": ["x"]}, "fields": None}], "attachments": [{"fallback": ""}]}, ""),
])
def test_preview_without_text(people, workspace, content, preview):
    """The same text as in a notification, also after an edit and when the message is the latest again."""
    ann, bob = people
    channel = workspace.channel(ann, bob)
    ts = ann.ok("chat.postMessage", channel=channel, **content)["ts"]
    assert preview_of(bob, channel) == preview
    ann.ok("chat.delete", channel=channel, ts=ann.post(channel, "later"))
    assert preview_of(bob, channel) == preview
    ann.ok("chat.update", channel=channel, ts=ann.post(channel, "later"), text="edited")
    assert preview_of(bob, channel) == "edited"
    ann.ok("chat.delete", channel=channel, ts=bob.history(channel)[0]["ts"])
    assert preview_of(bob, channel) == preview and bob.history(channel)[0]["ts"] == ts


def test_preview_after_an_edit_of_blocks(people, workspace):
    ann, bob = people
    channel = workspace.channel(ann, bob)
    ts = ann.ok("chat.postMessage", channel=channel, blocks=SECTION)["ts"]
    edited = [{"type": "header", "text": {"type": "plain_text", "text": "edited"}}]
    ann.ok("chat.update", channel=channel, ts=ts, blocks=edited)
    assert preview_of(bob, channel) == "edited"


def test_previews_of_posts_that_are_committed_together(environment, people, workspace):
    ann, bob = people
    rooms = [workspace.channel(ann, bob) for _ in range(4)]

    def post(number):
        content = {"blocks": SECTION} if number % 3 else {"text": "t"}
        ann.at(environment.urls[0]).ok("chat.postMessage", channel=rooms[number % 4], **content)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(post, range(32)))
    for room in rooms:
        wanted = "only *blocks* here" if "blocks" in bob.history(room)[0] else "t"
        assert preview_of(bob, room) == wanted
