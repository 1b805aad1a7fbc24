# SPDX-License-Identifier: Apache-2.0
"""Reads all pages of paged methods, identifies frames, and compares them."""

EVENT_TYPES = ("message", "member_joined_channel", "member_left_channel", "reaction_added", "reaction_removed", "pin_added", "pin_removed")
# Members of whatever tells one's read state of a channel: replies, frames.
READ_STATE = ("channel", "last_read", "read_epoch", "has_unreads", "unread_count", "unread_count_display", "unread_capped",
              "mention_count", "is_muted", "notify")
JOINS_AND_LEAVES = ("channel_join", "channel_leave")


def is_event(frame):
    """Whether a frame is one of a channel's numbered events."""
    return frame.get("type") in EVENT_TYPES and "seq" in frame


def kind_of(frame):
    """The kind of an event: message, message_changed, message_deleted, member_joined_channel or member_left_channel."""
    subtype = frame.get("subtype", "")
    return subtype if subtype in ("message_changed", "message_deleted") else frame["type"]


def same_event(one, other):
    """Whether two frames are equivalent. An instance reads missed events back from Postgres, which does not have `previous_message`: so
    one of the two may lack that."""
    names = {*one, *other}
    if not ("previous_message" in one and "previous_message" in other):
        names.discard("previous_message")
    return all(name in one and name in other and one[name] == other[name] for name in names)


def whole_history(member, channel, page=500):
    """The messages of users and bots in a channel, newest first."""
    messages = _all_pages(member, "channels.history", channel=channel, limit=page)
    return [m for m in messages if m.get("subtype") not in JOINS_AND_LEAVES]


def whole_thread(member, channel, root, page=500):
    """The replies of a thread, oldest first."""
    messages = _all_pages(member, "channels.replies", channel=channel, ts=root, limit=page)
    return [m for m in messages if m["ts"] != root]


def _all_pages(member, method, member_name="messages", **args):
    found, cursor = [], ""
    while True:
        reply = member.ok(method, **args, **({"cursor": cursor} if cursor else {}))
        found += reply[member_name]
        cursor = (reply.get("response_metadata") or {}).get("next_cursor", "")
        if not cursor:
            return found


def whole_threads(member, page=500):
    """threads.list, all of it."""
    return _all_pages(member, "threads.list", "threads", limit=page)


def whole_log(member, channel, page=500):
    """The events of a channel from the first on."""
    events, after = [], 0
    while True:
        reply = member.ok("channels.events", channel=channel, after_seq=after, limit=page)
        events += reply["events"]
        after = reply["through_seq"]
        if not reply["has_more"]:
            return events


def whole_sidebar(member, since=None, page=None):
    """unread.sync with what all its pages say of channels."""
    args = {name: value for name, value in (("since", since), ("limit", page)) if value is not None}
    whole = reply = member.ok("unread.sync", **args)
    while reply["response_metadata"]["next_cursor"]:
        reply = member.ok("unread.sync", cursor=reply["response_metadata"]["next_cursor"], **args)
        whole["channels"] += reply["channels"]
        whole["removed"] += reply["removed"]
    return whole
