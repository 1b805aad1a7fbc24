# SPDX-License-Identifier: Apache-2.0
"""Strategies in the machine of test_unread.py: changed at any moment, what each shows of a count, messages read one by one."""
from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.property.choices import CAP, DISPLAY_MAX, STRATEGIES, channels, instances, pick, picks


def check_counts(channel, shown, unread):
    """The form in which the channel's strategy shows `unread` messages."""
    assert shown["has_unreads"] == (unread > 0), (shown, unread)
    if channel.strategy == "bitmap":
        assert "unread_count" not in shown and "unread_count_display" not in shown, shown
        assert not shown["unread_capped"], shown
        return
    most = min(unread, CAP) if channel.strategy == "zset" else unread
    assert shown["unread_count"] == most, (channel.strategy, shown, unread)
    assert shown["unread_count_display"] == min(most, DISPLAY_MAX), (channel.strategy, shown, unread)
    assert shown["unread_capped"] == (most < unread), (channel.strategy, shown, unread)


class StrategyRules:
    """Mixed into the machine."""

    @rule(number=channels, who=picks, instance=instances, chosen=st.sampled_from(("auto", *STRATEGIES)))
    def set_strategy(self, number, who, instance, chosen):
        """By the channel's creator; others may not."""
        chan, user = self.chan(number), self.member(number, who)
        args = {"channel": chan.id, "strategy": chosen}
        if user != 0:
            self.world.member(user, instance).fails("restricted_action", "channels.setStrategy", **args)
        reply = self.world.ok(0, instance, "channels.setStrategy", **args)
        chan.strategy = "sequence" if chosen == "auto" else chosen
        assert (reply["strategy"], reply["strategy_in_use"]) == (chosen, chan.strategy), reply

    @rule(number=channels, who=picks, instance=instances, wanted=st.lists(picks, min_size=1, max_size=4))
    def mark_messages(self, number, who, instance, wanted):
        """All or none of any messages: read ones, the user's own, replies, deleted ones."""
        chan, user = self.chan(number), self.member(number, who)
        chosen = [pick(list(chan.messages.values()), which) for which in wanted]
        args = {"channel": chan.id, "ts": [m.ts for m in chosen]}
        error = "strategy_unsupported" if chan.strategy == "bitmap" else "message_not_found"
        if chan.strategy == "bitmap" or any(m.deleted for m in chosen):
            self.world.member(user, instance).fails(error, "channels.markMessages", **args)
            return
        reply = self.world.ok(user, instance, "channels.markMessages", **args)
        changed = self.model.mark_messages(user, chan.id, args["ts"])
        self.check_read_state(user, chan.id, reply)
        if changed:
            self.tell_devices(user, chan.id)
